import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
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
/// Stores smaller than a shard are done in that process alone, two for each worker at a time: while
/// one waits for the disk, another has the processor. Large ones go beside them and share the workers,
/// so that neither kind waits for the other.
public struct PipelineRun: Sendable {
  let pipeline: Pipeline
  let template: MigrationRequest
  let pool: WorkerPool.Settings
  let state: FilePath
  let tellsEvents: Bool
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
    try DurableFile.makeFolder(state.appending("stores"))
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
    ledger.close()
    summary.seconds = (ContinuousClock.now - start).inSeconds
    if summary.pending == 0 {
      // The run directories of small stores went without a flush each.
      try DurableFile.syncFolder(state.appending("stores"))
      try ledger.finish()
    }
    _ = consume lock
    return summary
  }
}

// What the stores of a run have in common.
extension PipelineRun {
  var hosts: StoreHosts {
    var arguments = [
      "store-host", pipeline.file.string, "--state", state.string,
      "--losses", template.losses.rawValue,
    ]
    if template.isStoreOffline { arguments.append("--store-is-offline") }
    if tellsEvents { arguments.append("--events") }
    return StoreHosts(executable: pool.executable, arguments: arguments)
  }

  func task(
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
