import Foundation
import GodwitBarriers
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
  mutating func migrate(_ planned: MigrationPlan, _ folder: RunFolder) async throws {
    let needed = DiskSpace.needed(
      of: StoreFiles(request.store), planned.sourceIdentity, isInPlace: request.output == nil)
    result.take(planned, diskBytes: needed)
    ledger.add(planned.acceptedDamage)
    result.sourceIdentity = planned.sourceIdentity.name
    let (plan, isResumed) = try takeUp(planned, folder)
    if !isResumed { try DiskSpace.check(needed, at: directory.path) }
    let name = try folder.name(
      now: Date().timeIntervalSince1970,
      replacing: request.output == nil ? request.store : nil)
    self.name = name
    var swap = StoreSwap(
      plan: plan, run: directory, name: name, isStoreOffline: request.isStoreOffline)
    swap.leases = leases
    swap.owner = run.settings.owner
    let sourceBytes = plan.sourceIdentity.size
    try await onOwnThread { [swap] in try swap.checkSpace(assembledBytes: sourceBytes) }
    var event = RunEvent(.plan)
    event.store = request.store.string
    event.units = plan.units.count
    event.bytes = plan.rowBytes
    event.fingerprint = plan.fingerprint
    event.resumed = isResumed
    emit(event)
    result.resumed = isResumed

    var attempt = self
    defer { self = attempt }
    let work: (any StageWorkers) async throws -> Made = {
      workers in
      let made: Made
      do {
        made = try await attempt.work(plan, swap, folder, workers)
      } catch {
        attempt.workerPeakRSS = await workers.peakRSS
        throw (error as? FleetError)?.naming(rowsOf: plan) ?? error
      }
      attempt.workerPeakRSS = await workers.peakRSS
      return made
    }
    let made =
      if let policies = run.settings.policiesHere, let opened {
        try await StagesHere.serving(plan, directory, policies, opened, work)
      } else {
        try await WorkerPool.serving(run.settings.pool, run: directory.path) { [run, directory] in
          guard run.settings.handsOut else { return try await work($0) }
          return try await work(
            HandingOut($0, store: run.request.store, directory: directory.path))
        }
      }
    if let earlier = made.earlier { return try attempt.keep(earlier, insteadOf: made.path) }
    swap.verified = made.mark
    // The workers have ended: nobody of ours has the source open any more.
    try await attempt.commit(swap, made.path)
  }

  /// The assembled file, verified.
  private struct Made {
    var path: FilePath
    /// Of the file that was assembled.
    var mark: FileMark?
    /// The output of an earlier run that it equals.
    var earlier: EarlierOutput?
  }

  private mutating func work(
    _ plan: MigrationPlan, _ swap: StoreSwap, _ folder: RunFolder, _ pool: any StageWorkers
  ) async throws -> Made {
    let barrier = plan.isOnePass ? nil : MappedBarrier(plan: plan, run: directory)
    for stage in plan.isOnePass ? [Stage.rows] : [.copy, .link, .validate] {
      try await perform(stage, plan, pool)
      guard let barrier else { continue }
      switch stage {
      case .copy:
        add(
          try await onOwnThread {
            try barrier.associate()
            return try barrier.leftOut()
          })
        try refuseLosses(plan)
      case .link:
        add(try await onOwnThread { try barrier.gather() })
        try refuseLosses(plan)
      default: if request.invalid == .fail { try await stopAtInvalidRows(plan) }
      }
    }
    try requireLeases()
    // What they say is of a file that is made again.
    try folder.discard(.verify)
    try folder.discard(.soundness)
    let path = try swap.assemblyPath()
    try await assembleAndAudit(plan, at: path, pool)
    await pool.open(assembled: path)
    let verification = StoreVerification(plan: plan, run: directory)
    let file = AssembledFile(path, plan, directory, opened)
    // Hooks look at what will be committed: where rows may be set aside or changed, after that.
    let hooks = request.invalid == .fail ? [] : plan.validationHooks
    try await perform(
      .verify, plan, pool,
      units: Self.units(of: .verify, in: plan).filter { !hooks.contains($0) })
    async let counts = onOwnThread { try verification.check(file.connection()) }
    if barrier != nil, request.invalid == .fail { try await stopAtInvalidRows(plan) }
    let found = try await askDestination(plan, file, verification, pool)
    count(try await counts)
    let isCleaned = try await cleanInvalidRows(plan, path)
    if isCleaned {
      opened?.close()
      await pool.open(assembled: path)
    }
    if !hooks.isEmpty { try await perform(.verify, plan, pool, units: hooks) }
    try await judgeDestination(plan, file, isCleaned ? nil : found)
    let mark = try FileMark(path)
    let earlier = try EarlierOutput(request)
    if let earlier {
      guard try await onOwnThread({ try swap.isPublished(path) }) else { throw earlier.isAnother }
    }
    try await writeURITable(plan, written: path)
    try Task.checkCancellation()
    return Made(path: path, mark: mark, earlier: earlier)
  }

  /// Ends with the output that an earlier run of the same command wrote.
  private mutating func keep(_ earlier: EarlierOutput, insteadOf assembled: FilePath) throws {
    try DurableFile.removeIfPresent(assembled)
    result.keep(earlier)
    if let output = request.output { try findRejects(beside: output) }
    result.findings = ledger.findings
    result.stages = stages
  }

  /// The audits look at the source while the coordinator writes the destination: neither waits
  /// for the other, and one of the two is never bound by the processor.
  private mutating func assembleAndAudit(
    _ plan: MigrationPlan, at path: FilePath, _ pool: any StageWorkers
  ) async throws {
    let start = ContinuousClock.now
    let emit = eventSink
    // For comparing the two assemblies, and for a day on which the faster one is in doubt.
    let usesPages = ProcessInfo.processInfo.environment["GODWIT_ASSEMBLY"] != "sqlite"
    // A reference whose target is gone, or of a wrong entity, changes a column that may be indexed.
    let keepsReferences = !ledger.findings.contains {
      $0.kind == .dangling || Damage.isDamage($0)
    }
    let assembly = StoreAssembly(
      plan: plan, run: directory, usesPages: usesPages, carriesIndexes: keepsReferences)
    var begin = RunEvent(.stage, stage: "assemble")
    // Validate went over everything that is now written.
    let rows = stages.last { $0.stage == Stage.validate.rawValue }?.rows ?? 0
    begin.rows = rows
    emit(begin)
    let stop = StopFlag()
    async let assembled: Void = withTaskCancellationHandler {
      try await onOwnThread { [opened] in
        let isStopped = {
          Pace.keep(until: { stop.isSet })
          return stop.isSet
        }
        let source = opened?.source?.connection
        try assembly.assemble(at: path, reading: source, isStopped: isStopped) { rows in
          var event = RunEvent(.assembly, stage: "assemble")
          event.rows = rows
          emit(event)
        }
      }
    } onCancel: {
      stop.set()
    }
    do {
      try await perform(.audit, plan, pool)
    } catch {
      // Its file is nobody's and is made again by the next run.
      stop.set()
      try? await assembled
      throw error
    }
    do {
      try await assembled
    } catch CommitError.uniqueness(let entity, let index, let rows) where plan.mapped != nil {
      let directory = directory
      throw try await onOwnThread {
        try MadeDuplicates(entity: entity, index: index, rows: rows, plan, directory)
      }
    }
    let cost = MigrationResult.StageCost(
      stage: "assemble", seconds: (ContinuousClock.now - start).inSeconds, rows: rows,
      bytes: DiskSpace.size(of: path), units: 1, reused: 0)
    stages.append(cost)
    finish(cost)
    try Task.checkCancellation()
  }

  private func soundness(_ plan: MigrationPlan) -> DestinationSoundness {
    DestinationSoundness(
      plan: plan, request: request, snapshot: directory.snapshot)
  }

  /// Lets workers answer the questions that go across the destination's rows, where the verify stage
  /// has not answered them.
  private mutating func askDestination(
    _ plan: MigrationPlan, _ file: AssembledFile, _ verification: StoreVerification,
    _ pool: any StageWorkers
  ) async throws -> [StoreFinding] {
    let soundness = soundness(plan)
    let jobs = try await onOwnThread { try soundness.jobs(of: file, after: verification) }
    return try await perform(.soundness, plan, pool, units: jobs)
  }

  private mutating func judgeDestination(
    _ plan: MigrationPlan, _ file: AssembledFile, _ found: [StoreFinding]?
  ) async throws {
    let (soundness, newFiles) = (soundness(plan), directory.external)
    let carried = try await onOwnThread {
      try soundness.judge(file, found: found, newFiles: newFiles)
    }
    ledger.addCarried(carried)
  }

  private mutating func commit(_ swap: StoreSwap, _ path: FilePath) async throws {
    watch = nil
    let rejects = try publishRejects(name: swap.name)
    result.rejects = rejects?.string
    var known = result
    known.findings = ledger.findings
    try RunFolder(directory: directory).keep(known)
    let start = ContinuousClock.now
    let emit = eventSink
    var begin = RunEvent(.stage, stage: "commit")
    begin.units = 1
    emit(begin)
    let journal: CommitJournal
    do {
      journal = try await commit(swap, path, emit)
    } catch {
      // A commit that was begun may still be brought to its end.
      if let rejects, try !DurableFile.exists(directory.journal) {
        try DurableFile.removeIfPresent(rejects)
        result.rejects = nil
      }
      throw error
    }
    let cost = MigrationResult.StageCost(
      stage: "commit", seconds: (ContinuousClock.now - start).inSeconds, rows: 0, bytes: 0,
      units: 1, reused: 0)
    stages.append(cost)
    finish(cost)
    try succeed(journal)
  }

  private func commit(
    _ swap: StoreSwap, _ path: FilePath, _ emit: @escaping @Sendable (RunEvent) -> Void
  ) async throws -> CommitJournal {
    try await onOwnThread {
      try DurableSteps.observing(
        with: { step, path in
          var event = RunEvent(.commitStep, stage: "commit")
          event.step = "\(step.rawValue) \(path.lastComponent?.string ?? "")"
          emit(event)
        }
      ) { try swap.commit(path) }
    }
  }
}
