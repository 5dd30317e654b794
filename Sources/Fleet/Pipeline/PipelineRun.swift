import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// A pipeline, from its stores to their results.
///
///     state/lock           held by the coordinator as long as it lives
///     state/run.json       which run it is; one that was interrupted is resumed
///     state/ledger.jsonl   what became of each store: progress, see ``PipelineLedger``
///     state/stores/ID/     the run directory of a store that is not done; ID is made of its path
///     ledger.sqlite        the history of all runs, see ``RunHistory`` and ``PipelinePlaces``
///
/// Each store is a ``StoreRun`` of its own, that resumes by itself and whose failure is its own: it
/// is coordinated in a process of ``StoreHosts``.
/// Stores smaller than a shard are done in that process alone, two for each worker at a time: while
/// one waits for the disk, another has the processor. Large ones go beside them and share the workers,
/// so that neither kind waits for the other.
public struct PipelineRun: Sendable {
  private let pipeline: Pipeline
  private let template: MigrationRequest
  private let pool: WorkerPool.Settings
  private let state: FilePath
  private let tellsEvents: Bool
  let places: PipelinePlaces
  var backupRetention: BackupRetention { pipeline.backups }
  /// What the ledger is to know of this start.
  public var context = RunContext()
  private let lanes = LaneNumbers()
  let observe: @Sendable (PipelineEvent) -> Void

