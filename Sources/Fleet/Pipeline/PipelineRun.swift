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
///     state/endings.json   how starts ended that could not write the ledger, until it has them
///     state/ledger.jsonl   what became of each store: progress, see ``PipelineLedger``
///     state/stores/ID/     the run directory of a store that is not done; ID is made of its path
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
    try NewFilePlace(state).check()
    try DurableFile.makeFolder(state.appending("stores"))
    try Folder(state).checkPrivate()
    let lease = try await takeLease()
    await context.begins()
    // What is asked of a run whose tasks go on still holds.
    if try BundleFolder.permitted(in: clusterState).isEmpty { try RunControl.remove(in: state) }
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
    findings.unreadable += rootsWithoutStores(findings) { root in
      options.isFresh ? 0 : history.knownStores(of: places.owner.file, below: root.string)
    }
    let ledger = try PipelineLedger(
      folder: state, now: now, owner: places.owner, history: history)
    let settings = try settingsDigest()
    do {
      try checkPlan(findings, ledger, settings)
    } catch {
      ledger.close()
      try ledger.end(isFinished: !ledger.isResumed, isInHistory: history.isWhole)
      throw error
    }
    try history.begin(
      LedgerRun(
        name: ledger.run, pipeline: places.owner.pipeline, file: places.owner.file, started: now,
        host: MachineName.text, workers: pool.workerCount,
        options: context.options), isResumed: ledger.isResumed)
    defer { history.close() }
    history.beginFleet(of: places.owner.file, run: ledger.run, findings)
    // A run over some of its stores does not end one over all of them, and is told of together with it.
    let isPartOfRun = ledger.isResumed && !options.selection.isAll
    history.setFound(
      (isPartOfRun ? history.fleet(of: places.owner.file, run: ledger.run)?.found : nil)
        ?? findings.stores.count, in: ledger.run)
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
      ledger: ledger, history: history, settings: settings, code: template.ownCodeDigest,
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
      history.close()
      await submitAgain(after: error)
      throw error
    }
    await setting.hosts.close()
    ledger.close()
    history.close(countsFailures: summary.stopped != RunFlow.Stop.budgetWord)
    summary.seconds = (ContinuousClock.now - begin).inSeconds
    guard try lease.isCurrent else {
      await takeRest(findings.stores, setting, &summary)
      return summary
    }
    if summary.detached == true {
      summary.countTheRest()
      history.settle(setting.outcomes.standings, of: places.owner.file, run: ledger.run)
      for note in history.takeNotes() { observe(.warning(note)) }
      // The last thing: it may begin at once.
      try await revokingWhenCancelled(setting) { try await submitFollower() }
      return summary
    }
    try ClusterFollower.remove(in: clusterState)
    await takeRest(findings.stores, setting, &summary)
    history.settle(setting.outcomes.standings, of: places.owner.file, run: ledger.run)
    let isFinished = summary.pending == 0 && !isPartOfRun
    if isFinished {
      // The run directories of small stores went without a flush each.
      try DurableFile.syncFolder(state.appending("stores"))
    }
    let counts = isPartOfRun ? history.fleet(of: places.owner.file, run: ledger.run) : nil
    let ending = history.end(
      ledger.run, at: Date().timeIntervalSince1970, exitCode: context.exitCode(summary),
      counts ?? RunReport.Counts(summary))
    try ledger.end(
      isFinished: isFinished, isInHistory: history.isWhole, ending, record: history.endedRun)
    try keepRetention(history, since: (startTime, begin), &summary)
    for note in history.takeNotes() { observe(.warning(note)) }
    try RunProgress.remove(in: state)
    withExtendedLifetime(lease) {}
    return summary
  }
}

// What the stores of a run have in common.
extension PipelineRun {
  var paceFile: FilePath { state.appending("pace") }

  /// The pipeline's stores that the run takes up.
  func search(state: FilePath?) async throws -> StoreSearch.Findings {
    let (pipeline, selection) = (pipeline, options.selection)
    return try await onOwnThread {
      var findings = try StoreSearch(pipeline, state: state).run()
      (findings.stores, findings.unknown, findings.unmatched) = try selection.chosen(
        from: findings.stores, roots: pipeline.stores.roots.compactMap(\.resolved))
      return findings
    }
  }

