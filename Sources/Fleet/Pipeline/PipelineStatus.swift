import GodwitLedger

/// Where a pipeline stands: `godwit status`.
///
/// Fields may be added to and never change meaning.
package struct PipelineStatus: Codable, Sendable {
  package enum State: String, Codable, Sendable {
    /// No run is known.
    case never
    case running
    /// The last run was killed. The same command resumes it.
    case interrupted
    /// Its work is on a cluster, and no command follows it.
    case detached
    case ended
  }

  package private(set) var event = "status"
  package var pipeline: String
  package var state: State
  package var run: RunReport.Run?
  /// Of that run, as far as it has come.
  package var counts = RunReport.Counts()
  /// What was not migrated, by reason, the most frequent first.
  package var failures: [RunReport.Failure] = []
  package var quarantined = 0
  /// Stores that were put back since that run.
  package var rolledBack = 0
  /// Backups of all runs that are there, and their bytes.
  package var backups = 0
  package var backupBytes: Int64 = 0
  /// What is on a cluster; nil where nothing is.
  package var cluster: ClusterStatus?

  /// Stores that were found and not migrated.
  package var notMigrated: Int { counts.found - counts.migrated - counts.sameModel + rolledBack }

  /// - Throws: ``LedgerError``.
  package init(_ pipeline: Pipeline, _ places: PipelinePlaces) throws {
    self.pipeline = pipeline.name
    state = .never
    guard let ledger = try PipelineHistory.reading(places) else { return }
    let totals = try ledger.backupTotals()
    (backups, backupBytes) = (totals.count, totals.bytes)
    let quarantine = try ledger.quarantine()
    quarantined = quarantine.count
    guard let last = try ledger.lastRun() else { return }
    run = RunReport.Run(last)
    counts = try ledger.counts(of: last)
    cluster = try ClusterStatus(in: places.state)
    state =
      try last.ended != nil && cluster == nil
      ? .ended : places.isInUse ? .running : cluster != nil ? .detached : .interrupted
    rolledBack = try ledger.storesRestored(since: last.name)
    failures = try ledger.failures(of: last.name) + RunReport.failures(quarantine)
  }
}