  /// - Parameters:
  ///   - template: What every store is to become; its paths are filled in.
  ///   - pool: The workers of all stores together.
  ///   - state: Where the run keeps its state; nil for beside the pipeline.
  ///   - tellsEvents: Whether events of single stores are wanted, too.
  ///   - observe: Called with every event, on any thread.
  public init(
    _ pipeline: Pipeline, _ template: MigrationRequest, pool: WorkerPool.Settings,
    state: FilePath? = nil, tellsEvents: Bool = false,
    observe: @escaping @Sendable (PipelineEvent) -> Void
  ) {
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
  public func run() async throws -> PipelineSummary {
    let start = ContinuousClock.now
    try DurableFile.makeFolder(state.appending("stores"))
    try Folder(state).checkPrivate()
    let lock = try FileLock(
      acquiring: state.appending("lock"), patienceSeconds: PipelineHistory.lockPatienceSeconds)
    let now = Date().timeIntervalSince1970
    let finished = try await Rollback.finishInterrupted(pipeline, places)
    if finished > 0 {
      observe(
        .note(
          "\(finished) interrupted \(finished == 1 ? "rollback was" : "rollbacks were") finished first."
        ))
    }
    let history = try RunHistory(
      at: places.ledger, now: now, quarantineLimit: pipeline.quarantineAfter)
    let ledger = try PipelineLedger(folder: state, now: now, history: history)
    let search = StoreSearch(pipeline, state: state)
    let findings = try await onOwnThread { try search.run() }
    let settings = try settingsDigest()
    try history.begin(
      LedgerRun(
        name: ledger.run, pipeline: pipeline.name, file: pipeline.file.resolvingFolders.string,
        started: now, host: MachineName.text, workers: pool.workerCount,
        options: context.options))
    defer { history.close() }
    history.setFound(findings.stores.count, in: ledger.run)
    for note in history.takeNotes() { observe(.note(note)) }
    observe(
      .found(
        PipelineStart(
          pipeline: pipeline.name, run: ledger.run, resumed: ledger.isResumed,
          stores: findings.stores.count, bytes: findings.stores.reduce(0) { $0 + $1.bytes },
          links: findings.links)))
    var summary = PipelineSummary(pipeline: pipeline.name)
    summary.run = ledger.run
    summary.resumed = ledger.isResumed
    summary.earlier = 0
    let hosts = hosts
    let books = Books(
      ledger: ledger, history: history, settings: settings, quarantined: history.quarantined())
    await migrate(findings, books, hosts, &summary)
    await hosts.close()
    ledger.close()
    history.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    if summary.pending == 0 {
      // The run directories of small stores went without a flush each.
      try DurableFile.syncFolder(state.appending("stores"))
    }
    try ledger.end(isFinished: summary.pending == 0, isInHistory: history.isWhole)
    history.end(
      ledger.run, at: Date().timeIntervalSince1970, exitCode: context.exitCode(summary),
      RunReport.Counts(summary))
    try keepRetention(history, &summary)
    for note in history.takeNotes() { observe(.note(note)) }
    _ = consume lock
    return summary
  }

  /// Says what ``run()`` would do, store by store, and changes nothing.
  public func plan() async throws -> PipelineSummary {
    let start = ContinuousClock.now
    let search = StoreSearch(
      pipeline, state: try FileKind(following: state) == .folder ? state : nil)
    let findings = try await onOwnThread { try search.run() }
    observe(
      .found(
        PipelineStart(
          pipeline: pipeline.name, stores: findings.stores.count,
          bytes: findings.stores.reduce(0) { $0 + $1.bytes }, links: findings.links)))
    var summary = PipelineSummary(pipeline: pipeline.name)
    summary.found = findings.stores.count
    tellUnreadable(findings, &summary)
    let settings = try settingsDigest()
    let hosts = hosts
    // Results are told in the order of the stores.
    var results: [MigrationResult?] = Array(repeating: nil, count: findings.stores.count)
    var told = 0
    await withTaskGroup(of: (Int, MigrationResult).self) { group in
      var begun = 0
      func begin() {
        guard begun < findings.stores.count, !Task.isCancelled else { return }
        let (place, store) = (begun, findings.stores[begun])
        begun += 1
        group.addTask {
          if let refusal = Self.refusal(of: store) { return (place, refusal) }
          return (place, await hosts.perform(task(store, workers: 1, settings, isPlan: true)))
        }
      }
      for _ in 0..<pool.workerCount { begin() }
      for await (place, result) in group {
        results[place] = result
        while told < results.count, let next = results[told] {
          summary.count(next)
          observe(.result(findings.stores[told], next))
          told += 1
        }
        begin()
      }
      summary.pending += findings.stores.count - begun
    }
    await hosts.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    return summary
  }
}

// One store after the other, and side by side.
extension PipelineRun {
  private func migrate(
    _ findings: StoreSearch.Findings, _ books: Books, _ hosts: StoreHosts,
    _ summary: inout PipelineSummary
  ) async {
    summary.found = findings.stores.count
    tellUnreadable(findings, &summary)
    var small = findings.stores.filter { workers(for: $0) == 0 }[...]
    var large = findings.stores.filter { workers(for: $0) > 0 }[...]
    await withTaskGroup(of: Outcome.self) { group in
      func begin(_ store: FoundStore) {
        group.addTask {
          await migrate(store, workers: self.workers(for: store), books, hosts)
        }
      }
      var (places, workers) = (2 * pool.workerCount, pool.workerCount)
      while !Task.isCancelled, summary.lacksWorkers != true {
        while places > 0, let store = small.popFirst() {
          places -= 1
          begin(store)
        }
        while let store = large.first, self.workers(for: store) <= workers {
          workers -= self.workers(for: store)
          begin(large.removeFirst())
        }
        guard let outcome = await group.next() else { break }
        let taken = self.workers(for: outcome.store)
        if taken == 0 { places += 1 } else { workers += taken }
        take(outcome, &summary)
      }
      for await outcome in group { take(outcome, &summary) }
    }
    summary.pending += small.count + large.count
  }

  private struct Outcome: Sendable {
    var store: FoundStore
    var result: MigrationResult
    /// Migrated before this start.
    var isEarlier = false
  }

  private func take(_ outcome: Outcome, _ summary: inout PipelineSummary) {
    summary.count(outcome.result)
    if outcome.isEarlier { summary.earlier = (summary.earlier ?? 0) + 1 }
    observe(.result(outcome.store, outcome.result))
  }

