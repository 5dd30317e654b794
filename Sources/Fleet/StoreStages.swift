import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// From the plan to the published store.
extension StoreAttempt {
  mutating func migrate(_ plan: MigrationPlan, _ folder: RunFolder) async throws {
    let needed = DiskSpace.needed(
      sourceBytes: plan.sourceIdentity.size + plan.sourceIdentity.walSize,
      externalBytes: DiskSpace.size(of: FilePath(plan.externalDataPath)))
    result.take(plan, diskBytes: needed)
    let isResumed = try takeUp(plan, folder)
    if !isResumed { try DiskSpace.check(needed, at: directory.path) }
    let swap = StoreSwap(
      plan: plan, run: directory, name: try folder.name(now: Date().timeIntervalSince1970))
    let sourceBytes = plan.sourceIdentity.size
    try await onOwnThread { try swap.checkSpace(assembledBytes: sourceBytes) }
    var event = RunEvent(.plan)
    event.store = request.store.string
    event.units = plan.units.count
    event.bytes = plan.units.reduce(0) { $0 + $1.estimatedBytes }
    event.fingerprint = plan.fingerprint
    event.resumed = isResumed
    emit(event)
    result.resumed = isResumed

    var attempt = self
    defer { self = attempt }
    try await WorkerPool.serving(run.settings.pool, run: directory.path) { pool in
      do {
        try await attempt.work(plan, swap, folder, pool)
      } catch {
        attempt.workerPeakRSS = await pool.peakRSS
        throw error
      }
      attempt.workerPeakRSS = await pool.peakRSS
    }
  }

  private mutating func work(
    _ plan: MigrationPlan, _ swap: StoreSwap, _ folder: RunFolder, _ pool: WorkerPool
  ) async throws {
    let barrier = plan.mapped == nil ? nil : MappedBarrier(plan: plan, run: directory)
    for stage in [Stage.copy, .link, .validate] {
      try await perform(stage, plan, pool)
      guard let barrier else { continue }
      switch stage {
      case .copy: try await onOwnThread { try barrier.associate() }
      case .link: try await onOwnThread { try barrier.gather() }
      default: try stopAtInvalidRows()
      }
    }
    // What they say is of a file that is made anew.
    try folder.discard(.verify)
    let path = try swap.assemblyPath()
    try await assembleAndAudit(plan, at: path, pool)
    await pool.open(assembled: path)
    let verification = StoreVerification(plan: plan, run: directory)
    async let isSound: Void = onOwnThread {
      try verification.quickCheck(path)
      try verification.countRows(in: path)
    }
    try await perform(.verify, plan, pool)
    try await isSound
    if barrier != nil { try stopAtInvalidRows() }
    count(try await onOwnThread { try verification.compare() })
    try await writeURITable(plan, written: path)
    try Task.checkCancellation()
    try await commit(swap, path)
  }

  /// The audits look at the source while the coordinator writes the destination: neither waits
  /// for the other, and one of the two is never bound by the processor.
  private mutating func assembleAndAudit(
    _ plan: MigrationPlan, at path: FilePath, _ pool: WorkerPool
  ) async throws {
    let start = ContinuousClock.now
    let emit = eventSink
    // For comparing the two assemblies, and for a day on which the faster one is in doubt.
    let usesPages = ProcessInfo.processInfo.environment["GODWIT_ASSEMBLY"] != "sqlite"
    let assembly = StoreAssembly(plan: plan, run: directory, usesPages: usesPages)
    var begin = RunEvent(.stage, stage: "assemble")
    // Validate went over everything that is now written.
    let rows = stages.last { $0.stage == Stage.validate.rawValue }?.rows ?? 0
    begin.rows = rows
    emit(begin)
    async let assembled: Void = onOwnThread {
      try assembly.assemble(at: path) { rows in
        var event = RunEvent(.assembly, stage: "assemble")
        event.rows = rows
        emit(event)
      }
    }
    do {
      try await perform(.audit, plan, pool)
    } catch {
      // The thread cannot be called back. Its file is nobody's and is made anew by the next run.
      try? await assembled
      throw error
    }
    try await assembled
    let cost = MigrationResult.StageCost(
      stage: "assemble", seconds: (ContinuousClock.now - start).inSeconds, rows: rows,
      bytes: DiskSpace.size(of: path), units: 1, reused: 0)
    stages.append(cost)
    finish(cost)
    try Task.checkCancellation()
  }

