import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// One stage.
extension StoreAttempt {
  /// A unit that an earlier run finished.
  struct Reused {
    var unit: Int
    var summary: ShardSummary
  }

  /// Runs one stage over every unit that has no checkpoint yet, and waits for all of them.
  ///
  /// - Parameter units: Nil for all that the plan has for the stage.
  /// - Returns: What was found in the destination; what was found in the source goes to the
  ///   ledger.
  /// - Throws: ``StoreDamage`` as soon as anything is found that may not be carried.
  @discardableResult
  mutating func perform(
    _ stage: Stage, _ plan: MigrationPlan, _ pool: any StageWorkers, units: [Int]? = nil
  ) async throws -> [StoreFinding] {
    // The commit of a small store is only milliseconds away, and looks for itself.
    if opened == nil { try requireLeases() }
    let start = ContinuousClock.now
    let units = units ?? Self.units(of: stage, in: plan)
    var ofDestination: [StoreFinding] = []
    guard !units.isEmpty else { return [] }
    var costs = StageCosts(stage, plan, units: units, hasWorkers: opened == nil)
    let wanted = Set(units)
    let reused = try reusable(stage, plan).filter { wanted.contains($0.unit) }
    var begin = RunEvent(.stage, stage: stage.rawValue)
    begin.units = units.count
    begin.reused = reused.count
    begin.bytes =
      stage.isOfShards ? units.reduce(0) { $0 + plan.units[$1].estimatedBytes } : 0
    let work = StageWork(stage, plan)
    begin.work = units.reduce(0) { $0 + work.of($1) }
    begin.workers = run.settings.pool.workerCount
    emit(begin)
    for unit in reused {
      let parts = record(unit, of: stage, plan)
      add(unit.summary.losses ?? [])
      costs.reuse(parts)
      var event = RunEvent(.unitReused, stage: stage.rawValue, unit: unit.unit)
      event.rows = unit.summary.rows
      event.bytes = unit.summary.bytes
      event.work = work.of(unit.unit)
      emit(event)
    }
    try ledger.stopAtDamage()
    let done = Set(reused.map(\.unit))
    let tasks = units.filter { !done.contains($0) }.map { WorkerTask(stage: stage, unit: $0) }
    for try await finished in await pool.perform(tasks) {
      costs.add(finished, now: Date().timeIntervalSince1970)
      var event = RunEvent(.unitFinished, stage: stage.rawValue, unit: finished.unit)
      event.rows = finished.rows
      event.bytes = finished.bytes
      event.seconds = finished.seconds
      event.work = work.of(finished.unit)
      emit(event)
      add(finished.losses ?? [])
      if let parts = finished.parts {
        for part in parts { record(part.findings ?? [], part.stage, finished.unit, plan) }
        try ledger.stopAtDamage()
      }
      guard let found = finished.findings else { continue }
      if stage == .soundness {
        ofDestination += found
      } else {
        record(found, stage, finished.unit, plan)
        try ledger.stopAtDamage()
      }
    }
    // A stream that a cancelled task reads ends without a word.
    try Task.checkCancellation()
    costs.end(after: (ContinuousClock.now - start).inSeconds)
    for cost in costs.costs {
      stages.append(cost)
      finish(cost)
    }
    return ofDestination
  }

  /// Adds what an earlier run found in a unit to the ledger, and gives its stages where it was
  /// done in one pass.
  @discardableResult
  mutating func record(_ unit: Reused, of stage: Stage, _ plan: MigrationPlan) -> [StagePart] {
    guard stage == .rows else {
      record(unit.summary.findings, stage, unit.unit, plan)
      return []
    }
    let parts = unit.summary.parts()
    for part in parts { record(part.findings ?? [], part.stage, unit.unit, plan) }
    return parts
  }

