import GodwitPersistentStore
import GodwitPlanning

/// What became of one store: the last line of `--json`.
///
/// Fields may be added to and never change meaning.
public struct MigrationResult: Codable, Sendable {
  public enum Verdict: String, Codable, Sendable {
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
  public enum Ending: String, Sendable, Codable {
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
    public var passes: Bool {
      switch self {
      case .resumable, .locked, .engineUnavailable: true
      default: false
      }
    }
  }

  /// What one stage did.
  public struct StageCost: Codable, Sendable, Equatable {
    public var stage: String
    public var seconds: Double
    public var rows: Int64
    public var bytes: Int64
    public var units: Int
    /// Units whose checkpoints were there already.
    public var reused: Int
    /// Of all workers together; nil for what the coordinator does.
    public var processorSeconds: Double?
  }

  public struct Memory: Codable, Sendable, Equatable {
    /// Bytes, each the most that one process held.
    public var coordinator: Int64
    public var worker: Int64
  }

  /// The table of object URIs that was written.
  public struct URITable: Codable, Sendable, Equatable {
    public var path: String
    public var pairs: Int64
  }

  public struct Plan: Codable, Sendable, Equatable {
    public var fingerprint: String
    public var sourceVersion: String?
    public var sourceChecksum: String
    public var destinationVersion: String?
    public var destinationChecksum: String
    public var shards: Int
    /// Row bytes that go through the stages.
    public var bytes: Int64
    /// Free bytes that the migration needs beside the destination.
    public var diskBytes: Int64?
    /// Only where a plan was asked for.
    public var tables: [Table]?
    /// Likewise: the files of the mapping models; none where the mapping was inferred.
    public var mappingModels: [String]?
    /// Likewise: the entity mappings of such files, in the order in which they are run.
    public var mappings: [Mapping]?

    public struct Mapping: Codable, Sendable, Equatable {
      public var name: String
      public var source: String?
      public var destination: String?
      /// The filter or source expression; nil for one that takes every object.
      public var takes: String?
      public var policy: String?
      /// True when objects get new keys.
      public var hasNewKeys: Bool
    }

    public struct Table: Codable, Sendable, Equatable {
      public var name: String
      public var way: String
      public var shards: Int
      public var bytes: Int64
    }
  }

  public private(set) var event = "result"
  public var store: String
  public var verdict: Verdict
  /// Core Data's error code.
  public var code: Int?
  public var reasons: [Reason]
  /// The two versions, by name or else by checksum; nil where there was nothing to plan.
  public var source: String?
  public var destination: String?
  public var output: String?
  /// The source as it was, kept beside the destination that took its place.
  public var backup: String?
  /// Objects that break the destination's rules and were left out of it. The rows of the destination
  /// and these are all that the migration made.
  public var setAside: Int64?
  /// The store in which they are noted.
  public var rejects: String?
  public var uriTable: URITable?
  /// Of a quarantined store: how often it failed.
  public var attempts: Int?
  /// True when work of an earlier run was used.
  public var resumed: Bool?
  /// The steps of a chain of versions, each `SOURCE → DESTINATION: inferred` or its mapping models.
  public var path: [String]?
  public var plan: Plan?
  /// Rows of each destination entity.
  public var counts: [String: Int64]?
  public var rows: Int64?
  public var seconds: Double?
  public var stages: [StageCost]?
  public var peakRSS: Memory?
  public var notes: [String]
  /// What the source has and the destination has not, or would not have.
  public var losses: [Loss] = []
  /// Damage that was there before and is carried, or that ended the run.
  public var findings: [StoreFinding]
  public var ending: Ending
  /// The name of the state of the source that was planned for; nil without a plan. Like the next, not
  /// part of the line.
  var sourceIdentity: String?
  /// The name of the state in which a store of the destination's version is at its place.
  var finalIdentity: String?
  /// Of the source's metadata; nil without a plan.
  var storeUUID: String?
  /// `FileDigest` of the destination's main file, in that state.
  var digest: String?

  private enum CodingKeys: String, CodingKey {
    case event, store, verdict, code, reasons, source, destination, output, backup
    case setAside, rejects, uriTable, attempts, resumed, path, plan, counts, rows
    case seconds, stages, peakRSS, notes, losses, findings
  }

  public init(
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
  public init(failing store: String, with error: any Error) {
    let judgement = RetryPolicy.judgement(of: error)
    self.init(
      store: store, verdict: judgement.verdict, ending: judgement.ending, code: judgement.code,
      reasons: judgement.reasons, findings: judgement.findings)
  }

  public init(from decoder: any Decoder) throws {
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
    findings = try container.decode([StoreFinding].self, forKey: .findings)
    ending = verdict == .migrated || verdict == .sameModel ? .done : .badInput
  }

  /// The result as a line of JSON, without its line feed.
  public func jsonLine() -> String { JSONLine.text(of: self) }
}
