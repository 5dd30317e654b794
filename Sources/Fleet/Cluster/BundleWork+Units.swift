import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// Units of one store.
extension BundleWork {
  /// Whether rows become here what they become where the store is coordinated.
  func isOfSameBuild(_ run: PipelineRun) throws -> Bool {
    try run.template.ownCodeDigest == manifest.header.code
      && SettingsDigest.areSame(run.settingsDigest(), manifest.header.settings)
  }

  /// Performs units of a stage; what counts as done is their checkpoints.
  ///
  /// - Parameter loss: Says whether somebody has taken the work over, or wants it no more.
  /// - Returns: Whether the bundle is finished: also where a unit cannot be performed, which the
  ///   store's own process finds out again.
  func perform(
    _ units: [Int], _ run: PipelineRun, loss: @escaping @Sendable () -> RunFlow.Stop?
  ) async throws -> Bool {
    guard let work = manifest.header.units else { return true }
    let store = FoundStore(path: FilePath(work.store), root: "/", bytes: 0)
    let directory = RunDirectory(FilePath(work.runDirectory))
    let path = directory.path.lexicallyNormalized()
    guard
      [run.directory(of: store).path, run.snapshotFolder(of: store)].contains(
        where: path.starts(with:))
    else {
      throw ClusterError.badManifest(
        path: manifest.path.string,
        reason: "\(directory.path) is not the run directory of \(work.store)")
    }
    let finished = try directory.finished(work.stage)
    let tasks = units.filter { !finished.contains($0) }
      .map { WorkerTask(stage: work.stage, unit: $0) }
    if tasks.isEmpty { return true }
    try Pace.set(share(run.pipeline.limits.ioBytesPerSecond), in: paceFile)
    var flow = flow(of: store, run)
    look(&flow, run, loss: loss())
    guard flow.stop == nil else { return false }
    return try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask { try await perform(tasks, run, in: directory) }
      group.addTask { try await watch(store, run, loss: loss) }
      defer { group.cancelAll() }
      return try await group.next() ?? false
    }
  }

  private func flow(of store: FoundStore, _ run: PipelineRun) -> RunFlow {
    RunFlow(
      queue: StoreQueue(waves: [[store]], workerCount: manifest.header.workers) { _ in 1 },
      limits: run.pipeline.limits, inUse: .skip, retries: false)
  }

  /// Keeps to the window, to what the operator asks for, and to how long one store may take. Returns when the
  /// work must stop.
  ///
  /// - Returns: Whether nobody else is to try: the store's own process finds out what takes so long.
  private func watch(
    _ store: FoundStore, _ run: PipelineRun, loss: @Sendable () -> RunFlow.Stop?
  ) async throws -> Bool {
    var flow = flow(of: store, run)
    var start = SteadyClock.seconds
    while flow.stop == nil {
      let before = SteadyClock.seconds
      try await Task.sleep(for: .milliseconds(500))
      look(&flow, run, loss: loss())
      if flow.control.isPaused { start += SteadyClock.seconds - before }
      if let limit = run.pipeline.limits.storeTimeoutSeconds, SteadyClock.seconds - start > limit {
        return true
      }
    }
    return false
  }

  /// - Returns: False where the task was cancelled.
  private func perform(
    _ tasks: [WorkerTask], _ run: PipelineRun, in directory: RunDirectory
  ) async throws -> Bool {
    var pool = run.pool
    pool.workerCount = manifest.header.workers
    pool.arguments = ["worker", "--pace", paceFile.string]
    let log = try GroupedLog(at: folder.results(index, attempt))
    defer { log.close() }
    do {
      try await WorkerPool.serving(pool, run: directory.path) { workers in
        for try await finished in await workers.perform(tasks) {
          try Task.checkCancellation()
          // For whoever looks how far it is: the checkpoint is on the disk.
          try await log.append(BundleLine(unit: finished).text, isLasting: false)
        }
        try Task.checkCancellation()
      }
      return true
    } catch let error as FleetError {
      switch error {
      case .task, .workersLost, .workersDie: return true
      default: throw error
      }
    } catch is CancellationError {
      return false
    }
  }
}
