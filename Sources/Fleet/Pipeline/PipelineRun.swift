import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// A pipeline, from its stores to their results.
///
///     state/lock           held by the coordinator as long as it lives
///     state/run.json       which run it is; one that was interrupted is resumed
///     state/ledger.jsonl   what became of each store
///     state/stores/ID/     the run directory of a store that is not done; ID is made of its path
///
/// Each store is a ``StoreRun`` of its own, that resumes by itself and whose failure is its own: it
/// is coordinated in a process of ``StoreHosts``.
/// Stores smaller than a shard take one worker, so that several go side by side; a large one takes
/// them all.
public struct PipelineRun: Sendable {
  private let pipeline: Pipeline
  private let template: MigrationRequest
  private let pool: WorkerPool.Settings
  private let state: FilePath
  private let observe: @Sendable (PipelineEvent) -> Void

  /// - Parameters:
  ///   - template: What every store is to become; its paths are filled in.
  ///   - pool: The workers of all stores together.
  ///   - state: Where the run keeps its state; nil for beside the pipeline.
  ///   - observe: Called with every event, on any thread.
  public init(
    _ pipeline: Pipeline, _ template: MigrationRequest, pool: WorkerPool.Settings,
    state: FilePath? = nil, observe: @escaping @Sendable (PipelineEvent) -> Void
  ) {
    self.pipeline = pipeline
    self.template = template
    self.pool = pool
    // A folder that a person names may be a link; the one beside the pipeline may not.
    self.state =
      state.map { $0.resolved ?? $0.resolvingFolders }
      ?? pipeline.stateFolder.resolvingFolders
    self.observe = observe
  }

  /// Brings every store to its end. Cancelling the task stops within seconds; running again goes
  /// on.
  ///
  /// - Throws: ``PipelineError`` and what the state folder gives; no store was opened then.
  public func run() async throws -> PipelineSummary {
    let start = ContinuousClock.now
    try DurableFile.makeFolder(state)
    try Folder(state).checkPrivate()
    let lock = try FileLock(acquiring: state.appending("lock"))
    let ledger = try PipelineLedger(folder: state, now: Date().timeIntervalSince1970)
    let search = StoreSearch(pipeline, state: state)
    let findings = try await onOwnThread { try search.run() }
    let settings = try settingsDigest()
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
    await migrate(findings, ledger, settings, hosts, &summary)
    await hosts.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    if summary.pending == 0 { try ledger.finish() }
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
    for store in findings.stores {
      if Task.isCancelled {
        summary.pending += 1
        continue
      }
      let result: MigrationResult
      if let refusal = Self.refusal(of: store) {
        result = refusal
      } else {
        result = await hosts.perform(task(store, workers: 1, settings, isPlan: true))
      }
      summary.count(result)
      observe(.result(store, result))
    }
    await hosts.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    return summary
  }
}

// One store after the other, and side by side.
extension PipelineRun {
  private func migrate(
    _ findings: StoreSearch.Findings, _ ledger: PipelineLedger, _ settings: String,
    _ hosts: StoreHosts, _ summary: inout PipelineSummary
  ) async {
    summary.found = findings.stores.count
    tellUnreadable(findings, &summary)
    await withTaskGroup(of: Outcome.self) { group in
      var free = pool.workerCount
      for (place, store) in findings.stores.enumerated() {
        let workers = self.workers(for: store)
        while free < workers, let outcome = await group.next() {
          free += outcome.workers
          take(outcome, &summary)
        }
        guard !Task.isCancelled, summary.lacksWorkers != true else {
          summary.pending += findings.stores.count - place
          break
        }
        free -= workers
        group.addTask {
          var outcome = await migrate(store, workers: workers, ledger, settings, hosts)
          outcome.workers = workers
          return outcome
        }
      }
      for await outcome in group { take(outcome, &summary) }
    }
  }

  private struct Outcome: Sendable {
    var store: FoundStore
    var result: MigrationResult
    /// Migrated before this start.
    var isEarlier = false
    var workers = 0
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

  /// One worker for each shard's worth of bytes.
  private func workers(for store: FoundStore) -> Int {
    min(pool.workerCount, Int(clamping: store.bytes / max(1, template.shardBytes)) + 1)
  }

  private func migrate(
    _ store: FoundStore, workers: Int, _ ledger: PipelineLedger, _ settings: String,
    _ hosts: StoreHosts
  ) async -> Outcome {
    if let refusal = Self.refusal(of: store) { return Outcome(store: store, result: refusal) }
    let request = request(for: store)
    let known = ledger.entry(of: store.path).flatMap { $0.verdict == .migrated ? $0 : nil }
    if let output = request.output, (try? FileKind(at: output)) == .regular, let known,
      known.settings == settings, known.output == output.string,
      known.identity == (try? StoreFiles(store.path).identity().name)
    {
      // A run that was killed between the record and the end leaves its directory.
      if (try? directory(of: store).exists) == true { try? directory(of: store).remove() }
      return Outcome(
        store: store, result: Self.earlier(known, "Its output was written before"),
        isEarlier: true)
    }
    let before = try? StoreFiles(store.path).identity()
    let observe = observe
    let result = await hosts.perform(
      task(store, workers: workers, settings),
      record: { result, identity in
        guard result.verdict != .pending, result.verdict != .sameModel else { return }
        try ledger.record(
          .init(result, of: store, run: ledger.run, settings, identity ?? before?.name))
      },
      observe: { observe(.store(store, $0)) })
    if result.verdict == .sameModel, let known, known.run == ledger.run {
      return Outcome(
        store: store, result: Self.earlier(known, "An earlier start of this run migrated it"),
        isEarlier: true)
    }
    return Outcome(store: store, result: result)
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
  /// - Parameter record: Called with the result and the name of the state of the store that was
  ///   planned for, before the store's run directory goes.
  func migrate(
    _ store: FoundStore, workers: Int,
    record: @escaping @Sendable (MigrationResult, String?) throws -> Void,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    let directory = directory(of: store)
    var pool = pool
    pool.workerCount = workers
    var settings = StoreRun.Settings(
      pool: pool,
      record: { result in
        try record(result, (try? PlanFile.sourceIdentity(of: directory))?.name)
      })
    // A process that coordinated the store before ours was killed may be about to end.
    settings.lockPatienceSeconds = 10
    return await StoreRun(
      request(for: store), directory: directory, settings: settings, observe: observe
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
  private static func name(of store: FilePath) -> String {
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
      digest.update(try version.model.modelCacheBytes())
    }
    for mapping in template.mappings { add(try mapping.document.text()) }
    if let digest = template.ownCodeDigest { add(digest) }
    return Hexadecimal.text(of: digest.finish())
  }
}

extension PipelineLedger.Entry {
  init(
    _ result: MigrationResult, of store: FoundStore, run: String, _ settings: String,
    _ identity: String?
  ) {
    self.init(
      run: run, store: store.path.string, verdict: result.verdict,
      time: Date().timeIntervalSince1970, settings: settings, identity: identity,
      source: result.source, destination: result.destination, output: result.output,
      backup: result.backup, rows: result.rows,
      losses: result.losses.isEmpty ? nil : result.losses, code: result.code,
      message: result.reasons.first?.message)
  }
}
