import Glibc
import GodwitDigests
import GodwitDurableFiles
import GodwitSQLite
import Synchronization
import SystemPackage

/// A private clone of a store whose newest rows are in its WAL or whose journal must be played
/// back: both would write to the source's files.
///
/// The clone lies in a folder of the run and is complete in itself, so any process may open it as
/// immutable. Its name says which state of the source it is a clone of. That it is one, only the
/// process that made it knows: a clone that an earlier process left is compared with a new one.
struct StoreSnapshot {
  let folder: FilePath
  /// Whether a damaged journal is played back as far as SQLite does it, and a WAL of an unknown version left
  /// out. The clone then may have a part of a transaction that was never committed.
  var rescues = false

  /// How often a store that is being written is copied again before giving up.
  private static let attempts = 3

  /// Clones that this process has made or compared, by their paths.
  private static let known = Mutex<[FilePath: FileMark]>([:])
  /// What is forgotten is compared again.
  private static let mostKnown = 10_000

  /// The clone of the store as it is now, made unless this process has made it, and the state that it is of.
  ///
  /// - Throws: ``StoreError/changed(_:)`` where no lock can be had and somebody wrote.
  func clone(of files: StoreFiles) throws -> (FilePath, StoreIdentity) {
    for _ in 0..<Self.attempts {
      let lock = try files.readLock()
      let main = try StoreFiles.markIfThere(files.store)
      let identity = try files.identity(hasWriter: lock.hasWriter, rescues: rescues)
      let target = folder.appending("store-\(identity.name).sqlite")
      if let mark = try StoreFiles.markIfThere(target),
        Self.known.withLock({ $0[target] == mark })
      {
        return (target, identity)
      }
      let work = folder.appending("store-\(identity.name).partial")
      try writing(files.store, to: target) {
        try DurableFile.makeFolder(folder)
        try copy(files, identity, to: StoreFiles(work))
      }
      // Shared memory that appeared meanwhile belongs to somebody whom no lock kept out, and so does what is
      // written to the main file: some applications open stores without locks.
      let wasKept =
        try lock.isHeld && StoreFiles.markIfThere(files.store) == main
        && (lock.hasSharedMemory || StoreFiles.kind(at: files.shm) == FileKind.none)
      guard
        try wasKept || files.identity(hasWriter: lock.hasWriter, rescues: rescues) == identity
      else {
        remove(StoreFiles(work))
        continue
      }
      _ = consume lock
      try settle(work, of: files.store)
      if try isEqual(work, target) {
        // Whoever has planned by the earlier one finds the same file.
        remove(StoreFiles(work))
      } else {
        // The name is the promise that the bytes are there, so they go first.
        try writing(files.store, to: target) {
          try DurableFile.syncFile(work)
          try DurableFile.rename(work, to: target)
        }
      }
      let mark = try StoreFiles.markIfThere(target)
      Self.known.withLock {
        if $0.count >= Self.mostKnown { $0.removeAll() }
        $0[target] = mark
      }
      return (target, identity)
    }
    throw StoreError.changed(files.store)
  }

  private func isEqual(_ work: FilePath, _ target: FilePath) throws -> Bool {
    guard let mark = try StoreFiles.markIfThere(target),
      mark.size == (try StoreFiles.markIfThere(work)?.size)
    else { return false }
    return try FileDigest.text(of: work) == FileDigest.text(of: target)
  }

  private func writing(_ source: FilePath, to target: FilePath, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as DurabilityError {
      guard let errno = error.errno else { throw error }
      throw StoreError.cannotCopy(source, to: target, errno: errno.rawValue)
    }
  }

  /// Copies what counts: of the WAL what is committed, and a journal only if it is hot.
  private func copy(
    _ files: StoreFiles, _ identity: StoreIdentity, to target: StoreFiles
  ) throws {
    remove(target)
    var pairs = [(files.store, target.store)]
    if identity.walSize > 0 { pairs.append((files.wal, target.wal)) }
    if identity.journalSize > 0 { pairs.append((files.journal, target.journal)) }
    for (from, to) in pairs {
      try DurableFile.copy(from, to: to)
      // The source may be read-only; the clone belongs to the run.
      guard chmod(to.string, 0o600) == 0 else {
        throw DurabilityError.failed(call: "chmod", path: to, Errno(rawValue: errno))
      }
    }
    if identity.walSize > 0, truncate(target.wal.string, off_t(identity.walSize)) != 0 {
      throw DurabilityError.failed(call: "truncate", path: target.wal, Errno(rawValue: errno))
    }
  }

  private func remove(_ files: StoreFiles) {
    for path in [files.store, files.wal, files.shm, files.journal] {
      _ = unlink(path.string)  // mostly not there
    }
  }

  /// Brings everything into the main file.
  private func settle(_ path: FilePath, of source: FilePath) throws {
    // The name in it is that of a file anywhere, so it holds for the clone as well.
    guard try !SuperJournal.isNamed(besideDatabase: path.string) else {
      remove(StoreFiles(path))
      throw StoreError.superJournal(source)
    }
    if !rescues, let reason = try RollbackJournal.damage(of: StoreFiles(path).journal) {
      remove(StoreFiles(path))
      throw StoreError.journal(source, reason: reason)
    }
    do {
      let connection = try Connection(path: path.string, mode: .readWrite)
      try connection.execute("PRAGMA wal_autocheckpoint = 0")
      // The first read plays back a hot journal or the WAL.
      _ = try connection.rows("SELECT count(*) FROM sqlite_master")
      _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
      try connection.close()
    } catch let error as SQLiteError where error.isDamage {
      throw StoreError.damaged(source, reason: error.message)
    }
    let files = StoreFiles(path)
    for leftover in [files.wal, files.journal] {
      if let facts = try StoreFiles.markIfThere(leftover), facts.size > 0 {
        throw StoreError.damaged(source, reason: "its log cannot be brought into the store")
      }
    }
    for leftover in [files.wal, files.shm, files.journal] { _ = unlink(leftover.string) }
  }
}

extension StoreFiles {
  /// A clone of the store as it is now, in one file that is complete in itself, and the state that
  /// it is of. External data is not a part of it.
  ///
  /// - Parameter rescues: Plays a damaged journal back as far as SQLite does it, and leaves out a WAL of an
  ///   unknown version.
  /// - Throws: ``StoreError``; ``StoreError/changed(_:)`` where no lock can be had and somebody wrote.
  package func clone(
    in folder: FilePath, rescues: Bool = false
  ) throws -> (store: FilePath, identity: StoreIdentity) {
    try checkKinds()
    return try StoreSnapshot(folder: folder, rescues: rescues).clone(of: self)
  }
}
