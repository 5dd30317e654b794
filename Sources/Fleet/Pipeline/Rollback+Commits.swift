import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// Commits of runs that were killed before they were written down: the ledger does not know of their backups,
// and what is not known cannot be put back.
extension Rollback {
  /// A commit in the run directory of a store.
  private struct CutOffCommit {
    var directory: RunDirectory
    var store: FilePath
    /// When it was last heard of, in seconds since 1970-01-01 UTC.
    var time: Double
    /// Whose it is.
    var run: LedgerRun
    /// Whether that is a run of this pipeline.
    var isOwn: Bool
  }

  /// Brings commits that runs left unrecorded to their end, and writes them down: from then on they are
  /// rolled back like any other.
  ///
  /// - Returns: The stores with which that was not possible; where nothing is to be changed, all of this
  ///   pipeline's.
  func finishCommits(_ ledger: Ledger) async throws -> [End] {
    let folder = places.state.appending("stores")
    guard try FileKind(at: folder) == .folder else { return [] }
    var ends: [End] = []
    for name in try DurableFile.names(in: folder) {
      let directory = RunDirectory(folder.appending(name))
      guard try FileKind(at: directory.path) == .folder, try DurableFile.exists(directory.journal)
      else { continue }
      do {
        guard let commit = try cutOffCommit(in: directory, ledger) else { continue }
        if let end = await finish(commit, ledger) { ends.append(end) }
      } catch {
        ends.append(End(item: Self.refusal(of: directory.path, error)))
      }
    }
    return ends
  }

  /// Nil for a commit that is none of this rollback's.
  private func cutOffCommit(
    in directory: RunDirectory, _ ledger: Ledger
  ) throws -> CutOffCommit? {
    guard let mark = try FileMark(directory.journal),
      let journal = try CommitJournal.read(in: directory),
      // An output takes no store's place.
      journal.kind == .replace
    else { return nil }
    let store = FilePath(journal.store)
    guard PipelineRun.name(of: store) == directory.path.lastComponent?.string else {
      throw CommitError.foreignJournal(
        path: directory.journal, reason: "it is of a commit to \(store)")
    }
    guard selection.stores.isEmpty || selection.stores.contains(store) else { return nil }
    let time = Double(mark.modificationSeconds) + Double(mark.modificationNanoseconds) / 1e9
    // Runs of one state folder follow each other, where the journal does not say whose it is.
    guard let run = try ledger.lastRun(begunBy: time, named: journal.owner?.run) else { return nil }
    let isOwn = places.owner.owns(pipeline: run.pipeline, file: run.file)
    guard isOwn || reach.refusal(of: store) == nil else { return nil }
    return CutOffCommit(directory: directory, store: store, time: time, run: run, isOwn: isOwn)
  }

  /// - Returns: What keeps the store from being put back; nil where the commit is at its end.
  private func finish(_ commit: CutOffCommit, _ ledger: Ledger) async -> End? {
    let store = commit.store.string
    if let reason = reach.refusal(of: commit.store) {
      return End(item: Item(store: store, verdict: .refused, reasons: [reason]))
    }
    do {
      if isDry { return try expectedEnd(of: commit) }
      let kept = try await storeRun(commit).finishCommit { result in
        try write(result, of: commit, to: ledger)
      }
      guard let kept else { return nil }
      var item = Item(store: store, verdict: .refused)
      item.run = commit.run.name
      item.reasons = [
        RunReport.Reason(
          reason: "changed-since", message: MigrationResult.keptBackupNote(commit.store, kept))
      ]
      return End(item: item)
    } catch {
      var item = Self.refusal(of: commit.store, error)
      item.run = commit.run.name
      return End(item: item)
    }
  }

  /// What is said of a commit where nothing is to be changed.
  private func expectedEnd(of commit: CutOffCommit) throws -> End? {
    try StoreSwap.requireStore(ofCommitIn: commit.directory, at: commit.store)
    // With one of a version, only the commit's end tells whether the store is among them.
    guard commit.isOwn, selection.run ?? commit.run.name == commit.run.name,
      selection.version == nil
    else { return nil }
    var item = Item(store: commit.store.string, verdict: .restored)
    item.run = commit.run.name
    item.reasons = [
      RunReport.Reason(
        reason: "note",
        message:
          "Run \(commit.run.name) was killed while it committed \(commit.store). The commit is brought to its end "
          + "first.")
    ]
    return End(item: item)
  }

  private func storeRun(_ commit: CutOffCommit) -> StoreRun {
    var request = MigrationRequest(
      store: commit.store, models: [], destination: nil, output: nil,
      snapshotFolder: commit.directory.snapshot)
    request.isStoreOffline = pipeline.stores.inUse == .offline
    // There is no work for it.
    let pool = WorkerPool.Settings(executable: "", workerCount: 1)
    var settings = StoreRun.Settings(pool: pool)
    settings.leases = leases
    // The process that coordinated the store may be about to end.
    settings.lockPatienceSeconds = 10
    return StoreRun(request, directory: commit.directory, settings: settings)
  }

  private func write(
    _ result: MigrationResult, of commit: CutOffCommit, to ledger: Ledger
  ) throws {
    var result = result
    try result.readDigests(of: StoreFiles(commit.store))
    let bytes = try result.backup.flatMap { try FileMark(FilePath($0))?.size }
    let found = FoundStore(path: commit.store, root: commit.store, bytes: bytes ?? 0)
    let run = commit.run.name
    let attempt = LedgerAttempt(
      result, of: found, run: run, started: commit.time, ended: commit.time, lane: nil)
    let backup = try LedgerBackup(result, of: found, run: run, at: commit.time)
    try ledger.writing {
      try ledger.add(attempt)
      if let backup { try ledger.add(backup) }
    }
  }

  private static func refusal(of store: FilePath, _ error: any Error) -> Item {
    let (_, reason, message) = RetryPolicy.ending(of: error)
    let advice =
      "A run was killed while it committed \(store), and the commit could not be brought to its end. Nothing was "
      + "put back. See to the reason, and roll back again."
    return Item(
      store: store.string, verdict: .refused,
      reasons: [RunReport.Reason(reason: reason, message: "\(message) \(advice)")])
  }
}
