import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// Between two processes of one commit a disk may have changed bytes. A file that is not as it was may be what
// an application wrote, or damage: which it is decides what may be removed.
extension CommitSteps {
  /// Whether a file of the commit can be read and its structure is whole, with the logs that belong to it.
  func isSound(_ main: FilePath, wal: FilePath? = nil, journal: FilePath? = nil) throws -> Bool {
    let logs = try [("-wal", wal), ("-journal", journal)].filter {
      try $1.flatMap { try FileMark($0) }?.size ?? 0 > 0
    }
    do {
      guard !logs.isEmpty else { return try Self.isWhole(main) }
      // SQLite would bring the logs into the file itself.
      let folder = run.path.appending(".sound")
      try DurableFile.removeTree(folder)
      defer { try? DurableFile.removeTree(folder) }
      try DurableFile.makeFolder(folder)
      let copy = StoreFiles(folder.appending("store.sqlite"))
      try DurableFile.copy(main, to: copy.store)
      for (suffix, log) in logs {
        guard let log else { continue }
        try DurableFile.copy(log, to: FilePath(copy.store.string + suffix))
      }
      return try Self.isWhole(copy.clone(in: folder).store)
    } catch let error as SQLiteError where error.isDamage {
      return false
    } catch let error as StoreError where error.isDamage {
      return false
    }
  }

  private static func isWhole(_ path: FilePath) throws -> Bool {
    guard try StoreFiles.isDatabase(path) else { return false }
    return try Connection(path: path.string, mode: .immutable).isWhole()
  }

  func isSound(_ files: StoreFiles) throws -> Bool {
    try isSound(files.store, wal: files.wal, journal: files.journal)
  }

  /// Whether the backup holds what the commit found: it has the source's bytes, or it is whole and these are
  /// not, although nobody wrote to the source since.
  ///
  /// It was compared with the source when it was made, so a difference is damage of one of them. A new copy of a
  /// damaged source would replace the good one.
  func holdsBackup(_ journal: CommitJournal) throws -> Bool {
    guard try FileMark(journal.backup.store) != nil else { return false }
    var isEqual = true
    for (from, to) in journal.copies {
      let (source, copy) = try (FileMark(from)?.size ?? 0, FileMark(to)?.size ?? 0)
      // Cut off, or not of the same logs.
      guard source == copy else { return false }
      isEqual = try isEqual && (source == 0 || ExternalDataFolder.areEqual(from, to))
    }
    return try isEqual || isSound(journal.backup)
  }

  /// Whether the backup may be the only good copy of what the store was when the commit began.
  func isBackupNeeded(_ journal: CommitJournal) throws -> Bool {
    guard journal.isReplacement, try FileMark(reachable: journal.backup.store) != nil else {
      return false
    }
    if journal.keepsBackup == true { return true }
    let files = journal.files
    guard let store = try FileMark(reachable: files.store) else { return true }
    // The source's own files have gone, or are about to. The clone reads the same, and has other bytes.
    if try hadCloneInPlace(journal, store) { return true }
    guard store == journal.main, try isSourceUnchanged(journal) else {
      // An application wrote to it, or a disk did.
      return try !isSound(files)
    }
    let isEqual = try journal.copies.allSatisfy { from, to in
      try FileMark(from)?.size ?? 0 == 0 || ExternalDataFolder.areEqual(from, to)
    }
    if isEqual { return false }
    return try isSound(journal.backup) || !isSound(files)
  }

  /// Whether the clone has the store's name, or had it before another run or an application put its own file
  /// there: what that keeps is the clone.
  private func hadCloneInPlace(_ journal: CommitJournal, _ store: FileMark) throws -> Bool {
    guard let clone = journal.clone else { return false }
    if store.isSameFile(as: clone) { return true }
    return try !store.isSameFile(as: journal.main)
      && FileMark(journal.clonePath)?.isSameFile(as: clone) != true
  }

  /// Whether what was put in place is whole. Nobody has written to it where its mark is the same, and every byte
  /// counts; what an application has written, only SQLite can judge.
  private func isWholeInPlace(_ journal: CommitJournal) throws -> Bool {
    if let digest = journal.assembledDigest,
      try FileMark(journal.storePath) == journal.assembledMark,
      try FileDigest.text(of: journal.storePath) != digest
    {
      return false
    }
    return try isSound(journal.files)
  }

  /// Whether an earlier process put something in place that is whole still: whoever says that a store is
  /// migrated means what is there.
  ///
  /// - Throws: ``CommitError/damagedInPlace(store:backup:)``.
  func requireSoundDestination(_ journal: CommitJournal) throws {
    // A rollback puts back what there was, sound or not.
    guard journal.kind != .restore,
      try FileMark(journal.storePath)?.isSameFile(as: journal.assembledMark) == true,
      // Who has it open may be in the middle of writing.
      try !(journal.isReplacement && isOpen(journal.storePath)) && !isWholeInPlace(journal)
    else { return }
    throw CommitError.damagedInPlace(
      store: journal.storePath, backup: journal.isReplacement ? journal.backup.store : nil)
  }
}
