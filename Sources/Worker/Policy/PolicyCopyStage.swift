import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The copy stage of an entity mapping with a policy. Source: `core-data-migration.md` §5.1.
struct PolicyCopyStage {
  let context: ShardContext

  func run(_ index: Int, _ unit: Int) throws -> ShardSummary {
    let shard = try context.shard(unit)
    let mapping = try context.mapped.mapping(index)
    let writer = try context.writer(.copy, unit)
    let engine = try PolicyCopyEngine(context, mapping, unit: unit, writer)
    let run = try PolicyRun(context, engine)
    engine.stored.policy = run.selectorAnswer
    defer { engine.stored.policy = nil }
    try PolicyEngine.working(for: engine) {
      try run.perform("beginEntityMapping") {
        try run.policy.beginEntityMapping(run.mapping, manager: run.manager)
      }
      try create(mapping, shard.keys, engine, run)
      try run.perform("endInstanceCreation") {
        try run.policy.endInstanceCreation(forMapping: run.mapping, manager: run.manager)
      }
    }
    let summary = try engine.finish(ownTable: mapping.table)
    try writer.finish(summary)
    return summary
  }

  private func create(
    _ mapping: EntityMappingPlan, _ keys: ClosedRange<Int64>, _ engine: PolicyCopyEngine,
    _ run: PolicyRun
  ) throws {
    guard let source = mapping.source, let table = mapping.sourceTable else { return }
    let statement = try context.mapped.rows(of: mapping, mapping.copyColumns, keys)
    let columns = Int32(statement.columnCount)
    let row = RowValues(count: Int(columns))
    let meter = try ProgressMeter(context.source, table, keys)
    var object = ObjectReference(source, 0, in: .source)
    let (policy, current, manager) = (run.policy, run.mapping, run.manager)
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      object.primaryKey = row.values[0].bits
      guard try engine.begin(object, row.values + 1) else { continue }
      engine.progress = meter.progress(at: object.primaryKey)
      try run.perform("createDestinationInstances", for: object) {
        try policy.createDestinationInstances(
          forSource: ManagedObject(engine.shared, object), in: current, manager: manager)
      }
    }
    engine.progress = 1
    engine.end()
  }
}
