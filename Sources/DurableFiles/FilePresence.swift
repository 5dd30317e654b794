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
  package init(of path: FilePath) {
    var status = stat()
    var error: Int32 = 0
    repeat {
      error = path.withPlatformString { lstat($0, &status) } == 0 ? 0 : errno
    } while error == EINTR
    switch error {
    case 0: self = .there
    case ENOENT:
      let folder = path.folder
      let isFolder = (try? FileKind(at: folder)) == .folder
      self = isFolder ? .absent : .noFolder(folder)
    default: self = .unreachable(Errno(rawValue: error))
    }
  }

  /// Why nobody can tell whether the file is there; nil where it is known.
  package var obstacle: String? {
    switch self {
    case .there, .absent: nil
    case .noFolder(let folder): "there is no folder \(folder)"
    case .unreachable(let error): "\(error)"
    }
  }
}
