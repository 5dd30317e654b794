import GodwitCheckpoints
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// The main file of a backup, by its name.
package struct FoundBackup: Sendable, Equatable {
  package var path: FilePath
  /// The store that it was made of.
  package var store: FilePath
  /// The name in its own: that of the store's run directory, or of the rollback.
  package var run: String
  /// What a commit replaced; else what a rollback did.
  package var kind: LedgerBackup.Kind
  package var bytes: Int64

  /// Nil for a name that neither a commit nor a rollback gives.
  init?(_ name: String, in folder: FilePath, _ bytes: Int64) {
    // Nearly no name of a fleet's folders is one.
    guard name.holds(".godwit-") else { return nil }
    let suffix = ".sqlite"
    let kinds: [(mark: String, kind: LedgerBackup.Kind)] = [
      (".godwit-backup-", .source), (".godwit-rolled-back-", .replaced),
    ]
    guard let own = name.before(suffix)?.utf8,
      let (mark, kind) = kinds.first(where: { own.contains($0.mark.utf8) })
    else { return nil }
    let parts = own.split(separator: mark.utf8, omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    path = folder.appending(name)
    store = folder.appending(parts[0])
    run = parts[1]
    self.kind = kind
    self.bytes = bytes
  }
}

/// Backups beside a pipeline's stores that its ledger does not list: those of a ledger that was lost, or of
/// another one, and of commits that failed under earlier versions. `rollback` and `prune` leave them alone,
/// and nothing else names them.
package enum UnlistedBackups {
  /// - Returns: In the byte order of their paths. None while a run is under way, since what that makes is
  ///   written down a moment later, and none where a root is not there.
  package static func find(
    _ pipeline: Pipeline, _ places: PipelinePlaces, _ ledger: Ledger
  ) throws -> [FoundBackup] {
    guard try !places.isInUse,
      let found = try? StoreSearch(pipeline, state: places.state).run().backups
    else { return [] }
    return
      try found
      .filter { backup in
        if try ledger.lists(backup: backup.path.string) { return false }
        // The next run, or rollback, brings the commit to its end and writes it down.
        let runs = [
          PipelineRun.directory(of: backup.store, in: places.state),
          Rollback.directory(of: backup.store, in: places.state),
        ]
        return try !runs.contains { try DurableFile.exists($0.journal) }
      }
      .sorted { $0.path.string.utf8.lexicographicallyPrecedes($1.path.string.utf8) }
  }
}
