import Glibc
import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// A private clone of a store whose newest rows are in its WAL or whose journal must be played
/// back: both would write to the source's files.
///
/// The clone lies in a folder of the run and is complete in itself, so any process may open it as
/// immutable. Its name says which state of the source it is a clone of.
struct StoreSnapshot {
  let folder: FilePath

  /// How often a store that is being written is copied anew before giving up.
  private static let attempts = 3

  /// The clone of this state of the store, made now if it is not there.
  func clone(of files: StoreFiles, identity: StoreIdentity) throws -> (FilePath, StoreIdentity) {
    var identity = identity
    for _ in 0..<Self.attempts {
      let target = folder.appending("store-\(identity.name).sqlite")
      if (try? FileFacts(target))?.isRegular == true { return (target, identity) }
      let work = folder.appending("store-\(identity.name).partial")
      try writing(files.store, to: target) {
        try DurableFile.makeFolder(folder)
        try copy(files, to: StoreFiles(work))
      }
      let after = try files.identity()
      guard after == identity else {
        remove(StoreFiles(work))
        identity = after
        continue
      }
      try settle(work, of: files.store)
      // The name is the promise that the bytes are there, so they go first.
      try writing(files.store, to: target) {
        try DurableFile.syncFile(work)
        try DurableFile.rename(work, to: target)
      }
      return (target, identity)
    }
    throw StoreError.changedWhileCopying(files.store)
  }

  private func writing(_ source: FilePath, to target: FilePath, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as DurabilityError {
      throw StoreError.cannotCopy(source, to: target, errno: error.errno?.rawValue ?? EEXIST)
    }
  }

  private func copy(_ files: StoreFiles, to target: StoreFiles) throws {
    remove(target)
    // The log first: a WAL checkpoint of another process in between is noticed by its new header.
    for (from, to) in [
      (files.wal, target.wal), (files.journal, target.journal), (files.store, target.store),
    ] {
      do {
        try DurableFile.copy(from, to: to)
      } catch let error as DurabilityError where error.isNotFound && from != files.store {
        continue
      }
      // The source may be read-only; the clone belongs to the run.
      guard chmod(to.string, 0o600) == 0 else {
        throw DurabilityError.failed(call: "chmod", path: to, Errno(rawValue: errno))
      }
    }
  }

  private func remove(_ files: StoreFiles) {
    for path in [files.store, files.wal, files.shm, files.journal] {
      _ = unlink(path.string)  // mostly not there
    }
  }

  /// Brings everything into the main file.
  private func settle(_ path: FilePath, of source: FilePath) throws {
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
      if let facts = try? FileFacts(leftover), facts.size > 0 {
        throw StoreError.damaged(source, reason: "its log cannot be brought into the store")
      }
    }
    for leftover in [files.wal, files.shm, files.journal] { _ = unlink(leftover.string) }
  }
}
