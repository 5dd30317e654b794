import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// The steps of a commit, each of which can be taken again.
///
/// A process that has the old file open when another takes its name would write to a WAL or a
/// journal beside the new one. So a store is only replaced while nobody else has it open:
///
/// 1. SQLite's exclusive lock is held from the last look at the source until the end.
/// 2. A write lease on the old file is only given while nobody else has it open. Where there are no
///    leases, somebody must assert that nobody has, and `/proc` must not show the contrary.
/// 3. The two files change names. Who began to open the old one meanwhile waits for the lease to
///    end: then they change names back, and the store is in use.
/// 4. The header of the old file, which has no name any more, is overwritten. Who opened it after
///    all, at whatever moment, is told that it is not a database. The backup is a copy.
struct CommitSteps {
  let run: RunDirectory
  /// Somebody asserts that no other process has the store open.
  var isStoreOffline = false
  /// An earlier process began the commit, and may have left copies half made.
  var isResumed = false
  /// Looked at before a store is published or replaced, under its lock.
  var leases: [LeaseToken] = []

  /// - Throws: ``CommitError/leaseLost(store:)`` where another process has taken the work over.
  ///   Nothing is taken back then: what lies there is the other's.
  func requireLeases(_ store: FilePath) throws {
    try leases.requireCurrent(store: store)
  }

  /// Keeps SQLite out of a file for as long as the value lives.
  ///
  /// - Throws: ``CommitError/storeInUse(store:)`` when somebody has it in use.
  static func lock(_ store: FilePath) throws -> StoreLock {
    do {
      return try StoreLock(excludingOthersFrom: store)
    } catch DurabilityError.locked {
      throw CommitError.storeInUse(store: store)
    }
  }

  /// Takes the lease on a store's main file. Where that is not possible, looks for openers
  /// otherwise.
  ///
  /// - Throws: ``CommitError/storeInUse(store:)``, ``CommitError/storeMayBeInUse(store:)``.
  func requireNoOpeners(of files: StoreFiles, _ lock: inout StoreLock) throws {
    switch try lock.takeLease() {
    case .none: return
    case .some: throw CommitError.storeInUse(store: files.store)
    case .unknown:
      if try lock.areOpenElsewhere([files.store, files.wal, files.shm]) {
        throw CommitError.storeInUse(store: files.store)
      }
      guard isStoreOffline else { throw CommitError.storeMayBeInUse(store: files.store) }
    }
  }
}

// MARK: - Forward

extension CommitSteps {
  /// Goes on from wherever a journal stands, and locks the source if it is still to be replaced.
  func goForward(_ journal: inout CommitJournal) throws {
    if journal.isReplacement, try !isInPlace(journal) {
      var lock = try CommitSteps.lock(journal.storePath)
      // Whoever held it until now may have made the exchange.
      if try !isInPlace(journal) { try exchange(&journal, &lock) }
      return try finish(&journal)
    }
    if journal.kind == .publish { try publish(&journal) }
    try finish(&journal)
  }

  /// Brings a commit that this process has begun to its end. It is taken back where another process has the
  /// store in use or has changed it, and before the lock is given up: whoever has taken the work over waits
  /// for that.
  ///
  /// - Parameter lock: On the source's main file.
  func goForwardOrBack(_ journal: inout CommitJournal, _ lock: inout StoreLock) throws {
    do {
      try exchange(&journal, &lock)
      try finish(&journal)
    } catch let error as CommitError where error.isInterference {
      lock.giveLeaseBack()
      try requireReachable(journal.storePath)
      try takeBack(journal)
      throw error
    }
  }

  private func finish(_ journal: inout CommitJournal) throws {
    if journal.isReplacement {
      try reach(.replaced, &journal)
      try removeObsolete(journal)
    }
    if journal.kind == .restore, journal.externalSources.isEmpty {
      try removeIfEmpty(journal.files.externalDataFolder)
      try removeIfEmpty(journal.files.supportFolder)
    }
    try removeLeftovers(of: journal)
    try removeReplaced(FilePath(journal.assembled), journal)
    try reach(.finished, &journal)
  }

  /// What a small store's commit has done shows from the files alone.
  private func reach(_ state: CommitJournal.State, _ journal: inout CommitJournal) throws {
    journal.state = state
    guard run.durability == .powerCut || (state == .backedUp && journal.clone != nil) else {
      return
    }
    try journal.write(in: run, leases)
  }

  /// Removes the external data that only the source refers to, where the backup has it.
  private func removeObsolete(_ journal: CommitJournal) throws {
    let (folder, kept) = (journal.files.externalDataFolder, journal.backup.externalDataFolder)
    let removed = try journal.removed.filter { name in
      try ExternalDataFolder.areEqual(folder.appending(name), kept.appending(name))
    }
    try ExternalDataFolder.remove(removed, from: folder)
  }

