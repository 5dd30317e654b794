import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import GodwitWorker
import SystemPackage

// In the process that coordinates a store.
extension PipelineRun {
  /// Migrates one store.
  ///
  /// - Parameter record: Called with the result before the store's run directory goes.
  func migrate(
    _ store: FoundStore, _ task: StoreTask, policies: PolicyRegistry,
    record: @escaping @Sendable (MigrationResult) throws -> Void,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    var settings = settings(task, policies: policies, record: record)
    settings.discardsProgress = task.isFresh
    settings.handsOut = task.handsOut
    return await StoreRun(
      request(for: store), directory: directory(of: store), settings: settings, observe: observe
    ).run()
  }

  func settings(
    _ task: StoreTask, policies: PolicyRegistry,
    record: @escaping @Sendable (MigrationResult) throws -> Void
  ) -> StoreRun.Settings {
    var pool = pool
    pool.workerCount = max(1, task.workers)
    var settings = StoreRun.Settings(pool: pool)
    settings.record = { result in
      var result = result
      if result.verdict == .migrated, let output = result.output {
        try result.readDigests(of: StoreFiles(FilePath(output)))
      }
      try record(result)
    }
    settings.owner = task.owner
    settings.leases = [task.lease, task.permit].compactMap { $0 }
    if task.workers == 0 { settings.policiesHere = policies }
    // A process that coordinated the store before ours was killed may be about to end.
    settings.lockPatienceSeconds = 10
    return settings
  }

  func directory(of store: FoundStore) -> RunDirectory {
    Self.directory(of: store.path, in: state)
  }

  static func directory(of store: FilePath, in state: FilePath) -> RunDirectory {
    RunDirectory(state.appending("stores").appending(name(of: store)))
  }
}

/// Which version a store seems to be of, by its main file alone: quick, and no verdict.
struct StoreLook {
  /// Names the version in ``MigrationResult/source``; nothing where nobody can tell.
  let result: MigrationResult
  /// The version hashes; nil where there is no such file.
  private(set) var hashes: [EntityName: VersionHash]?

  init(_ store: FilePath) {
    var result = MigrationResult(store: store.string, verdict: .sameModel, ending: .done)
    if let connection = try? Connection(path: store.string, mode: .immutable),
      let metadata = try? StoreMetadata(connection)
    {
      var digest = SHA256()
      let hashes = metadata.versionHashes
      for name in metadata.hashedEntities {
        digest.update(Array(name.rawValue.utf8))
        digest.update(hashes[name]?.bytes ?? [])
      }
      result.source = Hexadecimal.text(of: digest.finish())
      self.hashes = hashes
    }
    self.result = result
  }

  /// Whether the store is of one of these versions, and of all its entities.
  func isOf(_ versions: [ModelVersion]) -> Bool {
    guard let hashes else { return false }
    return versions.contains { (try? $0.hierarchy())?.versionHashes == hashes }
  }
}
