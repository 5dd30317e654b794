import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

// One store in another one's place.
extension CommitSteps {
  func exchange(_ journal: inout CommitJournal, _ source: inout StoreLock) throws {
    let files = journal.files
    if journal.state == .prepared {
      // What is copied is the source, or a backup of an earlier attempt is the better one.
      guard try isSourceUnchanged(journal) else {
        throw CommitError.sourceChanged(store: files.store)
      }
      // The journal of a small store does not say that there is a backup.
      if try mayHaveUnfinished && FileMark(files.store) == journal.main {
        try renewBackup(journal)
      } else {
        try backUp(journal)
      }
      try addExternalData(journal)
      try makeClone(&journal)
      try reach(.backedUp, &journal)
    } else {
      // A taking back that was cut off may have removed what was there.
      try renewBackup(journal)
      try addExternalData(journal)
    }
    if try needsClone(journal) {
      try makeClone(&journal)
      try journal.write(in: run, leases)
    }
    try renewRights(&journal)
    try requireNoOpeners(of: files, &source)
    // Whoever had it open until now may have changed it, or have given its name to another file.
    guard try isSourceUnchanged(journal), let main = try FileMark(files.store) else {
      throw CommitError.sourceChanged(store: files.store)
    }
    // Files that nobody has open yet are locked before they get the store's name, so that nobody
    // opens one store and writes to the WAL of the next.
    let assembled = FilePath(journal.assembled)
    var destination = try CommitSteps.lock(assembled)
    _ = try destination.takeLease()
    try requireLeases(files.store)
    if let mark = journal.clone, main != mark {
      var clone = try CommitSteps.lock(journal.clonePath)
      _ = try clone.takeLease()
      try put(clone, at: journal.clonePath, inPlaceOf: source, main, &journal)
      do {
        try removeLogs(files, but: journal, clone, mark)
        guard try FileMark(files.store) == mark else {
          throw CommitError.sourceChanged(store: files.store)
        }
        try placeLogs(journal)
        // Of a backup that is put back, the clone holds what the backup does: who opens it meanwhile
        // is told that it is not a database, and finds the store at the next open.
        try put(
          destination, at: assembled, inPlaceOf: clone, mark, &journal,
          yielding: journal.kind != .restore)
      } catch let error as CommitError {
        try takeLogsBack(journal)
        // The clone is the store now, and holds all that the source and its WAL did.
        try retire(&source, at: journal.clonePath, journal)
        throw error
      }
      try retire(&clone, at: assembled, journal)
      try retire(&source, at: journal.clonePath, journal)
    } else {
      do {
        try removeLogs(files, but: journal, source, main)
        try placeLogs(journal)
        try put(destination, at: assembled, inPlaceOf: source, main, &journal)
      } catch let error as CommitError where journal.isOfCopy == true {
        // Who waits finds the copy alone.
        try takeLogsBack(journal)
        throw error
      }
      try retire(&source, at: assembled, journal)
    }
  }

  /// Takes the last name from a file that has been replaced, and makes it useless to whoever opened
  /// it meanwhile.
  private func retire(
    _ old: inout StoreLock, at path: FilePath, _ journal: CommitJournal
  ) throws {
    try removeReplaced(path, journal)
    try old.invalidateUnnamed()
    old.giveLeaseBack()
  }

  /// Gives a file the store's name, and the store's file its own. Back again when somebody waits to open
  /// what was the store, or when that was not what had the name: no lock keeps an application from putting
  /// a file of its own there, up to the very moment. A file that was given up again is removed: the next
  /// run makes it anew.
  ///
  /// - Parameter mark: Of what is to be replaced.
  private func put(
    _ file: borrowing StoreLock, at path: FilePath, inPlaceOf old: borrowing StoreLock,
    _ mark: FileMark, _ journal: inout CommitJournal, yielding: Bool = true
  ) throws {
    let store = journal.storePath
    let own = try FileMark(path)
    do {
      try DurableFile.exchange(path, with: store, flushingBoth: run.durability == .powerCut)
    } catch let error as DurabilityError where cannotExchange.contains(error.errno ?? .ioError) {
      guard try FileMark(store) == mark else { throw CommitError.sourceChanged(store: store) }
      // There is no way back from a rename.
      if yielding, old.isAwaited { throw CommitError.storeInUse(store: store) }
      // Who comes now is told that the old file is not a database.
      return try DurableFile.rename(path, to: store)
    } catch let error as DurabilityError where error.isNotFound {
      guard try FileMark(store) == nil else { throw error }
      throw CommitError.sourceChanged(store: store)
    }
    guard try FileMark(path) == mark else {
      try exchangeBack(path, own, store)
      try retireNew(file, old, at: path, mark, &journal)
      throw CommitError.sourceChanged(store: store)
    }
    guard yielding, try mustGoBack(old, file) else { return }
    try exchangeBack(path, own, store)
    // Somebody came for the new file before it lost the name.
    if try !mustGoBack(old, file), try FileMark(path)?.isSameFile(as: own) == true {
      return try put(file, at: path, inPlaceOf: old, mark, &journal)
    }
    try retireNew(file, old, at: path, mark, &journal)
    throw CommitError.storeInUse(store: store)
  }

