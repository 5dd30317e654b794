public import SystemPackage

/// Why something that must survive a power cut could not be made to.
public enum DurabilityError: Error, Equatable, Sendable {
  /// Another process holds the lock.
  case locked(FilePath)
  /// A file that must be new is there already.
  case alreadyExists(FilePath)
  /// The operating system refused a call.
  case failed(call: String, path: FilePath, Errno)
}

extension DurabilityError {
  public var path: FilePath {
    switch self {
    case .locked(let path), .alreadyExists(let path), .failed(_, let path, _): path
    }
  }

  /// The operating system's reason, where there is one.
  public var errno: Errno? {
    if case .failed(_, _, let errno) = self { errno } else { nil }
  }

  /// The volume, or this user's part of it, is full.
  public var isOutOfSpace: Bool { errno == .noSpace || errno == Errno(rawValue: 122) }  // EDQUOT

  public var isNotFound: Bool { errno == .noSuchFileOrDirectory }
}

extension DurabilityError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .locked(let path):
      "\(path) is locked by another process. Wait for it to end, or stop it, and run again."
    case .alreadyExists(let path):
      "\(path) already exists and is not replaced. Move it away and run again."
    case .failed(let call, let path, let errno):
      "\(path): \(call) failed, \(errno) (errno \(errno.rawValue)). \(advice)"
    }
  }

  private var advice: String {
    if isOutOfSpace { return "Free space on the volume and run again." }
    switch errno {
    case .permissionDenied, .notPermitted, .readOnlyFileSystem:
      return "Let this user write there and run again."
    case .noSuchFileOrDirectory, .notDirectory:
      return "Check the path and run again."
    case .ioError:
      return "Check the volume, or use another one, before the next run."
    default:
      return "Check the volume and run again."
    }
  }
}
