import SystemPackage

/// A run as the ledger has it.
package struct LedgerRun: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable {
    case run
    /// Puts backups back.
    case rollback
  }

  package var name: String
  package var kind: Kind
  package var pipeline: String
  package var file: String
  /// Seconds since 1970-01-01 UTC, like all times here.
  package var started: Double
  package var ended: Double?
  package var exitCode: Int?
  /// Why the last start ended before it had a result.
  package var message: String?
  package var starts: Int
  package var host: String
  package var workers: Int?
  package var options: [String]
  /// Nil before the stores were counted.
  package var counts: RunReport.Counts?
  /// How long its starts were at work, without the time between them: those that ended, and those that were
  /// killed up to their last store. Nil where it is not known, and while the last one may still be at work.
  package var workedSeconds: Double?

  package init(
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
package struct LedgerAttempt: Codable, Sendable, Equatable {
  package var run: String
  package var store: String
  package var started: Double
  package var ended: Double
  package var verdict: String
  package var code: Int?
  package var reasons: [RunReport.Reason]
  package var losses: [RunReport.Loss]
  package var source: String?
  package var destination: String?
  package var rows: Int64?
  package var sourceBytes: Int64
  package var destinationBytes: Int64?
  package var stages: [RunReport.Stage]
  /// Of the destination's main file.
  package var digest: String?
  /// The name of the state in which the commit left the store.
  package var identity: String?
  package var output: String?
  package var lane: Int?
  package var host: String?
  /// Of the metadata of what the attempt left, and of the store that it found.
  package var uuid: String?
  package var sourceUUID: String?

  package init(
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

  /// Whether it is the store itself that the attempt left, and no file elsewhere.
  package var leavesStore: Bool {
    verdict == "restored" || verdict == "migrated" && (output ?? store) == store
  }
}

/// Inode, size and modification time of a backup's files: what shows that they are still those that
/// were recorded.
package struct BackupMark: Codable, Sendable, Equatable {
  package struct File: Codable, Sendable, Equatable {
    package var inode: UInt64
    package var size: Int64
    package var seconds: Int64
    package var nanoseconds: Int64

    package init(inode: UInt64, size: Int64, seconds: Int64, nanoseconds: Int64) {
      self.inode = inode
      self.size = size
      self.seconds = seconds
      self.nanoseconds = nanoseconds
    }
  }

  package var main: File
  package var wal: File?
  package var journal: File?
  /// How many files of external data it has, and the SHA-256 of their names and sizes; nil for none.
  package var externalFiles = 0
  package var externalDigest: String?
  /// The same of their names, inodes, sizes and modification times; nil, too, in earlier ledgers. A file
  /// that a store shares may be written to under its other name.
  package var externalMarks: String?
  /// Whether the store that took the backup's place had a folder of external data: a migration may make
  /// one. Nil where that was not asked.
  package var isExternalInStore: Bool?

  /// `FileDigest` of the main file and of each log that holds something, separated by spaces. Nil in
  /// earlier ledgers, and where a backup could not be read. A disk changes bytes without a word.
  package var content: String?

  package init(main: File, wal: File? = nil, journal: File? = nil) {
    self.main = main
    self.wal = wal
    self.journal = journal
  }

  /// Whether these are the files that were recorded, as they were then.
  package func matches(_ recorded: BackupMark) -> Bool {
    var found = self
    if recorded.externalMarks == nil { found.externalMarks = nil }
    // Who only reads a backup makes SQLite leave an empty WAL beside it.
    if recorded.wal == nil, found.wal?.size == 0 { found.wal = nil }
    (found.isExternalInStore, found.content) = (recorded.isExternalInStore, recorded.content)
    return found == recorded
  }
}

/// A store that a run put aside.
package struct LedgerBackup: Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable {
    /// What a commit replaced.
    case source
    /// What a rollback replaced.
    case replaced
  }

  package enum State: String, Codable, Sendable, CaseIterable {
    case kept
    /// Its content is the store again, or that of an older one of its run.
    case restored
    /// Its files are being removed.
    case pruning
    /// Its files were removed.
    case pruned
    /// Its files were gone when they were to be removed, or to be recorded: nothing tells by whom.
    case missing
    /// In no ledger: what the row says of it cannot be read, as after damage, or of a later version. Only its
    /// paths, its run and its time are known.
    case unreadable
  }

  package var path: String
  package var folder: String?
  package var store: String
  package var run: String
  package var kind: Kind
  /// Of its files that no store shares.
  package var bytes: Int64
  package var made: Double
  package var marks: BackupMark
  /// The name of the state in which the store was left when this was put aside.
  package var identity: String?
  /// Of that store's main file.
  package var digest: String?
  package var state: State
  package var changed: Double

  package init(
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

extension LedgerBackup {
  /// One of a great many.
  package struct Place: Sendable, Equatable {
    package var key: Int64
    package var bytes: Int64
    package var made: Double
    /// Whether a removal was cut off.
    package var isBeingRemoved: Bool
  }
}

/// What is known of a store that failed since it last ended well.
package struct LedgerQuarantine: Codable, Sendable, Equatable {
  package var store: String
  /// Of the last failure: a word such as `damaged`.
  package var reason: String
  /// The name of the state of its files before that attempt.
  package var mark: String
  /// Digest of the models and mapping models of that attempt.
  package var settings: String
  /// Failures in a row with the same reason, mark and settings.
  package var attempts: Int
  package var first: Double
  package var last: Double
  /// When it was quarantined; nil where it was not.
  package var since: Double?
  /// When a person released it.
  package var released: Double?

  package init(
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
