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
  /// The backup stays from then on, whatever becomes of the commit: no mark tells what an application wrote from
  /// what a disk did.
  ///
  /// - Throws: ``CommitError/twoStores(store:other:backup:)`` where both have been written to since;
  ///   ``CommitError/damagedOriginal(store:other:backup:)`` where the replaced file is not sound;
  ///   ``CommitError/storeInUse(store:)``.
  func giveBackToLateOpeners(_ journal: inout CommitJournal) throws {
    guard journal.isReplacement, journal.state < .replaced else { return }
    let (assembled, clone) = (FilePath(journal.assembled), journal.clonePath)
    // Who waited for a new file that was given up has it, where the process was killed before it removed that.
    if journal.isGivenUp == true, let use = try use(of: assembled, [journal.assembledMark]) {
      throw use == .open ? CommitError.storeInUse(store: assembled) : twoStores(assembled, journal)
    }
    // Somebody has removed the store: nothing has the name that could be given back.
    if try FileMark(reachable: journal.storePath) == nil {
      for path in [assembled, clone] {
        if let use = try use(of: path, [journal.main, journal.clone]) {
          throw use == .open ? CommitError.storeInUse(store: path) : twoStores(path, journal)
        }
      }
    }
    if try isStore(journal.assembledMark, journal) {
      // The logs of the source that the clone was made of have gone: it lacks what was in them.
      if let use = try use(of: clone, [journal.main]) {
        throw use == .open ? CommitError.storeInUse(store: clone) : twoStores(clone, journal)
      }
      let log = try loggedFile(assembled, journal)
      let use = try use(of: assembled, [journal.main, journal.clone])
      if log == .old || use != nil {
        if log == .new { throw twoStores(assembled, journal) }
        try requireSound(assembled, wal: log == .old ? journal.files.wal : nil, use, journal)
        try giveBack(assembled, journal.assembledMark, &journal)
      }
    }
    if try isStore(journal.clone, journal), let use = try use(of: clone, [journal.main]) {
      guard try hasSourceLogs(journal) else {
        throw use == .open ? CommitError.storeInUse(store: clone) : twoStores(clone, journal)
      }
      let files = journal.files
      try requireSound(clone, wal: files.wal, rollbackJournal: files.journal, use, journal)
      try giveBack(clone, journal.clone, &journal)
    }
  }

  /// Lets no damaged file have the store's name again. The new store, or the clone, has it, and is whole.
  ///
  /// - Parameters:
  ///   - wal: The log that belongs to the file, and `rollbackJournal` likewise.
  ///   - use: What somebody makes of the file beside what is in its log.
  private func requireSound(
    _ path: FilePath, wal: FilePath?, rollbackJournal: FilePath? = nil, _ use: Use?,
    _ journal: CommitJournal
  ) throws {
    // Who has it open may be in the middle of writing: what it is in the end shows when it is closed.
    if try use == .written && isOpen(path) { return }
    // One that nobody wrote to is what the backup, or the file that the clone was made of, holds.
    let original =
      try journal.isOfCopy != true && FileMark(path)?.isSameFile(as: journal.main) == true
      ? journal.backup.store : journal.settledSource.map { FilePath($0) }
    if use != .written, let original, try ExternalDataFolder.areEqual(path, original) { return }
    if try isSound(path, wal: wal, journal: rollbackJournal) { return }
    // Closed, it is of no more use, and the commit goes on.
    guard use != .open else { throw CommitError.storeInUse(store: path) }
    throw CommitError.damagedOriginal(
      store: journal.storePath, other: path, backup: journal.backup.store)
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

  func isOpen(_ path: FilePath) throws -> Bool {
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

  private func giveBack(
    _ path: FilePath, _ new: FileMark?, _ journal: inout CommitJournal
  ) throws {
    // What was written over it, in the run directory, is no application's. The backup may be all that is left.
    let own = journal.backup.storedUUID
    guard own == nil || StoreFiles(path).storedUUID == own else { throw twoStores(path, journal) }
    try exchangeBack(path, new, journal) {
      // Before the exchange: after it nothing tells that there was one.
      journal.keepsBackup = true
      try journal.write(in: run, leases)
    }
  }

  /// Gives a file the store's name back, unless somebody has what is the store open or waits for that.
  ///
  /// - Parameter prepare: Called when nobody has.
  func exchangeBack(
    _ path: FilePath, _ new: FileMark?, _ journal: CommitJournal, _ prepare: () throws -> Void = {}
  ) throws {
    var lock = try CommitSteps.lock(journal.storePath)
    try requireNoOpeners(of: journal.files, &lock)
    guard try FileMark(journal.storePath) == new else { throw twoStores(path, journal) }
    try prepare()
    try exchangeBack(path, new, journal.storePath)
    guard lock.isAwaited else { return }
    try DurableFile.exchange(path, with: journal.storePath)
    throw CommitError.storeInUse(store: journal.storePath)
  }

  func twoStores(_ other: FilePath, _ journal: CommitJournal) -> CommitError {
    .twoStores(store: journal.storePath, other: other, backup: journal.backup.store)
  }
}
