import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// Puts the assembled store in its place: the only code that writes beside a store.
///
/// At the store's path there is one whole store at every moment, old or new. What a crash leaves, and a
/// failure after the exchange has begun,
/// ``recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)`` brings to its end, forward
/// or back. A commit that fails before that, or whose store another process has open or has changed, is
/// taken back at once.
///
/// An application that has the old file open would write to a WAL beside the new one. See
/// ``CommitSteps`` for how that is kept from happening.
///
/// A new main file beside the old WAL would silently read as the *old* store, since SQLite replays
/// whatever WAL lies there. So, where the source has a WAL, a clone of the source with the WAL's
/// content in it is renamed over the main file first; with or without the WAL it reads the same.
/// Then the WAL goes, and then the destination is renamed over the clone. A rollback journal is
/// treated likewise: played back into the clone, it changes nothing.
///
/// Source: https://sqlite.org/walformat.html, https://sqlite.org/lockingv3.html §6.
package struct StoreSwap: Sendable {
  let ends: CommitEnds
  /// Nil for a chain of versions, where no one plan leads from the source to the destination.
  let plan: MigrationPlan?
  let run: RunDirectory
  /// The run's name, which becomes a part of file names.
  package let name: String
  /// Somebody asserts that no other process has the store open. Only asked where nobody can tell.
  let isStoreOffline: Bool
  /// Whose right to the store this is: a commit needs all of them.
  package var leases: [LeaseToken] = []
  /// The file that was verified; nil where it is not known. Another of that name is not published.
  package var verified: FileMark?
  /// `FileDigest` of that file, where it is known.
  package var digest: String?
  /// Who commits; nil for a store that is migrated by itself.
  package var owner: CommitJournal.Owner?
  /// Likewise of the private clone of the source, where one takes the source's place first.
  private var settledDigest: String?

  /// - Parameter name: The run's name, which becomes a part of file names.
  package init(plan: MigrationPlan, run: RunDirectory, name: String, isStoreOffline: Bool = false) {
    ends = CommitEnds(plan)
    self.plan = plan
    self.run = run
    self.name = name
    self.isStoreOffline = isStoreOffline
  }

  /// The commit of a chain of versions, see ``commit(chain:obsolete:)``.
  package init(
    chain ends: CommitEnds, run: RunDirectory, name: String, isStoreOffline: Bool = false
  ) {
    self.ends = ends
    plan = nil
    self.run = run
    self.name = name
    self.isStoreOffline = isStoreOffline
  }
}

extension StoreSwap {
  private var destination: FilePath { FilePath(ends.destinationPath) }
  private var isInPlace: Bool { ends.destinationPath == ends.sourcePath }
  var source: StoreFiles { StoreFiles(FilePath(ends.sourcePath)) }

  /// Where the destination is to be assembled, so that one rename publishes it: in the run
  /// directory, or under a hidden name beside the destination when that is another volume.
  ///
  /// - Throws: ``CommitError/mountPoint(store:)``.
  package func assemblyPath() throws -> FilePath {
    if isInPlace, try FileMark(destination) != nil, DurableFile.isMountPoint(destination) {
      throw CommitError.mountPoint(store: destination)
    }
    let paths = CommitJournal.assembledPaths(run, destination, name: name)
    return try DurableFile.areOnOneVolume(run.path, destination.parent) ? paths[0] : paths[1]
  }

  /// 1 MiB. A file system at its very last block is slow and other people's trouble.
  package static let spareBytes: Int64 = 1 << 20

  /// Looks whether the volume can hold what the commit adds to it, before anything is written.
  ///
  /// - Parameter assembledBytes: Bytes expected of the destination's file.
  package func checkSpace(assembledBytes: Int64) throws {
    var parts = [assembledBytes, try bytes(in: run.external), Self.spareBytes]
    if isInPlace {
      // The backup, whose logs are copied whole, whatever is committed in them, and whose external data
      // is made of links; and the clone.
      parts.append(ends.sourceIdentity.size)
      parts += try [source.wal, source.journal].map { try FileMark($0)?.size ?? 0 }
      if ends.sourceIdentity.hasPendingChanges { parts.append(ends.sourceIdentity.size) }
    } else {
      parts.append(try bytes(in: FilePath(ends.externalDataPath)))
    }
    let needed = parts.total
    if let free = try DurableFile.freeBytes(at: destination.parent), free < needed {
      throw CommitError.notEnoughSpace(
        volume: destination.parent, neededBytes: needed, freeBytes: Int64(free))
    }
  }

