import Glibc
import SystemPackage

/// What this machine has mounted, as `/proc/self/mountinfo` says. See `proc_pid_mountinfo(5)`.
struct MountTable {
  private let mounts: [(place: [UInt8], volume: SharedVolume)]

  /// Nil where nothing is known.
  static var current: MountTable? {
    (try? KernelFile.text(of: "/proc/self/mountinfo")).map(MountTable.init)
  }

  init(_ text: String) {
    mounts = text.utf8.split(separator: UInt8(ascii: "\n")).compactMap { line in
      // Every field is free of spaces, and one may be empty; a number of optional ones ends with a lone hyphen.
      let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        .map(Self.unescaped)
      guard let hyphen = fields.dropFirst(6).firstIndex(of: [UInt8(ascii: "-")]),
        fields.count > hyphen + 3
      else { return nil }
      let options = (fields[5] + [UInt8(ascii: ",")] + fields[hyphen + 3])
        .split(separator: UInt8(ascii: ",")).map { String(decoding: $0, as: UTF8.self) }
      return (
        fields[4],
        SharedVolume(
          type: String(decoding: fields[hyphen + 1], as: UTF8.self), options: Set(options))
      )
    }
  }

  /// Spaces, tabs, ends of lines and backslashes of a name are written as octal digits.
  private static func unescaped(_ field: Substring.UTF8View) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), rest.count >= 3,
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// Whether any volume is one of which ``SharedVolume/danger`` warns.
  var hasDanger: Bool { mounts.contains { $0.volume.danger != nil } }

  /// The volume of a folder; nil where nothing is known.
  func volume(of folder: FilePath) -> SharedVolume? {
    guard let resolved = folder.withPlatformString({ realpath($0, nil) }) else { return nil }
    defer { free(resolved) }
    return volume(of: String(cString: resolved))
  }

  /// - Parameter path: Without links.
  func volume(of path: String) -> SharedVolume? {
    // Of two mounts at one place the later hides the earlier.
    mounts.filter { Self.lies(Array(path.utf8), below: $0.place) }
      .enumerated().max {
        ($0.element.place.count, $0.offset) < ($1.element.place.count, $1.offset)
      }?
      .element.volume
  }

  /// The volumes that are mounted somewhere below a folder.
  func volumes(below folder: FilePath) -> [SharedVolume] {
    guard let resolved = folder.withPlatformString({ realpath($0, nil) }) else { return [] }
    defer { free(resolved) }
    let path = Array(String(cString: resolved).utf8)
    return mounts.filter { Self.lies($0.place, below: path) }.map(\.volume)
  }

  private static func lies(_ path: [UInt8], below place: [UInt8]) -> Bool {
    path == place
      || path.starts(with: place + (place == [UInt8(ascii: "/")] ? [] : [UInt8(ascii: "/")]))
  }
}

/// A volume that something lies on.
struct SharedVolume: Sendable, Equatable {
  /// Such as `ext4` or `nfs4`.
  var type: String
  var options: Set<String>

  /// Why two machines could work on one store at the same time there; nil where nothing says so.
  ///
  /// Source: nfs(5), `local_lock`; mount.lustre(8), `flock` and `localflock`.
  var danger: String? {
    switch type {
    case "nfs", "nfs4":
      for option in ["local_lock=all", "local_lock=flock", "nolock"] where options.contains(option)
      {
        return "it is NFS mounted with \(option), so that flock(2) holds on one machine alone"
      }
      return nil
    case "lustre":
      return options.contains("flock")
        ? nil
        : "it is Lustre mounted without the option flock, so that locks hold on one machine alone"
    case "cifs", "smb3", "9p", "fuse.sshfs":
      return "\(type) does not keep locks between machines as stores need them"
    default: return nil
    }
  }
}