  /// Whether somebody waits for the old file. Where somebody waits for the new one, too, only one of the two
  /// can be helped: the one that waits for the file that cannot be made useless, or else for the new one.
  private func mustGoBack(
    _ old: borrowing StoreLock, _ new: borrowing StoreLock
  ) throws -> Bool {
    guard old.isAwaited else { return false }
    return try !new.isAwaited || !old.canBeInvalidated()
  }

  /// Removes a file that had the store's name for a moment, or the old one where an application has put its own
  /// in the place of that, and makes it useless to whoever opened it meanwhile. Otherwise its changes would go
  /// to a file without a name, and to the log beside the store.
  ///
  /// Where somebody waits for it the backup stays, and so does the journal, by which the next run tells of it. What
  /// is removed the journal says first: nothing else would tell a process that comes after a crash that no new store
  /// was put in place.
  private func retireNew(
    _ new: borrowing StoreLock, _ old: borrowing StoreLock, at path: FilePath, _ mark: FileMark,
    _ journal: inout CommitJournal
  ) throws {
    let isAwaited = new.isAwaited
    // Of a recovery nothing else would show that the clone, which applications write to, is the store.
    let keepsBackup = isAwaited || (mayHaveUnfinished && mark != journal.main)
    if keepsBackup { journal.keepsBackup = true }
    if path == FilePath(journal.assembled) { journal.isGivenUp = true }
    let isWritten = Result { try journal.write(in: run, leases) }
    // Also where that failed: somebody may have opened the file.
    try removeReplaced(path, journal)
    // A chain's last step has a second name, and is made again, too.
    try new.invalidateUnnamed(evenNamed: isAwaited)
    try old.invalidateUnnamed()
    do {
      try isWritten.get()
    } catch is DurabilityError where !keepsBackup {
      // The commit is taken back now: only a crash before that would be misunderstood.
    }
  }

  /// - Parameter own: Of the file that gets its name `path` back. Where an application has replaced it
  ///   meanwhile, the application's is the store.
  func exchangeBack(_ path: FilePath, _ own: FileMark?, _ store: FilePath) throws {
    try DurableFile.exchange(path, with: store)
    if let found = try FileMark(path), !found.isSameFile(as: own) {
      try DurableFile.exchange(path, with: store)
    }
  }

  /// The main file reads the same with and without them. Those that were put there stay.
  ///
  /// - Parameter mark: Of the file that has the store's name and is locked.
  /// - Throws: ``CommitError/sourceChanged(store:)`` for logs that are not the source's.
  private func removeLogs(
    _ files: StoreFiles, but journal: CommitJournal, _ lock: borrowing StoreLock, _ mark: FileMark
  ) throws {
    for (path, mark) in [(files.wal, journal.wal), (files.journal, journal.rollbackJournal)] {
      guard let found = try FileMark(path) else { continue }
      let placed = journal.restoredLogs.first { $0.place == path }
      if found == placed?.log.mark { continue }
      guard found == mark else { throw CommitError.sourceChanged(store: files.store) }
      try DurableFile.removeIfPresent(path)
    }
    guard let found = try FileMark(files.shm) else { return }
    // Its bytes and times say nothing: it is a memory that processes share. Another one is left of a process
    // that was killed since, where nobody has the store open and it is the store still.
    guard
      try found.isSameFile(as: journal.shm) || (!lock.isAwaited && FileMark(files.store) == mark)
    else { throw CommitError.sourceChanged(store: files.store) }
    try DurableFile.removeIfPresent(files.shm)
  }

  /// Puts a backup's own logs beside the clone, which reads the same with and without them.
  private func placeLogs(_ journal: CommitJournal) throws {
    for (log, place) in journal.restoredLogs where try FileMark(place) != log.mark {
      try DurableFile.renameNew(FilePath(log.path), to: place)
    }
  }

  /// A store that an application put in place would play them back.
  func takeLogsBack(_ journal: CommitJournal) throws {
    for (log, place) in journal.restoredLogs where try FileMark(place) == log.mark {
      try DurableFile.removeIfPresent(place)
    }
  }

  /// The rights to the source may have been changed since they were copied, and other attributes, too, where a commit
  /// was cut off hours ago.
  private func renewRights(_ journal: inout CommitJournal) throws {
    let assembled = FilePath(journal.assembled)
    guard try mayHaveUnfinished || !DurableFile.haveSameRights(journal.storePath, assembled)
    else { return }
    let copies = [
      assembled, journal.backup.store, journal.backup.wal, journal.backup.journal,
      journal.clonePath,
    ]
    // A clone, and a copy of a backup, have only what they could have.
    let isOriginal =
      try journal.isOfCopy != true
      && FileMark(journal.storePath)?.isSameFile(as: journal.main) == true
    for copy in copies where try FileMark(copy) != nil {
      let lost = try DurableFile.copyAttributes(from: journal.storePath, to: copy)
      if isOriginal, copy == assembled { journal.setLost(lost) }
    }
  }
}

/// What renameat2(2) says on a file system that cannot exchange two names.
private let cannotExchange: [Errno] = [.invalidArgument, .noFunction, .notSupported]
