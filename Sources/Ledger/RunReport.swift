/// One run of a pipeline, as `godwit report` tells it: `--format json` is this value, and the other
/// formats are made from it.
///
/// Fields may be added to and never change meaning. Times are seconds since 1970-01-01 UTC, durations
/// are seconds, and sizes are bytes. No text holds row data.
public struct RunReport: Codable, Sendable, Equatable {
  public static let formatVersion = 1

  public private(set) var event = "report"
  public private(set) var formatVersion = RunReport.formatVersion
  /// The pipeline's name, and the path of its file.
  public var pipeline: String
  public var pipelineFile: String
  public var run: Run
  public var counts: Counts
  public var totals: Totals
  /// The versions that stores were found in, the most frequent first. Only stores that were planned have
  /// one.
  public var sourceVersions: [Version]
  /// The version that stores were migrated to; nil where none was.
  public var destinationVersion: String?
  /// Every store that the run worked on, in the byte order of their paths. Stores that the run found
  /// as an earlier one had left them are only counted.
  public var stores: [Store]
  /// What stores failed for, the most frequent first.
  public var failures: [Failure]
  /// What was lost, by entity and property, in the order of their names.
  public var losses: [Loss]
  /// The stages of all stores together, in the order in which they are run.
  public var stages: [Stage]
  /// What each process did when, for a timeline: by ``Span/lane``, then by start.
  public var spans: [Span]
  /// Places in ``stores``, ``mostExamples`` at most: the slowest first, the largest first.
  public var slowest: [Int]
  public var largest: [Int]

  /// How many stores ``slowest`` and ``largest`` name.
  public static let mostExamples = 20

  /// The run itself.
  public struct Run: Codable, Sendable, Equatable {
    /// `run`, or `rollback` for one that put backups back.
    public var kind: String
    /// Its name: when it first began.
    public var name: String
    public var started: Double
    /// Nil for one that is under way, or that was killed.
    public var ended: Double?
    /// From the first start to the last end, pauses between starts included.
    public var seconds: Double?
    /// Nil for one that is under way, or that was killed.
    public var exitCode: Int?
    /// How often it was started.
    public var starts: Int
    public var host: String
    public var workers: Int?
    /// The options of the last start, as the command line had them.
    public var options: [String]

    public init(
      kind: String, name: String, started: Double, ended: Double? = nil,
      seconds: Double? = nil, exitCode: Int? = nil, starts: Int, host: String,
      workers: Int? = nil, options: [String] = []
    ) {
      self.kind = kind
      self.name = name
      self.started = started
      self.ended = ended
      self.seconds = seconds
      self.exitCode = exitCode
      self.starts = starts
      self.host = host
      self.workers = workers
      self.options = options
    }
  }

  /// `found` is the sum of the others, but for `earlier`.
  public struct Counts: Codable, Sendable, Equatable {
    public var found = 0
    public var migrated = 0
    public var sameModel = 0
    public var refused = 0
    public var needsMapping = 0
    public var quarantined = 0
    public var failed = 0
    public var pending = 0
    /// Of those migrated, how many were so before the last start.
    public var earlier = 0

    private enum CodingKeys: String, CodingKey {
      case found, migrated, sameModel = "same-model", refused, needsMapping = "needs-mapping"
      case quarantined, failed, pending, earlier
    }

    public init(
      found: Int = 0, migrated: Int = 0, sameModel: Int = 0, refused: Int = 0,
      needsMapping: Int = 0, quarantined: Int = 0, failed: Int = 0, pending: Int = 0,
      earlier: Int = 0
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
    }
  }

  /// Sums over ``stores``.
  public struct Totals: Codable, Sendable, Equatable {
    public var rows: Int64 = 0
    public var sourceBytes: Int64 = 0
    public var destinationBytes: Int64 = 0
    public var backups = 0
    public var backupBytes: Int64 = 0
    public var storesWithLosses = 0

