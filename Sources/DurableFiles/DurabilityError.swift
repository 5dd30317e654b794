package import SystemPackage

/// Why something that must survive a power cut could not be made to.
package enum DurabilityError: Error, Equatable, Sendable {
  /// Another process holds the lock.
  case locked(FilePath)
  /// A file that must be new is there already.
  case alreadyExists(FilePath)
  /// A folder, a FIFO, a socket or a device lies where a regular file is expected.
  case notRegular(FilePath, FileKind)
  /// Something else lies where a folder is expected.
  case notFolder(FilePath, FileKind)
  /// A part of a path is a symbolic link, which is not followed.
  case symbolicLink(FilePath)
  /// A file that is read whole is larger than any of its kind.
  case tooLarge(FilePath, limitBytes: Int)
  /// A file that is changed in place has further names: hard links.
  case otherNames(FilePath)
  /// Another user owns the file or folder, or may write to it.
  case notPrivate(FilePath, reason: String)
  /// Nobody can tell whether something lies there: its folder is missing or cannot be searched, as while a volume
  /// is away.
  case unreachable(FilePath, obstacle: String)
  /// The operating system refused a call.
  case failed(call: String, path: FilePath, Errno)
}

extension DurabilityError {
  package var path: FilePath {
    switch self {
    case .locked(let path), .alreadyExists(let path), .failed(_, let path, _),
      .notRegular(let path, _), .notFolder(let path, _), .symbolicLink(let path),
      .tooLarge(let path, _),
      .notPrivate(let path, _), .otherNames(let path), .unreachable(let path, _):
      path
    }
  }

  /// The operating system's reason, where there is one.
  package var errno: Errno? {
    if case .failed(_, _, let errno) = self { errno } else { nil }
  }

  /// The volume, or this user's part of it, is full.
  package var isOutOfSpace: Bool { errno?.isOfFullVolume ?? false }

  /// The system failed: what lies at the path, and who may read it, is not to blame. Whoever reads a
  /// file that a person names lets it through, so that it is not taken for a wrong file.
  package var isOfMachine: Bool { errno.map { !DurableFile.meansAbsent($0.rawValue) } ?? false }

  /// Another process has a lease on the file, while it replaces it: who would open it has to wait until it
  /// gives the lease back, or the kernel takes it away. Source: fcntl(2), "Leases".
  package var isLeased: Bool {
    if case .failed(let call, _, .wouldBlock) = self { call.hasPrefix("open") } else { false }
  }

  package var isNotFound: Bool { errno == .noSuchFileOrDirectory }

  package var isUnreachable: Bool { if case .unreachable = self { true } else { false } }
}

extension Errno {
  /// The volume, or this user's part of it, is full.
  package var isOfFullVolume: Bool { self == .noSpace || self == Errno(rawValue: 122) }  // EDQUOT
}

extension DurabilityError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .locked(let path):
      "\(path) is locked by another process. Wait for it to end, or stop it, and run again."
    case .alreadyExists(let path):
      "\(path) already exists and is not replaced. Move it away and run again."
    case .notRegular(let path, let kind):
      "\(path) is \(kind), not a regular file. "
        // Whatever it is, it is not for a run to have it removed: a device may be the system's.
        + (kind == .folder
          ? "Move it away, or give the path of a regular file."
          : "Give the path of a regular file.")
    case .notFolder(let path, let kind):
      "\(path) is \(kind), not a folder. Move it away, or give another path."
    case .symbolicLink(let path):
      "\(path) is a symbolic link, which is not followed. Give the path that it leads to, or put "
        + "the file or folder itself there."
    case .tooLarge(let path, let limit):
      "\(path) has more than \(limit) bytes, the most that such a file may have. Check what it is."
    case .notPrivate(let path, let reason):
      "\(path) cannot be trusted: \(reason). Make this user its owner and take the others' right "
        + "to write (chmod go-w), or remove it."
    case .otherNames(let path):
      "\(path) has other names (hard links), under which it would be changed, too. Put a copy of it in "
        + "its place, or remove this name."
    case .unreachable(let path, let obstacle):
      "\(path) cannot be looked at: \(obstacle). Bring its volume or folder back, and run again."
    case .failed(let call, let path, let errno):
      "\(path): \(call) failed, \(errno) (errno \(errno.rawValue)). \(advice)"
    }
  }

  /// The call of ``failed(call:path:_:)`` for a file that this user may not read.
  package static let reading = "open for reading"

  private var advice: String {
    if isOutOfSpace { return "Free space on the volume and run again." }
    if isLeased {
      return "Another process replaces it just now, or stands still at that. Run again in a minute."
    }
    if case .failed(Self.reading, _, _) = self { return "Let this user read it and run again." }
    switch errno {
    case .permissionDenied, .notPermitted, .readOnlyFileSystem:
      return "Let this user write there and run again."
    case .noSuchFileOrDirectory, .notDirectory:
      return "Check the path and run again."
    case .fileNameTooLong:
      return "Shorten the name, or those of the folders on the way, and run again."
    case .ioError:
      return "Check the volume, or use another one, before the next run."
    default:
      return "Check the volume and run again."
    }
  }
}
