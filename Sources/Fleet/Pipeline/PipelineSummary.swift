/// What became of a pipeline's stores: the last line of `godwit run --json`.
///
/// `found` is the sum of the counts from `migrated` to `pending`. Fields may be added to and never
/// change meaning.
package struct PipelineSummary: Codable, Sendable, Equatable {
  package private(set) var event = "summary"
  package var pipeline: String
  /// The run's name; a run that was interrupted keeps it. Nil for a plan.
  package var run: String?
  package var resumed: Bool?
  package var found = 0
  package var migrated = 0
  package var sameModel = 0
  package var refused = 0
  package var needsMapping = 0
  /// How many stores are quarantined and were not tried, see `godwit quarantine`.
  package var quarantined = 0
  package var failed = 0
  /// How many stores are not done yet, or not because of something that passes: run again.
  package var pending = 0
  /// How many of those migrated were so before this start.
  package var earlier: Int?
  /// How many of those migrated are snapshots of stores in use, which stay at their version; nil for none.
  package var snapshots: Int?
  package var seconds: Double?
  /// When this start ended, as the ledger is told, in seconds since 1970-01-01 UTC. Not part of the line.
  package var ended: Double?
  /// True where no worker can be had, and no store was tried any more.
  package var lacksWorkers: Bool?
  /// True where the work is submitted, and goes on without this command.
  package var detached: Bool?
  /// Tasks that got lost on the cluster and were submitted again; nil for a run on this machine.
  package var resubmitted: Int?
  /// How many of the resubmitted tasks had never begun.
  package var neverStarted: Int?
  /// Tasks that were begun again without a further submission, by the scheduler or by hand.
  package var restarted: Int?
  /// Backups that the run removed, by the key `backups`.
  package var prunedBackups: Int?
  /// Paths and patterns of a selection that mean none of the pipeline's stores; nil for none.
  package var unknown: Int?
  /// Why the run ended before its last store: `window` or `failure-budget`. Nil for a run that was
  /// stopped by a signal, too.
  package var stopped: String?
  /// Why the run ended before its last store, as a sentence; nil where ``stopped`` is nil.
  package var message: String?
  /// The canary wave in which the run ended, from 1; nil without waves.
  package var wave: Int?
  package var waves: Int?
  /// The stores that did not end well, by reason.
  package var reasons: [ReasonGroups.Group]?

  package init(pipeline: String) { self.pipeline = pipeline }

  private enum CodingKeys: String, CodingKey {
    case event, pipeline, run, resumed, found, migrated, sameModel = "same-model", refused
    case needsMapping = "needs-mapping", quarantined, failed, pending, earlier, snapshots, seconds,
      lacksWorkers, detached, restarted, resubmitted, neverStarted = "never-started"
    case prunedBackups = "pruned-backups", unknown, stopped, message, wave, waves, reasons
  }

  /// Counts what became of a store.
  package mutating func count(_ result: MigrationResult) {
    switch result.verdict {
    case .migrated: migrated += 1
    case .sameModel: sameModel += 1
    case .refused: refused += 1
    case .needsMapping: needsMapping += 1
    case .quarantined: quarantined += 1
    case .pending: pending += 1
    case .failed: failed += 1
    }
    if result.isSnapshot { snapshots = (snapshots ?? 0) + 1 }
    if result.ending == .engineUnavailable { lacksWorkers = true }
  }

  /// Takes how a run came to its end.
  mutating func take(_ flow: RunFlow) {
    if let stop = flow.stop, stop != .noWorkers { (stopped, message) = (stop.word, stop.message) }
    if flow.waves > 1 { (wave, waves) = (flow.queue.wave + 1, flow.waves) }
  }

  /// The stores that ended well.
  package var done: Int { migrated + sameModel }
  /// The stores that ended otherwise.
  package var notDone: Int { refused + needsMapping + quarantined + failed }

  /// Counts every store that was found and not counted as one that is not done yet.
  package mutating func countTheRest() { pending += found - done - notDone - pending }
}

/// What happens in a pipeline's run, for whoever watches.
package enum PipelineEvent: Sendable {
  /// The stores are known.
  case found(PipelineStart)
  case store(FoundStore, RunEvent)
  case result(FoundStore?, MigrationResult)
  /// Something about the run as a whole that a person may want to know.
  case note(String)
  /// Something about the run as a whole that a person has to know, even one who wants to hear of nothing
  /// else.
  case warning(String)
  /// What became of a store that is tried again later.
  case later(FoundStore, MigrationResult)
  /// A canary wave begins.
  case wave(WaveStart)
  /// About twice a second.
  case progress(RunProgress)
  /// Tasks were submitted to a cluster.
  case submitted(ClusterSubmission)
}

/// A line of `godwit run --json` where a canary wave begins.
package struct WaveStart: Codable, Sendable, Equatable {
  package private(set) var event = "wave"
  /// The number of the wave, from 1.
  package var wave: Int
  package var waves: Int
  package var stores: Int
}

/// The first line of `godwit run --json`.
package struct PipelineStart: Codable, Sendable {
  package private(set) var event = "pipeline"
  package var pipeline: String
  package var run: String?
  package var resumed: Bool?
  package var stores: Int
  /// The size of the stores, each with its WAL, in bytes.
  package var bytes: Int64
  /// Symbolic links that could lead to stores, and that are not followed.
  package var links: Int
  /// FIFOs, sockets and devices that `stores.include` means, and that are not stores; nil for none.
  package var special: Int?
  /// Paths of a list of stores that are none of the pipeline's; nil for none.
  package var unknown: [String]?
  /// Patterns of a selection that mean none of the pipeline's stores; nil for none.
  package var unmatched: [String]?
  /// Files that a pattern of the pipeline names outright, and that are taken for files of SQLite's or Godwit's
  /// beside a store, by their names; nil for none.
  package var leftOut: [String]?
  /// Patterns of `stores.include` that mean no file below any root, where others do; nil for none.
  package var idlePatterns: [String]?
  /// Roots without a file that `stores.include` means, where others have some; nil for none.
  package var emptyRoots: [String]?
  /// How many stores the pipeline has, where the run takes up only some; nil where it takes up all.
  package var all: Int?

  package init(
    pipeline: String, run: String? = nil, resumed: Bool? = nil, stores: Int, bytes: Int64,
    links: Int, special: Int? = nil, unknown: [String]? = nil, unmatched: [String]? = nil,
    leftOut: [String]? = nil, idlePatterns: [String]? = nil, emptyRoots: [String]? = nil,
    all: Int? = nil
  ) {
    (self.pipeline, self.run, self.resumed) = (pipeline, run, resumed)
    (self.stores, self.bytes, self.links) = (stores, bytes, links)
    (self.special, self.unknown, self.unmatched) = (special, unknown, unmatched)
    (self.leftOut, self.all) = (leftOut, all)
    (self.idlePatterns, self.emptyRoots) = (idlePatterns, emptyRoots)
  }
}
