import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
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
///
/// A process that is killed between 3 and 4 lets those in who wait: see
/// ``giveBackToLateOpeners(_:)``.
struct CommitSteps {
  let run: RunDirectory
  /// Somebody asserts that no other process has the store open.
  var isStoreOffline = false
  /// Copies may have been left half made: by an earlier process that began the commit, or by a step that failed.
  var mayHaveUnfinished = false
  /// Looked at before a store is published or replaced, under its lock.
  var leases: [LeaseToken] = []
  /// The external data of a source beside which the destination goes: copies of these files keep their rights.
  var originals: FilePath?
  /// Looks whether a destination that goes beside the source has all files that its rows refer to.
  var checkExternalData: (() throws -> Void)?

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
  ///
  /// - Throws: ``UnfinishedCommit`` for a failure once the destination is in its place.
  func goForward(_ journal: inout CommitJournal) throws {
    do {
      try goOn(&journal)
    } catch {
      throw told(error, journal)
    }
  }

  private func goOn(_ journal: inout CommitJournal) throws {
    if journal.isReplacement, try !isInPlace(journal) {
      var lock = try CommitSteps.lock(journal.storePath)
      // Whoever held it until now may have made the exchange.
      if try !isInPlace(journal) {
        do {
          try exchange(&journal, &lock)
        } catch {
          // Where somebody else uses the store, the next run goes on, if it has something to go on with.
          let isInterference = (error as? CommitError)?.isInterference == true
          if try !isInterference || FileMark(FilePath(journal.assembled)) == nil {
            lock.giveLeaseBack()
            takeFailedBack(journal, error)
          }
          throw error
        }
      }
      return try finish(&journal)
    }
    if journal.kind == .publish {
      do {
        try publish(&journal)
      } catch {
        takeFailedBack(journal, error)
        throw error
      }
    } else if mayHaveUnfinished {
      try completeBackup(journal)
    }
    try finish(&journal)
  }

  /// Brings a commit that this process has begun to its end. It is taken back where another process has the
  /// store in use or has changed it, where it fails before the exchange, and before the lock is given up:
  /// whoever has taken the work over waits for that.
  ///
  /// - Parameter lock: On the source's main file.
  /// - Throws: As ``goForward(_:)``.
  func goForwardOrBack(_ journal: inout CommitJournal, _ lock: inout StoreLock) throws {
    do {
      try exchange(&journal, &lock)
      try finish(&journal)
    } catch let error as CommitError where error.isInterference {
      lock.giveLeaseBack()
      try requireReachable(journal.storePath)
      // The next run takes back what leaves a backup, and tells of that.
      if journal.keepsBackup != true { try takeBack(journal) }
      throw error
    } catch {
      lock.giveLeaseBack()
      takeFailedBack(journal, error)
      throw told(error, journal)
    }
  }

  private func finish(_ journal: inout CommitJournal) throws {
    if journal.isReplacement {
      try reach(.replaced, &journal)
      // Somebody may have put a copy of the store beside it since the commit began.
      if !journal.removed.isEmpty { try journal.setRemoved(journal.removed) }
      try removeObsolete(&journal)
    }
    if journal.kind == .restore, journal.externalSources.isEmpty {
      do {
        try removeIfEmpty(journal.files.externalDataFolder)
        try removeIfEmpty(journal.files.supportFolder)
      } catch is DurabilityError {}  // An empty folder that stays is in nobody's way.
    }
    try removeLeftovers(of: journal)
    try removeReplaced(FilePath(journal.assembled), journal)
    try reach(.finished, &journal)
  }

  /// What a small store's commit has done shows from the files alone.
  func reach(_ state: CommitJournal.State, _ journal: inout CommitJournal) throws {
    journal.state = state
    guard run.durability == .powerCut || (state == .backedUp && journal.clone != nil) else {
      return
    }
    try journal.write(in: run, leases)
  }

