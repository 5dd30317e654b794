internal import Glibc
package import SystemPackage

/// What a name stands for.
package enum FileKind: Sendable, Equatable {
  case none, regular, folder, symbolicLink
  /// A FIFO, a socket or a device.
  case special

  /// What lies at a path. A link at its end is itself what lies there.
  ///
  /// - Throws: ``DurabilityError/failed(call:path:_:)`` where that cannot be told: what cannot be
  ///   looked at is not nothing, since who took it for that would lose it.
  package init(at path: FilePath) throws {
    self = try FileKind.status(of: path).map { FileKind(mode: $0.st_mode) } ?? .none
  }

  /// What a path leads to, through any links. A link that leads nowhere is one.
  ///
  /// - Throws: As ``init(at:)``.
  package init(following path: FilePath) throws {
    if let status = try FileKind.status(of: path, following: true) {
      self = FileKind(mode: status.st_mode)
    } else {
      try self.init(at: path)
    }
  }

  /// stat(2) or lstat(2) of a path; nil where nothing is there, or nothing that can be reached.
  static func status(of path: FilePath, following: Bool = false) throws -> stat? {
    var status = stat()
    while path.withPlatformString({ following ? stat($0, &status) : lstat($0, &status) }) != 0 {
      if errno == EINTR { continue }
      if DurableFile.meansAbsent(errno) { return nil }
      throw DurabilityError.failed(
        call: following ? "stat" : "lstat", path: path, Errno(rawValue: errno))
    }
    return status
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
  package var description: String {
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
  package var resolvingFolders: FilePath {
    guard let name = lastComponent else { return self }
    if Folder.isThere(folder) { return self }
    return folder.resolved?.appending(name) ?? self
  }

  /// What the path leads to, without any link; nil where that cannot be found.
  package var resolved: FilePath? {
    guard let found = withPlatformString({ realpath($0, nil) }) else { return nil }
    defer { free(found) }
    return FilePath(platformString: found)
  }

  /// The same place by its own name: a path that ends in `.` or `..` does not have it. What is judged by its name or
  /// its extension is judged by that of this path.
  package var named: FilePath {
    guard let last = lastComponent, last.kind != .regular else { return self }
    return resolved ?? self
  }

  /// Whether two paths name the same place: one name in one folder. The folders must exist.
  package func isSamePlace(as other: FilePath) -> Bool {
    guard let name = lastComponent, name == other.lastComponent else { return false }
    return self == other || folder.isSameFile(as: other.folder)
  }

  /// Whether both paths lead to one file or folder, which must exist.
  package func isSameFile(as other: FilePath) -> Bool {
    guard let first = inode(of: self), let second = inode(of: other) else { return false }
    return first == second
  }
}

private func inode(of path: FilePath) -> (device: UInt64, inode: UInt64)? {
  var status = stat()
  guard path.withPlatformString({ stat($0, &status) }) == 0 else { return nil }
  return (UInt64(status.st_dev), UInt64(status.st_ino))
}
