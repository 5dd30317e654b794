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
    summary.losses = links.flatMap(\.losses)
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

/// Finds the destination objects of one relationship, for one object after another.
final class LinkTargets {
  struct Target: Hashable, BitwiseCopyable {
    var entity: Int64
    var key: Int64
  }

  /// A mapping that may have made something of the targets; they are asked in their order.
  private enum Taker {
    case mapping(number: Int64, any Association)
    /// Any number of objects of any entity for one.
    case policy(sourceNumber: Int64, PolicyAssociation)
  }

  private let plan: LinkProgram
  private let mapping: EntityMappingPlan
  private let context: MappedContext
  private let groups: [RelationshipGroup]
  private let evaluator: LinkEvaluator
  private let expression: ValueExpression?
  private let takers: [Taker]
  /// Mappings that took what none of the takers did: see ``LinkProgram/Others``.
  private let others: (missed: [any Association], kept: [any Association])
  /// The source's relationship that is followed, and the number of its targets' table.
  private let followed: (reference: SourceReference, table: Int)?
  private let allowed: Set<Int64>
  private var list: Statement?
  @exclusivity(unchecked) private var listed: (owner: Int64, target: Int64)?
  @exclusivity(unchecked) private(set) var targets: [Target] = []
  private var dropped = RowTally()
  private var unasked = RowTally()
  private var damage = FindingTally()
  @exclusivity(unchecked) private var object: Int64 = 0

  init(
    _ plan: LinkProgram, _ mapping: EntityMappingPlan, _ context: MappedContext,
    _ evaluator: LinkEvaluator, keys: ClosedRange<Int64>
  ) throws {
    self.plan = plan
    self.mapping = mapping
    self.context = context
    self.evaluator = evaluator
    groups = context.plan.mapped?.groups ?? []
    allowed = Set(plan.allowed)
    var numbers: [Int] = []
    var reference: SourceReference?
    switch plan.way {
    case .ownObject(let mappings): numbers = mappings
    case .toOne(_, let mappings, let followed): (numbers, reference) = (mappings, followed)
    case .toMany(let sql, let mappings, let followed):
      (numbers, reference) = (mappings, followed)
      let statement = try context.source.prepare(sql)
      try statement.bind(1, keys.lowerBound)
      try statement.bind(2, keys.upperBound)
      list = statement
    case .evaluated: break
    }
    if case .evaluated = plan.way {
      expression = try ValueExpression(parsing: plan.expression)
    } else {
      expression = nil
    }
    followed = try reference.map { ($0, try context.targets.table($0.table)) }
    takers = try numbers.map {
      let taker = try context.mapping($0)
      return taker.policy == nil
        ? .mapping(number: taker.destinationNumber, try context.association($0))
        : .policy(sourceNumber: taker.sourceNumber, try context.policyAssociation($0))
    }
    others = (
      try plan.others?.missed.map(context.association) ?? [],
      try plan.others?.kept.map(context.association) ?? []
    )
    try readPair()
  }

  /// True when the expression speaks of `$destination`.
  var needsDestination: Bool { expression?.mentions("destination") ?? false }

  /// Finds the targets of an object; rows must come by ascending key.
  func find(_ source: Int64, _ columns: UnsafePointer<RawValue>) throws {
    object = source
    targets.removeAll(keepingCapacity: true)
    switch plan.way {
    case .ownObject: try add(source)
    case .toOne(let column, _, _):
      if columns[column].kind == .integer { try add(columns[column].bits) }
    case .toMany:
      while let pair = listed, pair.owner <= source {
        if pair.owner == source { try add(pair.target) }
        try readPair()
      }
    case .evaluated:
      guard let expression else { return }
      try add(expression, ObjectReference(mapping.source ?? "", source, in: .source))
    }
  }

  /// Finds the targets of any object, whatever came before it.
  func targets(of expression: ValueExpression, _ source: ObjectReference) throws -> [Target] {
    object = source.primaryKey
    targets.removeAll(keepingCapacity: true)
    try add(expression, source)
    return targets
  }