  /// Adds what a unit found to the ledger. A row of which validate says what copy or link has said,
  /// by the source's rules, is counted once.
  mutating func record(
    _ found: [StoreFinding], _ stage: Stage, _ unit: Int, _ plan: MigrationPlan
  ) {
    guard !found.isEmpty else { return }
    if stage == .copy || stage == .link { foundBefore[unit, default: []] += found }
    guard stage == .validate, let known = foundBefore[unit], let origins = origins(plan) else {
      ledger.add(found)
      return
    }
    ledger.add(
      found.compactMap { finding in
        var rest = finding
        rest.count = origins.newRows(finding, beside: known)
        return rest.count > 0 ? rest : nil
      })
  }

  private mutating func origins(_ plan: MigrationPlan) -> FindingOrigins? {
    if let known = origins { return known }
    let store = try? SourceStore(
      path: FilePath(plan.readPath), snapshotFolder: directory.snapshot)
    origins = store.flatMap { try? FindingOrigins(plan, request, store: $0) }
    return origins
  }

  func finish(_ cost: MigrationResult.StageCost) {
    var event = RunEvent(.stageFinished, stage: cost.stage)
    event.units = cost.units
    event.reused = cost.reused
    event.rows = cost.rows
    event.bytes = cost.bytes
    event.seconds = cost.seconds
    emit(event)
  }

  /// Adds what shards found to be lost.
  mutating func add(_ losses: [Loss]) { for loss in losses { result.losses.add(loss) } }

  /// What only the rows of a mapping model show to be lost, and what the plan knew, is not allowed.
  func refuseLosses(_ plan: MigrationPlan) throws {
    let refusals = request.refusals(of: result.losses, from: plan.source.versionName)
    if !refusals.isEmpty { throw RefusedLosses(reasons: refusals) }
  }

  static func units(of stage: Stage, in plan: MigrationPlan) -> [Int] {
    switch stage {
    case .rows: plan.units(in: .validate)
    case .copy: plan.units(in: .copy)
    case .link: plan.units(in: .link)
    case .validate: plan.units(in: .validate)
    case .verify: plan.verifyUnits
    case .audit: Array(plan.audits.indices)
    // What is asked of the destination is known once it is there.
    case .soundness: []
    }
  }

  /// The units of a stage whose checkpoints are whole and of this plan. One that proves unusable is
  /// discarded, its unit redone, and that is said; one that only cannot be read just now is kept.
  func reusable(_ stage: Stage, _ plan: MigrationPlan) throws -> [Reused] {
    guard let fingerprint = Hexadecimal.bytes(of: plan.fingerprint) else { return [] }
    let wanted = Set(Self.units(of: stage, in: plan))
    return try directory.finished(stage).intersection(wanted).sorted().compactMap { unit in
      let name = CheckpointName(stage: stage, unit: unit)
      do {
        // The summary is the last entry, so reading it reads, and checks, all of them.
        let summary = try CheckpointReader.summary(
          ShardSummary.self, of: name, in: directory, fingerprint: fingerprint)
        return Reused(unit: unit, summary: summary)
      } catch let error as CheckpointError where !error.provesUnusable {
        throw error
      } catch {
        try directory.discard(name)
        var event = RunEvent(.note, stage: stage.rawValue, unit: unit)
        event.message = "The checkpoint \(name) cannot be used and is done again: \(error)"
        emit(event)
        return nil
      }
    }
  }
}

extension MigrationPlan {
  /// The units in which policies look at the written destination.
  var validationHooks: [Int] {
    units(in: .verify).filter { if case .mapping = units[$0].subject { true } else { false } }
  }

  /// The units to verify, the first ones of all tables before the second ones: those look at the b-trees
  /// besides, and what takes longest is not begun last.
  fileprivate var verifyUnits: [Int] {
    var counts: [Shard.Subject: Int] = [:]
    let parts = units(in: .verify).map { unit in
      counts[units[unit].subject, default: 0] += 1
      return (part: counts[units[unit].subject] ?? 0, unit: unit)
    }
    return parts.sorted { ($0.part, $0.unit) < ($1.part, $1.unit) }.map(\.unit)
  }
}