  /// A folder that cannot be read may hold any number of stores: it counts as one that failed.
  private func tellUnreadable(
    _ findings: StoreSearch.Findings, _ summary: inout PipelineSummary
  ) {
    for (path, reason) in findings.unreadable {
      let result = MigrationResult(
        store: path.string, verdict: .failed, ending: .inputOutput,
        reasons: [
          Reason(
            reason: "unreadable-folder",
            message: "\(path) cannot be searched for stores: \(reason). Let this user read it, or "
              + "exclude it.")
        ])
      summary.found += 1
      summary.count(result)
      observe(.result(nil, result))
    }
  }

  /// 4 MiB. What the stages of a small store finish stays in memory; the work of a larger one is worth
  /// going on with.
  private static let largestSmallStore: Int64 = 4 << 20

  /// One worker for each shard's worth of bytes; none for a store that is smaller than a shard.
  private func workers(for store: FoundStore) -> Int {
    if store.bytes < min(template.shardBytes, Self.largestSmallStore) { return 0 }
    return min(pool.workerCount, Int(clamping: store.bytes / max(1, template.shardBytes)) + 1)
  }

  private func migrate(
    _ store: FoundStore, workers: Int, _ books: Books, _ hosts: StoreHosts
  ) async -> Outcome {
    let (ledger, settings) = (books.ledger, books.settings)
    let start = Date().timeIntervalSince1970
    if let refusal = Self.refusal(of: store) {
      books.add(
        refusal, of: store, from: start, lane: nil, mark: StoreFiles(store.path).markName)
      return Outcome(store: store, result: refusal)
    }
    let request = request(for: store)
    let known = ledger.entry(of: store.path)
    if let known, known.settings == settings,
      let result = try? unchanged(store, request.output, since: known, run: ledger.run)
    {
      return result
    }
    let mark = StoreFiles(store.path).markName
    if let known = books.quarantined[store.path.string], known.mark == mark,
      known.settings == settings
    {
      return Outcome(store: store, result: MigrationResult(quarantined: known))
    }
    let observe = observe
    let isMigratedByThisRun = known?.verdict == .migrated && known?.run == ledger.run
    let lane = lanes.take()
    defer { lanes.giveBack(lane) }
    let isRecorded = Atomic(false)
    let result = await hosts.perform(
      task(store, workers: workers, settings),
      record: { result in
        guard result.verdict != .pending, result.verdict != .sameModel || !isMigratedByThisRun
        else { return }
        var entry = PipelineLedger.Entry(result, of: store, run: ledger.run, settings)
        entry.attempt = LedgerAttempt(
          result, of: store, run: ledger.run, started: start, ended: entry.time, lane: lane)
        entry.backupRecord = LedgerBackup(result, of: store, run: ledger.run, at: entry.time)
        try await ledger.record(entry)
        books.add(entry, mark: mark, result)
        isRecorded.store(true, ordering: .relaxed)
      },
      observe: { observe(.store(store, $0)) })
    if result.verdict == .sameModel, let known, isMigratedByThisRun {
      return Outcome(
        store: store, result: Self.earlier(known, "An earlier start of this run migrated it"),
        isEarlier: true)
    }
    if !isRecorded.load(ordering: .relaxed) {
      books.add(result, of: store, from: start, lane: lane, mark: mark)
    }
    return Outcome(store: store, result: result)
  }

  /// What became of a store that is as the ledger says it was left; nil where it has to be looked at.
  private func unchanged(
    _ store: FoundStore, _ output: FilePath?, since known: PipelineLedger.Entry, run: String
  ) throws -> Outcome? {
    guard known.verdict == .migrated || known.verdict == .sameModel else { return nil }
    if let output {
      guard known.verdict == .migrated, try FileKind(at: output) == .regular,
        known.output == output.string,
        known.identity == (try StoreFiles(store.path).identity().name)
      else { return nil }
    } else {
      guard let final = known.finalIdentity,
        final == (try StoreFiles(store.path).identity().name)
      else { return nil }
    }
    // A run that was killed between the record and the end leaves its directory.
    let directory = directory(of: store)
    if try directory.exists {
      guard output != nil else { return nil }
      try directory.remove()
    }
    if known.verdict == .migrated, output != nil || known.run == run {
      let words =
        output == nil ? "An earlier start of this run migrated it" : "Its output was written before"
      return Outcome(store: store, result: Self.earlier(known, words), isEarlier: true)
    }
    return Outcome(
      store: store,
      result: MigrationResult(store: store.path.string, verdict: .sameModel, ending: .done))
  }

