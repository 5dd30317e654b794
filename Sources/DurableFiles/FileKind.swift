private import Glibc
public import SystemPackage

/// What a name stands for.
public enum FileKind: Sendable, Equatable {
  case none, regular, folder, symbolicLink
  /// A FIFO, a socket or a device.
  case special

  /// What lies at a path. A link at its end is itself what lies there.
  public init(at path: FilePath) {
    var status = stat()
    let isThere = path.withPlatformString { lstat($0, &status) } == 0
    // What cannot be looked at is not nothing: who took it for that would lose it.
    let absent = DurableFile.meansAbsent(errno) ? FileKind.none : .special
    self = isThere ? FileKind(mode: status.st_mode) : absent
  }

  /// What a path leads to, through any links. A link that leads nowhere is one.
  public init(following path: FilePath) {
    var status = stat()
    let isThere = path.withPlatformString { stat($0, &status) } == 0
    self = isThere ? FileKind(mode: status.st_mode) : FileKind(at: path)
  }

  /// - Parameter mode: `st_mode` of stat(2).
  init(mode: UInt32) {
    switch mode & S_IFMT {
    case S_IFREG: self = .regular
    case S_IFDIR: self = .folder
    case S_IFLNK: self = .symbolicLink
    default: self = .special
    }
  }
}

extension FileKind: CustomStringConvertible {
  public var description: String {
    switch self {
    case .none: "missing"
    case .regular: "a regular file"
    case .folder: "a folder"
    case .symbolicLink: "a symbolic link"
    case .special: "a FIFO, a socket or a device"
    }
  }
}

extension FilePath {
  /// The same place, with no symbolic link among the folders on the way to it: where there is one,
  /// the folder's own path takes its place. The last component stays as it is, link or not.
  ///
  /// A path whose folder cannot be found is returned as it is: opening it then says why.
  public var resolvingFolders: FilePath {
    guard let name = lastComponent else { return self }
    if Folder.isThere(folder) { return self }
    return folder.resolved?.appending(name) ?? self
  }

  /// What the path leads to, without any link; nil where that cannot be found.
  public var resolved: FilePath? {
    guard let found = withPlatformString({ realpath($0, nil) }) else { return nil }
    defer { free(found) }
    return FilePath(platformString: found)
  }

  /// Whether two paths name the same place: one name in one folder. The folders must exist.
  public func isSamePlace(as other: FilePath) -> Bool {
    guard let name = lastComponent, name == other.lastComponent else { return false }
    if self == other { return true }
    guard let first = inode(of: folder), let second = inode(of: other.folder) else { return false }
    return first == second
  }
}

private func inode(of path: FilePath) -> (device: UInt64, inode: UInt64)? {
  var status = stat()
  guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
  return (UInt64(status.st_dev), UInt64(status.st_ino))
}
