import Glibc
import GodwitDurableFiles
import GodwitLedger
import GodwitPlanning
import SystemPackage

extension PipelineLedger {
  /// A line. Fields may be added to and never change meaning.
  struct Entry: Codable, Sendable, Equatable {
    var run: String
    var store: String
    var verdict: MigrationResult.Verdict
    /// Seconds since 1970-01-01 UTC.
    var time: Double
    /// Everything but the store that its destination depends on: ``PipelineRun/settingsDigest``.
    var settings: String
    /// The name of the state of the store that was migrated.
    var identity: String?
    /// The name of the state in which a store of the destination's version was left at its place.
    var finalIdentity: String?
    var source: String?
    var destination: String?
    var output: String?
    var backup: String?
    var rows: Int64?
    var losses: [Loss]?
    /// How many objects were set aside, and the store that they are in; nil where none were.
    var setAside: Int64?
    var rejects: String?
    var code: Int?
    /// Of the reasons, the first.
    var reason: String?
    var message: String?
    /// What a person should know of a store of the destination's version; nil for nothing.
    var notes: [String]?
    /// How often it failed in the run; nil for once.
    var failures: Int?
    /// Of a failure: whether what is amiss is not in the store, so that it is not counted; nil for no.
    var passes: Bool?
    /// Of a failure: ``StoreFacts/mark``.
    var mark: String?
    /// ``PipelineLedger/ended`` when it had its result; nil where the store is to be looked at again when it is
    /// another since.
    var ended: Int?
    /// What the starts of a run on a cluster have come to with it while it is pending.
    var tries: Tries?
    /// The name of the state in which the store was here when a result of another machine said otherwise.
    var otherState: String?
    /// What the ledger is to have of it, until it is sure to have it.
    var attempt: LedgerAttempt?
    var backupRecord: LedgerBackup?
    /// Of an output beside its store; nil from earlier versions.
    var outputMark: OutputMark?
    /// Whether external data lay beside that output; nil from earlier versions.
    var outputHasFiles: Bool?

    /// A store that was tried on a cluster and stays as it is. Each start of the run begins from there, until one
    /// comes to its end.
    struct Tries: Codable, Sendable, Equatable {
      var run: String
      /// ``PipelineLedger/ended``.
      var ended: Int
      /// ``PipelineRun/requestDigest(_:)``.
      var request: String
      var count: Int
      /// When the first began, in seconds since 1970-01-01 UTC.
      var since: Double
      /// Why it is not tried again; nothing for a store of which there is a snapshot, nil where it is tried again.
      var end: [Reason]?
    }

    /// What is left once the ledger has the rest.
    var withoutHistory: Entry {
      var entry = self
      (entry.attempt, entry.backupRecord) = (nil, nil)
      return entry
    }

    func add(to ledger: Ledger) throws {
      guard let attempt else { return }
      try ledger.add(attempt)
      if let backupRecord { try ledger.add(backupRecord) }
    }

    /// True for a store that is there, and as it was left; and for an output that lies beside it.
    var isAskedForAgain: Bool {
      get throws {
        let isOutput = verdict == .migrated && backup == nil
        return try (isOutput || finalIdentity != nil) && FileKind(at: FilePath(store)) != .none
      }
    }
  }

  /// By which the file of an output is known again: another file, and each write, has another.
  struct OutputMark: Codable, Sendable, Equatable {
    var inode: UInt64
    /// When the file changed last. A copy may bring the time of its content along, and none of this.
    var seconds: Int64
    var nanoseconds: Int64

    /// Nil where there is none.
    init?(_ output: FilePath) {
      var status = stat()
      guard output.withPlatformString({ lstat($0, &status) }) == 0 else { return nil }
      inode = UInt64(status.st_ino)
      (seconds, nanoseconds) = (Int64(status.st_ctim.tv_sec), Int64(status.st_ctim.tv_nsec))
    }

    /// In seconds since 1970-01-01 UTC.
    var time: Double { Double(seconds) + Double(nanoseconds) / 1e9 }
  }
}
