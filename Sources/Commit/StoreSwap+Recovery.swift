import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

extension StoreSwap {
  /// What a restart found of a commit.
  package enum Recovery: Sendable, Equatable {
    /// No commit was begun.
    case nothing
    /// The destination is in its place: it was before, or the commit was finished now. Of a backup that is put back,
    /// also where an application has written to the copy of it that had the store's name: that stays.
    case committed(CommitJournal)
    /// The commit was taken back: the store is the source, and nothing is left of the attempt.
    case takenBack
    /// The commit was taken back, and its backup stays: the store is not what it was, or no longer has the
    /// source's own bytes.
    case takenBackKeeping(backup: FilePath)
  }

  /// Brings a commit that was cut off to its end, forward or back. Doing so again changes nothing.
  ///
  /// - Parameters:
  ///   - source: The store that the run migrates.
  ///   - destination: Where its destination goes; the source's own path when in place.
  ///   - isStoreOffline: Somebody asserts that no other process has the store open.
  ///   - leases: As ``leases``.
  ///   - acceptsDamage: What was put in place may be damaged by now: it is not what is wanted in the end.
  /// - Throws: ``CommitError/storeInUse(store:)`` when somebody has the store open: nothing is
  ///   changed then. ``CommitError/storeMissing(store:backup:)`` when somebody took it away, and no other was put
  ///   in its place before.
  ///   ``CommitError/damagedOriginal(store:other:backup:)`` when the file that was replaced is neither as it was
  ///   nor sound: nothing is changed then.
  ///   ``CommitError/damagedInPlace(store:backup:)`` when the file that was put in place is damaged: nothing
  ///   is changed then. ``CommitError/foreignJournal(path:reason:)`` when the journal is not of this run.
  package static func recover(
    run: RunDirectory, source: FilePath, destination: FilePath, isStoreOffline: Bool = false,
    leases: [LeaseToken] = [], acceptsDamage: Bool = false
  ) throws -> Recovery {
    guard let found = try CommitJournal.read(in: run) else { return .nothing }
    return try recover(
      found.checked(in: run, source: source, destination: destination), run, isStoreOffline, leases,
      acceptsDamage: acceptsDamage,
      originals: source.isSamePlace(as: destination)
        ? nil : StoreFiles(source).externalDataFolder)
  }

  /// Whether a commit in place was cut off, and the store is what it found or what it has put there: nobody has
  /// changed it since. Nothing is changed.
  ///
  /// - Parameter backup: What a restoration was to put back: it is at its end once that is there, whoever has
  ///   written to it since.
  /// - Throws: As ``recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)``.
  package static func isCutOff(
    in run: RunDirectory, of store: FilePath, restoring backup: StoreFiles? = nil
  ) throws -> Bool {
    guard let found = try CommitJournal.read(in: run),
      found.kind == (backup == nil ? .replace : .restore)
    else { return false }
    let journal = try found.checked(
      in: run, source: store, destination: store, restored: backup)
    let steps = CommitSteps(run: run)
    let isAsMade =
      try backup != nil
      || FileMark(store) == journal.assembledMark
        && FileMark(StoreFiles(store).wal)?.size ?? 0 == 0
    return try steps.isInPlace(journal) && isAsMade || steps.isSourceUnchanged(journal)
      || steps.isWrittenCopy(journal)
  }

  /// Looks whether the store of a commit in place is there, or had been replaced before it went. Nothing is changed.
  ///
  /// - Throws: ``CommitError/storeMissing(store:backup:)`` where it is not, as
  ///   ``recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)`` does.
  package static func requireStore(ofCommitIn run: RunDirectory, at store: FilePath) throws {
    guard let found = try CommitJournal.read(in: run) else { return }
    let journal = try found.checked(in: run, source: store, destination: store)
    let steps = CommitSteps(run: run)
    guard journal.state < .replaced, try !FilePresence.isThere(store),
      try steps.isExchangeRuledOut(journal), try !steps.isInPlace(journal)
    else { return }
    throw CommitError.storeMissing(store: store, backup: journal.backup.store)
  }

  static func recover(
    _ found: CommitJournal, _ run: RunDirectory, _ isStoreOffline: Bool,
    _ leases: [LeaseToken] = [], acceptsDamage: Bool = false, originals: FilePath? = nil
  ) throws -> Recovery {
    var journal = found
    let steps = CommitSteps(
      run: run, isStoreOffline: isStoreOffline, mayHaveUnfinished: true, leases: leases,
      originals: originals)
    try steps.requireLeases(journal.storePath)
    try requireReachable(journal.storePath)
    try steps.giveBack(journal)
    try steps.giveBackToLateOpeners(&journal)
    if journal.state >= .replaced, try !steps.isInPlace(journal) {
      // Somebody replaced what the commit had put there: it is done, and its file is gone.
      try steps.forget(journal)
      return .nothing
    }
    if !acceptsDamage { try steps.requireSoundDestination(journal) }
    if journal.state == .finished { return .committed(journal) }
    if try tellingSpace({ try steps.isWrittenCopy(journal) }) {
      let lock = try CommitSteps.lock(journal.storePath)
      try steps.removeWaiting(of: journal)
      _ = consume lock
      // It stays until that is written down.
      return .committed(journal)
    }
    guard try steps.isExchangeRuledOut(journal) || steps.isInPlace(journal) else {
      try steps.forget(journal)
      return .nothing
    }
    return try tellingSpace {
      try steps.correctExternalData(of: &journal)
      let isWhole =
        try steps.isInPlace(journal) || steps.isAddedDataWhole(journal, originals: originals)
      if try steps.canGoForward(journal) && isWhole {
        try steps.goForward(&journal)
        return .committed(journal)
      }
      guard journal.isReplacement else {
        try steps.takeBack(journal)
        return .takenBack
      }
      let lock = try CommitSteps.lock(journal.storePath)
      let backup = try steps.takeBack(journal)
      _ = consume lock
      return backup.map(Recovery.takenBackKeeping) ?? .takenBack
    }
  }
}

/// While its volume is away, or its folder closed, nothing says how far a commit has come.
///
/// - Throws: `DurabilityError`; nothing is changed then, and the journal stays.
func requireReachable(_ store: FilePath) throws { _ = try FilePresence.isThere(store) }

/// Reports a full volume as this target's error. It may be that of the store or of the run directory.
func tellingSpace<Result>(_ body: () throws -> Result) throws -> Result {
  do {
    return try body()
  } catch let error as DurabilityError where error.isOutOfSpace {
    throw CommitError.outOfSpace(path: error.path)
  }
}

extension FilePath {
  /// The folder that has this name in it; `.` for a name alone.
  var parent: FilePath {
    let folder = removingLastComponent()
    return folder.isEmpty ? "." : folder
  }
}
