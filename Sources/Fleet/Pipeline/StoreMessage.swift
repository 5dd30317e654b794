import Foundation
import GodwitCommit
import GodwitDurableFiles

/// One line between a pipeline's coordinator and the process that coordinates one store of it, JSON
/// both ways.
///
///     → start      once for each store, when the one before has its result
///     ← event      what happens to the store, where somebody wants to know; in the order in which it
///                  happens
///     ← planned    there is a plan; from here on a small store's process beats
///     ← beat       the process has got on since it last said something
///     ← record     the result, before the run directory goes; before it, perhaps, that of a commit
///                  which an earlier run began
///     → recorded   that it is in the ledger, or why not; only then the store goes on
///     ← result     what became of the store, where that is not what was recorded
///     ← done       it is what was recorded, and what more is known
///     → stop       at any time: the store in hand is to be stopped
enum StoreMessage: Codable {
  case start(StoreTask)
  case recorded(failure: Unrecorded?)
  case stop
  case event(RunEvent)
  case planned
  case beat
  case record(StoreEnd)
  case result(StoreEnd)
  case done(StoreCost)

  /// Why a result could not be written down.
  struct Unrecorded: Codable, Sendable, Equatable {
    var message: String
    /// True where it can be once somebody has made room.
    var isOutOfSpace: Bool

    init(_ error: any Error) {
      message = "\(error)"
      isOutOfSpace = RetryPolicy.ending(of: error).reason == "disk-full"
    }
  }

  /// The message as a line, its line feed included.
  var line: [UInt8] {
    switch self {
    case .planned: Self.plannedText + [UInt8(ascii: "\n")]
    case .recorded(nil): Self.recordedText + [UInt8(ascii: "\n")]
    default: Array((JSONLine.text(of: self) + "\n").utf8)
    }
  }

  // What is said of every store and always the same.
  private static let plannedText = Array(JSONLine.text(of: StoreMessage.planned).utf8)
  private static let recordedText = Array(
    JSONLine.text(of: StoreMessage.recorded(failure: nil)).utf8)

  init?(line: [UInt8]) {
    if line == Self.plannedText {
      self = .planned
      return
    }
    if line == Self.recordedText {
      self = .recorded(failure: nil)
      return
    }
    guard let message = try? JSONDecoder().decode(Self.self, from: Data(line)) else { return nil }
    self = message
  }
}

/// One store, and what is to be done with it.
struct StoreTask: Codable, Sendable {
  var store: String
  var root: String
  var bytes: Int64
  /// Worker processes that the store may have; 0 for one that is done in the process itself.
  var workers: Int
  var work = Work.migrate
  /// ``PipelineRun/settingsDigest()`` of the coordinator: both must have read the same files.
  var settings: String
  /// `MigrationRequest.ownCodeDigest` likewise.
  var code: String?
  /// ``Pipeline/digest`` likewise: it says more than what destinations are made of.
  var pipeline: String
  /// Where the destination of a snapshot or a sample goes, or would go that is planned; nil for a plan of what the
  /// pipeline says.
  var output: String?
  /// Whether the progress of earlier runs is forgotten.
  var isFresh = false
  /// Whether the stages over rows are handed out to others, see ``HandedOut``.
  var handsOut = false
  /// The right of the coordinator: a commit needs it.
  var lease: LeaseToken?
  /// What allows a bundle of work to be done: likewise.
  var permit: LeaseToken?
  /// Whose commit it is.
  var owner: CommitJournal.Owner?

  enum Work: String, Codable, Sendable {
    case migrate
    /// Migrate a snapshot of it.
    case snapshot
    /// Say what would become of it, and change nothing.
    case plan
    /// Say which version it seems to be of.
    case look
    /// Say which of the given versions it is of, by its version hashes.
    case version
    /// Migrate it to a private file, to see how long that takes.
    case sample
  }
}

/// A result with what its line of JSON leaves out.
struct StoreEnd: Codable, Sendable {
  var result: MigrationResult
  var ending: MigrationResult.Ending
  var sourceIdentity: String?
  var finalIdentity: String?
  var storeUUID: String?
  var sourceUUID: String?
  var digest: String?
  var backupContent: String?
  var kept: KeptBackup?
  var handedOut: HandedOut?
  var isOfEarlierCommit: Bool?
  var committedBy: CommitJournal.Owner?

  init(_ result: MigrationResult) {
    self.result = result
    ending = result.ending
    (sourceIdentity, finalIdentity) = (result.sourceIdentity, result.finalIdentity)
    (storeUUID, sourceUUID) = (result.storeUUID, result.sourceUUID)
    (digest, backupContent, kept) = (result.digest, result.backupContent, result.kept)
    handedOut = result.handedOut
    if result.isOfEarlierCommit { isOfEarlierCommit = true }
    committedBy = result.committedBy
  }

  var whole: MigrationResult {
    var result = result
    result.ending = ending
    (result.sourceIdentity, result.finalIdentity) = (sourceIdentity, finalIdentity)
    (result.storeUUID, result.sourceUUID) = (storeUUID, sourceUUID)
    (result.digest, result.backupContent, result.kept) = (digest, backupContent, kept)
    result.handedOut = handedOut
    result.isOfEarlierCommit = isOfEarlierCommit == true
    result.committedBy = committedBy
    return result
  }
}

/// What is known of a result once it has been recorded.
struct StoreCost: Codable, Sendable {
  var seconds: Double?
  var peakRSS: MigrationResult.Memory?
  var notes: [String]

  /// - Returns: Nil where the result is another than the recorded one.
  init?(_ result: MigrationResult, recorded: MigrationResult) {
    guard result.verdict == recorded.verdict, result.ending == recorded.ending,
      result.reasons == recorded.reasons, result.output == recorded.output,
      result.path == recorded.path
    else { return nil }
    (seconds, peakRSS, notes) = (result.seconds, result.peakRSS, result.notes)
  }

  func added(to recorded: MigrationResult) -> MigrationResult {
    var result = recorded
    (result.seconds, result.peakRSS, result.notes) = (seconds, peakRSS, notes)
    return result
  }
}
