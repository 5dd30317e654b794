import GodwitCheckpoints
import GodwitLedger
import GodwitPlanning
import GodwitWorker

/// What a batch of tasks cost, stage by stage: a pass over rows is copy, link and validate.
struct StageCosts {
  private(set) var costs: [MigrationResult.StageCost]
  /// Seconds that units took in each stage, all workers together.
  private var busy: [String: Double] = [:]
  /// Of the batch, in the order of their ends.
  private var shards: [RunReport.Shard] = []
  private let hasShards: Bool

  /// - Parameter hasWorkers: False where the units are performed here, one after the other: they are too short to tell
  ///   anything, and a fleet has very many.
  init(_ stage: Stage, _ plan: MigrationPlan, units: [Int], hasWorkers: Bool) {
    hasShards = hasWorkers && units.count > 1
    func cost(_ stage: Stage, _ count: Int) -> MigrationResult.StageCost {
      MigrationResult.StageCost(
        stage: stage.rawValue, seconds: 0, rows: 0, bytes: 0, units: count, reused: 0)
    }
    guard stage == .rows else {
      costs = [cost(stage, units.count)]
      return
    }
    let stages: [(Stage, PlanStage)] = [(.copy, .copy), (.link, .link), (.validate, .validate)]
    costs = stages.compactMap { stage, planned in
      let count = plan.units(in: planned).count
      return count == 0 ? nil : cost(stage, count)
    }
  }

  private func place(_ stage: Stage) -> Int? {
    costs.firstIndex { $0.stage == stage.rawValue }
  }

  /// A unit that an earlier run finished.
  mutating func reuse(_ parts: [StagePart]) {
    for part in parts { if let place = place(part.stage) { costs[place].reused += 1 } }
    if parts.isEmpty { costs[0].reused += 1 }
  }

  /// - Parameter now: Seconds since 1970-01-01 UTC, for a unit that has just ended.
  mutating func add(_ finished: FinishedTask, now: Double) {
    if hasShards {
      shards.append(RunReport.Shard(worker: 0, start: now - finished.seconds, end: now))
    }
    let whole = StagePart(
      stage: finished.stage, rows: finished.rows, share: 1, findings: [])
    for part in finished.parts ?? [whole] {
      guard let place = place(part.stage) else { continue }
      costs[place].rows += part.rows
      // Link of a pass writes nothing of its own.
      if part.stage != .link || finished.parts == nil { costs[place].bytes += finished.bytes }
      busy[costs[place].stage, default: 0] += part.share * finished.seconds
      if let seconds = finished.processorSeconds {
        costs[place].processorSeconds =
          (costs[place].processorSeconds ?? 0) + part.share * seconds
      }
    }
  }

  /// Divides the time by the clock among the stages as the units' was.
  mutating func end(after seconds: Double) {
    let sum = busy.values.reduce(0, +)
    for place in costs.indices {
      costs[place].seconds =
        sum > 0
        ? seconds * (busy[costs[place].stage] ?? 0) / sum : seconds / Double(costs.count)
    }
    // A pass over rows is drawn once.
    if let last = costs.indices.last, !shards.isEmpty {
      costs[last].shards = RunReport.Shard.byWorker(shards)
    }
  }
}
