import GodwitDurableFiles
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
  /// Stores of that run by verdict, as far as it has come; nil where none is known.
  package var runCounts: RunReport.Counts?
  /// Every store of the pipeline, each as the last start that came to it left it.
  package var counts = RunReport.Counts()
  /// What was not migrated, by reason, the most frequent first.
  package var failures: [RunReport.Failure] = []
  /// How many are quarantined now; `counts` has those that the last start left out.
  package var quarantined = 0
  /// Why a run that is going on begins nothing: `paused` or `load`; nil where nothing holds it.
  package var held: String?
  /// Stores that were put back, and that no run has come to since: as many as are `restored`.
  package var rolledBack = 0
  /// Stores whose rollback was cut off: the next rollback or run brings it to its end. Nil while one works.
  package var underWay: [String]?
  /// How many backups the ledger lists, of all runs; see `backups list` for those that somebody removed.
  package var backups = 0
  package var backupBytes: Int64 = 0
  /// How far the tasks on a cluster are; nil where there are none.
  package var cluster: ClusterStatus?
  /// Why the scheduler does not answer the run that goes on; nil where it does, or none goes on.
  package var schedulerSilent: String?
  /// Why no run is known; nil where one is.
  package var message: String?
  /// Why more may have happened than is shown; nil where all that is known is.
  package var warning: String?

  /// Stores that were found and not migrated.
  package var notMigrated: Int { counts.found - counts.migrated - counts.sameModel }
  /// Whether somebody should look: stores are not migrated, no run is known, the last one did not end as
  /// one does that has nothing left to do, or more may have happened than is known.
  package var needsAttention: Bool {
    notMigrated > 0 || underWay?.isEmpty == false || state == .never || state == .interrupted
      || (run?.exitCode ?? 0) != 0 || warning != nil
  }

  /// - Throws: ``LedgerError``.
  package init(_ pipeline: Pipeline, _ places: PipelinePlaces) throws {
    self.pipeline = pipeline.name
    state = .never
    message = try Self.whyNever(places)
    var warning: String?
    defer { self.warning = warning }
    guard
      let ledger = try PipelineHistory.reading(
        places, warn: { warning = (warning.map { $0 + " " } ?? "") + $0 })
    else { return }
    let totals = try ledger.backupTotals()
    (backups, backupBytes) = (totals.count, totals.bytes)
    quarantined = try ledger.quarantine().count {
      $0.isQuarantined(after: pipeline.quarantineAfter)
    }
    if try !places.isInUse { underWay = try Rollback.underWay(in: places.state) }
    guard let last = try ledger.lastRun() else { return }
    (run, message) = (RunReport.Run(last), nil)
    let lastCounts = try ledger.counts(of: last)
    runCounts = lastCounts
    cluster = try ClusterStatus(of: places)
    state =
      try last.ended != nil && cluster == nil
      ? .ended : Self.isRunning(places) ? .running : cluster != nil ? .detached : .interrupted
    if let fleet = try ledger.fleet(of: places.owner.file) {
      counts = fleet
      failures = try ledger.failures(ofFleet: places.owner.file)
    } else {
      // Of a ledger that no run has written to since it knows the fleet.
      counts = lastCounts
      counts.restored = min(counts.migrated, try ledger.storesRestored(since: last.name))
      counts.migrated -= counts.restored
      failures = try ledger.failures(of: last.name)
    }
    rolledBack = counts.restored
    guard state == .running || state == .detached else { return }
    // Those are still to come.
    failures.removeAll { $0.verdict == "pending" && $0.reason == LedgerStanding.notBegunReason }
    if let progress = RunProgress.read(in: places.state), progress.run == last.name {
      held = progress.isPaused ? "paused" : progress.held
      // Nobody asks it while a run is detached.
      if state == .running { schedulerSilent = progress.cluster?.silent }
    }
  }

  /// Whether somebody works at a run of the pipeline: a process, or tasks of a cluster.
  package static func goesOn(_ places: PipelinePlaces) throws -> Bool {
    try isRunning(places) || ClusterStatus(of: places) != nil
  }

  /// Whether a process does, and not at a rollback, say, or at a run of another pipeline in the same folder.
  private static func isRunning(_ places: PipelinePlaces) throws -> Bool {
    try places.isInUse && RunState(of: places.owner, in: places.state) == .underWay
  }

  private static func whyNever(_ places: PipelinePlaces) throws -> String {
    let missing =
      try FileKind(following: places.state) == .none
      ? "There is no state folder at \(places.state)."
      : "There is no run of this pipeline in a ledger at \(places.ledger)."
    return missing + " Run the pipeline first, or give the folder of its --state."
  }
}
