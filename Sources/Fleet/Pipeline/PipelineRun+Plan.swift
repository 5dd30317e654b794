import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// What a run would do.
extension PipelineRun {
  /// What a plan found.
  package struct PlanOutcome: Sendable {
    package var summary: PipelineSummary
    package var plan: FleetPlan
    /// Nil where it was stopped before it knew of every store: a run takes up the stores of its plan alone.
    package var stores: PlannedStores?
    /// How many stores of the sample it was stopped before.
    package var samplesLeft: Int

    package var isStopped: Bool { stores == nil || samplesLeft > 0 }
  }

  /// Says what ``run()`` would do, store by store, and changes nothing. Cancelling the task stops it: stores that it
  /// has not come to are pending.
  ///
  /// - Parameter samples: How many stores are migrated privately for a forecast; 0 for none.
  package func plan(samples: Int = 0) async throws -> PlanOutcome {
    let start = ContinuousClock.now
    // Every store is looked at by means of one: it is not the stores' fault.
    try TemporaryPlace.check()
    try places.checkState()
    var findings = try await search(
      state: try FileKind(following: state) == .folder ? state : nil)
    observe(.found(self.start(findings, nil)))
    let ledger = try PipelineHistory.reading(places, writes: false) { observe(.warning($0)) }
    findings.unreadable += try rootsWithoutStores(findings) { root in
      try ledger?.knownStores(of: places.owner.file, below: root.string) ?? 0
    }
    var summary = PipelineSummary(pipeline: pipeline.name)
    (summary.found, summary.unknown) = (findings.stores.count, findings.unknownCount)
    var maker = FleetPlanMaker()
    for result in tellUnreadable(findings, &summary) { maker.add(nil, result) }
    let settings = try settingsDigest()
    let quarantined = try RunHistory.quarantined(
      ledger?.quarantine() ?? [], limit: pipeline.quarantineAfter)
    let quarantineSettings = quarantineSettings(settings)
    let recorded = recordedOutputs()
    var planned: [PlannedStores.Store] = []
    let hosts = hosts(pace: nil)
    // Results are told in the order of the stores.
    var outcomes: [Outcome?] = Array(repeating: nil, count: findings.stores.count)
    var told = 0
    var isPartial = false
    await withTaskGroup(of: (Int, Outcome).self) { group in
      var begun = 0
      func begin() {
        guard begun < findings.stores.count, !Task.isCancelled else { return }
        let (place, store) = (begun, findings.stores[begun])
        begun += 1
        group.addTask {
          func outcome(_ made: MigrationResult) -> (Int, Outcome) {
            var result = made
            // Of one that was not looked at, as it is now. Who was waited for is not waited for again.
            if result.sourceIdentity == nil, result.verdict != .pending {
              result.sourceIdentity = try? StoreFiles(store.path).identity().name
            }
            return (place, Outcome(store: store, result: result))
          }
          if let refusal = Self.refusal(of: store) { return outcome(refusal) }
          if let output = pipeline.output(of: store.path), let known = recorded[store.path],
            var done = try? written(output, of: store, by: known, under: settings, nil)
          {
            done.result.sourceIdentity = known.identity
            return (place, done)
          }
          if let known = quarantined[store.path],
            known.isOf(quarantineSettings, mark: StoreFiles(store.path).markName)
          {
            return outcome(MigrationResult(quarantined: known))
          }
          let result = await hosts.perform(task(store, workers: 1, settings, .plan))
          return outcome(Self.gone(store, insteadOf: result) ?? result.keepingNothing)
        }
      }
      for _ in 0..<pool.workerCount { begin() }
      for await (place, outcome) in group {
        outcomes[place] = outcome
        while told < outcomes.count, let outcome = outcomes[told] {
          let next = outcome.result
          isPartial = isPartial || next.isStopped
          tell(outcome, &summary)
          maker.add(outcome.store, next, isEarlier: outcome.isEarlier)
          planned.append(
            PlannedStores.Store(
              store: next.store, identity: next.sourceIdentity,
              external: try? StoreFiles(FilePath(next.store)).externalState(),
              verdict: next.verdict))
          outcomes[told] = nil
          told += 1
        }
        begin()
      }
      for store in findings.stores[begun...] {
        let outcome = Outcome(store: store, result: .init(notBegun: store.path.string))
        isPartial = true
        tell(outcome, &summary)
        maker.add(store, outcome.result)
      }
    }
    var plan = maker.plan(pipeline.name)
    let samplesLeft: Int
    (plan.forecast, plan.trial, samplesLeft) = try await forecast(
      of: maker, samples: samples, settings, hosts)
    plan.freeBytes = pipeline.stores.roots.compactMap { DiskSpace.free(at: $0) }.min()
    await hosts.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    let stores = PlannedStores(
      pipeline: pipeline.name, settings: planSettings(settings), stores: planned)
    return PlanOutcome(
      summary: summary, plan: plan, stores: isPartial ? nil : stores, samplesLeft: samplesLeft)
  }