  func bytes(in folder: FilePath) throws -> Int64 {
    try ExternalDataFolder.names(in: folder).map { try FileMark(folder.appending($0))?.size ?? 0 }
      .total
  }

  /// Publishes the assembled file, or lets it take the source's place: whichever the plan says.
  @discardableResult
  package func commit(_ assembled: FilePath) throws -> CommitJournal {
    try commit(assembled, external: nil, obsolete: nil)
  }

  /// - Parameters:
  ///   - external: A folder of external data that the assembled file comes with, instead of the
  ///     source's own.
  ///   - obsolete: External data that only the source refers to; nil to find out.
  func commit(
    _ assembled: FilePath, external: FilePath?, obsolete: [String]?
  ) throws -> CommitJournal {
    try tellingSpace {
      let swap = try knowing(assembled)
      if isInPlace {
        return try swap.replace(with: assembled, external: external, obsolete: obsolete)
      } else {
        return try swap.publish(assembled, external: external)
      }
    }
  }

  /// With the digests of what is to get the store's name, read before anybody is kept out of the source.
  func knowing(_ assembled: FilePath) throws -> StoreSwap {
    var swap = self
    if digest == nil, try FileMark(assembled) != nil {
      swap.digest = try FileDigest.text(of: assembled)
    }
    if isInPlace, ends.readPath != ends.sourcePath {
      swap.settledDigest = try FileDigest.text(of: FilePath(ends.readPath))
    }
    return swap
  }

  /// Puts the assembled file where there was nothing.
  ///
  /// - Throws: ``CommitError/destinationExists(path:)`` when something is there; `PlaceError` where another store
  ///   keeps external data in the same folder by now.
  func publish(_ assembled: FilePath, external: FilePath? = nil) throws -> CommitJournal {
    guard try source.identity() == ends.sourceIdentity else {
      throw CommitError.sourceChanged(store: source.store)
    }
    let target = StoreFiles(destination)
    try Self.requireNothing(at: target)
    var journal = try beginning(.publish, assembled)
    let sources = [run.external, external ?? FilePath(ends.externalDataPath)]
    journal.externalSources = sources.map(\.string)
    let found = try ExternalDataFolder.names(in: target.externalDataFolder)
    journal.added = try newExternalData(
      from: sources, in: target, except: undelivered(assembled),
      originals: FilePath(ends.externalDataPath))
    journal.makesExternalFolder = try FileKind(at: target.externalDataFolder) != .folder
    var steps = CommitSteps(
      run: run, leases: leases, originals: FilePath(ends.externalDataPath))
    steps.checkExternalData = {
      // A commit that was cut off may have put it there, and may have been taken back since.
      for path in found.map({ target.externalDataFolder.appending($0) })
      where try !DurableFile.exists(path) { throw CommitError.damagedExternalData(path: path) }
      try checkExternalData(of: assembled, in: target)
    }
    try steps.requireLeases(source.store)
    try journal.write(in: run, leases)
    try steps.goForward(&journal)
    return journal
  }

  /// - Throws: ``CommitError/destinationExists(path:)``.
  package static func requireNothing(at target: StoreFiles) throws {
    // SQLite would replay a WAL or journal of that name into the new store.
    for path in [target.store, target.wal, target.journal, target.shm]
    where try DurableFile.exists(path) { throw CommitError.destinationExists(path: path) }
  }

  /// - Throws: ``CommitError/sourceChanged(store:)`` where files that rows refer to are not there: an application
  ///   may have replaced one before it was copied.
  private func checkExternalData(of assembled: FilePath, in target: StoreFiles) throws {
    if (try? source.identity()) == ends.sourceIdentity { return }
    let names = Set(try ExternalDataFolder.names(in: target.externalDataFolder))
    guard try ExternalDataFolder.missing(among: names, referredToBy: assembled).isEmpty else {
      throw CommitError.sourceChanged(store: source.store)
    }
  }

