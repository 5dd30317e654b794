import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

// What is kept of the store that is replaced.
extension CommitSteps {
  /// Copies of the source's own files: nothing that is written to those later is in the backup. It
  /// counts only where it holds what they do. External data is never written again, and gets second
  /// names.
  func backUp(_ journal: CommitJournal) throws {
    guard journal.isOfCopy != true else { return }
    let files = journal.files
    for (from, to) in journal.copies {
      // Empty logs hold nothing.
      guard let original = try FileMark(from), original.size > 0 || from == files.store else {
        continue
      }
      // What a crash left of an earlier attempt is no better than a copy made now.
      try DurableFile.removeIfPresent(to)
      try DurableFile.copy(from, to: to)
      guard try ExternalDataFolder.areEqual(from, to) else {
        throw try isSourceUnchanged(journal)
          ? CommitError.incompleteBackup(path: to) : .sourceChanged(store: files.store)
      }
    }
    try linkExternalData(journal)
  }

  /// Makes a backup of an earlier process again where it does not hold what the source did: somebody may
  /// have removed it, or a part of it, since.
  func renewBackup(_ journal: CommitJournal) throws {
    guard try journal.isOfCopy != true && isSourceUnchanged(journal) else { return }
    if try FileMark(journal.storePath) != journal.main {
      try renewBackupBesideClone(journal)
    } else if try !holdsBackup(journal) {
      return try backUp(journal)
    }
    // What is there already stays.
    try linkExternalData(journal)
  }

  /// The same where the clone is the store.
  private func renewBackupBesideClone(_ journal: CommitJournal) throws {
    if try isBackupWhole(journal) { return }
    let (files, backup) = (journal.files, journal.backup)
    // The source's own files may be there still, and of one that is not, the backup's copy.
    if try FileMark(journal.clonePath) == journal.main {
      let originals = [
        (files.wal, journal.wal, backup.wal),
        (files.journal, journal.rollbackJournal, backup.journal),
        (journal.clonePath, journal.main, backup.store),
      ]
      for (original, mark, copy) in originals {
        guard let mark, mark.size > 0, try FileMark(original) == mark else { continue }
        try DurableFile.removeIfPresent(copy)
        try DurableFile.copy(original, to: copy)
      }
      if try isBackupWhole(journal) { return }
    }
    // The clone holds all that the source and its WAL did; that of a restoration is of what is put back.
    guard journal.kind == .replace else { return }
    for path in [backup.wal, backup.journal, backup.store] {
      try DurableFile.removeIfPresent(path)
    }
    try DurableFile.copy(journal.storePath, to: backup.store)
  }

  /// Gives a backup that has lost a log since, once the destination is in its place, what was in that: the file that
  /// the clone was made of has it. One that is gone as a whole stays so: somebody may have removed it on purpose.
  func completeBackup(_ journal: CommitJournal) throws {
    guard let settled = journal.settledSource, try journal.isBackupWithoutLogs(),
      try isSettledWhole(journal)
    else { return }
    let (backup, draft) = (journal.backup, journal.clonePath)
    try DurableFile.removeIfPresent(draft)
    try DurableFile.copy(FilePath(settled), to: draft)
    try DurableFile.copyAttributes(from: journal.storePath, to: draft)
    // It must not be read with what is left of them.
    for log in [backup.wal, backup.journal] { try DurableFile.removeIfPresent(log) }
    try DurableFile.rename(draft, to: backup.store)
  }

  private func isBackupWhole(_ journal: CommitJournal) throws -> Bool {
    try FileMark(journal.backup.store) != nil && !journal.isBackupWithoutLogs()
      && isSound(journal.backup)
  }

  /// Completes what is kept of a store that is gone: the main file is copied first, and what is in its folder of external
  /// data is there still. Logs alone are of no use.
  func completePutAside(_ journal: CommitJournal) throws {
    let backup = journal.backup
    if try FilePresence.isThere(backup.store) {
      return try linkExternalData(journal, rightsOf: backup.store)
    }
    for log in [backup.wal, backup.journal] { try DurableFile.removeIfPresent(log) }
  }

  /// What this commit added, before a crash, is no part of the source.
  ///
  /// - Parameter store: A store that is there; nil for the one that is replaced.
  private func linkExternalData(_ journal: CommitJournal, rightsOf store: FilePath? = nil) throws {
    try ExternalDataFolder.link(
      from: journal.files.externalDataFolder, of: store ?? journal.files.store,
      to: journal.backup.externalDataFolder, except: journal.added)
  }
}

extension CommitJournal {
  /// Whether somebody has removed a log of the backup since it was made, or cut it off: what is left may lack rows that
  /// were committed there. A copy of the clone has them all.
  package func isBackupWithoutLogs() throws -> Bool {
    // Without a clone nothing was committed in a log.
    guard kind == .replace, settledSource != nil, try FileMark(backup.store) != nil else {
      return false
    }
    let logs = [(wal, backup.wal), (rollbackJournal, backup.journal)]
    if try logs.allSatisfy({ try FileMark($1)?.size ?? 0 == $0?.size ?? 0 }) { return false }
    return try FileDigest.text(of: backup.store) != settledDigest
  }
}