  private static func earlier(_ known: PipelineLedger.Entry, _ words: String) -> MigrationResult {
    var result = MigrationResult(
      store: known.store, verdict: .migrated, ending: .done, notes: ["\(words)."])
    result.source = known.source
    result.destination = known.destination
    result.output = known.output
    result.backup = known.backup
    result.rows = known.rows
    result.losses = known.losses ?? []
    return result
  }

  private static func refusal(of store: FoundStore) -> MigrationResult? {
    guard let link = store.escapingSymlink else { return nil }
    return MigrationResult(
      store: store.path.string, verdict: .failed, ending: .badInput,
      reasons: [
        Reason(
          reason: "link",
          message:
            "\(link) is a symbolic link, and may lead out of the root \(store.root). Put the "
            + "file or folder itself there, or exclude the store.")
      ])
  }
}

// In the process that coordinates a store.
extension PipelineRun {
  /// Migrates one store.
  ///
  /// - Parameters:
  ///   - workers: 0 for a store whose stages this process performs.
  ///   - record: Called with the result before the store's run directory goes.
  func migrate(
    _ store: FoundStore, workers: Int, policies: PolicyRegistry,
    record: @escaping @Sendable (MigrationResult) throws -> Void,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    var pool = pool
    pool.workerCount = max(1, workers)
    var settings = StoreRun.Settings(pool: pool)
    settings.record = { result in
      var result = result
      if result.verdict == .migrated, let output = result.output {
        let files = StoreFiles(FilePath(output))
        result.digest = try? files.digest(inState: result.finalIdentity)
      }
      try record(result)
    }
    if workers == 0 { settings.policiesHere = policies }
    // A process that coordinated the store before ours was killed may be about to end.
    settings.lockPatienceSeconds = 10
    return await StoreRun(
      request(for: store), directory: directory(of: store), settings: settings, observe: observe
    ).run()
  }

  private func directory(of store: FoundStore) -> RunDirectory {
    RunDirectory(state.appending("stores").appending(Self.name(of: store.path)))
  }

  private var hosts: StoreHosts {
    var arguments = [
      "store-host", pipeline.file.string, "--state", state.string,
      "--losses", template.losses.rawValue,
    ]
    if template.isStoreOffline { arguments.append("--store-is-offline") }
    if tellsEvents { arguments.append("--events") }
    return StoreHosts(executable: pool.executable, arguments: arguments)
  }

  private func task(
    _ store: FoundStore, workers: Int, _ settings: String, isPlan: Bool = false
  ) -> StoreTask {
    StoreTask(
      store: store.path.string, root: store.root.string, bytes: store.bytes, workers: workers,
      isPlan: isPlan, settings: settings)
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
    if let digest = template.ownCodeDigest { add(digest) }
    return Hexadecimal.text(of: digest.finish())
  }
}

extension PipelineLedger.Entry {
  init(
    _ result: MigrationResult, of store: FoundStore, run: String, _ settings: String
  ) {
    self.init(
      run: run, store: store.path.string, verdict: result.verdict,
      time: Date().timeIntervalSince1970, settings: settings,
      identity: result.sourceIdentity, finalIdentity: result.finalIdentity, source: result.source,
      destination: result.destination, output: result.output,
      backup: result.backup, rows: result.rows,
      losses: result.losses.isEmpty ? nil : result.losses, code: result.code,
      message: result.reasons.first?.message)
  }
}