  /// Lets the assembled file take the source's place.
  func replace(
    with assembled: FilePath, external: FilePath? = nil, obsolete: [String]? = nil
  ) throws -> CommitJournal {
    guard try FileMark(source.store) != nil else {
      throw try FileKind(at: source.store) == .none
        ? CommitError.sourceChanged(store: source.store) : .notAFile(store: source.store)
    }
    let steps = CommitSteps(run: run, isStoreOffline: isStoreOffline, leases: leases)
    var lock = try CommitSteps.lock(source.store)
    var journal = try beginningExchange(.replace, assembled, steps, &lock)
    guard journal.settledSource != nil || !ends.sourceIdentity.hasPendingChanges else {
      throw CommitError.unusablePlan("\(source.store) has a WAL and no clone was read")
    }
    let sources = [run.external] + (external.map { [$0] } ?? [])
    journal.externalSources = sources.map(\.string)
    journal.added = try newExternalData(
      from: sources, in: source, except: undelivered(assembled),
      originals: FilePath(ends.externalDataPath))
    if let obsolete {
      try journal.setRemoved(obsolete)
    } else if let plan {
      try journal.setRemoved(
        ObsoleteExternalData(plan).names(in: source.externalDataFolder, assembled: assembled))
    }
    journal.makesExternalFolder = try FileKind(at: source.externalDataFolder) != .folder
    try journal.write(in: run, leases)
    try steps.goForwardOrBack(&journal, &lock)
    return journal
  }

  /// The journal of a commit that lets a file take the source's place, once nobody else uses the
  /// source.
  func beginningExchange(
    _ kind: CommitJournal.Kind, _ assembled: FilePath, _ steps: CommitSteps,
    _ lock: inout StoreLock
  ) throws -> CommitJournal {
    guard try source.identity(hasWriter: false) == ends.sourceIdentity,
      let main = try FileMark(source.store)
    else { throw CommitError.sourceChanged(store: source.store) }
    // Whoever took the work over needs this lock for its own commit.
    try steps.requireLeases(source.store)
    // Nothing is copied for a store that is in use; what follows needs the file itself open.
    try steps.requireNoOpeners(of: source, &lock)
    lock.giveLeaseBack()
    var journal = try beginning(kind, assembled)
    journal.main = main
    journal.wal = try FileMark(source.wal)
    journal.shm = try FileMark(source.shm)
    journal.rollbackJournal = try FileMark(source.journal)
    if ends.readPath != ends.sourcePath {
      journal.settledSource = ends.readPath
      journal.settledMark = try FileMark(FilePath(ends.readPath))
      journal.settledDigest = settledDigest
    }
    for path in [journal.backup.store, journal.backup.wal, journal.backup.journal]
    where try DurableFile.exists(path) { throw CommitError.destinationExists(path: path) }
    return journal
  }

  private func beginning(
    _ kind: CommitJournal.Kind, _ assembled: FilePath
  ) throws -> CommitJournal {
    let lost = try DurableFile.copyAttributes(from: source.store, to: assembled)
    guard let mark = try FileMark(assembled) else {
      throw CommitError.unusablePlan("\(assembled) was not assembled")
    }
    guard verified == nil || mark.isSameFile(as: verified) else {
      throw CommitError.leaseLost(store: source.store)
    }
    var journal = CommitJournal(
      kind: kind, run: name, fingerprint: ends.fingerprint, store: destination.string,
      assembled: assembled.string, assembledMark: mark, assembledDigest: digest)
    journal.setLost(lost)
    journal.owner = owner
    return journal
  }

  /// Whether a commit of that name has left a backup beside a store.
  package static func hasBackup(of store: FilePath, named name: String) throws -> Bool {
    try FileMark(CommitJournal.backup(of: store, .replace, named: name).store) != nil
  }

  /// Removes what was assembled for a destination by a run that has no journal, also beside it, where the run
  /// directory is on another volume.
  package static func removeAssembled(
    by run: RunDirectory, for destination: FilePath, name: String
  ) throws {
    for assembled in CommitJournal.assembledPaths(run, destination, name: name) {
      let paths =
        [assembled]
        + ["wal", "journal"].map {
          CommitJournal.waitingLog($0, of: assembled)
        }
      for path in paths { try DurableFile.removeIfPresent(path) }
      try DurableFile.removeUnfinished(paths)
    }
  }
}