  /// What the progress says of stores whose outputs lie beside them; nothing where it cannot be read.
  private func recordedOutputs() -> [FilePath: PipelineLedger.Entry] {
    guard pipeline.commit != .replace else { return [:] }
    do {
      return try PipelineLedger.entries(in: state, of: places.owner)
    } catch {
      observe(.warning("Which outputs earlier runs wrote is not known. \(error)"))
      return [:]
    }
  }

  /// Migrates a few stores to private files, side by side as a run would.
  ///
  /// - Returns: With how many of them it was stopped before.
  private func forecast(
    of maker: FleetPlanMaker, samples count: Int, _ settings: String, _ hosts: StoreHosts
  ) async throws -> (FleetForecast?, FleetPlan.Trial?, left: Int) {
    let stores = maker.migrated
    let chosen = FleetForecast.sample(of: stores, count: count)
    guard !chosen.isEmpty, !Task.isCancelled else { return (nil, nil, left: chosen.count) }
    let folder = try TemporaryPlace.make()
    defer { TemporaryPlace.remove(folder) }
    var queue = StoreQueue(waves: [chosen], workerCount: pool.workerCount, need: workers(for:))
    var samples: [FleetForecast.Sample] = []
    var trial = FleetPlan.Trial(stores: 0)
    var (reasons, losses) = (ReasonGroups(), LossTotals())
    await withTaskGroup(of: (FoundStore, Int, MigrationResult).self) { group in
      var number = 0
      func begin() {
        while !Task.isCancelled, let (store, workers) = queue.next(at: 0) {
          var task = task(store, workers: workers, settings, .sample)
          task.output = folder.appending("\(number)").string
          number += 1
          group.addTask { [task] in (store, workers, await hosts.perform(task)) }
        }
      }
      begin()
      for await (store, workers, made) in group {
        var result = made
        result.losses = made.losses.beyond(maker.counted[store.path] ?? [])
        queue.end(store)
        if result.isStopped, Task.isCancelled { continue }
        trial.stores += 1
        reasons.add(result)
        losses.add(result)
        if result.verdict == .migrated, let seconds = result.seconds {
          let written = result.stages?.last { $0.stage == "assemble" }?.bytes ?? store.bytes
          samples.append(
            FleetForecast.Sample(
              bytes: store.bytes, workers: workers, seconds: seconds, destinationBytes: written))
        }
        begin()
      }
    }
    trial.reasons = reasons.all
    trial.losses = losses.all
    let forecast = FleetForecast(
      of: stores.map { ($0.bytes, workers(for: $0)) }, samples: samples,
      workerCount: pool.workerCount, isInPlace: pipeline.commit == .replace)
    return (forecast, trial.stores > 0 ? trial : nil, left: chosen.count - trial.stores)
  }
}
