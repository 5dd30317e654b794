import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// Puts a backup back where a commit had put its destination: main file, logs and external data, byte
/// for byte. The store that it replaces is kept beside it, as a commit keeps its source.
///
/// It is a commit in which source and destination have changed parts, with its own journal in a run
/// directory of its own. A backup with a WAL or a hot journal needs one step more: beside the store
/// that is replaced its logs would be played back into that. So a copy of the backup with the logs'
/// content in it takes the store's place first, then the logs are put beside it, then the backup's own
/// main file takes the copy's place. At every moment the path reads as one whole store.
extension StoreSwap {
  /// - Parameters:
  ///   - backup: The backup; it stays where it is.
  ///   - store: What it is put in the place of.
  ///   - identity: The state of the store that may be replaced.
  ///   - run: A directory for this alone, locked by the caller.
  ///   - name: A part of the name of what is kept: `STORE.godwit-rolled-back-NAME.sqlite`.
  ///   - isOfCopy: What is replaced is a copy of the backup with its logs' content in it, which the rollback itself
  ///     has put where no store was: nothing is kept of it.
  /// - Throws: ``CommitError``: `sourceChanged` where the store is in another state, `storeInUse`
  ///   where somebody has it open; nothing is changed then.
  package static func restore(
    _ backup: StoreFiles, to store: StoreFiles, identity: StoreIdentity, run: RunDirectory,
    name: String, isOfCopy: Bool = false, isStoreOffline: Bool = false, leases: [LeaseToken] = []
  ) throws -> CommitJournal {
    guard !identity.hasPendingChanges else { throw CommitError.sourceChanged(store: store.store) }
    try backup.checkKinds()
    try backup.checkExternalDataKinds()
    guard try FileMark(backup.store) != nil else { throw CommitError.notAFile(store: backup.store) }
    var ends = CommitEnds(
      sourcePath: store.store.string, sourceIdentity: identity, readPath: store.store.string,
      externalDataPath: backup.externalDataFolder.string, destinationPath: store.store.string,
      fingerprint: "restore")
    let logs = try [backup.wal, backup.journal].compactMap { try FileMark($0) }
      .filter { $0.size > 0 }
    let main = try FileMark(backup.store)?.size ?? 0
    var swap = StoreSwap(chain: ends, run: run, name: name, isStoreOffline: isStoreOffline)
    swap.leases = leases
    // The assembled file, and with logs a copy without them and a clone of that.
    let copies: Int64 = logs.isEmpty || isOfCopy ? 1 : 3
    let needed = ([copies.times(main)] + logs.map(\.size)).total
    try swap.checkSpace(assembledBytes: needed)
    return try tellingSpace {
      if !logs.isEmpty, !isOfCopy {
        ends.readPath = try backup.clone(in: run.snapshot).store.string
      }
      var swap = StoreSwap(chain: ends, run: run, name: name, isStoreOffline: isStoreOffline)
      swap.leases = leases
      let assembled = try swap.assemblyPath()
      try removeAssembled(by: run, for: store.store, name: name)
      let lost = try DurableFile.copy(backup.store, to: assembled)
      guard try ExternalDataFolder.areEqual(backup.store, assembled) else {
        throw CommitError.incompleteBackup(path: assembled)
      }
      return try swap.knowing(assembled).restore(
        backup, assembled, obsolete: isOfCopy ? [] : swap.obsoleteExternalData(backup),
        lostByCopy: isOfCopy ? lost : nil)
    }
  }

  /// External data that the store has and the backup has not: what the migration added, as far as rows
  /// refer to it. Everything else in the folder is not this store's, or nobody knows whose it is.
  private func obsoleteExternalData(_ backup: StoreFiles) throws -> [String] {
    let kept = Set(try ExternalDataFolder.names(in: backup.externalDataFolder))
    let names = try ExternalDataFolder.names(in: source.externalDataFolder)
      .filter { !kept.contains($0) }
    return try ExternalDataFolder.names(names, referredToBy: source.store)
  }

  /// - Parameter lostByCopy: What the copy that is replaced lacks of the backup; nil where another store is.
  private func restore(
    _ backup: StoreFiles, _ assembled: FilePath, obsolete: [String], lostByCopy: LostRights?
  ) throws -> CommitJournal {
    let steps = CommitSteps(run: run, isStoreOffline: isStoreOffline, leases: leases)
    var lock = try CommitSteps.lock(source.store)
    var journal = try beginningExchange(.restore, assembled, steps, &lock)
    if let lostByCopy {
      (journal.isOfCopy, journal.clone) = (true, journal.main)
      journal.setLost(lostByCopy)
    }
    journal.restoredWAL = try waiting(backup.wal, "wal", assembled)
    journal.restoredJournal = try waiting(backup.journal, "journal", assembled)
    let external = backup.externalDataFolder
    if try FileKind(at: external) == .folder { journal.externalSources = [external.string] }
    journal.added = try newExternalData(from: [external], in: source)
    try journal.setRemoved(obsolete)
    journal.makesExternalFolder = try FileKind(at: source.externalDataFolder) != .folder
    try journal.write(in: run, leases)
    try steps.goForwardOrBack(&journal, &lock)
    return journal
  }

  /// A copy of one of the backup's logs, ready to get its name.
  private func waiting(
    _ log: FilePath, _ suffix: String, _ assembled: FilePath
  ) throws -> CommitJournal.Log? {
    guard let original = try FileMark(log), original.size > 0 else { return nil }
    let path = CommitJournal.waitingLog(suffix, of: assembled)
    try DurableFile.copy(log, to: path)
    guard let mark = try FileMark(path), try ExternalDataFolder.areEqual(log, path) else {
      throw CommitError.incompleteBackup(path: path)
    }
    return CommitJournal.Log(
      path: path.string, mark: mark, digest: try FileDigest.text(of: path))
  }

  /// Brings a restoration that was cut off to its end, forward or back, as
  /// ``recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)`` does with a commit.
  package static func recoverRestoration(
    of backup: StoreFiles, to store: FilePath, run: RunDirectory, isStoreOffline: Bool = false,
    leases: [LeaseToken] = []
  ) throws -> Recovery {
    guard let found = try CommitJournal.read(in: run) else { return .nothing }
    return try recover(
      found.checked(in: run, source: store, destination: store, restored: backup), run,
      isStoreOffline, leases)
  }

  /// Completes what a restoration that was cut off has put aside of a store that is gone by now.
  ///
  /// - Parameter found: Its journal, which may be forgotten since.
  /// - Returns: The paths of that. Nothing lies there where nothing was put aside.
  package static func completePutAside(
    _ found: CommitJournal, of backup: StoreFiles, to store: FilePath, run: RunDirectory,
    leases: [LeaseToken] = []
  ) throws -> StoreFiles {
    let journal = try found.checked(in: run, source: store, destination: store, restored: backup)
    try leases.requireCurrent(store: store)
    try CommitSteps(run: run, mayHaveUnfinished: true, leases: leases).completePutAside(journal)
    return journal.backup
  }

  /// Takes a restoration back of which the store is gone: nothing of it is left at the path.
  package static func abandonRestoration(
    of backup: StoreFiles, to store: FilePath, run: RunDirectory, leases: [LeaseToken] = []
  ) throws {
    guard let found = try CommitJournal.read(in: run) else { return }
    let steps = CommitSteps(run: run, mayHaveUnfinished: true, leases: leases)
    try steps.takeBack(
      found.checked(in: run, source: store, destination: store, restored: backup))
  }
}