    public init(
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

  public struct Version: Codable, Sendable, Equatable {
    /// The version's name, or its checksum where no model given has it.
    public var name: String
    public var stores: Int
    public var bytes: Int64

    public init(
      name: String, stores: Int, bytes: Int64
    ) {
      self.name = name
      self.stores = stores
      self.bytes = bytes
    }
  }

  /// What became of a store: its last attempt in the run.
  public struct Store: Codable, Sendable, Equatable {
    public var path: String
    /// `migrated`, `same-model`, `refused`, `needs-mapping`, `quarantined`, `failed`, `pending`; in a
    /// rollback `restored` or `refused`.
    public var verdict: String
    /// Core Data's error code.
    public var code: Int?
    public var sourceVersion: String?
    public var destinationVersion: String?
    public var started: Double
    public var seconds: Double
    public var rows: Int64?
    public var sourceBytes: Int64
    public var destinationBytes: Int64?
    public var output: String?
    public var backup: String?
    public var reasons: [Reason]
    public var losses: [Loss]
    public var stages: [Stage]
    /// How often the run tried it.
    public var attempts: Int

    public init(
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

  public struct Reason: Codable, Sendable, Equatable {
    /// A word such as `damaged` or `in-use`.
    public var reason: String
    public var entity: String?
    public var property: String?
    public var count: Int64?
    /// Of some of the objects.
    public var primaryKeys: [Int64]?
    /// What happened, where, and what to do.
    public var message: String

    public init(
      reason: String, entity: String? = nil, property: String? = nil, count: Int64? = nil,
      primaryKeys: [Int64]? = nil, message: String
    ) {
      self.reason = reason
      self.entity = entity
      self.property = property
      self.count = count
      self.primaryKeys = primaryKeys
      self.message = message
    }
  }

  /// Rows, values or references without a successor.
  public struct Loss: Codable, Sendable, Equatable {
    /// `entity`, `attribute`, `relationship`, `reference`, `shared-target`, `narrowing`, `history`.
    public var kind: String
    public var entity: String?
    public var property: String?
    /// Of all stores together, where it is the report's and not a store's.
    public var count: Int64
    /// How many stores lost it: 1 where it is a store's.
    public var stores: Int
    public var message: String

    public init(
      kind: String, entity: String? = nil, property: String? = nil, count: Int64, stores: Int = 1,
      message: String
    ) {
      self.kind = kind
      self.entity = entity
      self.property = property
      self.count = count
      self.stores = stores
      self.message = message
    }
  }

  public struct Stage: Codable, Sendable, Equatable {
    /// `copy`, `link`, `validate`, `audit`, `assemble`, `verify`, `commit`, and others.
    public var stage: String
    /// By the clock; of several stores, their sum.
    public var seconds: Double
    public var rows: Int64
    public var bytes: Int64

    public init(stage: String, seconds: Double, rows: Int64, bytes: Int64) {
      self.stage = stage
      self.seconds = seconds
      self.rows = rows
      self.bytes = bytes
    }
  }

  /// Stores that failed for one reason.
  public struct Failure: Codable, Sendable, Equatable {
    public var verdict: String
    public var reason: String
    public var code: Int?
    public var count: Int
    /// Paths, three at most.
    public var examples: [String]
    /// Of the first of them.
    public var message: String
    /// What to do about all of them.
    public var advice: String

    public init(
      verdict: String, reason: String, code: Int? = nil, count: Int, examples: [String] = [],
      message: String, advice: String
    ) {
      self.verdict = verdict
      self.reason = reason
      self.code = code
      self.count = count
      self.examples = examples
      self.message = message
      self.advice = advice
    }
  }

  /// A store in the hands of a process.
  public struct Span: Codable, Sendable, Equatable {
    /// From 0: the process that coordinated the store.
    public var lane: Int
    /// A place in ``stores``.
    public var store: Int
    public var start: Double
    public var end: Double
    public var verdict: String

    public init(
      lane: Int, store: Int, start: Double, end: Double, verdict: String
    ) {
      self.lane = lane
      self.store = store
      self.start = start
      self.end = end
      self.verdict = verdict
    }
  }

  public init(
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
