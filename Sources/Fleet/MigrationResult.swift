import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning

/// What became of one store: the last line of `--json`.
///
/// Fields may be added to and never change meaning.
package struct MigrationResult: Codable, Sendable {
  package enum Verdict: String, Codable, Sendable {
    case migrated
    case sameModel = "same-model"
    case refused
    case needsMapping = "needs-mapping"
    /// Not tried: it failed several times for the same reason, and has not changed since.
    case quarantined
    /// Not migrated for a reason that passes: the same command may succeed later.
    case pending
    case failed
  }

  /// How the run ended, for the exit status. Not part of the line.
  package enum Ending: String, Sendable, Codable {
    case done
    /// The store, a model or the mapping is not good enough.
    case badInput
    case cannotCreateOutput
    case inputOutput
    /// Stopped early; running again resumes.
    case resumable
    /// Another run works in the same run directory.
    case locked
    /// Workers cannot be had.
    case engineUnavailable
    case usage
    /// A pipeline's file says what cannot be done.
    case configuration
    /// A mistake of ours.
    case fatal

    /// True when the same command may succeed later, with nothing changed but the time.
    package var passes: Bool {
      switch self {
      case .resumable, .locked, .engineUnavailable: true
      default: false
      }
    }
  }

  /// What one stage did.
  package struct StageCost: Codable, Sendable, Equatable {
    package var stage: String
    package var seconds: Double
    package var rows: Int64
    package var bytes: Int64
    package var units: Int
    /// Units whose checkpoints were there already.
    package var reused: Int
    /// Seconds of processor time of all workers together; nil for what the coordinator does.
    package var processorSeconds: Double?
    /// When each shard was being worked on; nil for a stage of one, and of a small store, whose shards have no
    /// workers. Where there are very many, neighbours are put together.
    package var shards: [RunReport.Shard]?
  }

  package struct Memory: Codable, Sendable, Equatable {
    /// The most that the coordinating process held, in bytes.
    package var coordinator: Int64
    package var worker: Int64
  }

  /// The table of object URIs that was written.
  package struct URITable: Codable, Sendable, Equatable {
    package var path: String
    package var pairs: Int64
  }

  package struct Plan: Codable, Sendable, Equatable {
    package var fingerprint: String
    package var sourceVersion: String?
    package var sourceChecksum: String
    package var destinationVersion: String?
    package var destinationChecksum: String
    package var shards: Int
    /// Bytes of the source's rows, an estimate.
    package var bytes: Int64
    /// Free bytes that the migration needs beside the destination.
    package var diskBytes: Int64?
    /// The destination's tables, and those that are removed; nil where no plan was asked for.
    package var tables: [Table]?
    /// The files of the mapping models; nil where no plan was asked for, or the mapping was inferred.
    package var mappingModels: [String]?
    /// The entity mappings of those files, in the order in which they are run; nil likewise.
    package var mappings: [Mapping]?

    package struct Mapping: Codable, Sendable, Equatable {
      package var name: String
      package var source: String?
      package var destination: String?
      /// The filter or source expression; nil for one that takes every object.
      package var takes: String?
      package var policy: String?
      /// True when objects get new keys.
      package var hasNewKeys: Bool
    }

    package struct Table: Codable, Sendable, Equatable {
      package var name: String
      package var way: String
      package var shards: Int
      package var bytes: Int64
    }
  }

  package private(set) var event = "result"
  package var store: String
  package var verdict: Verdict
  package var code: Int?
  package var reasons: [Reason]
  /// The source's version, by name or else by checksum; nil where there was nothing to plan.
  package var source: String?
  package var destination: String?
  package var output: String?
  /// The path of the source as it was, kept beside the destination that took its place; nil for none.
  package var backup: String?
  /// Objects that break the destination's rules and were left out of it. The rows of the destination
  /// and these are all that the migration made.
  package var setAside: Int64?
  /// The path of the store in which they are noted; nil for none.
  package var rejects: String?
  package var uriTable: URITable?
  /// How often a quarantined store failed; nil for any other.
  package var attempts: Int?
  /// True when work of an earlier run was used.
  package var resumed: Bool?
  /// The steps of a chain of versions, each `SOURCE → DESTINATION: inferred` or its mapping models.
  package var path: [String]?
  package var plan: Plan?
  /// Rows of each destination entity.
  package var counts: [String: Int64]?
  package var rows: Int64?
  package var seconds: Double?
  package var stages: [StageCost]?
  package var peakRSS: Memory?
  package var notes: [String]
  /// What the source has and the destination has not, or would not have.
  package var losses: [Loss] = []
  /// What the destination could not have of the source's owner, group and extended attributes; nil for nothing.
  package var lostRights: LostRights?
  /// Damage that was there before and is carried, or that ended the run.
  package var findings: [StoreFinding]
  package var ending: Ending
  /// The name of the state of the source that was planned for; nil without a plan. Like the next, not
  /// part of the line.
  var sourceIdentity: String?
  /// The name of the state in which a store of the destination's version is at its place.
  var finalIdentity: String?
  /// Of the destination's metadata, and of the source's; nil without a plan.
  var storeUUID: String?
  var sourceUUID: String?
  /// `FileDigest` of the destination's main file, in that state.
  var digest: String?
  /// See `BackupMark`.
  var backupContent: String?
  /// What was put aside, ``backup``: also where somebody has removed it.
  var kept: KeptBackup?
  /// The units that others perform before the store is resumed.
  var handedOut: HandedOut?
  /// True for what an earlier run's commit did, where this run has more to do with the store: it is
  /// written down for itself, and is not what became of the store.
  var isOfEarlierCommit = false
  /// Who began the commit that took the store's place; nil where that is not known.
  var committedBy: CommitJournal.Owner?

  private enum CodingKeys: String, CodingKey {
    case event, store, verdict, code, reasons, source, destination, output, backup
    case setAside, rejects, uriTable, attempts, resumed, path, plan, counts, rows
    case seconds, stages, peakRSS, notes, losses, lostRights, findings
  }

  package init(
    store: String, verdict: Verdict, ending: Ending, code: Int? = nil, reasons: [Reason] = [],
    notes: [String] = [], findings: [StoreFinding] = []
  ) {
    self.store = store
    self.verdict = verdict
    self.ending = ending
    self.code = code
    self.reasons = reasons
    self.notes = notes
    self.findings = findings
  }

  /// What an error means, before or outside a run.
  package init(failing store: String, with error: any Error) {
    let judgement = RetryPolicy.judgement(of: error, about: store)
    self.init(
      store: store, verdict: judgement.verdict, ending: judgement.ending, code: judgement.code,
      reasons: judgement.reasons, findings: judgement.findings)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    store = try container.decode(String.self, forKey: .store)
    verdict = try container.decode(Verdict.self, forKey: .verdict)
    code = try container.decodeIfPresent(Int.self, forKey: .code)
    reasons = try container.decode([Reason].self, forKey: .reasons)
    source = try container.decodeIfPresent(String.self, forKey: .source)
    destination = try container.decodeIfPresent(String.self, forKey: .destination)
    output = try container.decodeIfPresent(String.self, forKey: .output)
    backup = try container.decodeIfPresent(String.self, forKey: .backup)
    setAside = try container.decodeIfPresent(Int64.self, forKey: .setAside)
    rejects = try container.decodeIfPresent(String.self, forKey: .rejects)
    uriTable = try container.decodeIfPresent(URITable.self, forKey: .uriTable)
    attempts = try container.decodeIfPresent(Int.self, forKey: .attempts)
    resumed = try container.decodeIfPresent(Bool.self, forKey: .resumed)
    path = try container.decodeIfPresent([String].self, forKey: .path)
    plan = try container.decodeIfPresent(Plan.self, forKey: .plan)
    counts = try container.decodeIfPresent([String: Int64].self, forKey: .counts)
    rows = try container.decodeIfPresent(Int64.self, forKey: .rows)
    seconds = try container.decodeIfPresent(Double.self, forKey: .seconds)
    stages = try container.decodeIfPresent([StageCost].self, forKey: .stages)
    peakRSS = try container.decodeIfPresent(Memory.self, forKey: .peakRSS)
    notes = try container.decode([String].self, forKey: .notes)
    losses = try container.decodeIfPresent([Loss].self, forKey: .losses) ?? []
    lostRights = try container.decodeIfPresent(LostRights.self, forKey: .lostRights)
    findings = try container.decode([StoreFinding].self, forKey: .findings)
    ending = verdict == .migrated || verdict == .sameModel ? .done : .badInput
  }

  /// The result as a line of JSON, without its line feed.
  package func jsonLine() -> String { JSONLine.text(of: self) }
}
