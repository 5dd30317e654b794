import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import SystemPackage

/// Something that happened during a run: a line of `events.jsonl`, and what a display shows.
///
/// Fields may be added to and never change meaning. Which of them an event carries:
///
///     plan           store, units, bytes, fingerprint, resumed
///     plan-discarded message: what became of an earlier run's work
///     stage          stage, units, reused, rows, bytes, work, workers: one begins
///     unit-finished  stage, unit, rows, bytes, seconds, work
///     unit-reused    stage, unit, rows, bytes, work
///     assembly       rows written so far, of those of its stage
///     stage-finished stage, units, reused, rows, bytes, seconds
///     commit-step    step
///     note           message; stage and unit where it is about one
package struct RunEvent: Codable, Sendable, Equatable {
  package enum Name: String, Codable, Sendable {
    case plan
    case planDiscarded = "plan-discarded"
    case stage
    case unitFinished = "unit-finished"
    case unitReused = "unit-reused"
    case assembly
    case stageFinished = "stage-finished"
    case commitStep = "commit-step"
    case note

    /// True for what happens many times in a stage.
    package var isOfUnit: Bool {
      switch self {
      case .unitFinished, .unitReused, .assembly, .commitStep: true
      case .plan, .planDiscarded, .stage, .stageFinished, .note: false
      }
    }
  }

  package var event: Name
  /// When it happened, in seconds since 1970-01-01 UTC.
  package var time: Double?
  package var store: String?
  /// `copy`, `link`, `validate`, `rows` (these three in one), `audit`, `assemble`, `verify`, `soundness`,
  /// `uri-table` or `commit`.
  package var stage: String?
  package var unit: Int?
  package var units: Int?
  package var reused: Int?
  package var rows: Int64?
  package var bytes: Int64?
  package var seconds: Double?
  /// What the time of a unit is expected to be in proportion to; of a stage, the sum over its
  /// units. Rows where relationships are linked, else bytes.
  package var work: Int64?
  /// Processes that share the stage's units.
  package var workers: Int?
  package var step: String?
  package var fingerprint: String?
  package var resumed: Bool?
  package var message: String?

  package init(_ event: Name) { self.event = event }

  init(_ event: Name, stage: String, unit: Int? = nil) {
    self.event = event
    self.stage = stage
    self.unit = unit
  }

  /// The event as a line of JSON, without its line feed.
  package func jsonLine() -> String { JSONLine.text(of: self) }
}

/// JSON on one line, members in the order of their names.
package enum JSONLine {
  package static func text(of value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    guard let data = try? encoder.encode(value) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }
}

/// `events.jsonl` of a run directory: one line an event, appended.
///
/// For people and for later reports. Nothing is decided by it, so it is not made durable, and a
/// line that cannot be written is lost.
struct EventLog {
  private let file: FileDescriptor?

  init(path: FilePath) {
    file = try? RegularFile.open(
      path, .writeOnly, options: [.create, .append],
      permissions: [.ownerReadWrite, .groupRead, .otherRead], isSole: true)
  }

  func append(_ event: RunEvent) {
    _ = try? file?.writeAll(Array((event.jsonLine() + "\n").utf8))
  }

  func close() { try? file?.close() }
}
