import GodwitCheckpoints
import GodwitPlanning

/// How much a unit of a stage has to do, compared with the stage's other units.
///
/// The link stage reads keys only, so that its time goes by rows; the others move whole rows. What
/// a unit has written tells nothing of that: a unit of the link stage whose rows keep their keys
/// writes nothing at all.
struct StageWork {
  private let stage: Stage
  private let plan: MigrationPlan
  /// Units of each subject, which share its rows evenly.
  private var counts: [Shard.Subject: Int64] = [:]

  init(_ stage: Stage, _ plan: MigrationPlan) {
    self.stage = stage
    self.plan = plan
    if stage == .link { for unit in plan.units { counts[unit.subject, default: 0] += 1 } }
  }

  /// At least 1.
  func of(_ unit: Int) -> Int64 {
    guard stage.isOfShards else { return 1 }
    let shard = plan.units[unit]
    guard stage == .link else { return max(1, shard.estimatedBytes) }
    let rows: Int64 =
      switch shard.subject {
      case .table(let index) where plan.tables[index].way != .removed:
        plan.tables[index].expectedRows / (counts[shard.subject] ?? 1)
      // Planned as 32 bytes a pair.
      case .joinTable: shard.estimatedBytes / 32
      // How many rows these have the plan does not say. 64 bytes a row will do.
      case .table, .mapping, .inserted, .foreignTable: shard.estimatedBytes / 64
      }
    return max(1, rows)
  }
}
