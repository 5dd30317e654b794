import SystemPackage

/// A run as the ledger has it.
public struct LedgerRun: Sendable, Equatable {
  public enum Kind: String, Sendable {
    case run
    /// Puts backups back.
    case rollback
  }

  public var name: String
  public var kind: Kind
  public var pipeline: String
  public var file: String
  /// Seconds since 1970-01-01 UTC, like all times here.
  public var started: Double
  public var ended: Double?
  public var exitCode: Int?
  public var starts: Int
  public var host: String
  public var workers: Int?
  public var options: [String]
  /// Nil before the stores were counted.
  public var counts: RunReport.Counts?

  public init(
    name: String, kind: Kind = .run, pipeline: String, file: String, started: Double,
    ended: Double? = nil, exitCode: Int? = nil, starts: Int = 1, host: String,
    workers: Int? = nil, options: [String] = [], counts: RunReport.Counts? = nil
  ) {
    self.name = name
    self.kind = kind
    self.pipeline = pipeline
    self.file = file
    self.started = started
    self.ended = ended
    self.exitCode = exitCode
    self.starts = starts
    self.host = host
    self.workers = workers
    self.options = options
    self.counts = counts
  }
}

/// One time that a store was tried.
public struct LedgerAttempt: Codable, Sendable, Equatable {
  public var run: String
  public var store: String
  public var started: Double
  public var ended: Double
  public var verdict: String
  public var code: Int?
  public var reasons: [RunReport.Reason]
  public var losses: [RunReport.Loss]
  public var source: String?
  public var destination: String?
  public var rows: Int64?
  public var sourceBytes: Int64
  public var destinationBytes: Int64?
  public var stages: [RunReport.Stage]
  /// Of the destination's main file.
  public var digest: String?
  /// The name of the state in which the commit left the store.
  public var identity: String?
  public var output: String?
  public var lane: Int?
  public var host: String?
  /// Of the store's metadata.
  public var uuid: String?

  public init(
    run: String, store: String, started: Double, ended: Double, verdict: String,
    sourceBytes: Int64, code: Int? = nil, reasons: [RunReport.Reason] = [],
    losses: [RunReport.Loss] = [], stages: [RunReport.Stage] = []
  ) {
    self.run = run
    self.store = store
    self.started = started
    self.ended = ended
    self.verdict = verdict
    self.sourceBytes = sourceBytes
    self.code = code
    self.reasons = reasons
    self.losses = losses
    self.stages = stages
  }
}

/// Inode, size and modification time of a backup's files: what shows that they are still those that
/// were recorded.
public struct BackupMark: Codable, Sendable, Equatable {
  public struct File: Codable, Sendable, Equatable {
    public var inode: UInt64
    public var size: Int64
    public var seconds: Int64
    public var nanoseconds: Int64

    public init(inode: UInt64, size: Int64, seconds: Int64, nanoseconds: Int64) {
      self.inode = inode
      self.size = size
      self.seconds = seconds
      self.nanoseconds = nanoseconds
    }
  }

  public var main: File
  public var wal: File?
  public var journal: File?
  /// How many files of external data it has, and the SHA-256 of their names and sizes; nil for none.
  public var externalFiles = 0
  public var externalDigest: String?

  public init(main: File, wal: File? = nil, journal: File? = nil) {
    self.main = main
    self.wal = wal
    self.journal = journal
  }
}

/// A store that a run put aside.
public struct LedgerBackup: Codable, Sendable, Equatable {
  public enum Kind: String, Codable, Sendable {
    /// What a commit replaced.
    case source
    /// What a rollback replaced.
    case replaced
  }

  public enum State: String, Codable, Sendable, CaseIterable {
    case kept
    /// Its content is the store again.
    case restored
    /// Its files are being removed.
    case pruning
    /// Its files were removed.
    case pruned
  }

  public var path: String
  public var folder: String?
  public var store: String
  public var run: String
  public var kind: Kind
  /// Of its files that no store shares.
  public var bytes: Int64
  public var made: Double
  public var marks: BackupMark
  /// The name of the state in which the store was left when this was put aside.
  public var identity: String?
  /// Of that store's main file.
  public var digest: String?
  public var state: State
  public var changed: Double

  public init(
    path: String, folder: String? = nil, store: String, run: String, kind: Kind = .source,
    bytes: Int64, made: Double, marks: BackupMark, identity: String? = nil,
    digest: String? = nil, state: State = .kept
  ) {
    self.path = path
    self.folder = folder
    self.store = store
    self.run = run
    self.kind = kind
    self.bytes = bytes
    self.made = made
    self.marks = marks
    self.identity = identity
    self.digest = digest
    self.state = state
    changed = made
  }
}

/// What is known of a store that failed since it last ended well.
public struct LedgerQuarantine: Codable, Sendable, Equatable {
  public var store: String
  /// Of the last failure: a word such as `damaged`.
  public var reason: String
  /// The name of the state of its files before that attempt.
  public var mark: String
  /// Digest of the models and mapping models of that attempt.
  public var settings: String
  /// Failures in a row with the same reason, mark and settings.
  public var attempts: Int
  public var first: Double
  public var last: Double
  /// When it was quarantined; nil where it was not.
  public var since: Double?
  /// When a person released it.
  public var released: Double?

  public init(
    store: String, reason: String, mark: String, settings: String, attempts: Int, first: Double,
    last: Double, since: Double? = nil, released: Double? = nil
  ) {
    self.store = store
    self.reason = reason
    self.mark = mark
    self.settings = settings
    self.attempts = attempts
    self.first = first
    self.last = last
    self.since = since
    self.released = released
  }
}
