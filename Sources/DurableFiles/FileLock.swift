private import Glibc
package import SystemPackage

/// An advisory lock on a file, held until the value goes away.
///
/// The kernel drops the lock when the process dies, so a crashed run leaves nothing to clean up,
/// and child processes do not inherit it. See `flock(2)`.
package struct FileLock: ~Copyable {
  private let descriptor: FileDescriptor

  /// Takes the lock, or fails. The file is made if it does not exist.
  ///
  /// - Parameter patienceSeconds: How long to wait for another process to let go.
  /// - Throws: ``DurabilityError/locked(_:)`` when another process has it.
  package init(acquiring path: FilePath, patienceSeconds: Double = 0) throws {
    descriptor = try Self.lockedFile(path, patienceSeconds) { _ in nil }
  }

  deinit { try? descriptor.close() }

  /// Opens the file and locks it. It is made if it does not exist.
  ///
  /// - Parameter takeOver: Gives a locked file of that name in the place of one that somebody else
  ///   holds, or nil where that one counts.
  static func lockedFile(
    _ path: FilePath, _ patienceSeconds: Double,
    takeOver: (FileDescriptor) throws -> FileDescriptor?
  ) throws -> FileDescriptor {
    var patience = patienceSeconds
    // The holder may remove the file before it lets go. A lock on a file without a name would keep
    // nobody out, so it is given back and the file of that name now is tried.
    var tries = 8
    while tries > 0 {
      tries -= 1
      let file = try RegularFile.open(path, .readWrite, options: .create, isSole: true)
      if flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 {
        do {
          if try isFile(file, at: path) { return file }
        } catch {
          try? file.close()
          throw error
        }
        try? file.close()
        continue
      }
      let code = Errno(rawValue: errno)
      defer { try? file.close() }  // the lock's error is the one to tell
      if code == .interrupted { continue }
      guard code == .wouldBlock else {
        throw DurabilityError.failed(call: "flock", path: path, code)
      }
      if let taken = try takeOver(file) { return taken }
      guard patience > 0 else { throw DurabilityError.locked(path) }
      patience -= 0.05
      tries = 8
      _ = poll(nil, 0, 50)
    }
    throw DurabilityError.locked(path)
  }

  /// Whether somebody holds the lock. Taking the lock in the same moment may have to be tried again:
  /// see `patienceSeconds`.
  package static func isHeld(at path: FilePath) throws -> Bool {
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path)
    } catch let error as DurabilityError where error.isNotFound {
      return false
    }
    defer { try? file.close() }
    if flock(file.rawValue, LOCK_SH | LOCK_NB) == 0 { return false }
    let errno = Errno(rawValue: errno)
    if errno == .wouldBlock { return true }
    throw DurabilityError.failed(call: "flock", path: path, errno)
  }
}

/// Whether the open file is still the one of that name.
func isFile(_ file: FileDescriptor, at path: FilePath) throws -> Bool {
  var open = stat()
  var named = stat()
  try calling("fstat", path) { fstat(file.rawValue, &open) }
  do {
    try calling("lstat", path) { path.withPlatformString { lstat($0, &named) } }
  } catch let error as DurabilityError where error.isNotFound {
    return false
  }
  return open.st_dev == named.st_dev && open.st_ino == named.st_ino
}
