private import CLinux
internal import Glibc
package import SystemPackage

/// Keeps a database as it is while it is read, held until the value goes away. Nothing is opened
/// for writing.
///
/// It is SQLite's SHARED lock on the main file: nobody writes to that file in rollback mode, and
/// nobody deletes a WAL. Where the WAL's shared memory exists, it is also the lock of a checkpointer
/// and that of a reader: transactions may still be appended to the WAL, and neither the main file
/// nor what is committed in the WAL changes.
///
/// The locks belong to the open files (`F_OFD_SETLK`, fcntl(2)), see ``StoreLock``.
///
/// Source: https://sqlite.org/src/file/src/os.h, `PENDING_BYTE` and following, and
/// https://sqlite.org/walformat.html §2.3.
package struct StoreReadLock: ~Copyable {
  private let files: [FileDescriptor]
  /// False where the file system has no such locks, or others do not see them, or the shared memory may not be
  /// opened: what was read must then be compared with a second look.
  package let isHeld: Bool
  /// Whether the WAL's shared memory existed: somebody has, or had, the database open.
  package let hasSharedMemory: Bool
  /// Whether another process is in a write transaction of rollback mode. What it will commit is not
  /// in the main file yet, and its journal is not to be played back.
  package let hasWriter: Bool
  /// Whether another process is in a write transaction of WAL mode. What it has written to the WAL so
  /// far is not committed.
  package let hasLogWriter: Bool

  /// Waits for a transaction that is being committed, as SQLite's busy handler does.
  ///
  /// - Parameters:
  ///   - sharedMemory: The `-shm` file; it need not exist.
  ///   - waitingMilliseconds: How long to wait at most.
  /// - Throws: ``DurabilityError/locked(_:)`` when another process kept the database locked.
  package init(
    _ path: FilePath, sharedMemory: FilePath, waitingMilliseconds: Int = 5_000
  ) throws {
    let clock = ContinuousClock()
    let end = clock.now + .milliseconds(waitingMilliseconds)
    var pause: UInt32 = 1_000
    while true {
      switch try Self.attempt(path, sharedMemory) {
      case .taken(let files, let isHeld, let hasSharedMemory, let hasWriter, let hasLogWriter):
        self.files = files
        self.isHeld = isHeld
        self.hasSharedMemory = hasSharedMemory
        self.hasWriter = hasWriter
        self.hasLogWriter = hasLogWriter
        return
      case .busy:
        guard clock.now < end else { throw DurabilityError.locked(path) }
        usleep(pause)
        pause = min(pause * 2, 25_000)
      }
    }
  }

  deinit { for file in files { try? file.close() } }
}

extension StoreReadLock {
  private enum Attempt {
    case taken(
      [FileDescriptor], isHeld: Bool, hasSharedMemory: Bool, hasWriter: Bool, hasLogWriter: Bool)
    case busy
  }

  private static func attempt(_ path: FilePath, _ sharedMemory: FilePath) throws -> Attempt {
    let main: FileDescriptor
    do {
      main = try RegularFile.open(path)
    } catch let error as DurabilityError where error.isLeased {
      return .busy
    }
    var files = [main]
    var isTaken = false
    defer { if !isTaken { for file in files { try? file.close() } } }
    // A writer that waits for readers to end holds the pending byte, so that no new ones come.
    var outcome = try read(main, pendingByte, 1, path)
    if outcome == .held { outcome = try read(main, sharedFirst, sharedSize, path) }
    if outcome == .busy { return .busy }
    var isHeld = outcome == .held
    if isHeld { unlock(main, pendingByte, 1) }
    let hasWriter = isHeld && isWriteLocked(main, reservedByte)
    isHeld =
      isHeld && StoreLock.seesEverybody(onVolumeOfType: linux_volume_type(main.rawValue))
    var hasSharedMemory = true
    var hasLogWriter = false
    do {
      let memory = try RegularFile.open(sharedMemory)
      files.append(memory)
      hasLogWriter = isWriteLocked(memory, logWriterByte)
      for byte in [checkpointByte, lastReaderByte] {
        switch try read(memory, byte, 1, sharedMemory) {
        case .held: continue
        case .busy: return .busy
        case .unavailable: isHeld = false
        }
      }
    } catch let error as DurabilityError where error.isNotFound {
      hasSharedMemory = false
    } catch let error as DurabilityError where error.errno != nil {
      isHeld = false
    }
    isTaken = true
    return .taken(
      files, isHeld: isHeld, hasSharedMemory: hasSharedMemory, hasWriter: hasWriter,
      hasLogWriter: hasLogWriter)
  }

  private enum Outcome { case held, busy, unavailable }

  private static func read(
    _ file: FileDescriptor, _ start: Int, _ length: Int, _ path: FilePath
  ) throws -> Outcome {
    var range = byteRange(start, length, F_RDLCK)
    while fcntl(file.rawValue, ownedSetLock, &range) < 0 {
      switch errno {
      case EINTR: continue
      case EAGAIN, EACCES: return .busy
      case EINVAL, ENOLCK, ENOSYS, EOPNOTSUPP: return .unavailable
      default: throw DurabilityError.failed(call: "fcntl", path: path, Errno(rawValue: errno))
      }
    }
    return .held
  }

  private static func unlock(_ file: FileDescriptor, _ start: Int, _ length: Int) {
    var range = byteRange(start, length, F_UNLCK)
    _ = fcntl(file.rawValue, ownedSetLock, &range)
  }

  private static func isWriteLocked(_ file: FileDescriptor, _ byte: Int) -> Bool {
    var range = byteRange(byte, 1, F_RDLCK)
    return fcntl(file.rawValue, ownedGetLock, &range) == 0 && range.l_type != Int16(F_UNLCK)
  }
}

private let pendingByte = 0x4000_0000
private let reservedByte = 0x4000_0001
private let sharedFirst = 0x4000_0002
private let sharedSize = 510
/// In the shared memory: `WAL_WRITE_LOCK`, `WAL_CKPT_LOCK`, and the last of `WAL_READ_LOCK`, without which a WAL is
/// not begun again.
private let logWriterByte = 120
private let checkpointByte = 121
private let lastReaderByte = 127
