/// One run of a pipeline, as `godwit report` tells it: `--format json` is this value, and the other
/// formats are made from it.
///
/// Fields may be added to and never change meaning. Times are seconds since 1970-01-01 UTC, durations
/// are seconds, and sizes are bytes. No text holds row data.
package struct RunReport: Codable, Sendable, Equatable {
  package static let formatVersion = 1

  package private(set) var event = "report"
  package private(set) var formatVersion = RunReport.formatVersion
  package var pipeline: String
  package var pipelineFile: String
  package var run: Run
  package var counts: Counts
  /// Every store of the pipeline, each as the last start that came to it left it: others than the run's
  /// where that was over some of the stores, or where runs came after it. Nil where it is not known.
  package var fleet: Counts?
  /// How many of the stores that the run migrated a rollback has put back since, and no run has migrated again; nil
  /// for none.
  package var restored: Int?
  package var totals: Totals
  /// The versions that stores were found in, the most frequent first. Only stores that were planned have
  /// one.
  package var sourceVersions: [Version]
  /// The version that stores were migrated to; nil where none was.
  package var destinationVersion: String?
  /// Every store that the run worked on, or found quarantined, in the byte order of their paths; of the last run also
  /// those that it did not come to. Each is as the run's last start left it, whatever became of it since. Stores that
  /// the run found as an earlier one had left them are only counted, unless there is a note of them.
  package var stores: [Store]
  /// What stores failed for, the most frequent first.
  package var failures: [Failure]
  /// What was lost, by entity and property, in the order of their names.
  package var losses: [Loss]
  /// The stages of all stores together, in the order in which they are run.
  package var stages: [Stage]
  /// What each process did when, for a timeline: by ``Span/lane``, then by start.
  package var spans: [Span]
  /// The slowest stores, the slowest first: places in ``stores``, from 0, 20 at most.
  package var slowest: [Int]
  /// The largest stores, the largest first: places in ``stores``, from 0, 20 at most.
  package var largest: [Int]

  /// How many stores ``slowest`` and ``largest`` name.
  package static let mostExamples = 20

  /// The run itself.
  package struct Run: Codable, Sendable, Equatable {
    /// `run`, or `rollback` for one that put backups back.
    package var kind: String
    /// Its name, which is when it first began, such as `20261121T010203`.
    package var name: String
    package var started: Double
    /// When its last start ended, in seconds since 1970-01-01 UTC; nil for one that is under way, or that was killed.
    /// Of a rollback that was killed, when the next one has brought it to its end.
    package var ended: Double?
    /// How long it took, from the first start to the last end, pauses between starts included.
    package var seconds: Double?
    /// How long its starts were at work, without the time between them: those that ended, and those that were
    /// killed up to their last store. Nil while a start is at work, or where one was killed and nothing has begun since.
    package var workedSeconds: Double?
    /// The exit code of its last start; nil for one that is under way, or that was killed.
    package var exitCode: Int?
    /// Why the last start ended before it had a result; nil where it had one.
    package var message: String?
    /// How often it was started.
    package var starts: Int
    package var host: String
    package var workers: Int?
    /// The options of the last start, as the command line had them.
    package var options: [String]

    package init(
      kind: String, name: String, started: Double, ended: Double? = nil,
      seconds: Double? = nil, exitCode: Int? = nil, starts: Int, host: String,
      workers: Int? = nil, options: [String] = []
    ) {
      self.kind = kind
      self.name = name
      self.started = started
      self.ended = ended
      self.seconds = seconds
      workedSeconds = starts == 1 ? seconds : nil
      self.exitCode = exitCode
      self.starts = starts
      self.host = host
      self.workers = workers
      self.options = options
    }
  }

  /// `found` is the sum of the others, but for `earlier` and `snapshots`.
  package struct Counts: Codable, Sendable, Equatable {
    package var found = 0
    package var migrated = 0
    package var sameModel = 0
    package var refused = 0
    package var needsMapping = 0
    package var quarantined = 0
    package var failed = 0
    package var pending = 0
    /// How many of those migrated were so before the last start.
    package var earlier = 0
    /// Of a fleet, stores that a rollback has put back, and no run has taken up since; of a rollback, those
    /// that it put back; of a run, 0.
    package var restored = 0
    /// How many of those migrated are snapshots of stores in use, which stay at their version.
    package var snapshots = 0

    private enum CodingKeys: String, CodingKey {
      case found, migrated, sameModel = "same-model", refused, needsMapping = "needs-mapping"
      case quarantined, failed, pending, earlier, restored, snapshots
    }

    package init(
      found: Int = 0, migrated: Int = 0, sameModel: Int = 0, refused: Int = 0,
      needsMapping: Int = 0, quarantined: Int = 0, failed: Int = 0, pending: Int = 0,
      earlier: Int = 0, restored: Int = 0, snapshots: Int = 0
    ) {
      self.found = found
      self.migrated = migrated
      self.sameModel = sameModel
      self.refused = refused
      self.needsMapping = needsMapping
      self.quarantined = quarantined
      self.failed = failed
      self.pending = pending
      self.earlier = earlier
      self.restored = restored
      self.snapshots = snapshots
    }
  }

  /// Sums over ``stores``; rows and losses are those of the ones that were migrated.
  package struct Totals: Codable, Sendable, Equatable {
    package var rows: Int64 = 0
    package var sourceBytes: Int64 = 0
    package var destinationBytes: Int64 = 0
    package var backups = 0
    package var backupBytes: Int64 = 0
    package var storesWithLosses = 0

    package init(
      rows: Int64 = 0, sourceBytes: Int64 = 0, destinationBytes: Int64 = 0, backups: Int = 0,
      backupBytes: Int64 = 0, storesWithLosses: Int = 0
    ) {
      self.rows = rows
      self.sourceBytes = sourceBytes
      self.destinationBytes = destinationBytes
      self.backups = backups
      self.backupBytes = backupBytes
      self.storesWithLosses = storesWithLosses
    }
  }

  package struct Version: Codable, Sendable, Equatable {
    /// The version's name, or its checksum where no model given has it.
    package var name: String
    package var stores: Int
    package var bytes: Int64

    package init(
      name: String, stores: Int, bytes: Int64
    ) {
      self.name = name
      self.stores = stores
      self.bytes = bytes
    }
  }

  /// What became of a store: its last attempt in the run.
  package struct Store: Codable, Sendable, Equatable {
    package var path: String
    /// `migrated`, `same-model`, `refused`, `needs-mapping`, `quarantined`, `failed`, `pending`; in a
    /// rollback `restored` or `refused`, or `pending` where it was stopped before.
    package var verdict: String
    package var code: Int?
    package var sourceVersion: String?
    package var destinationVersion: String?
    package var started: Double
    package var seconds: Double
    package var rows: Int64?
    package var sourceBytes: Int64
    package var destinationBytes: Int64?
    package var output: String?
    package var backup: String?
    package var reasons: [Reason]
    package var losses: [Loss]
    package var stages: [Stage]
    /// How often the run tried it: 0 for one that it did not try.
    package var attempts: Int

    package init(
      path: String, verdict: String, code: Int? = nil, sourceVersion: String? = nil,
      destinationVersion: String? = nil, started: Double, seconds: Double, rows: Int64? = nil,
      sourceBytes: Int64, destinationBytes: Int64? = nil, output: String? = nil,
      backup: String? = nil, reasons: [Reason] = [], losses: [Loss] = [], stages: [Stage] = [],
      attempts: Int
    ) {
      self.path = path
      self.verdict = verdict
      self.code = code
      self.sourceVersion = sourceVersion
      self.destinationVersion = destinationVersion
      self.started = started
      self.seconds = seconds
      self.rows = rows
      self.sourceBytes = sourceBytes
      self.destinationBytes = destinationBytes
      self.output = output
      self.backup = backup
      self.reasons = reasons
      self.losses = losses
      self.stages = stages
      self.attempts = attempts
    }
  }

  package struct Stage: Codable, Sendable, Equatable {
    /// `copy`, `link`, `validate`, `audit`, `assemble`, `verify`, `commit`, and others.
    package var stage: String
    /// How long it took by the clock; of several stores, their sum.
    package var seconds: Double
    package var rows: Int64
    package var bytes: Int64
    /// When each shard of a store that has several, and workers for them, was being worked on; nil for any other.
    package var shards: [Shard]?

    package init(
      stage: String, seconds: Double, rows: Int64, bytes: Int64, shards: [Shard]? = nil
    ) {
      self.stage = stage
      self.seconds = seconds
      self.rows = rows
      self.bytes = bytes
      self.shards = shards
    }
  }

  /// A store in the hands of a process.
  package struct Span: Codable, Sendable, Equatable {
    /// The process that coordinated the store, from 0.
    package var lane: Int
    /// Which store: its place in ``stores``, from 0.
    package var store: Int
    package var start: Double
    package var end: Double
    package var verdict: String

    package init(
      lane: Int, store: Int, start: Double, end: Double, verdict: String
    ) {
      self.lane = lane
      self.store = store
      self.start = start
      self.end = end
      self.verdict = verdict
    }
  }

  package init(
    pipeline: String, pipelineFile: String, run: Run, counts: Counts = Counts(),
    totals: Totals = Totals(), sourceVersions: [Version] = [],
    destinationVersion: String? = nil, stores: [Store] = [], failures: [Failure] = [],
    losses: [Loss] = [], stages: [Stage] = [], spans: [Span] = [], slowest: [Int] = [],
    largest: [Int] = []
  ) {
    self.pipeline = pipeline
    self.pipelineFile = pipelineFile
    self.run = run
    self.counts = counts
    self.totals = totals
    self.sourceVersions = sourceVersions
    self.destinationVersion = destinationVersion
    self.stores = stores
    self.failures = failures
    self.losses = losses
    self.stages = stages
    self.spans = spans
    self.slowest = slowest
    self.largest = largest
  }
}