  /// Removes what has the assembled file's name after the destination has its own: the file that it
  /// replaced or, where a rename is a link and an unlink and a crash came between, itself.
  private func removeReplaced(_ path: FilePath, _ journal: CommitJournal) throws {
    guard let mark = try FileMark(path) else { return }
    if [journal.assembledMark, journal.main, journal.clone].contains(where: mark.isSameFile) {
      // After a power cut it is found and removed again, as long as there is a journal.
      try DurableFile.remove(path, surviving: path.parent == run.path ? run.durability : .powerCut)
    }
  }

  private func publish(_ journal: inout CommitJournal) throws {
    guard try !isInPlace(journal) else { return }
    // Rows refer to files: the files are there first.
    try addExternalData(journal)
    try requireLeases(journal.storePath)
    do {
      try DurableFile.renameNew(FilePath(journal.assembled), to: journal.storePath)
    } catch DurabilityError.alreadyExists(let path) {
      throw CommitError.destinationExists(path: path)
    }
  }

  private func exchange(_ journal: inout CommitJournal, _ source: inout StoreLock) throws {
    let files = journal.files
    if journal.state == .prepared {
      // What is copied is the source, or a backup of an earlier attempt is the better one.
      guard try isSourceUnchanged(journal) else {
        throw CommitError.sourceChanged(store: files.store)
      }
      try backUp(journal)
      try addExternalData(journal)
      try makeClone(&journal)
      try reach(.backedUp, &journal)
    }
    if try needsClone(journal) {
      try makeClone(&journal)
      try journal.write(in: run, leases)
    }
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
      try put(clone, at: journal.clonePath, inPlaceOf: source, main, files.store)
      do {
        try removeLogs(files, but: journal)
        try placeLogs(journal)
        // Of a backup that is put back, the clone holds what the backup does: who opens it meanwhile
        // is told that it is not a database, and finds the store at the next open.
        try put(
          destination, at: assembled, inPlaceOf: clone, mark, files.store,
          yielding: journal.kind != .restore)
      } catch let error as CommitError {
        // The clone is the store now, and holds all that the source and its WAL did.
        try retire(&source, at: journal.clonePath, journal)
        throw error
      }
      try retire(&clone, at: assembled, journal)
      try retire(&source, at: journal.clonePath, journal)
    } else {
      try removeLogs(files, but: journal)
      try placeLogs(journal)
      try put(destination, at: assembled, inPlaceOf: source, main, files.store)
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
  /// a file of its own there, up to the very moment.
  ///
  /// - Parameter mark: Of what is to be replaced.
  private func put(
    _ file: borrowing StoreLock, at path: FilePath, inPlaceOf old: borrowing StoreLock,
    _ mark: FileMark, _ store: FilePath, yielding: Bool = true
  ) throws {
    let own = try FileMark(path)
    do {
      try DurableFile.exchange(path, with: store, flushingBoth: run.durability == .powerCut)
    } catch let error as DurabilityError where cannotExchange.contains(error.errno ?? .ioError) {
      guard try FileMark(store) == mark else { throw CommitError.sourceChanged(store: store) }
      // Who waits is told that the old file is not a database.
      return try DurableFile.rename(path, to: store)
    } catch let error as DurabilityError where error.isNotFound {
      guard try FileMark(store) == nil else { throw error }
      throw CommitError.sourceChanged(store: store)
    }
    guard try FileMark(path) == mark else {
      try exchangeBack(path, own, store)
      throw CommitError.sourceChanged(store: store)
    }
    // Where somebody waits for the new file too, only one of the two can be helped.
    guard yielding, old.isAwaited, !file.isAwaited else { return }
    try exchangeBack(path, own, store)
    throw CommitError.storeInUse(store: store)
  }

  /// - Parameter own: Of the file that gets its name `path` back. Where an application has replaced it
  ///   meanwhile, the application's is the store.
  private func exchangeBack(_ path: FilePath, _ own: FileMark?, _ store: FilePath) throws {
    try DurableFile.exchange(path, with: store)
    if let found = try FileMark(path), !found.isSameFile(as: own) {
      try DurableFile.exchange(path, with: store)
    }
  }

  /// The main file reads the same with and without them. Those that were put there stay.
  ///
  /// - Throws: ``CommitError/sourceChanged(store:)`` for logs that are not the source's.
  private func removeLogs(_ files: StoreFiles, but journal: CommitJournal) throws {
    for (path, mark) in [(files.wal, journal.wal), (files.journal, journal.rollbackJournal)] {
      guard let found = try FileMark(path) else { continue }
      let placed = journal.restoredLogs.first { $0.place == path }
      if found == placed?.log.mark { continue }
      guard found == mark else { throw CommitError.sourceChanged(store: files.store) }
      try DurableFile.removeIfPresent(path)
    }
    // Nobody uses one without a WAL.
    try DurableFile.removeIfPresent(files.shm)
  }

  /// Puts a backup's own logs beside the clone, which reads the same with and without them.
  private func placeLogs(_ journal: CommitJournal) throws {
    for (log, place) in journal.restoredLogs where try FileMark(place) != log.mark {
      try DurableFile.renameNew(FilePath(log.path), to: place)
    }
  }

  /// Copies of the source's own files: nothing that is written to those later is in the backup. It
  /// counts only where it holds what they do. External data is never written again, and gets second
  /// names.
  private func backUp(_ journal: CommitJournal) throws {
    let (files, backup) = (journal.files, journal.backup)
    for (from, to) in [
      (files.wal, backup.wal), (files.journal, backup.journal), (files.store, backup.store),
    ] {
      // Empty logs hold nothing. The main file comes last: its backup is never without its WAL.
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
    // What this commit added, before a crash, is no part of the source.
    try ExternalDataFolder.link(
      from: files.externalDataFolder, of: files.store, to: backup.externalDataFolder,
      except: journal.added)
  }

  private func addExternalData(_ journal: CommitJournal) throws {
    guard !journal.added.isEmpty else { return }
    let folder = journal.files.externalDataFolder
    let originals = journal.externalSources.map { FilePath($0) }
    // The assembled file has the source's rights, and what it takes the place of has them, too.
    let assembled = FilePath(journal.assembled)
    try ExternalDataFolder.make(
      folder, like: nil, of: try DurableFile.exists(assembled) ? assembled : journal.storePath)
    try ExternalDataFolder.copy(journal.added, from: originals, to: folder)
  }

  private func makeClone(_ journal: inout CommitJournal) throws {
    guard let settled = journal.settledSource else { return }
    // One that a crash left may lack its attributes.
    try DurableFile.removeIfPresent(journal.clonePath)
    try DurableFile.copy(FilePath(settled), to: journal.clonePath)
    try DurableFile.copyAttributes(from: journal.storePath, to: journal.clonePath)
    journal.clone = try FileMark(journal.clonePath)
  }
}

// MARK: - What there is

extension CommitSteps {
  /// The assembled file has the store's name, or had it, and the file that it replaced has its own.
  func isInPlace(_ journal: CommitJournal) throws -> Bool {
    if try FileMark(journal.storePath)?.isSameFile(as: journal.assembledMark) == true {
      return true
    }
    guard journal.isReplacement, let there = try FileMark(FilePath(journal.assembled)) else {
      return false
    }
    return there.isSameFile(as: journal.main) || there.isSameFile(as: journal.clone)
  }

  /// Nobody wrote to the source since the commit began. The clone counts as the source; beside it
  /// the logs may be gone.
  private func isSourceUnchanged(_ journal: CommitJournal) throws -> Bool {
    let files = journal.files
    let main = try FileMark(files.store)
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
  /// it away. Without it the WAL must stay.
  private func needsClone(_ journal: CommitJournal) throws -> Bool {
    guard journal.settledSource != nil else { return false }
    guard let clone = journal.clone else { return true }
    return try FileMark(journal.storePath) != clone && FileMark(journal.clonePath) != clone
  }

  /// False where the assembled file is gone and the store is neither the source nor a clone of it: the
  /// exchange may have been made, and somebody may have put another file in the destination's place.
  func isExchangeRuledOut(_ journal: CommitJournal) throws -> Bool {
    if journal.kind == .publish { return true }
    if try FileMark(FilePath(journal.assembled))?.isSameFile(as: journal.assembledMark) == true {
      return true
    }
    guard let store = try FileMark(journal.storePath) else { return true }
    // Not the file alone: the number of one that is gone is given to the next.
    return store == journal.main || store == journal.clone
  }

  func canGoForward(_ journal: CommitJournal) throws -> Bool {
    if try isInPlace(journal) { return true }
    guard try FileMark(FilePath(journal.assembled)) == journal.assembledMark,
      try journal.kind == .restore || isSound(FilePath(journal.assembled))
    else {
      try demandStore(of: journal)
      return false
    }
    switch journal.kind {
    case .publish:
      return try !DurableFile.exists(journal.storePath)
    case .replace, .restore:
      try demandStore(of: journal)
      if try needsClone(journal) && FileMark(FilePath(journal.settledSource ?? "")) == nil {
        return false
      }
      return try isSourceUnchanged(journal)
    }
  }

  /// Whether what an earlier process assembled and verified still is what it was, as far as SQLite tells.
  private func isSound(_ assembled: FilePath) throws -> Bool {
    do {
      return try Connection(path: assembled.string, mode: .immutable).isWhole()
    } catch let error as SQLiteError where error.isDamage {
      return false
    }
  }

  /// A backup is taken back only where there is a store.
  private func demandStore(of journal: CommitJournal) throws {
    guard journal.isReplacement, try !DurableFile.exists(journal.storePath) else { return }
    throw CommitError.storeMissing(store: journal.storePath, backup: journal.backup.store)
  }
}

/// What renameat2(2) says on a file system that cannot exchange two names.
private let cannotExchange: [Errno] = [.invalidArgument, .noFunction, .notSupported]

extension Sequence<LeaseToken> {
  /// - Throws: ``CommitError/leaseLost(store:)`` where another process has taken the work over;
  ///   `DurabilityError` where nobody can tell.
  package func requireCurrent(store: FilePath) throws {
    for lease in self where try !lease.isCurrent { throw CommitError.leaseLost(store: store) }
  }
}
