import Foundation
import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning

/// One line between coordinator and worker, JSON both ways.
///
///     → {"open":"<run directory>"}                              once, first
///     → {"open":"<run directory>","assembled":"<path>"}         again, before verify tasks
///     → {"task":{"stage":"copy","unit":7}}
///     ← {"finished":{"stage":"copy","unit":7,"rows":…,"bytes":…,"seconds":…,"peakRSS":…}}
///     ← {"failed":{"stage":"copy","unit":7,"error":{"kind":"damaged","message":…}}}
///     ← {"beat":true}                                           at any time: it gets on
///
/// Tasks are answered in the order in which they came. The checkpoint is on disk before the answer.
package enum WorkerMessage: Sendable, Equatable {
  case open(run: String, assembled: String?)
  case task(WorkerTask)
  case finished(FinishedTask)
  case failed(FailedTask)
  case beat
}

/// One stage of one unit: a shard, or for `audit` a place in ``MigrationPlan/audits``.
package struct WorkerTask: Codable, Sendable, Hashable {
  package var stage: Stage
  package var unit: Int

  package init(stage: Stage, unit: Int) {
    self.stage = stage
    self.unit = unit
  }
}

/// What a finished task cost and found.
package struct FinishedTask: Codable, Sendable, Equatable {
  package var stage: Stage
  package var unit: Int
  package var rows: Int64
  /// Bytes of row data that went through.
  package var bytes: Int64
  package var seconds: Double
  /// How long a processor worked for it: less than ``seconds`` where others had it.
  package var processorSeconds: Double?
  /// The most memory that the worker process has held so far, in bytes; 0 where the task was done in the process
  /// that wanted it, which asks for its own.
  package var peakRSS: Int64 = 0
  /// What the summary of the checkpoint says, so that nobody needs to open it. Nil for nothing.
  package var findings: [StoreFinding]?
  /// Likewise.
  package var losses: [Loss]?
  /// What each stage of a pass over rows did; nil where the task is one stage.
  package var parts: [StagePart]?

  package var task: WorkerTask { WorkerTask(stage: stage, unit: unit) }
}

/// One stage of a task that did several.
package struct StagePart: Codable, Sendable, Equatable {
  package var stage: Stage
  package var rows: Int64
  /// The stage's share of the task's time, from 0 to 1.
  package var share: Double
  package var findings: [StoreFinding]?

  package init(stage: Stage, rows: Int64, share: Double, findings: [StoreFinding]) {
    self.stage = stage
    self.rows = rows
    self.share = share
    self.findings = findings.isEmpty ? nil : findings
  }
}

extension ShardSummary {
  /// What the stages of a pass over rows did.
  package func parts(shares: [Stage: Double] = [:]) -> [StagePart] {
    var parts: [StagePart] = []
    for (stage, part) in [(Stage.copy, copied), (.link, linked)] {
      guard let part else { continue }
      parts.append(
        StagePart(
          stage: stage, rows: part.rows, share: shares[stage] ?? 0, findings: part.findings))
    }
    parts.append(
      StagePart(
        stage: .validate, rows: rows, share: shares[.validate] ?? 0, findings: findings))
    return parts
  }
}

extension FinishedTask {
  /// - Parameter shares: How the time was divided, where the task was a pass over rows.
  init(
    task: WorkerTask, _ summary: ShardSummary, seconds: Double, shares: StageClock?,
    processorSeconds: Double
  ) {
    (stage, unit) = (task.stage, task.unit)
    (rows, bytes) = (summary.rows, summary.bytes)
    self.seconds = seconds
    self.processorSeconds = processorSeconds
    findings = shares == nil && !summary.findings.isEmpty ? summary.findings : nil
    losses = summary.losses?.isEmpty == false ? summary.losses : nil
    parts = shares.map { summary.parts(shares: $0.shares) }
  }
}

/// A task that did not finish, and why.
package struct FailedTask: Error, Codable, Sendable, Equatable {
  package var stage: Stage
  package var unit: Int
  package var error: WorkerFailure

  package var task: WorkerTask { WorkerTask(stage: stage, unit: unit) }

  package init(task: WorkerTask, error: WorkerFailure) {
    stage = task.stage
    unit = task.unit
    self.error = error
  }
}

/// An error as it passes between processes. The coordinator decides what follows.
package struct WorkerFailure: Error, Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable {
    /// The source store is not what it should be.
    case damaged
    /// The mapping model cannot be applied to some row. Nothing is wrong with the store.
    case refused
    case outOfSpace
    /// The volume is read-only, or this user may not write there. A redo is no cure.
    case unwritable
    case io
    /// A file of the run directory is not what was written. A redo cures it.
    case unusable
    /// A mistake of ours.
    case `internal`
  }

  package var kind: Kind
  /// Core Data's error code, where there is one.
  package var code: Int?
  package var message: String
  package var reasons: [Reason]?
  /// Which checkpoint is unusable, where it is one.
  package var checkpoint: CheckpointName?

  package init(
    kind: Kind, code: Int? = nil, message: String, reasons: [Reason]? = nil,
    checkpoint: CheckpointName? = nil
  ) {
    self.kind = kind
    self.code = code
    self.message = message
    self.reasons = reasons
    self.checkpoint = checkpoint
  }
}

extension WorkerMessage {
  /// As the members of one JSON object; exactly one of `open`, `task`, `finished`, `failed`,
  /// `beat`.
  private struct Line: Codable {
    var open: String?
    var assembled: String?
    var task: WorkerTask?
    var finished: FinishedTask?
    var failed: FailedTask?
    var beat: Bool?
  }

  /// The message as a line, its line feed included.
  package func line() throws -> [UInt8] {
    var line = Line()
    switch self {
    case .open(let run, let assembled):
      line.open = run
      line.assembled = assembled
    case .task(let task): line.task = task
    case .finished(let finished): line.finished = finished
    case .failed(let failed): line.failed = failed
    case .beat: line.beat = true
    }
    return [UInt8](try JSONEncoder().encode(line)) + [UInt8(ascii: "\n")]
  }

  /// Reads a line, with or without its line feed; nil when it is none of ours.
  package init?(line bytes: some Sequence<UInt8>) {
    guard let line = try? JSONDecoder().decode(Line.self, from: Data(bytes)) else { return nil }
    if let run = line.open {
      self = .open(run: run, assembled: line.assembled)
    } else if let task = line.task {
      self = .task(task)
    } else if let finished = line.finished {
      self = .finished(finished)
    } else if let failed = line.failed {
      self = .failed(failed)
    } else if line.beat == true {
      self = .beat
    } else {
      return nil
    }
  }
}