  /// Roots without a store below which stores are known: more likely a volume that is not mounted, or a
  /// pattern that is wrong, than a fleet that is gone. Where a pipeline has no store at all, its first root,
  /// though nothing was ever known: a pattern that was wrong from the beginning looks like that.
  ///
  /// - Parameter known: How many stores an earlier run knows of below a root.
  func rootsWithoutStores(
    _ findings: StoreSearch.Findings, known: (FilePath) throws -> Int
  ) rethrows -> [StoreSearch.Unreadable] {
    let roots = pipeline.stores.roots.compactMap(\.resolved)
    let emptied: [StoreSearch.Unreadable] = try roots.compactMap { root in
      // One that lies below two roots was found in the first of them.
      guard !findings.all.contains(where: { $0.path.starts(with: root) }),
        !findings.unreadable.contains(where: { $0.path.starts(with: root) })
      else { return nil }
      let known = try known(root)
      guard known > 0 else { return nil }
      return StoreSearch.Unreadable(
        path: root,
        reason: "no store is in it, and an earlier run knows of \(known)",
        advice:
          "Mount its volume, or correct stores.roots and stores.include. Where the stores are "
          + "gone for good, run with --fresh once.", kind: .emptyRoot)
    }
    guard findings.all.isEmpty, findings.unreadable.isEmpty, emptied.isEmpty,
      let first = roots.first
    else { return emptied }
    let note = PathPattern.literalNote(pipeline.stores.include.map(\.text)).map { " \($0)" } ?? ""
    return [
      StoreSearch.Unreadable(
        path: first, reason: roots.map(\.string).joined(separator: ", "),
        advice:
          "Correct stores.roots, stores.include or stores.exclude in \(pipeline.file).\(note)",
        kind: .noStores)
    ]
  }

  /// - Throws: ``PlanDrift``.
  private func checkPlan(
    _ findings: StoreSearch.Findings, _ ledger: PipelineLedger, _ settings: String
  ) throws {
    try options.plan?.check(
      findings.stores, settings: planSettings(settings), isWhole: options.selection.isAll
    ) { store, identity in
      guard let known = ledger.entry(of: store.path) else { return false }
      // What an earlier start, or run, of the same settings has left needs no other plan.
      return known.settings == settings && known.finalIdentity == identity
    }
  }

  func start(_ findings: StoreSearch.Findings, _ ledger: PipelineLedger?) -> PipelineStart {
    PipelineStart(
      pipeline: pipeline.name, run: ledger?.run, resumed: ledger?.isResumed,
      stores: findings.stores.count, bytes: findings.stores.reduce(0) { $0 + $1.bytes },
      links: findings.links, special: findings.special > 0 ? findings.special : nil,
      unknown: findings.unknown.isEmpty ? nil : findings.unknown,
      unmatched: findings.unmatched.isEmpty ? nil : findings.unmatched,
      leftOut: findings.leftOut.isEmpty ? nil : findings.leftOut.map(\.unambiguousText).sorted(),
      idlePatterns: findings.idlePatterns.isEmpty ? nil : findings.idlePatterns,
      emptyRoots: findings.emptyRoots.isEmpty ? nil : findings.emptyRoots.map(\.string),
      all: options.selection.isAll ? nil : findings.all.count)
  }

  /// So many stores are looked at for their versions: of a cohort that is one in a few hundred, some
  /// are among them.
  private static let mostLooks = 2_000

