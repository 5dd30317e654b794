import Foundation
import Glibc
import GodwitDurableFiles
import SystemPackage

/// The mount that a folder lies on, as `/proc/self/mountinfo` has it. See `proc_pid_mountinfo(5)`.
struct SharedVolume: Sendable, Equatable {
  /// Such as `ext4` or `nfs4`.
  var type: String
  var options: Set<String>

  init(type: String, options: Set<String>) { (self.type, self.options) = (type, options) }

  /// Nil where nothing is known.
  init?(of folder: FilePath) {
    guard let table = try? KernelFile.text(of: "/proc/self/mountinfo"),
      let resolved = folder.withPlatformString({ realpath($0, nil) })
    else { return nil }
    defer { free(resolved) }
    self.init(of: String(cString: resolved), mounts: table)
  }

  init?(of path: String, mounts: String) {
    var best: (length: Int, volume: SharedVolume)?
    for line in mounts.parts(between: "\n") {
      let fields = line.parts(between: " ")
      guard fields.count > 5, let dash = fields[6...].firstIndex(of: "-") else { continue }
      let tail = fields[(dash + 1)...]
      guard let type = tail.first else { continue }
      let mount = fields[4]
      guard (path + "/").begins(with: mount == "/" ? "/" : mount + "/") else { continue }
      // Of two mounts at one place the later hides the earlier.
      guard mount.utf8.count >= best?.length ?? 0 else { continue }
      let options = [fields[5], tail.last ?? ""].flatMap { $0.split(separator: ",") }
      best = (
        mount.utf8.count, SharedVolume(type: type, options: Set(options.map(String.init)))
      )
    }
    guard let best else { return nil }
    self = best.volume
  }

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