  private mutating func commit(_ swap: StoreSwap, _ path: FilePath) async throws {
    watch = nil
    let start = ContinuousClock.now
    let emit = eventSink
    var begin = RunEvent(.stage, stage: "commit")
    begin.units = 1
    emit(begin)
    let journal = try await onOwnThread {
      try DurableSteps.observing(
        with: { step, path in
          var event = RunEvent(.commitStep, stage: "commit")
          event.step = "\(step.rawValue) \(path.lastComponent?.string ?? "")"
          emit(event)
        }
      ) { try swap.commit(path) }
    }
    let cost = MigrationResult.StageCost(
      stage: "commit", seconds: (ContinuousClock.now - start).inSeconds, rows: 0, bytes: 0,
      units: 1, reused: 0)
    stages.append(cost)
    finish(cost)
    succeed(journal)
  }
}

// One stage.
extension StoreAttempt {
  /// A unit that an earlier run finished.
  struct Reused {
    var unit: Int
    var summary: ShardSummary
  }

  /// Runs one stage over every unit that has no checkpoint yet, and waits for all of them.
  ///
  /// - Throws: ``StoreDamage`` as soon as anything is found that may not be carried.
  mutating func perform(_ stage: Stage, _ plan: MigrationPlan, _ pool: WorkerPool) async throws {
    let start = ContinuousClock.now
    let units = Self.units(of: stage, in: plan)
    guard !units.isEmpty else { return }
    var cost = MigrationResult.StageCost(
      stage: stage.rawValue, seconds: 0, rows: 0, bytes: 0, units: units.count, reused: 0)
    let reused = try reusable(stage, plan)
    var begin = RunEvent(.stage, stage: stage.rawValue)
    begin.units = units.count
    begin.reused = reused.count
    begin.bytes = stage == .audit ? 0 : units.reduce(0) { $0 + plan.units[$1].estimatedBytes }
    emit(begin)
    for unit in reused {
      ledger.add(unit.summary.findings)
      cost.reused += 1
      var event = RunEvent(.unitReused, stage: stage.rawValue, unit: unit.unit)
      event.rows = unit.summary.rows
      event.bytes = unit.summary.bytes
      emit(event)
    }
    try stopAtDamage()
    let done = Set(reused.map(\.unit))
    let tasks = units.filter { !done.contains($0) }.map { WorkerTask(stage: stage, unit: $0) }
    for try await finished in await pool.perform(tasks) {
      cost.rows += finished.rows
      cost.bytes += finished.bytes
      if let seconds = finished.processorSeconds {
        cost.processorSeconds = (cost.processorSeconds ?? 0) + seconds
      }
      var event = RunEvent(.unitFinished, stage: stage.rawValue, unit: finished.unit)
      event.rows = finished.rows
      event.bytes = finished.bytes
      event.seconds = finished.seconds
      emit(event)
      if let found = finished.findings {
        ledger.add(found)
        try stopAtDamage()
      }
    }
    // A stream that a cancelled task reads ends without a word.
    try Task.checkCancellation()
    cost.seconds = (ContinuousClock.now - start).inSeconds
    stages.append(cost)
    finish(cost)
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

  /// A migration by a mapping model saves its objects, and saving validates them.
  private func stopAtInvalidRows() throws {
    let invalid = ledger.findings.filter { $0.code != nil }
    if !invalid.isEmpty { throw InvalidRows(findings: invalid) }
  }

  private func stopAtDamage() throws {
    let damage = ledger.unacceptable
    if !damage.isEmpty { throw StoreDamage(findings: damage) }
  }

  static func units(of stage: Stage, in plan: MigrationPlan) -> [Int] {
    switch stage {
    case .copy: plan.units(in: .copy)
    case .link: plan.units(in: .link)
    case .validate: plan.units(in: .validate)
    case .verify: plan.units(in: .verify)
    case .audit: Array(plan.audits.indices)
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
        let bytes = try CheckpointReader.summary(
          of: directory.path(of: name), fingerprint: fingerprint)
        let summary = try JSONDecoder().decode(ShardSummary.self, from: Data(bytes))
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
