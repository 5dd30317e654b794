import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The validate stage of objects that policies made: whole rows, judged by the destination model's
/// rules, and written whole, since the commit then needs nothing else.
struct PolicyValidation {
  let context: ShardContext

  /// Objects of a mapping's own table, of one shard.
  func rows(of mapping: EntityMappingPlan, _ unit: Int, to writer: CheckpointWriter) throws
    -> ShardSummary
  {
    guard let table = mapping.table else { return ShardSummary() }
    let judges = try PolicyRowJudge(context, table: table)
    try take(unit, mapping, table, judges, writer)
    return judges.summary
  }

  /// Objects that policies made in a table that is not their mapping's, of all shards.
  func inserted(_ table: Int, to writer: CheckpointWriter) throws -> ShardSummary {
    let judges = try PolicyRowJudge(context, table: table)
    let offsets = try context.mapped.offsets()
    for unit in context.plan.units(in: .copy) {
      guard case .mapping(let index) = context.plan.units[unit].subject,
        offsets.policyOffsets[unit]?[table] != nil
      else { continue }
      let mapping = try context.mapped.mapping(index)
      if mapping.table != table { try take(unit, mapping, table, judges, writer) }
    }
    return judges.summary
  }

  private func take(
    _ unit: Int, _ mapping: EntityMappingPlan, _ number: Int, _ judge: PolicyRowJudge,
    _ writer: CheckpointWriter
  ) throws {
    let table = context.plan.tables[number]
    // A table in which the shard has made nothing.
    guard let offset = try context.mapped.offsets().policyOffsets[unit]?[number] else { return }
    func cursor(_ stage: Stage, channel: UInt8? = nil) throws -> PolicyRowCursor {
      PolicyRowCursor(
        try context.reader(stage, unit), table: number, ownTable: mapping.table, channel: channel)
    }
    let (copied, linked) = (try cursor(.copy), try cursor(.link))
    let changed = try cursor(.link, channel: PolicyChannel.changed)
    var hasChanged = try changed.next()
    while try copied.next() {
      guard try linked.next(), linked.key == copied.key else {
        throw StageError.checkpointMismatch(
          table: table.name, unit: unit, what: "row \(copied.key) was copied and not linked")
      }
      let isChanged = hasChanged && changed.key == copied.key
      try judge.take(
        attributes: isChanged ? changed.record : copied.record, relationships: linked.record,
        key: copied.key + offset, unit: unit, to: writer)
      if isChanged { hasChanged = try changed.next() }
    }
    guard !hasChanged else {
      throw StageError.checkpointMismatch(
        table: table.name, unit: unit, what: "row \(changed.key) was changed and not copied")
    }
  }
}

/// Judges rows of any entity of one table, and writes them.
private final class PolicyRowJudge {
  private struct Entity {
    var fills: [FillCursor]
    var judge: ValidationJudge?
  }

  private let table: TablePlan
  private var entities: [Int64: Entity] = [:]
  private let digester: RowDigester
  private let attributes: RowValues
  private let relationships: RowValues
  private let row: RowValues
  private let whole: RowValues
  private let merge: RowMerge
  private var record = RawBuffer(capacity: 4 << 10)

  init(_ context: ShardContext, table index: Int) throws {
    table = context.plan.tables[index]
    digester = RowDigester(table, judges: true)
    attributes = RowValues(count: 2 + table.attributePlaces.count)
    relationships = RowValues(count: table.relationshipPlaces.count)
    row = RowValues(count: 3 + table.columns.count)
    whole = RowValues(count: attributes.count + table.relationshipPlaces.count)
    merge = RowMerge(table)
    for plan in context.plan.mapped?.destinationEntities ?? [] where plan.table == index {
      let rules = table.entities.first { $0.destinationNumber == plan.number }?.validation
      entities[plan.number] = Entity(
        fills: try plan.fills.map { try FillCursor($0, context.mapped) },
        judge: rules.map { ValidationJudge($0, pattern: RegularExpression.matcher) })
    }
  }

  func take(
    attributes copied: UnsafeRawBufferPointer, relationships linked: UnsafeRawBufferPointer,
    key: Int64, unit: Int, to writer: CheckpointWriter
  ) throws {
    guard RecordFormat.decode(record: copied, into: attributes.values, count: attributes.count),
      RecordFormat.decode(
        record: linked, into: relationships.values, count: table.relationshipPlaces.count),
      let entity = entities[attributes.values[0].bits]
    else {
      throw StageError.checkpointMismatch(
        table: table.name, unit: unit, what: "a row's record is malformed")
    }
    for fill in entity.fills { try fill.apply(to: relationships.values, key: key) }
    merge.fill(
      row.values, key: key, attributes: attributes.values, relationships: relationships.values)
    digester.add(row.values, count: row.count)
    entity.judge?.check(row.values + 3, key: key)
    for place in 0..<attributes.count { whole.values[place] = attributes.values[place] }
    for place in table.relationshipPlaces.indices {
      whole.values[attributes.count + place] = relationships.values[place]
    }
    record.removeAll()
    RecordFormat.encode(whole.values, count: whole.count, into: &record)
    try writer.append(channel: 0, key: key, record.bytes)
  }