  /// The stores wave by wave; one wave where the pipeline has none.
  func waves(_ stores: [FoundStore], _ setting: Setting) async throws -> [[FoundStore]] {
    guard !pipeline.canary.isEmpty, !stores.isEmpty else { return [stores] }
    let run = setting.books.run
    if let known = try CanaryWaves(of: run, in: state, stores) { return known.waves }
    let some = CanaryWaves.byDigest(stores).prefix(Self.mostLooks)
    var cohorts: [FilePath: String] = [:]
    await withTaskGroup(of: MigrationResult.self) { group in
      var left = some[...]
      for place in 0..<some.count {
        if place >= 2 * pool.workerCount, let look = await group.next() {
          cohorts[FilePath(look.store)] = look.source
        }
        guard let store = left.popFirst(), Self.refusal(of: store) == nil else { continue }
        group.addTask {
          await setting.hosts.perform(task(store, workers: 0, setting.books.settings, .look))
        }
      }
      for await look in group { cohorts[FilePath(look.store)] = look.source }
    }
    let found = CanaryWaves(stores, sizes: pipeline.canary) { cohorts[$0.path] }
    // Those of some of the stores are not the waves of all.
    if options.selection.isAll { try found.write(of: run, in: state) }
    return found.waves
  }

  func hosts(pace: FilePath?) -> StoreHosts {
    var arguments = [
      "store-host", pipeline.file.absolute.string, "--state", state.string,
    ]
    if !template.guardsUnknownVersions { arguments += ["--losses", template.losses.rawValue] }
    if template.isStoreOffline { arguments.append("--store-is-offline") }
    if tellsEvents { arguments.append("--events") }
    if let pace { arguments += ["--pace", pace.string] }
    return StoreHosts(executable: pool.executable, arguments: arguments)
  }

  func task(
    _ store: FoundStore, workers: Int, _ settings: String, _ work: StoreTask.Work = .migrate
  ) -> StoreTask {
    StoreTask(
      store: store.path.string, root: store.root.string, bytes: store.bytes, workers: workers,
      work: work, settings: settings, code: template.ownCodeDigest, pipeline: pipeline.digest,
      isFresh: options.isFresh && work == .migrate,
      handsOut: options.handsOut && work == .migrate)
  }

  func request(for store: FoundStore) -> MigrationRequest {
    var request = template
    request.store = store.path
    request.output = pipeline.output(of: store.path)
    return request
  }

  /// The name of a store's run directory.
  static func name(of store: FilePath) -> String {
    String(Hexadecimal.text(of: SHA256.digest(of: Array(store.string.utf8))).prefix(32))
  }

  /// What a plan says beside the destinations' content: where they go, and what may be lost.
  func planSettings(_ settings: String) -> String {
    "\(settings) \(template.losses) \(template.guardsUnknownVersions) \(pipeline.commit) "
      + "\(pipeline.stores.inUse)"
  }

  /// SHA-256 in hexadecimal over all that decides, beside the store, whether it is refused: with the content
  /// of the destinations what may be lost. A store that is quarantined is tried again where it is another.
  func quarantineSettings(_ settings: String) -> String {
    Self.digest(of: [settings, template.losses.rawValue, "\(template.guardsUnknownVersions)"])
  }

  /// SHA-256 in hexadecimal over what tasks of others do with a store, beside the store: all that the
  /// operator may change between two starts of a run.
  func requestDigest(_ settings: String) -> String {
    Self.digest(of: [
      planSettings(settings), "\(template.isStoreOffline)", "\(pool.workerCount)", pipeline.digest,
    ])
  }

  private static func digest(of texts: [String]) -> String {
    Hexadecimal.text(of: SHA256.digest(of: Array(texts.joined(separator: "\0").utf8)))
  }

  /// SHA-256 in hexadecimal over everything but the store that its destination depends on.
  func settingsDigest() throws -> String {
    var digest = SHA256()
    func add(_ text: String) {
      digest.update(Array(text.utf8))
      digest.update([0])
    }
    add("pipeline 1 \(template.chain.rawValue) \(template.infersMapping) \(template.migrates)")
    for version in template.models + (template.destination.map { [$0] } ?? []) {
      add(version.name)
      digest.update(try version.hierarchy().modelCacheBytes())
    }
    for mapping in template.mappings { add(try mapping.document.text()) }
    if template.invalid != .fail { add(template.invalid.rawValue) }
    if let digest = template.ownCodeDigest { add(digest) }
    return Hexadecimal.text(of: digest.finish())
  }
}