  /// Removes the external data that only the source refers to, where the backup has it.
  ///
  /// The store is the new one already: what this user cannot remove stays, and a note says so.
  private func removeObsolete(_ journal: inout CommitJournal) throws {
    let (folder, kept) = (journal.files.externalDataFolder, journal.backup.externalDataFolder)
    journal.notRemoved = nil
    for name in journal.removed {
      do {
        guard try ExternalDataFolder.areEqual(folder.appending(name), kept.appending(name)) else {
          continue
        }
        try ExternalDataFolder.remove([name], from: folder)
      } catch let error as DurabilityError {
        let count = journal.notRemoved?.count ?? 0
        journal.notRemoved = .init(
          count: count + 1, reason: journal.notRemoved?.reason ?? "\(error)")
      }
    }
  }

  /// Removes what has the assembled file's name after the destination has its own: the file that it
  /// replaced or, where a rename is a link and an unlink and a crash came between, itself.
  func removeReplaced(_ path: FilePath, _ journal: CommitJournal) throws {
    guard let mark = try FileMark(path) else { return }
    if [journal.assembledMark, journal.main, journal.clone].contains(where: mark.isSameFile) {
      // After a power cut it is found and removed again, as long as there is a journal.
      try DurableFile.remove(path, surviving: path.parent == run.path ? run.durability : .powerCut)
    }
  }

  private func publish(_ journal: inout CommitJournal) throws {
    guard try !isInPlace(journal) else { return }
    try requireOwnFolder(journal)
    // Rows refer to files: the files are there first.
    try addExternalData(journal)
    try alone(in: journal.files.supportFolder) {
      try requireOwnFolder(journal)
      // One that was taken back may have removed files that this one found there.
      try addExternalData(journal)
      try checkExternalData?()
      try requireLeases(journal.storePath)
      do {
        try DurableFile.renameNew(FilePath(journal.assembled), to: journal.storePath)
      } catch DurabilityError.alreadyExists(let path) {
        throw CommitError.destinationExists(path: path)
      }
    }
  }

  /// Another commit may have put a store beside this place, with files in the same folder, since the run began.
  private func requireOwnFolder(_ journal: CommitJournal) throws {
    guard try !ExternalDataFolder.names(in: journal.files.externalDataFolder).isEmpty else {
      return
    }
    try NewFilePlace(journal.storePath).checkForStore()
  }

  /// Lets no other commit publish a store with external data in the same folder, or take one back, while the body
  /// runs, which looks and copies nothing that is there.
  ///
  /// - Parameter folder: That of the external data; where it is not there, nobody has anything in it.
  /// - Throws: `DurabilityError`.
  func alone(in folder: FilePath, _ body: () throws -> Void) throws {
    guard try FileKind(at: folder) == .folder else { return try body() }
    try Folder.locking(folder, patienceSeconds: Self.patienceSeconds, body)
  }

  /// Who has the lock for longer is stopped, and its work may be what this process has taken over.
  private static let patienceSeconds = 1.0

  func addExternalData(_ journal: CommitJournal) throws {
    guard !journal.added.isEmpty else { return }
    let folder = journal.files.externalDataFolder
    // The assembled file has the source's rights, and what it takes the place of has them, too.
    let assembled = FilePath(journal.assembled)
    let store = try DurableFile.exists(assembled) ? assembled : journal.storePath
    try ExternalDataFolder.make(folder, like: nil, of: store)
    try ExternalDataFolder.copy(
      journal.added, from: journal.externalSources.map { FilePath($0) }, to: folder,
      rightsOf: journal.kind == .restore ? nil : store, originals: originals)
  }

  func makeClone(_ journal: inout CommitJournal) throws {
    guard let settled = journal.settledSource else { return }
    // One that a crash left may lack its attributes.
    try DurableFile.removeIfPresent(journal.clonePath)
    try DurableFile.copy(FilePath(settled), to: journal.clonePath)
    try DurableFile.copyAttributes(from: journal.storePath, to: journal.clonePath)
    journal.clone = try FileMark(journal.clonePath)
  }
}

extension Sequence<LeaseToken> {
  /// - Throws: ``CommitError/leaseLost(store:)`` where another process has taken the work over,
  ///   ``CommitError/lockGone(store:lock:)`` where nobody is known to have;
  ///   `DurabilityError` where nobody can tell.
  package func requireCurrent(store: FilePath) throws {
    for lease in self where try !lease.isCurrent {
      throw lease.isGone
        ? CommitError.lockGone(store: store, lock: FilePath(lease.path))
        : CommitError.leaseLost(store: store)
    }
  }
}
