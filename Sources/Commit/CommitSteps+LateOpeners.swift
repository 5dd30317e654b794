import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

// Who waited to open a file that has just been replaced gets it when the process that replaced it is killed,
// since its lease ends with it. In WAL mode SQLite then writes to the log that has the store's name, beside
// the new file; in rollback mode it sees that the file was moved, and writes nothing.
extension CommitSteps {
  /// Gives a replaced file the store's name back where an application has it open, or has written to it,
  /// since a process was killed between the exchange and the end of that file.
  ///
  /// - Throws: ``CommitError/twoStores(store:other:backup:)`` where both have been written to since;
  ///   ``CommitError/storeInUse(store:)``.
  func giveBackToLateOpeners(_ journal: CommitJournal) throws {
    guard journal.isReplacement, journal.state < .replaced else { return }
    let (assembled, clone) = (FilePath(journal.assembled), journal.clonePath)
    if try isStore(journal.assembledMark, journal) {
      // The logs of the source that the clone was made of have gone: it lacks what was in them.
      if let use = try use(of: clone, [journal.main]) {
        throw use == .open ? CommitError.storeInUse(store: clone) : twoStores(clone, journal)
      }
      let log = try loggedFile(assembled, journal)
      if try log == .old || use(of: assembled, [journal.main, journal.clone]) != nil {
        if log == .new { throw twoStores(assembled, journal) }
        try giveBack(assembled, journal.assembledMark, journal)
      }
    }
    if try isStore(journal.clone, journal), let use = try use(of: clone, [journal.main]) {
      guard try hasSourceLogs(journal) else {
        throw use == .open ? CommitError.storeInUse(store: clone) : twoStores(clone, journal)
      }
      try giveBack(clone, journal.clone, journal)
    }
  }

  private enum Use { case open, written }

  /// What somebody makes of a file that was replaced; nil where nobody does anything.
  ///
  /// - Parameter marks: Of what it may be. Any other file is none of the commit's.
  private func use(of path: FilePath, _ marks: [FileMark?]) throws -> Use? {
    guard let found = try FileMark(path),
      let mark = marks.first(where: found.isSameFile) ?? nil
    else { return nil }
    // A power cut may have brought a name back, and not the header that was overwritten after.
    if try found != mark && StoreFiles.isDatabase(path) { return .written }
    return try isOpen(path) ? .open : nil
  }

  private func isOpen(_ path: FilePath) throws -> Bool {
    do {
      var lock = try CommitSteps.lock(path)
      switch try lock.takeLease() {
      case .none: return false
      case .some: return true
      case .unknown: return try lock.areOpenElsewhere([path])
      }
    } catch CommitError.storeInUse(path) {
      return true
    }
  }

  /// Whose pages the log beside the destination changes. The source's own had gone before the exchange.
  private func loggedFile(_ old: FilePath, _ journal: CommitJournal) throws -> LoggedFile? {
    let log = journal.files.wal
    guard let found = try FileMark(log), !found.isSameFile(as: journal.restoredWAL?.mark),
      let other = try FileMark(old),
      other.isSameFile(as: journal.main) || other.isSameFile(as: journal.clone)
    else { return nil }
    return try LoggedFile(log, old: old, new: journal.storePath)
  }

  private func hasSourceLogs(_ journal: CommitJournal) throws -> Bool {
    try [(journal.files.wal, journal.wal), (journal.files.journal, journal.rollbackJournal)]
      .allSatisfy { path, mark in
        try mark == nil || mark?.size == 0 || FileMark(path)?.isSameFile(as: mark) == true
      }
  }

  private func isStore(_ mark: FileMark?, _ journal: CommitJournal) throws -> Bool {
    try mark != nil && FileMark(journal.storePath)?.isSameFile(as: mark) == true
  }

  private func giveBack(_ path: FilePath, _ new: FileMark?, _ journal: CommitJournal) throws {
    // What was written over it, in the run directory, is no application's. The backup may be all that is left.
    let own = journal.backup.storedUUID
    guard own == nil || StoreFiles(path).storedUUID == own else { throw twoStores(path, journal) }
    var lock = try CommitSteps.lock(journal.storePath)
    try requireNoOpeners(of: journal.files, &lock)
    guard try FileMark(journal.storePath) == new else { throw twoStores(path, journal) }
    try exchangeBack(path, new, journal.storePath)
    guard lock.isAwaited else { return }
    try DurableFile.exchange(path, with: journal.storePath)
    throw CommitError.storeInUse(store: journal.storePath)
  }

  private func twoStores(_ other: FilePath, _ journal: CommitJournal) -> CommitError {
    .twoStores(store: journal.storePath, other: other, backup: journal.backup.store)
  }
}
