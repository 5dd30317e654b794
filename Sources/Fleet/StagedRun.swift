import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitStagedObjects
import GodwitWorker
import SystemPackage

// The steps of a staged migration that are code of the team's own.
extension ChainRun {
  /// One call of a handler, over a private copy of what the step before has left.
  ///
  /// The copy counts when the step is finished. After a crash it is made again and the handler is
  /// called again, so that what is kept has seen it once.
  func handle(
    _ call: ChainRoute.HandlerCall, _ step: Int, after earlier: ChainFolder.Done?,
    _ fingerprint: String
  ) async throws -> StepResult {
    let began = ContinuousClock.now
    let written = folder.store(of: step)
    let ends: CommitEnds
    let outcome: StageStore.Outcome
    let findings: [StoreFinding]
    do {
      (ends, outcome, findings) = try await onOwnThread {
        let ends = try copy(step, after: earlier, fingerprint)
        let settings = StageStore.Settings(
          side: call.phase == .willMigrate ? .source : .destination,
          pattern: RegularExpression.matcher,
          runDate: Date().timeIntervalSinceReferenceDate)
        let model = try call.model.hierarchy()
        if earlier == nil { try requireSoundness(of: written, step, model) }
        let outcome: StageStore.Outcome
        do {
          outcome = try StageStore.run(
            call.handler, on: written.store, model: model, settings: settings)
        } catch  where Self.isOwn(error) {
          throw error
        } catch {
          throw StageHandlerError(error, in: call.phase, of: call.stage)
        }
        return (ends, outcome, try judge(written, step, after: earlier, ends, model))
      }
    } catch  where error is StoreDamage || error is UnsoundDestination || error is StageHandlerError
    {
      if (error as? StageHandlerError)?.error is CancellationError { try Task.checkCancellation() }
      return StepResult(result: MigrationResult(failing: request.store.string, with: error))
    }
    var result =
      earlier?.result
      ?? MigrationResult(store: request.store.string, verdict: .migrated, ending: .done)
    let cost = MigrationResult.StageCost(
      stage: call.phase.rawValue, seconds: (ContinuousClock.now - began).inSeconds,
      rows: outcome.changed, bytes: DiskSpace.size(of: written.store), units: 1, reused: 0)
    result.stages = (result.stages ?? []) + [cost]
    result.findings = findings + outcome.notes
    if let counts = outcome.counts {
      result.counts = Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) })
      result.rows = counts.values.reduce(0, +)
    }
    if run.settings.uriTable != nil {
      let own = folder.stepURIs(of: step)
      let pairs = try await onOwnThread {
        try URITable.write(
          keptIn: written.store, model: try call.model.hierarchy(),
          firstNewKeys: outcome.firstNewKeys, step: "\(call.phase.rawValue) of \(call.stage)",
          to: own)
      }
      result.uriTable = MigrationResult.URITable(path: own.string, pairs: pairs)
      try await joinURIs(of: step, &result)
    }
    return try await finish(
      step, fingerprint, digest: nil, ends, obsolete: (earlier?.obsolete ?? []) + outcome.obsolete,
      result)
  }

  /// Nothing has looked at the run's own store before a handler that comes first.
  private func requireSoundness(
    of copy: StoreFiles, _ step: Int, _ model: EntityHierarchy
  ) throws {
    let snapshot = folder.run(of: step).snapshot
    var ledger = FindingLedger(acceptsDamage: request.acceptsDamage)
    ledger.add(
      try StoreSoundness.check(
        StoreBinding(SourceStore(path: copy.store, snapshotFolder: snapshot), model)))
    try ledger.stopAtDamage()
  }

  /// What the handler has left is judged as a migration's destination is.
  ///
  /// - Returns: What there is still to tell of what the steps before have found.
  private func judge(
    _ written: StoreFiles, _ step: Int, after earlier: ChainFolder.Done?, _ ends: CommitEnds,
    _ model: EntityHierarchy
  ) throws -> [StoreFinding] {
    let snapshot = folder.run(of: step).snapshot
    let path = earlier == nil ? FilePath(ends.readPath) : folder.store(of: step - 1).store
    return try DestinationSoundness.judge(
      handled: StoreBinding(SourceStore(path: written.store, snapshotFolder: snapshot), model),
      earlier: { StoreBinding(try SourceStore(path: path, snapshotFolder: snapshot), model) },
      told: earlier?.result.findings ?? [])
  }

  /// Makes the copy that the handler works on.
  private func copy(
    _ step: Int, after earlier: ChainFolder.Done?, _ fingerprint: String
  ) throws -> CommitEnds {
    if let earlier {
      let before = folder.store(of: step - 1)
      try DiskSpace.check(DiskSpace.size(of: before.store), at: directory.path)
      try StageStore.copy(
        before.store, externalData: before.externalDataFolder, to: folder.store(of: step))
      return earlier.ends
    }
    let store = try SourceStore(path: request.store, snapshotFolder: folder.run(of: step).snapshot)
    let ends = CommitEnds(
      reading: store, destinationPath: request.destinationPath.string,
      fingerprint: fingerprint)
    try store.connection.close()
    try DiskSpace.check(
      DiskSpace.needed(
        of: StoreFiles(request.store), store.identity, isInPlace: request.output == nil),
      at: directory.path)
    try StageStore.copy(
      store.readPath, externalData: FilePath(ends.externalDataPath), to: folder.store(of: step))
    // Somebody may have written to the source while it was copied.
    guard try store.isUnchanged() else {
      throw CommitError.sourceChanged(store: store.files.store)
    }
    return ends
  }

  /// Errors of the machine, which no handler is to blame for: handlers cannot make any of these types, since a
  /// store that one has kept is never asked. A `CancellationError` is the handler's, since nothing here throws one.
  private static func isOwn(_ error: any Error) -> Bool {
    error is SQLiteError || error is DurabilityError || error is StoreError || error is CommitError
  }
}