  var summary: ShardSummary {
    var summary = digester.summary
    // That a value is missing, the model's rules say, with Core Data's code.
    summary.findings.removeAll { $0.kind == .required }
    for number in entities.keys.sorted() {
      summary.findings += entities[number]?.judge?.findings ?? []
    }
    return summary
  }
}

/// The hooks of the validate stage, which look at the whole destination as it will be committed.
///
/// They run when it has been written, and after the model's own rules: objects are then read with
/// all their relationships. Source: `core-data-migration.md` §5.1, §5.3.
struct PolicyCustomValidation {
  let context: ShardContext

  func run(_ index: Int) throws -> ShardSummary {
    let mapping = try context.mapped.mapping(index)
    let assembled = try context.openedAssembled("a verification")
    let engine = PolicyValidationEngine(
      context, mapping, DestinationKinds(context.plan),
      SourceObjects(context.mapped, mapping, stage: .link),
      userInfo: try context.mapped.userInfo(before: .validate))
    engine.written = SourceObjects(context.mapped, mapping, written: assembled)
    engine.rows = WrittenRows(context.plan, assembled)
    let run = try PolicyRun(context, engine)
    engine.progress = 1
    try PolicyEngine.working(for: engine) {
      try run.perform("resumeEntityMapping") {
        try run.policy.resumeEntityMapping(run.mapping, manager: run.manager)
      }
      try run.perform("performCustomValidation") {
        try run.policy.performCustomValidation(forMapping: run.mapping, manager: run.manager)
      }
      try run.perform("endEntityMapping") {
        try run.policy.endEntityMapping(run.mapping, manager: run.manager)
      }
    }
    return ShardSummary()
  }
}

/// Reads the written destination.
final class PolicyValidationEngine: PolicyStageEngine {
  fileprivate(set) var written: SourceObjects?
  fileprivate var rows: WrittenRows?

  override func read(_ key: String, _ object: ObjectReference) throws -> ExpressionValue? {
    guard object.store == .destination else { return try super.read(key, object) }
    return try written?.value(forKey: key, of: object)
  }

  // Of what the link stage knows, `--invalid set-aside` may have taken objects out.
  private func there(_ objects: [ObjectReference]) throws -> [ObjectReference] {
    try objects.filter { try rows?.contains($0) == true }
  }

  override func destinations(_ mapping: String, _ sources: [ObjectReference]?) throws
    -> [ObjectReference]
  {
    try there(super.destinations(mapping, sources))
  }

  override func destinations(ofRelationship relationship: String, _ sources: [ObjectReference])
    throws -> [ObjectReference]
  {
    try there(super.destinations(ofRelationship: relationship, sources))
  }

  override func sources(_ mapping: String, _ destinations: [ObjectReference]?) throws
    -> [ObjectReference]
  {
    try super.sources(
      mapping, destinations.map(there) ?? self.destinations(mapping, nil))
  }

  override func forEachDestination(
    _ entity: EntityName, _ body: (ObjectReference) throws -> Void
  ) throws {
    guard try written?.forEachObject(of: entity, where: nil, body) == true else {
      throw PolicyError.unknownEntity(entity.rawValue)
    }
  }
}

/// Which objects the written destination has.
private final class WrittenRows {
  private let connection: Connection
  private let entities: [EntityName: SourceEntityAccess]
  private var statements: [EntityName: Statement] = [:]

  init(_ plan: MigrationPlan, _ connection: Connection) {
    self.connection = connection
    entities = Dictionary(
      (plan.mapped?.writtenEntities ?? []).map { ($0.entity, $0) },
      uniquingKeysWith: { first, _ in first })
  }

  func contains(_ object: ObjectReference) throws -> Bool {
    guard let entity = entities[object.entity] else { return false }
    let statement =
      try statements[object.entity]
      ?? connection.prepare("SELECT 1 FROM \(quoted(entity.table)) WHERE Z_PK = ?1 AND Z_ENT = ?2")
    statements[object.entity] = statement
    try statement.bind(1, object.primaryKey)
    try statement.bind(2, entity.number)
    defer { statement.reset() }
    return try statement.step()
  }
}
