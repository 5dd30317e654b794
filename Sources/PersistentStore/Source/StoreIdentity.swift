import Glibc
import GodwitDigests
import GodwitDurableFiles
import SystemPackage

/// Which state of a store was read: it changes with every commit to the store.
///
/// In rollback mode a commit raises the change counter in the file header, at least once for all
/// that an application commits between two looks under SQLite's locks. In WAL mode a commit adds
/// frames to the WAL, whose chain of checksums it continues. A WAL checkpoint writes to the main file
/// and may leave its header as it was, so the modification time counts, too: it is only taken once
/// it lies in the past, and a later write gets a later one.
package struct StoreIdentity: Codable, Sendable, Hashable {
  package var size: Int64
  package var modificationSeconds: Int64
  package var modificationNanoseconds: Int64
  package var inode: UInt64
  /// SHA-256 of the first 100 bytes, in hexadecimal. They hold SQLite's change counter.
  package var headerDigest: String
  /// Bytes of the WAL up to its last commit; 0 where nothing is committed in it.
  package var walSize: Int64
  /// The salts of the WAL and the checksums of its last committed frame, in hexadecimal.
  package var walSeal: String
  /// Bytes of a rollback journal that is to be played back; else 0.
  package var journalSize: Int64
  /// SHA-256 of that journal's first 512 bytes, in hexadecimal: they hold a random number.
  package var journalDigest: String

  /// Of the main file and what is committed in the WAL.
  package var bytes: Int64 { size.added(walSize) }

  /// True when the newest rows are not, or not only, in the main file.
  package var hasPendingChanges: Bool { walSize > 0 || journalSize > 0 }

  /// A short name for this state of this store.
  package var name: String {
    let text =
      "\(size) \(modificationSeconds) \(modificationNanoseconds) \(inode) \(headerDigest) "
      + "\(walSize) \(walSeal) \(journalSize) \(journalDigest)"
    return String(Hexadecimal.text(of: SHA256.digest(of: Array(text.utf8))).prefix(32))
  }
}

extension StoreFiles {
  /// Looks at the files as they are now, under SQLite's own lock. Nothing is written.
  ///
  /// - Throws: ``StoreError``, among them ``StoreError/inUse(_:)``.
  package func identity() throws -> StoreIdentity {
    let lock = try readLock()
    return try identity(hasWriter: lock.hasWriter)
  }

  /// The same, and whether another process is in a write transaction just now.
  ///
  /// - Throws: As ``identity()``.
  package func identityAndWriter() throws -> (identity: StoreIdentity, isBeingWritten: Bool) {
    let lock = try readLock()
    return (try identity(hasWriter: lock.hasWriter), lock.hasWriter || lock.hasLogWriter)
  }

  /// Keeps the store as it is while it is copied or looked at.
  func readLock() throws -> StoreReadLock {
    try checkKinds()
    _ = try StoreFiles.mark(store)
    do {
      return try StoreReadLock(store, sharedMemory: shm)
    } catch DurabilityError.locked {
      throw StoreError.inUse(store)
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw StoreError.cannotRead(store, errno: errno.rawValue)
    }
  }

  /// Of a file that nobody else writes to, or knows of: no lock is taken, and no log is beside it.
  func privateIdentity() throws -> StoreIdentity {
    let main = try StoreFiles.mark(store)
    return StoreIdentity(
      size: main.size, modificationSeconds: main.modificationSeconds,
      modificationNanoseconds: main.modificationNanoseconds, inode: main.inode, headerDigest: "",
      walSize: 0, walSeal: "", journalSize: 0, journalDigest: "")
  }

  /// Looks at the files without a lock of its own, for a caller who holds one.
  ///
  /// - Parameters:
  ///   - hasWriter: Another process is in a transaction, so that the journal is its own.
  ///   - rescues: Takes a WAL of an unknown version for an empty one, which whoever reads the store as a whole
  ///     may not.
  package func identity(hasWriter: Bool, rescues: Bool = false) throws -> StoreIdentity {
    try checkKinds()
    var main = try StoreFiles.mark(store)
    try waitForLaterTime(than: main)
    if let log = try StoreFiles.markIfThere(wal) { try waitForLaterTime(than: log) }
    main = try StoreFiles.mark(store)
    let head = try StoreFiles.firstBytes(of: store, count: 100)
    let log = try CommittedLog(wal)
    if let version = log.unknownVersion, !rescues {
      throw StoreError.unknownLog(store, version: version)
    }
    let journal = hasWriter ? (size: 0, digest: "") : try hotJournal()
    return StoreIdentity(
      size: main.size, modificationSeconds: main.modificationSeconds,
      modificationNanoseconds: main.modificationNanoseconds, inode: main.inode,
      headerDigest: Hexadecimal.text(of: SHA256.digest(of: head)), walSize: log.size,
      walSeal: log.seal, journalSize: journal.size, journalDigest: journal.digest)
  }

  /// The rollback journal; nothing where it is absent or was made invalid after a commit, which
  /// zeroes its first bytes. Source: https://sqlite.org/atomiccommit.html §7.6.
  private func hotJournal() throws -> (size: Int64, digest: String) {
    guard let facts = try StoreFiles.markIfThere(journal), facts.size > 0 else {
      return (0, "")
    }
    let first = try StoreFiles.firstBytes(of: journal, count: 512)
    guard let start = first.first, start != 0 else { return (0, "") }
    return (facts.size, Hexadecimal.text(of: SHA256.digest(of: first)))
  }

  /// Returns when a write from now on gets another modification time than the file has.
  ///
  /// The kernel takes that time from a clock that moves every few milliseconds
  /// (`CLOCK_REALTIME_COARSE`): two writes within one tick have the same. File systems that keep
  /// whole seconds need up to two of them.
  private func waitForLaterTime(than file: FileMark) throws {
    let tick: Int64 = file.modificationNanoseconds == 0 ? 2_000_000_000 : 0
    // A time further ahead than that is not a clock's tick, and waiting does not help.
    for _ in 0..<2_500 {
      var now = timespec()
      clock_gettime(CLOCK_REALTIME_COARSE, &now)
      let seconds = Int64(now.tv_sec).subtractingReportingOverflow(file.modificationSeconds)
      // A year either way is no tick, and its nanoseconds have room.
      guard !seconds.overflow, seconds.partialValue.magnitude < 1 << 25 else { return }
      let age =
        seconds.partialValue * 1_000_000_000 + Int64(now.tv_nsec) - file.modificationNanoseconds
      if age > tick || age < -3_000_000_000 { return }
      usleep(1_000)
    }
  }
}
