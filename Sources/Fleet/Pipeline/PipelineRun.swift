import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// A pipeline, from its stores to their results.
///
///     state/lock           held by the coordinator as long as it lives
///     state/run.json       which run it is; one that was interrupted is resumed
///     state/endings.json   how starts began and ended that could not write the ledger, until it has them
///     state/ledger.jsonl   what became of each store: progress, see ``PipelineLedger``
///     state/stores/ID/     the run directory of a store that is not done; ID is made of its path
///     state/stores/ID-snapshot/  the private copy of one in use, see ``StoreClone``
///     state/waves.json     which stores are in which canary wave
///     state/control.json   what the operator asks of the run, see ``RunControl``
///     state/progress.json  how far it is, see ``RunProgress``
///     state/pace           how much its processes may read and write
///     state/cluster/       the work that others do, see ``BundleFolder``
///     ledger.sqlite        the history of all runs, see ``RunHistory`` and ``PipelinePlaces``
///
/// Each store is a ``StoreRun`` of its own, that resumes by itself and whose failure is its own: it
/// is coordinated in a process of ``StoreHosts``.
/// ``StoreQueue`` and ``RunFlow`` say which one begins when.
package struct PipelineRun: Sendable {
  /// What a run is asked for beside its pipeline.
  package struct Options: Sendable {
    /// Which stores it takes up.
    package var selection = StoreSelection.all
    /// Forgets the progress of earlier runs with those stores.
    package var isFresh = false
    /// The plan that the stores must be those of.
    package var plan: PlannedStores?
    /// Where the work is done.
    package var engine = Engine.local
    /// Whether the start ends once the work is submitted.
    package var isDetached = false
    /// In a task of a cluster: whether the stages of its store are handed out.
    package var handsOut = false

    package init() {}
  }

  let pipeline: Pipeline
  let template: MigrationRequest
  let pool: WorkerPool.Settings
  let state: FilePath
  let options: Options
  let tellsEvents: Bool
  let places: PipelinePlaces
  var backupRetention: BackupRetention { pipeline.backups }
  /// What the ledger is to know of this start.
  package var context = RunContext()
  let lanes = LaneNumbers()
  let observe: @Sendable (PipelineEvent) -> Void

  /// - Parameters:
  ///   - template: What every store is to become; its paths are filled in.
  ///   - pool: The workers of all stores together.
  ///   - state: Where the run keeps its state; nil for beside the pipeline.
  ///   - tellsEvents: Whether events of single stores are wanted, too.
  ///   - observe: Called with every event, on any thread.
  package init(
    _ pipeline: Pipeline, _ template: MigrationRequest, pool: WorkerPool.Settings,
    state: FilePath? = nil, options: Options = Options(), tellsEvents: Bool = false,
    observe: @escaping @Sendable (PipelineEvent) -> Void
  ) {
    self.options = options
    self.tellsEvents = tellsEvents
    self.pipeline = pipeline
    self.template = template
    self.pool = pool
    places = PipelinePlaces(pipeline, state: state)
    self.state = places.state
    self.observe = observe
  }

  /// Brings every store to its end. Cancelling the task stops within seconds; running again goes
  /// on.
  ///
  /// - Throws: ``PipelineError`` and what the state folder gives; no store was opened then.
  package func run() async throws -> PipelineSummary {
    let (begin, startTime) = (ContinuousClock.now, Date().timeIntervalSince1970)
    let folder = StateFolder(places)
    try folder.take()
    try DurableFile.makeFolder(state.appending("stores"))
    let lease = try await takeLease()
    folder.removeUnfinished()
    // Before anybody is told that this start can be asked. Of a run on a cluster it still holds: its tasks go on,
    // or its next wave is to come.
    let isWorkedOn = try !BundleFolder.permitted(in: clusterState).isEmpty
    let wasOnCluster =
      try isWorkedOn || ClusterFollower.read(in: clusterState) != nil
      || RunProgress.read(in: state)?.cluster != nil
    if !isWorkedOn { try RunProgress.remove(in: state) }
    if try !isWorkedOn
      && (options.engine == .local || !wasOnCluster
        || PipelineLedger.interruptedRun(state, of: places.owner) == nil)
    {
      try RunControl.remove(in: state)
    }
    HolderMark.write(run: places.owner, lease.token, in: state)
    await context.begins()
    let restored = try await Rollback.finishInterrupted(pipeline, places, lease)
    if restored.finished > 0 {
      let rollbacks = restored.finished == 1 ? "rollback was" : "rollbacks were"
      observe(.note("\(restored.finished) interrupted \(rollbacks) finished first."))
    }
    for message in restored.problems { observe(.warning(message)) }
    try checkCluster()
    let now = Date().timeIntervalSince1970
    var findings = try await search(state: state)
    let history = try RunHistory(
      at: places.ledger, of: places.owner, now: now, quarantineLimit: pipeline.quarantineAfter)
    let ledger = try PipelineLedger(
      folder: state, now: now, owner: places.owner, stores: options.selection, history: history)
    findings.unreadable += rootsWithoutStores(findings) { root in
      options.isFresh || ledger.isFresh
        ? 0 : history.knownStores(of: places.owner.file, below: root.string)
    }
    let settings = try settingsDigest()
    do {
      try checkPlan(findings, ledger, settings)
    } catch {
      ledger.close()
      try ledger.end(isFinished: !ledger.isResumed, isInHistory: history.isWhole)
      throw error
    }
    // A run over some of its stores does not end one over all of them, and is told of together with it.
    let isPartOfRun = ledger.isResumed && !options.selection.isAll
    let unwritten = try history.begin(
      LedgerRun(
        name: ledger.run, pipeline: places.owner.pipeline, file: places.owner.file, started: now,
        host: MachineName.text, workers: pool.workerCount,
        options: context.options), isResumed: ledger.isResumed, findings,
      redone: ledger.redone(findings.stores, settings: settings), isPartOfRun: isPartOfRun)
    defer { history.close() }
    if let unwritten {
      do {
        try ledger.begin(unwritten)
      } catch {
        observe(
          .warning("\(error) If this start is killed, the ledger lacks which stores it took up."))
      }
    }
    for note in history.takeNotes() { observe(.warning(note)) }
    observe(.found(start(findings, ledger)))
    var summary = PipelineSummary(pipeline: pipeline.name)
    (summary.run, summary.resumed, summary.earlier) = (ledger.run, ledger.isResumed, 0)
    (summary.found, summary.unknown) = (findings.stores.count, findings.unknownCount)
    for result in tellUnreadable(findings, &summary) {
      let place = FoundStore(path: FilePath(result.store), root: FilePath(result.store), bytes: 0)
      history.add(
        LedgerAttempt(result, of: place, run: ledger.run, started: now, ended: now, lane: nil), nil,
        .passing)
    }
    try Pace.set(pipeline.limits.ioBytesPerSecond, in: paceFile)
    let books = Books(
      ledger: ledger, history: history, owner: places.owner, settings: settings,
      code: template.ownCodeDigest,
      quarantineSettings: quarantineSettings(settings), quarantined: history.quarantined())
    let setting = Setting(books: books, hosts: hosts(pace: paceFile), lease: lease)
    let waves = try await waves(findings.stores, setting)
    do {
      try await dismissFollower()
      if !ledger.isResumed { try BundleFolder.removeLogs(in: clusterState) }
      try tellForeignFolders()
      try await takeLeftovers(findings.stores, setting)
      if options.engine == .local {
        await migrate(waves, setting, &summary)
      } else {
        try await migrateOnCluster(waves, setting, &summary)
      }
    } catch {
      await setting.hosts.close()
      ledger.close()
      // On a cluster the next start goes on with this one, and counts them.
      history.close(countsFailures: options.engine == .local)
      await submitAgain(after: error)
      throw error
    }
    await setting.hosts.close()
    ledger.close()
    history.close(
      countsFailures: summary.stopped != RunFlow.Stop.budgetWord && summary.detached != true)
    summary.seconds = (ContinuousClock.now - begin).inSeconds
    guard try lease.isCurrent else {
      await takeRest(findings.stores, setting, &summary)
      return summary
    }
    if summary.detached == true {
      summary.countTheRest()
      history.settle(
        setting.outcomes.standings, of: places.owner.file, run: ledger.run, isAtEnd: false)
      for note in history.takeNotes() { observe(.warning(note)) }
      // The last thing: it may begin at once.
      try await revokingWhenCancelled(setting) { try await submitFollower() }
      return summary
    }
    await takeRest(findings.stores, setting, &summary)
    await removeLeftSnapshots(findings, setting)
    if options.engine != .local {
      // A process that was killed on another machine may have held one while its array came to its end.
      for store in findings.stores { try? clear(store, setting) }
    }
    let isFinished = summary.pending == 0 && !isPartOfRun
    if isFinished {
      // The run directories of small stores went without a flush each.
      try DurableFile.syncFolder(state.appending("stores"))
    }
    history.settle(
      setting.outcomes.standings, of: places.owner.file, run: ledger.run, isAtEnd: true)
    let ended = Date().timeIntervalSince1970
    summary.ended = ended
    let ending = history.end(
      at: ended, exitCode: context.exitCode(summary), RunReport.Counts(summary))
    try ledger.end(
      isFinished: isFinished, isInHistory: history.isWhole, ending, record: history.endedRun)
    // Not before: the cluster may begin a job again until then.
    try ClusterFollower.remove(in: clusterState)
    try keepRetention(history, since: (startTime, begin), &summary)
    for note in history.takeNotes() { observe(.warning(note)) }
    for remove in [RunProgress.remove(in:), RunControl.remove(in:)] {
      // The run has come to its end all the same.
      do { try remove(state) } catch { observe(.warning("\(error)")) }
    }
    withExtendedLifetime(lease) {}
    return summary
  }
}