extension RetryPolicy {
  static func judgement(of error: StagedMigrationError) -> Judgement {
    var judgement = Judgement(.badInput, "staged", "\(error)", code: error.code)
    switch error {
    case .missingMapping(let source, let destination, let reasons):
      judgement.verdict = .needsMapping
      judgement.reasons = reasons.map { reason in
        var reason = reason
        reason.message = "From \(source) to \(destination): \(reason.message)"
        return reason
      }
    case .backwardMigration: judgement.verdict = .refused
    case .invalidValue(let entity, let property, _, let message):
      judgement.reasons = [
        Reason(
          reason: "validation", entity: entity, property: property.isEmpty ? nil : property,
          message: message)
      ]
    case .invalidObjects(let findings):
      judgement.reasons = findings.map(Reason.init(finding:))
      judgement.findings = findings
      judgement.verdict = .refused
    case .callIsOver: judgement.reasons = [Reason(reason: "handler", message: "\(error)")]
    case .modelReferenceNotFound, .frameworkVersionMismatch, .unknownVersion, .duplicateChecksum:
      break
    }
    return judgement
  }

  /// What a handler threw stays what it is: its type, its words, its code.
  static func judgement(of error: StageHandlerError) -> Judgement {
    let place = "The \(error.phase.rawValue) handler of the stage \(error.stage)"
    if let inner = error.error as? StagedMigrationError {
      var judgement = judgement(of: inner)
      judgement.reasons = judgement.reasons.map { reason in
        var reason = reason
        reason.message = "\(place): \(reason.message)"
        return reason
      }
      return judgement
    }
    // 134110: a migration failed, whatever of.
    var judgement = Judgement(
      .badInput, "handler", "\(place) failed: \(error.error.ownDescription)",
      code: (error.error as? EvaluationError)?.code ?? 134_110)
    judgement.reasons[0].error = Reason.OwnError(error.error)
    return judgement
  }
}
