internal import Glibc
package import SystemPackage

/// Keeps SQLite out of a database file, held until the value goes away.
///
/// Takes the bytes that SQLite's own locks lie on, so it fails while another process has the file
/// open in WAL mode or is in a transaction, and makes everybody else wait while it is held. A
/// connection that holds no lock is not noticed: one that has read nothing yet, or an idle one in
/// rollback mode. ``takeLease(waitingMilliseconds:)`` notices those.
///
/// The lock belongs to the open file, not to the process (`F_OFD_SETLK`, fcntl(2)): closing another
/// descriptor of the same file does not drop it.
///
/// Source: https://sqlite.org/src/file/src/os.h, `PENDING_BYTE`, `RESERVED_BYTE`, `SHARED_FIRST`.
package struct StoreLock: ~Copyable {
  let path: FilePath
  let descriptor: FileDescriptor
  /// False for a file that may not be written: the lock is not held then.
  let isWritable: Bool
  var hasLease = false

  /// Takes the lock at once, or fails. For a file that may not be written, the lock is only tried.
  ///
  /// - Throws: ``DurabilityError/locked(_:)`` when somebody else has the file in use, or has just given its
  ///   name to another.
  package init(excludingOthersFrom path: FilePath) throws {
    var command = ownedSetLock
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path, .readWrite)
    } catch let error as DurabilityError
      where error.errno == .permissionDenied || error.errno == .readOnlyFileSystem
    {
      command = ownedGetLock
      file = try RegularFile.open(path)
    } catch let error as DurabilityError where error.isLeased {
      throw DurabilityError.locked(path)
    }
    // The pending byte, the reserved byte and 510 shared ones.
    var range = byteRange(0x4000_0000, 512, F_WRLCK)
    let code = fcntl(file.rawValue, command, &range) < 0 ? errno : 0
    if code == 0, command == ownedSetLock || range.l_type == Int16(F_UNLCK) {
      // Who held the lock until now may have put another file in its place.
      let isNamed = Result { try isFile(file, at: path) }
      if case .success(true) = isNamed {
        self.path = path
        descriptor = file
        isWritable = command == ownedSetLock
        return
      }
      try? file.close()  // the first error is the one to tell
      _ = try isNamed.get()
      throw DurabilityError.locked(path)
    }
    try? file.close()  // the lock's error is the one to tell
    if code == 0 || code == EAGAIN || code == EACCES { throw DurabilityError.locked(path) }
    throw DurabilityError.failed(call: "fcntl", path: path, Errno(rawValue: code))
  }

  /// Whether somebody has a database file open in WAL mode, or is in a transaction, right now. Nothing is
  /// locked for that.
  ///
  /// SQLite's own locks belong to the process, and go when it closes any descriptor of the file: not for a
  /// process that has one of its connections open.
  package static func isHeld(on path: FilePath) throws -> Bool {
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path)
    } catch let error as DurabilityError where error.isLeased {
      return true
    }
    defer { try? file.close() }
    var range = byteRange(0x4000_0000, 512, F_WRLCK)
    try calling("fcntl", path) { fcntl(file.rawValue, ownedGetLock, &range) }
    return range.l_type != Int16(F_UNLCK)
  }

  deinit {
    // A child process that has just been started may share the open file for a moment.
    if hasLease { releaseLease(of: descriptor) }
    try? descriptor.close()
  }
}

// F_OFD_GETLK and F_OFD_SETLK; glibc declares them for _GNU_SOURCE only.
let ownedGetLock: Int32 = 36
let ownedSetLock: Int32 = 37

/// A range of bytes for fcntl(2).
func byteRange(_ start: Int, _ length: Int, _ type: Int32) -> flock {
  var range = flock()
  range.l_type = Int16(type)
  range.l_whence = Int16(SEEK_SET)
  range.l_start = off_t(start)
  range.l_len = off_t(length)
  return range
}
