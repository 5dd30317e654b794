import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// A run whose work is done by others.
extension PipelineRun {
  /// The state folder, as every machine finds it.
  var clusterState: FilePath { state.absolute }

  /// Worker processes of one task.
  var clusterWorkers: Int { pool.workerCount }

  /// What earlier starts have left on a cluster is not for the processes of this machine.
  ///
  /// - Throws: ``ClusterError/underWay(state:arrays:)``, ``ClusterError/underWayElsewhere(state:pipeline:)``.
  func checkCluster() throws {
    let file = pipeline.file.absolute
    if options.engine == .local {
      try ClusterWork.requireNone(in: state, of: file)
    } else {
      try ClusterWork.requireNoOther(in: state, than: file)
    }
  }

  /// Looks at every volume that a store lies on: one may be mounted below a root.
  ///
  /// - Throws: ``ClusterError/unsafeVolume(folder:reason:)``.
  private func checkVolumes(of stores: some Sequence<FoundStore>) throws {
    guard let mounts = MountTable.current, mounts.hasDanger else { return }
    let folders = Set(stores.map { $0.path.removingLastComponent() })
    for folder in [clusterState] + pipeline.stores.roots
      + folders.sorted(by: { $0.string < $1.string })
    {
      guard let danger = mounts.volume(of: folder)?.danger else { continue }
      throw ClusterError.unsafeVolume(folder: folder.string, reason: danger)
    }
  }

  /// The scheduler of the engine.
  func scheduler() -> any ArrayScheduler {
    options.engine == .slurm
      ? SlurmScheduler(
        settings: pipeline.cluster, executable: pool.executable.string, workers: clusterWorkers)
      : ManualScheduler(slots: Self.manualSlots)
  }

  /// 16: nobody says how many tasks will run at a time.
  private static let manualSlots = 16

  /// Brings the stores to their end by bundles that others work on.
  ///
  /// - Throws: ``ClusterError``. What was submitted goes on then, and the next start takes it up.
  func migrateOnCluster(
    _ waves: [[FoundStore]], _ setting: Setting, _ summary: inout PipelineSummary
  ) async throws {
    try checkVolumes(of: waves.joined())
    let found = Dictionary(
      waves.joined().map { ($0.path, $0) }, uniquingKeysWith: { $1 })
    var flow = RunFlow(
      queue: StoreQueue(waves: waves, workerCount: Int.max / 4, need: { _ in 0 }),
      limits: pipeline.limits, inUse: pipeline.stores.inUse, failures: summary.failed)
    var follow = ClusterFollowing(found: found)
    let scheduler = scheduler()
    do {
      try await revokingWhenCancelled(setting) {
        var work = try ClusterWork(self, scheduler, try await schedulerLimits(scheduler), setting)
        defer { work.endQuestions() }
        try await adopt(&work, scheduler, found, setting)
        if options.isFresh {
          try setting.lease.requireCurrent()
          try setting.books.forget()
        }
        do {
          try await self.follow(&work, &flow, &follow, setting, &summary)
        } catch let error as ClusterError {
          if case .scheduler = error { try work.revokeUnsubmitted() }
          throw error
        }
        if flow.stop == nil,
          Task.isCancelled ? isFollower : options.isDetached && !work.isEmpty
        {
          summary.detached = true
        } else if !work.isEmpty || Task.isCancelled {
          work.endQuestions()
          try await stop(&work, scheduler, &flow, &follow, setting, &summary)
        } else {
          try await awaitEnd(of: &follow.finished, setting)
        }
        (summary.resubmitted, summary.neverStarted) = (
          work.report.resubmitted, work.report.neverStarted
        )
        summary.restarted = work.restarted
      }
    } catch DurabilityError.locked where setting.isLost {
      // Another start has the run in hand. What this one has come to is told.
    }
    if let loss = setting.loss { flow.look(at: 0, loss: loss) }
    // Of stores that another start began: they are done, whatever this one has come to.
    for outcome in follow.early.values where !setting.outcomes.hasResult(of: outcome.store) {
      end(outcome, setting, &summary)
    }
    summary.take(flow)
  }

  /// Does something during which the run may be stopped. The permits of its arrays are gone before the
  /// stop is heard of anywhere else: a scheduler that does not answer keeps no task from hearing of it. Where a
  /// follower is told to end, nobody has stopped the run.
  func revokingWhenCancelled(_ setting: Setting, _ work: () async throws -> Void) async throws {
    try await withTaskCancellationHandler {
      try await work()
    } onCancel: { [clusterState, isFollower, lease = setting.lease] in
      if !isFollower { try? Self.revokeAll(in: clusterState, lease) }
    }
  }

