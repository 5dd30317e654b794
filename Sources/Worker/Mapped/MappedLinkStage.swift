import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The second stage of an entity mapping: the relationships of one shard's objects.
///
/// To-one relationships become columns of the object's own row. Whatever sets other rows or join
/// tables goes out as pairs, for ``MappedBarrier/gather()`` to sort.
/// Source: `core-data-migration.md` §5.1, §5.3 ("Inverses").
struct MappedLinkStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    guard case .mapping(let index) = try context.shard(unit).subject else {
      throw StageError.outOfOrder("links of unit \(unit), which is no mapping")
    }
    let writer = try context.writer(.link, unit)
    let summary = try run(index, unit, to: writer)
    try writer.finish(summary)
    return summary
  }

  private func run(_ index: Int, _ unit: Int, to writer: CheckpointWriter) throws -> ShardSummary {
    let shard = try context.shard(unit)
    let mapping = try context.mapped.mapping(index)
    if mapping.policy != nil {
      return try PolicyLinkStage(context: context).run(index, unit, to: writer)
    }
    let table = try context.mapped.table(of: mapping)
    let offset = try context.mapped.offsets().offset(of: unit)
    let statement = try context.mapped.rows(of: mapping, mapping.linkColumns, shard.keys)
    let evaluator = LinkEvaluator(context.mapped, mapping)
    let links = try mapping.links.map {
      try LinkTargets($0, mapping, context.mapped, evaluator, keys: shard.keys)
    }
    if links.contains(where: \.needsDestination), let access = mapping.destinationAccess {
      evaluator.destinationRow = DestinationRow(access, mapping, context.mapped, stage: .link)
    }
    let attributes =
      try evaluator.destinationRow == nil
      ? nil : CopiedAttributes(context.reader(.copy, unit), table, unit: unit)
    // Where every object was taken, it was in this same order.
    let copied = mapping.takesAll ? nil : try UnitKeys(context.reader(.copy, unit), mapping)
    var ordinal: Int64 = 0
    let columns = Int32(statement.columnCount)
    let row = RowValues(count: Int(columns))
    let output = RowValues(count: table.relationshipPlaces.count)
    var record = RawBuffer(capacity: 1 << 10)
    var edge = RawBuffer(capacity: 64)
    var summary = ShardSummary()
    let dropped = try (mapping.dropped ?? []).map { try DroppedValues($0, mapping, context.mapped) }
    var taken = try copied?.next()
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let source = row.values[0].bits
      let local: Int64
      if copied != nil {
        guard let found = taken, found.source == source else { continue }
        local = found.destination
        taken = try copied?.next()
      } else {
        ordinal += 1
        local = mapping.assignsKeys ? ordinal : source
      }
      let key = local + offset
      if let attributes {
        evaluator.destinationRow?.settle(on: try attributes.row(local), key: key)
      }
      for values in dropped { try values.look(at: source, row.values + 1) }
      for place in 0..<output.count { output.values[place] = .null }
      for link in links {
        try link.find(source, row.values + 1)
        link.setColumns(of: output.values)
        try link.emit(key, mapping.destinationNumber, into: &edge, writer)
      }
      record.removeAll()
      RecordFormat.encode(output.values, count: output.count, into: &record)
      try writer.append(channel: 0, key: local, record.bytes)
      summary.rows += 1
      summary.bytes += Int64(record.count)
    }
    guard taken == nil else {
      throw StageError.checkpointMismatch(
        table: table.name, unit: unit, what: "an object was copied and is not in the source")
    }
    summary.losses = links.flatMap(\.losses) + dropped.compactMap(\.loss)
    summary.findings = links.flatMap(\.findings)
    return summary
  }
}

/// Evaluates the relationship expressions that have no known form.
final class LinkEvaluator {
  private let mapping: EntityMappingPlan
  private let evaluator: Evaluator
  let objects: SourceObjects
  /// `$destination`, where relationship expressions speak of it.
  var destinationRow: DestinationRow? { didSet { objects.destinationRow = destinationRow } }
  /// Likewise, where a policy's object is at hand.
  var destination: ObjectReference?
  let numbers: [EntityName: Int64]

  init(_ context: MappedContext, _ mapping: EntityMappingPlan) {
    self.mapping = mapping
    numbers = Dictionary(
      context.plan.tables.flatMap(\.entities).compactMap { program in
        program.destination.map { ($0, program.destinationNumber) }
      }, uniquingKeysWith: { first, _ in first })
    objects = SourceObjects(context, mapping, stage: .link)
    evaluator = Evaluator(access: objects, runDate: context.runDate)
  }

  func objects(_ expression: ValueExpression, _ property: String, source: ObjectReference) throws
    -> [ObjectReference]
  {
    var scope = EvaluationScope(
      source: source, destination: destination ?? destinationRow?.object,
      entityMapping: mapping.name, property: property)
    scope.entityMappingUserInfo = mapping.userInfo
    return try evaluator.objects(of: expression, in: scope)
  }
}
