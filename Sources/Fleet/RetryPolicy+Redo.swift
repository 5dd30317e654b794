import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// What a run discards before it does a part of its work again, in the same command.
enum Redo: Equatable {
  /// One checkpoint that is not what was written.
  case checkpoint(CheckpointName)
  /// Every stage of one unit.
  case unit(Int)
  /// What is made of plan and checkpoints, the assembled store among it. No checkpoint.
  case derived
  /// Every checkpoint and everything made of them.
  case everything
  /// What was read of the source, too: a private clone, and what the audits found. The store is
  /// called damaged when it is found to be so twice, by two reads.
  case source
}

extension RetryPolicy {
  /// 2. What a redo of one part does not cure, a redo of everything may; a third failure is final.
  static let redoLimit = 2

  /// What may cure an error; nil for one that running again would only repeat.
  ///
  /// - Parameter earlier: What this command has redone already.
  static func redo(after error: any Error, earlier: [Redo]) -> Redo? {
    if isDamageOfSource(error) { return earlier.contains(.source) ? nil : .source }
    guard earlier.filter({ $0 != .source }).count < redoLimit, let part = unusablePart(error)
    else { return nil }
    // The same part twice: something else is wrong.
    return earlier.contains(where: { $0 != .source }) ? .everything : part
  }

  /// What the error proves to be unusable.
  private static func unusablePart(_ error: any Error) -> Redo? {
    switch error {
    case let error as CheckpointError where error.provesUnusable:
      return CheckpointName(path: error.path).map(Redo.checkpoint) ?? .everything
    case FleetError.task(let failed) where failed.error.kind == .unusable:
      return failed.error.checkpoint.map(Redo.checkpoint) ?? .derived
    case let error as CommitError:
      switch error {
      case .unequalStages(_, let unit, _), .damagedRow(_, let unit, _): return .unit(unit)
      case .missingCheckpoint, .unusablePlan: return .derived
      case .damagedDestination, .wrongRowCount, .digestMismatch: return .derived
      // Which unit has written it, nothing says.
      case .damagedExternalData: return .everything
      default: return nil
      }
    case StageError.association, StageError.checkpointMismatch, StageError.unreadablePlan:
      return .derived
    default: return nil
    }
  }

  /// Whether an error says that the source is damaged and a fault of a read could have made it
  /// say so. Rows that break the model's rules are no fault of a read.
  static func isDamageOfSource(_ error: any Error) -> Bool {
    switch error {
    case let error as SQLiteError: error.isCorruption
    case let error as StoreError: error.isDamage
    case PlanError.damaged, PlanError.missingSourceModel: true
    case FleetError.task(let failed): failed.error.kind == .damaged && failed.error.reasons == nil
    case let error as StoreDamage: error.findings.contains { $0.kind == .file }
    default: false
    }
  }

  /// A file of our own that SQLite finds damaged is never damage of the source.
  ///
  /// - Parameter sources: The source and its private clone's folder.
  static func attributed(
    _ error: any Error, store: FilePath, directory: RunDirectory
  ) -> any Error {
    guard let failure = error as? SQLiteError, failure.isCorruption, let path = failure.database,
      path != store.string, !path.begins(with: directory.snapshot.string + "/")
    else { return error }
    return CommitError.damagedDestination(path: FilePath(path), finding: "\(failure.codeName)")
  }
}

extension StoreAttempt {
  /// Does the run's work, and again what turns out unusable on the way.
  mutating func workUntilSettled(_ folder: RunFolder) async throws {
    var earlier: [Redo] = []
    while true {
      do {
        return try await work(folder)
      } catch {
        let error = RetryPolicy.attributed(error, store: request.store, directory: directory)
        guard let redo = RetryPolicy.redo(after: error, earlier: earlier) else {
          throw try await confirmed(error)
        }
        earlier.append(redo)
        try await prepare(redo, after: error, folder)
      }
    }
  }

  /// A policy that closes files which are not its own, or writes to them, makes SQLite read other bytes than
  /// the store has. What its process finds damaged is looked at once more, when no policy is at work.
  private func confirmed(_ error: any Error) async throws -> any Error {
    guard request.ownCodeDigest != nil, case FleetError.task = error,
      RetryPolicy.isDamageOfSource(error)
    else { return error }
    let (store, snapshot) = (request.store, directory.snapshot)
    let isSound = try await onOwnThread { () -> Bool in
      do {
        let source = try SourceStore(path: store, snapshotFolder: snapshot)
        return try source.connection.quickFinding() == nil && source.connection.readErrno == nil
      } catch {
        return false
      }
    }
    return isSound ? FleetError.disturbed(store: store.string) : error
  }

  private mutating func prepare(
    _ redo: Redo, after error: any Error, _ folder: RunFolder
  ) async throws {
    try requireLeases()
    switch redo {
    case .checkpoint(let name): try directory.discard(name)
    case .unit(let unit):
      for stage in [Stage.rows, .copy, .link, .validate] {
        try directory.discard(CheckpointName(stage: stage, unit: unit))
      }
    case .derived: break
    case .everything: for stage in Stage.allCases { try folder.discard(stage) }
    case .source:
      // A volume that cannot be read ends the run with its own error, not with damage.
      let files = StoreFiles(request.store)
      try await onOwnThread { try files.requireReadable() }
      try folder.discard(.audit)
      if try directory.discardClones() { try folder.discardPlan() }
    }
    try directory.discardDerived()
    restart()
    note(
      redo == .source
        ? "The store appears to be damaged; it is read again to make sure."
        : "A file of the run directory is unusable and is made again: \(error)")
  }
}