  /// From here on nothing of what is on the cluster begins or is committed.
  private static func revokeAll(in state: FilePath, _ lease: HeldLease) throws {
    for folder in try BundleFolder.permitted(in: state) {
      try lease.requireCurrent()
      try folder.revoke()
    }
  }

  /// Begins, submits and follows, until nothing is left or the run stops or is detached.
  private func follow(
    _ work: inout ClusterWork, _ flow: inout RunFlow, _ follow: inout ClusterFollowing,
    _ setting: Setting, _ summary: inout PipelineSummary
  ) async throws {
    look(&flow, setting, isFirst: true)
    // Tasks clear up after their last store.
    while !Task.isCancelled, flow.advance() || (flow.stop == nil && !work.isEmpty) {
      announceWave(&follow, flow)
      let held = flow.held(load: nil)
      try await begin(&work, &flow, &follow, setting, &summary, isHeld: held != nil)
      for submission in try await work.submitWaiting(isHeld: held != nil) {
        observe(.submitted(submission))
      }
      let isIdle = try await takeNews(&work, &flow, &follow, setting, &summary)
      try work.look(at: SteadyClock.seconds)
      follow.tellStuck(work.report, held: work.heldByUnknown) { observe(.note($0)) }
      look(&flow, setting, isFirst: false)
      tell(flow, follow.running, held: held, summary, setting, work.report)
      if options.isDetached, follow.uncut.isEmpty, !work.isEmpty, work.canBeLeft { break }
      if isIdle { try await rest(&work, &flow, &follow, setting, &summary) }
      // What comes next changes what a successor may have in hand.
      if let loss = setting.loss { flow.look(at: 0, loss: loss) }
    }
  }

  /// Until it is time to look at everything again. Where few bundles are at work, it is cheap to see sooner that one
  /// has come to its end: what a large store needs next waits for that.
  private func rest(
    _ work: inout ClusterWork, _ flow: inout RunFlow, _ follow: inout ClusterFollowing,
    _ setting: Setting, _ summary: inout PipelineSummary
  ) async throws {
    let looks = work.openCount <= 64 ? 5 : 1
    for look in 1...looks where !Task.isCancelled {
      try? await Task.sleep(for: follow.pause / looks)
      guard look < looks else { return }
      let isIdle = try await takeNews(&work, &flow, &follow, setting, &summary)
      if !isIdle || work.canSubmit { return }
    }
  }

  private func announceWave(_ follow: inout ClusterFollowing, _ flow: RunFlow) {
    guard follow.wave != flow.queue.wave else { return }
    follow.wave = flow.queue.wave
    guard flow.waves > 1 else { return }
    observe(
      .wave(
        WaveStart(
          wave: follow.wave + 1, waves: flow.waves, stores: flow.queue.waveSizes[follow.wave])))
  }

  /// Begins what may: stores for which nothing is to be done come to their end, the others are cut into
  /// bundles, unless the run is held.
  private func begin(
    _ work: inout ClusterWork, _ flow: inout RunFlow, _ follow: inout ClusterFollowing,
    _ setting: Setting, _ summary: inout PipelineSummary, isHeld: Bool
  ) async throws {
    var stores: [FoundStore] = []
    let now = SteadyClock.seconds
    while let (store, _) = flow.next(at: now) { stores.append(store) }
    let outcomes = await sideBySide(stores) { settled($0, setting) }
    var ended: [Outcome] = []
    for (store, outcome) in zip(stores, outcomes) {
      if let known = setting.books.entry(of: store.path), let tries = tries(known, setting.books) {
        let waited = Date().timeIntervalSince1970 - tries.since
        flow.recall(store, count: tries.count, since: now - max(0, waited))
      }
      if let outcome = outcome ?? follow.early.removeValue(forKey: store.path) {
        ended.append(outcome)
      } else {
        follow.inFlight.insert(store.path)
        if !work.owns(store) { follow.uncut.append(store) }
      }
    }
    try await take(ended, &flow, setting, &summary)
    guard !isHeld, !follow.uncut.isEmpty else { return }
    work = try await adding(follow.uncut, to: work, wave: flow.queue.wave)
    follow.uncut = []
  }

