import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import Synchronization
import SystemPackage

extension LedgerAttempt {
  /// 20. A store with more reasons has them in the output of the run.
  private static let mostReasons = 20

  /// - Parameters:
  ///   - started: Like `ended`, seconds since 1970-01-01 UTC.
  ///   - lane: Which of the run's processes coordinated the store.
  init(
    _ result: MigrationResult, of store: FoundStore, run: String, started: Double, ended: Double,
    lane: Int?
  ) {
    // A migration has its notes in the output of the run, but who may open the store is asked for months later.
    // Of a store that stays as it is they are all there is.
    let notes =
      result.verdict == .sameModel
      ? result.notes : result.lostRights?.notes(of: result.output ?? result.store) ?? []
    let reasons =
      result.reasons.map(RunReport.Reason.init)
      + notes.map { RunReport.Reason(reason: RunReport.Reason.note, message: $0) }
    self.init(
      run: run, store: store.path.string, started: started, ended: ended,
      verdict: result.verdict.rawValue, sourceBytes: store.bytes, code: result.code,
      reasons: Array(reasons.prefix(Self.mostReasons)),
      losses: result.losses.map(RunReport.Loss.init),
      stages: (result.stages ?? []).map(RunReport.Stage.init))
    source = result.source
    destination = result.destination
    rows = result.rows
    if result.verdict == .migrated, let output = result.output {
      destinationBytes = try? FileMark(FilePath(output))?.size
    }
    digest = result.digest
    identity = result.finalIdentity
    output = result.output
    self.lane = lane
    host = MachineName.text
    // What a plan was not read for is asked of the files.
    sourceUUID = result.sourceUUID ?? result.backup.flatMap { StoreFiles(FilePath($0)).storedUUID }
    if result.verdict == .migrated {
      uuid = result.storeUUID ?? result.output.flatMap { StoreFiles(FilePath($0)).storedUUID }
    } else {
      uuid = sourceUUID
    }
  }

  /// - Parameter ended: Counts, whatever the facts say.
  init(_ result: MigrationResult, _ facts: StoreFacts, run: String, ended: Double) {
    self.init(
      result, of: facts.store, run: run, started: facts.started, ended: ended, lane: facts.lane)
    if let host = facts.host { self.host = host }
  }
}

extension RunReport.Reason {
  init(_ reason: Reason) {
    self.init(
      reason: reason.reason, entity: reason.entity, property: reason.property,
      count: reason.count, primaryKeys: reason.primaryKeys, message: reason.message)
  }
}

extension RunReport.Loss {
  init(_ loss: Loss) {
    self.init(
      kind: loss.kind.rawValue, entity: loss.entity, property: loss.property, count: loss.count,
      message: loss.message)
  }
}

extension RunReport.Stage {
  init(_ cost: MigrationResult.StageCost) {
    self.init(
      stage: cost.stage, seconds: cost.seconds, rows: cost.rows, bytes: cost.bytes,
      shards: cost.shards)
  }
}

extension RunReport.Counts {
  package init(_ summary: PipelineSummary) {
    self.init(
      found: summary.found, migrated: summary.migrated, sameModel: summary.sameModel,
      refused: summary.refused, needsMapping: summary.needsMapping,
      quarantined: summary.quarantined, failed: summary.failed, pending: summary.pending,
      earlier: summary.earlier ?? 0, snapshots: summary.snapshots ?? 0)
  }
}

extension RunHistory.Outcome {
  /// - Parameter mark: The name of the state of the store's files before it was tried.
  init(_ result: MigrationResult, mark: String, settings: String) {
    switch result.verdict {
    case .migrated, .sameModel: self = .well
    case .refused, .failed:
      let reason = result.reasons.first?.reason ?? result.verdict.rawValue
      switch result.ending {
      // Links and other unusual files lie beside the store, or on the way to it.
      case .badInput where reason == "link" || reason == "unusual-file": self = .passing
      case .done, .badInput, .fatal:
        self = .failed(reason: reason, mark: mark, settings: settings)
      // What is amiss is not in the store, which looks the same when it is put right.
      case .cannotCreateOutput, .inputOutput, .configuration, .usage: self = .passing
      case .resumable, .locked, .engineUnavailable: self = .passing
      }
    // A mapping model changes the settings, and passing reasons pass.
    case .needsMapping, .pending, .quarantined: self = .passing
    }
  }
}

/// The name of this machine, as the kernel has it.
enum MachineName {
  static let text: String = {
    var name = utsname()
    guard uname(&name) == 0 else { return "" }
    return withUnsafeBytes(of: &name.nodename) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
  }()
}

/// Numbers for what goes on side by side: each the lowest that nobody has.
final class LaneNumbers: Sendable {
  private let taken = Mutex<Set<Int>>([])

  func take() -> Int {
    taken.withLock { taken in
      var number = 0
      while taken.contains(number) { number += 1 }
      taken.insert(number)
      return number
    }
  }

  func giveBack(_ number: Int) { taken.withLock { _ = $0.remove(number) } }
}
