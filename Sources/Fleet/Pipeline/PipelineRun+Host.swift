import GodwitCheckpoints
import GodwitDigests
import GodwitWorker
import SystemPackage

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
    settings.record = record
    if workers == 0 { settings.policiesHere = policies }
    // A process that coordinated the store before ours was killed may be about to end.
    settings.lockPatienceSeconds = 10
    return await StoreRun(
      request(for: store), directory: directory(of: store), settings: settings, observe: observe
    ).run()
  }

  func directory(of store: FoundStore) -> RunDirectory {
    RunDirectory(state.appending("stores").appending(Self.name(of: store.path)))
  }
}
