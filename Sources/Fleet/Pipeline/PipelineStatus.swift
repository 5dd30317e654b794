import GodwitLedger

/// Where a pipeline stands: `godwit status`.
///
/// Fields may be added to and never change meaning.
public struct PipelineStatus: Codable, Sendable {
  public enum State: String, Codable, Sendable {
    /// No run is known.
    case never
    case running
    /// The last run was killed. The same command resumes it.
    case interrupted
    case ended
  }

  public private(set) var event = "status"
  public var pipeline: String
  public var state: State
  public var run: RunReport.Run?
  /// Of that run, as far as it has come.
  public var counts = RunReport.Counts()
  /// What was not migrated, by reason, the most frequent first.
  public var failures: [RunReport.Failure] = []
  public var quarantined = 0
  /// Stores that were put back since that run.
  public var rolledBack = 0
  /// Backups of all runs that are there, and their bytes.
  public var backups = 0
  public var backupBytes: Int64 = 0

  /// Stores that were found and not migrated.
  public var notMigrated: Int { counts.found - counts.migrated - counts.sameModel + rolledBack }

  /// - Throws: ``LedgerError``.
  public init(_ pipeline: Pipeline, _ places: PipelinePlaces) throws {
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
    state = try last.ended != nil ? .ended : places.isInUse ? .running : .interrupted
    rolledBack = try ledger.storesRestored(since: last.name)
    failures = try ledger.failures(of: last.name) + RunReport.failures(quarantine)
  }
}