  private func add(_ expression: ValueExpression, _ source: ObjectReference) throws {
    for found in try evaluator.objects(expression, plan.property, source: source) {
      guard found.store == .destination, let number = evaluator.numbers[found.entity] else {
        throw wrong(found.store == .destination ? found.entity.rawValue : "the source store")
      }
      try append(Target(entity: number, key: found.primaryKey))
    }
  }

  private func add(_ source: Int64) throws {
    let known = targets.count
    for taker in takers {
      switch taker {
      case .mapping(let number, let association):
        guard let key = try association.destination(of: source) else { continue }
        try append(Target(entity: number, key: key))
      case .policy(let number, let association):
        try association.forEachDestination(of: number, source) { entity, key in
          try append(Target(entity: entity, key: key))
        }
      }
    }
    if targets.count == known { try look(at: source) }
  }

  /// No mapping made anything of an object. That is meant where a filter leaves it out, or where
  /// its entity goes; it is a loss where the object went through a mapping that nothing asks; else the
  /// reference is damage, of which the destination will not tell.
  private func look(at target: Int64) throws {
    if try others.missed.contains(where: { try $0.destination(of: target) != nil }) {
      let isKept = try others.kept.contains { try $0.destination(of: target) != nil }
      if !isKept { unasked.add(object) }
      return
    }
    guard !takers.isEmpty, let (reference, table) = followed else { return }
    let entity = try context.targets.entity(of: target, inTable: table)
    if let entity, reference.allowed.contains(entity) { return }
    damage.add(
      entity == nil ? .dangling : .targetEntity, entity: mapping.source?.rawValue ?? "",
      property: reference.relationship,
      message: entity == nil
        ? "the target does not exist; the reference is dropped" : "the target is of another entity",
      primaryKey: object)
  }

  /// References of the source that lead to no object, or to one of a wrong entity.
  var findings: [StoreFinding] { damage.sorted }

  private func append(_ target: Target) throws {
    guard allowed.contains(target.entity) else {
      let entity = context.plan.tables.lazy.flatMap(\.entities).first {
        $0.destination != nil && $0.destinationNumber == target.entity
      }?.destination?.rawValue
      throw wrong(entity ?? "the destination's entity with Z_ENT \(target.entity)")
    }
    targets.append(target)
  }

  private func wrong(_ found: String) -> StageError {
    .wrongTarget(
      entity: mapping.source?.rawValue ?? "", primaryKey: object, relationship: plan.property,
      found: found)
  }

  private func readPair() throws {
    guard let list, try list.step() else {
      listed = nil
      return
    }
    listed = (list.int64(0), list.int64(1))
  }

  /// Several objects for a to-one relationship: the first is taken. Source: §4.3.
  func setColumns(of output: UnsafeMutablePointer<RawValue>) {
    guard let place = plan.keyPlace, let first = targets.first else { return }
    output[place] = .integer(first.key)
    if let entity = plan.entityPlace { output[entity] = .integer(first.entity) }
  }

  /// What the objects so far have of a to-one relationship beside its one object, and their references
  /// to what went through mappings that nothing asks.
  var losses: [Loss] {
    let unasked = followed.flatMap {
      Loss(unaskedIn: $0.reference.relationship, of: mapping.source?.rawValue ?? "", self.unasked)
    }
    return [
      Loss(withoutRoomIn: plan.property, of: mapping.destination?.rawValue ?? "", dropped), unasked,
    ].compactMap(\.self)
  }

  /// Sends the pairs to where else they are kept.
  func emit(
    _ key: Int64, _ number: Int64, into buffer: inout RawBuffer, _ writer: CheckpointWriter
  ) throws {
    // The first one is kept. Pairs of one-to-one relationships are counted where they are sorted.
    if !plan.isToMany, !plan.emissions.contains(where: { groups[$0.group].isOneToOne }) {
      for _ in targets.dropFirst() { dropped.add(key) }
    }
    guard !plan.emissions.isEmpty else { return }
    try Edge.emit(
      targets, plan.emissions, isToMany: plan.isToMany, key: key, number: number, groups
    ) { group, edge in
      edge.encode(into: &buffer)
      try writer.append(channel: Edge.channel, key: Int64(group), buffer.bytes)
    }
  }
}