  private func adding(
    _ stores: [FoundStore], to made: ClusterWork, wave: Int
  ) async throws -> ClusterWork {
    try await onOwnThread {
      var work = made
      try work.add(stores, wave: wave)
      return work
    }
  }

  /// Takes what the folders say since the last look.
  ///
  /// - Returns: Whether there was nothing new.
  @discardableResult
  private func takeNews(
    _ work: inout ClusterWork, _ flow: inout RunFlow, _ follow: inout ClusterFollowing,
    _ setting: Setting, _ summary: inout PipelineSummary
  ) async throws -> Bool {
    let made = work
    let (next, news) = try await onOwnThread {
      var work = made
      let news = try work.read()
      return (work, news)
    }
    work = next
    for (path, event) in news.events where follow.found[path] != nil {
      observe(.store(FoundStore(path: path, root: path, bytes: 0), event))
    }
    follow.tellClocks((news.earlierCommits + news.results).map(\.result)) { observe(.note($0)) }
    // Before what their stores came to: backups are put back in the order in which they are written down.
    for (store, line) in news.earlierCommits {
      _ = try await outcome(line, of: store, lane: follow.lane(of: line, lanes), setting)
    }
    let outcomes = try await withThrowingTaskGroup(of: (Int, Outcome?).self) { group in
      for (place, (store, line)) in news.results.enumerated() {
        let lane = follow.lane(of: line, lanes)
        group.addTask {
          (place, try await checkedOutcome(line, of: store, lane: lane, setting))
        }
      }
      var outcomes: [Int: Outcome] = [:]
      for try await (place, outcome) in group { outcomes[place] = outcome }
      return outcomes
    }
    // One that has not begun, or is settled, is cut when its wave begins, or never.
    var again = news.left.filter { follow.inFlight.contains($0.path) }
    var ended: [Outcome] = []
    for (place, (store, _)) in news.results.enumerated() {
      // Of a store that this start was told to leave out, the books are told alone.
      guard follow.found[store.path] != nil else { continue }
      guard let outcome = outcomes[place] else {
        // An early one is cut when its wave begins.
        if follow.inFlight.contains(store.path) { again.append(store) }
        continue
      }
      guard follow.inFlight.remove(outcome.store.path) != nil else {
        // Of a store that is settled, or whose wave has not begun in this start.
        follow.early[outcome.store.path] = outcome
        continue
      }
      ended.append(outcome)
    }
    try await take(ended, &flow, setting, &summary)
    follow.finished += try work.takeFinished()
    try await takeLast(&follow.finished, setting)
    // A run that stops writes no permit.
    if !again.isEmpty, flow.stop == nil, !Task.isCancelled {
      work = try await adding(again, to: work, wave: flow.queue.wave)
    }
    return news.results.isEmpty
  }

  /// Takes everything back, and what became of stores until then.
  private func stop(
    _ work: inout ClusterWork, _ scheduler: any ArrayScheduler, _ flow: inout RunFlow,
    _ follow: inout ClusterFollowing, _ setting: Setting, _ summary: inout PipelineSummary
  ) async throws {
    try setting.lease.requireCurrent()
    try Self.revokeAll(in: clusterState, setting.lease)
    try await takeNews(&work, &flow, &follow, setting, &summary)
    let arrays = work.arrays
    try await takeBack(arrays, scheduler) {
      try await takeNews(&work, &flow, &follow, setting, &summary)
      for var array in work.arrays { try await takeLast(&array, [:], setting) }
      // Of arrays that were revoked before they could be adopted.
      try await takeLeftovers(Array(follow.found.values), setting)
    }
  }
}

extension ClusterWork {
  /// - Throws: ``ClusterError/underWayElsewhere(state:pipeline:)`` where work of another pipeline with the
  ///   state folder is on a cluster.
  static func requireNoOther(in state: FilePath, than file: FilePath) throws {
    for folder in try BundleFolder.permitted(in: state.absolute) {
      guard let other = folder.otherPipeline(than: file) else { continue }
      throw ClusterError.underWayElsewhere(
        state: BundleFolder.all(in: state).string, pipeline: other.string)
    }
  }

  /// - Throws: The same; ``ClusterError/underWay(state:arrays:)`` where work of the pipeline itself is.
  static func requireNone(in state: FilePath, of file: FilePath) throws {
    try requireNoOther(in: state, than: file)
    let names = try BundleFolder.permitted(in: state.absolute).map(\.name)
    guard names.isEmpty else {
      throw ClusterError.underWay(state: BundleFolder.all(in: state).string, arrays: names)
    }
  }
}
