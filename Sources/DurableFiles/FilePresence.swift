internal import CLinux
internal import Glibc
package import SystemPackage

/// Whether something lies at a path, for whoever would lose it by taking it for absent.
///
/// ``FileKind`` calls everything absent that cannot be reached. Where a volume is away, or a folder may
/// not be searched, the files in it are not gone.
package enum FilePresence: Sendable, Equatable {
  case there
  /// The folder is there, and has no such name.
  case absent
  /// The folder itself is missing.
  case noFolder(FilePath)
  /// Nobody can tell.
  case unreachable(Errno)

  /// Looks at the name itself: a symbolic link is there, wherever it leads.
  package init(of path: FilePath) { self = Self.look(at: path).presence }

  /// The same, with what lstat(2) says of what is there.
  static func look(at path: FilePath) -> (presence: FilePresence, status: stat) {
    var status = stat()
    switch number({ path.withPlatformString { lstat($0, &status) } }) {
    case 0: return (.there, status)
    case ENOENT: return lookInFolder(of: path)
    case let error: return (.unreachable(Errno(rawValue: error)), status)
    }
  }

  /// Looks again, in the folder itself: one that was away at the first look, and is back at the next, has the
  /// file that seemed to be absent.
  private static func lookInFolder(
    of path: FilePath
  ) -> (presence: FilePresence, status: stat) {
    var status = stat()
    let folder = path.folder
    var descriptor: Int32 = -1
    let error = number {
      descriptor = folder.withPlatformString {
        open($0, linux_path_only | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      }
      return descriptor
    }
    switch error {
    case 0: break
    case ENOENT, ENOTDIR, ELOOP: return (.noFolder(folder), status)
    default: return (.unreachable(Errno(rawValue: error)), status)
    }
    defer { close(descriptor) }
    let name = path.lastComponent?.string ?? "."
    switch number({ fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) }) {
    case 0: return (.there, status)
    case ENOENT: return (.absent, status)
    case let error: return (.unreachable(Errno(rawValue: error)), status)
    }
  }

  /// The number of the error of a call that is repeated as long as signals interrupt it; 0 for none.
  private static func number(_ call: () -> Int32) -> Int32 {
    while call() < 0 {
      if errno != EINTR { return errno }
    }
    return 0
  }

  /// Why nobody can tell whether the file is there; nil where it is known.
  package var obstacle: String? {
    switch self {
    case .there, .absent: nil
    case .noFolder(let folder): "there is no folder \(folder)"
    case .unreachable(let error): "\(error)"
    }
  }

  /// - Returns: Whether something lies at a path.
  /// - Throws: ``DurabilityError/unreachable(_:obstacle:)`` where nobody can tell.
  package static func isThere(_ path: FilePath) throws -> Bool {
    let presence = FilePresence(of: path)
    if let obstacle = presence.obstacle {
      throw DurabilityError.unreachable(path, obstacle: obstacle)
    }
    return presence == .there
  }
}

extension FileMark {
  /// The file at a path whose folder is there: nil only where that has no such name, or something that is not a
  /// regular file. For whoever would lose a file by taking it for absent.
  ///
  /// - Throws: ``DurabilityError/unreachable(_:obstacle:)`` where nobody can tell.
  package init?(reachable path: FilePath) throws {
    let (presence, status) = FilePresence.look(at: path)
    if let obstacle = presence.obstacle {
      throw DurabilityError.unreachable(path, obstacle: obstacle)
    }
    guard presence == .there, let mark = FileMark(status) else { return nil }
    self = mark
  }
}
