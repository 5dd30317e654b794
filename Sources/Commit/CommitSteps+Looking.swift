import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

// What there is, after whatever happened.
extension CommitSteps {
  /// Gives an application's file the store's name back, where a process was killed between an exchange and
  /// the look at what came back.
  func giveBack(_ journal: CommitJournal) throws {
    guard journal.isReplacement, journal.state < .replaced else { return }
    let own = [journal.assembledMark, journal.main, journal.clone].compactMap(\.self)
    for (path, mark) in [
      (FilePath(journal.assembled), journal.assembledMark), (journal.clonePath, journal.clone),
    ] {
      guard let store = try FileMark(journal.storePath), store.isSameFile(as: mark),
        let other = try FileMark(path), !own.contains(where: other.isSameFile)
      else { continue }
      guard store == mark else { throw twoStores(path, journal) }
      try exchangeBack(path, mark, journal)
    }
  }

  /// The assembled file has the store's name, or had it, and the file that it replaced has its own.
  ///
  /// - Throws: `DurabilityError.unreachable` where the store's folder is away: nobody can tell.
  func isInPlace(_ journal: CommitJournal) throws -> Bool {
    if journal.isGivenUp == true { return false }
    if try FileMark(reachable: journal.storePath)?.isSameFile(as: journal.assembledMark) == true {
      return true
    }
    guard journal.isReplacement, let there = try FileMark(FilePath(journal.assembled)) else {
      return false
    }
    return there.isSameFile(as: journal.main) || there.isSameFile(as: journal.clone)
  }

  /// Nobody wrote to the source since the commit began. The clone counts as the source; beside it
  /// the logs may be gone.
  func isSourceUnchanged(_ journal: CommitJournal) throws -> Bool {
    let files = journal.files
    let main = try FileMark(reachable: files.store)
    let logs = [
      (try FileMark(files.wal), journal.wal),
      (try FileMark(files.journal), journal.rollbackJournal),
    ]
    guard main != nil else { return false }
    if main == journal.clone {
      let placed = [journal.restoredWAL?.mark, journal.restoredJournal?.mark]
      return zip(logs, placed).allSatisfy { log, placed in
        log.0 == nil || log.0 == log.1 || log.0 == placed
      }
    }
    guard main == journal.main else { return false }
    // Logs that hold nothing are removed beside the original too.
    return logs.allSatisfy { $0 == $1 || ($0 == nil && journal.settledSource == nil) }
  }

  /// The clone has neither the store's name nor its own: it is still to be made, or somebody took
  /// it away. Without it the WAL must stay. One that an earlier process made, and that has not got the store's name
  /// yet, is made again: a disk may have changed it.
  func needsClone(_ journal: CommitJournal) throws -> Bool {
    guard journal.settledSource != nil else { return false }
    guard let clone = journal.clone else { return true }
    let store = try FileMark(journal.storePath)
    if mayHaveUnfinished, store == journal.main { return true }
    return try store != clone && FileMark(journal.clonePath) != clone
  }

  /// Whether the clone's source is as it was read.
  func isSettledWhole(_ journal: CommitJournal) throws -> Bool {
    let path = FilePath(journal.settledSource ?? "")
    guard try FileMark(path) == journal.settledMark else { return false }
    return try journal.settledDigest == nil || FileDigest.text(of: path) == journal.settledDigest
  }

  /// False where the assembled file is gone and the store is neither the source nor a clone of it: the
  /// exchange may have been made, and somebody may have put another file in the destination's place, or have removed
  /// it. A backup that was being put back, and its store, are then there to put it back once more.
  func isExchangeRuledOut(_ journal: CommitJournal) throws -> Bool {
    if journal.kind == .publish || journal.isGivenUp == true { return true }
    if try FileMark(FilePath(journal.assembled))?.isSameFile(as: journal.assembledMark) == true {
      return true
    }
    guard let store = try FileMark(reachable: journal.storePath) else {
      return journal.kind == .restore || journal.keepsBackup == true
    }
    // It was given back, or is being taken back.
    if journal.keepsBackup == true, [journal.main, journal.clone].contains(where: store.isSameFile)
    {
      return true
    }
    if store == journal.main || store == journal.clone { return true }
    // Not the file's number alone: that of one that is gone is given to the next, which is younger than the backup.
    return store.isSameFile(as: journal.main)
      && DurableFile.isOlder(journal.storePath, than: journal.backup.store)
  }

  /// Whether a restoration was cut off while the copy of the backup, with the content of its logs, had the store's name,
  /// and an application has written to that since: the store is the old one with the write.
  func isWrittenCopy(_ journal: CommitJournal) throws -> Bool {
    guard journal.kind == .restore, journal.isOfCopy != true, journal.state < .replaced,
      let store = try FileMark(reachable: journal.storePath), store.isSameFile(as: journal.clone),
      try !isSourceUnchanged(journal)
    else { return false }
    // What a disk has damaged is nobody's write.
    return try isSound(journal.files)
  }

  func canGoForward(_ journal: CommitJournal) throws -> Bool {
    if try isInPlace(journal) { return true }
    guard journal.isGivenUp != true,
      try FileMark(FilePath(journal.assembled)) == journal.assembledMark,
      try isAssembledWhole(journal)
    else {
      try demandStore(of: journal)
      return false
    }
    switch journal.kind {
    case .publish:
      return try !DurableFile.exists(journal.storePath)
    case .replace, .restore:
      try demandStore(of: journal)
      guard try hasRestoredLogs(journal) else { return false }
      if try needsClone(journal) && !isSettledWhole(journal) { return false }
      return try isSourceUnchanged(journal)
    }
  }

  /// Whether the assembled file is what was verified, or what a rollback has copied: since then a disk may have
  /// changed bytes.
  private func isAssembledWhole(_ journal: CommitJournal) throws -> Bool {
    let path = FilePath(journal.assembled)
    if let digest = journal.assembledDigest { return try FileDigest.text(of: path) == digest }
    return try journal.kind == .restore || isSound(path)
  }

  /// Each log waits as it was copied, or is where it goes.
  private func hasRestoredLogs(_ journal: CommitJournal) throws -> Bool {
    try journal.restoredLogs.allSatisfy { log, place in
      let path = FilePath(log.path)
      if try FileMark(path) == log.mark {
        return try log.digest == nil || FileDigest.text(of: path) == log.digest
      }
      return try FileMark(place) == log.mark
    }
  }

  /// A backup is taken back only where there is a store.
  private func demandStore(of journal: CommitJournal) throws {
    guard journal.isReplacement, try !DurableFile.exists(journal.storePath) else { return }
    throw CommitError.storeMissing(store: journal.storePath, backup: journal.backup.store)
  }
}
