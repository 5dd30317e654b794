import GodwitCheckpoints
import GodwitMapping
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// The link stage of an entity mapping with a policy. Source: `core-data-migration.md` §5.1.
struct PolicyLinkStage {
  let context: StageContext

  func run(_ index: Int, _ unit: Int, to writer: CheckpointWriter) throws -> ShardSummary {
    let mapping = try context.mapped.mapping(index)
    let engine = try PolicyLinkEngine(context, mapping, unit: unit)
    let run = try PolicyRun(context, engine)
    engine.stored.policy = run.selectorAnswer
    defer { engine.stored.policy = nil }
    try run.perform("resumeEntityMapping") {
      try run.policy.resumeEntityMapping(run.mapping, manager: run.manager)
    }
    try engine.forEachAssociated { object, progress in
      engine.progress = progress
      try run.perform("createRelationships", for: object) {
        try run.policy.createRelationships(
          forDestination: ManagedObject(engine, object), in: run.mapping, manager: run.manager)
      }
    }
    engine.progress = 1
    try run.perform("endRelationshipCreation") {
      try run.policy.endRelationshipCreation(forMapping: run.mapping, manager: run.manager)
    }
    return try engine.finish(to: writer)
  }
}

/// Sets relationships of the shard's objects, which are at hand again, and of others by their keys.
final class PolicyLinkEngine: PolicyEngine {
  private let unit: Int
  private let objects: DestinationObjects
  /// What to add to ordinals, by table.
  private let offsets: [Int: Int64]
  private let defaults: DefaultLinks
  private let copied: CopiedRows
  /// Pairs of relationships of other shards' objects, in the order in which they were set.
  private var foreign: [(group: Int, edge: Edge)] = []
  /// The first source object of the object at hand.
  private var current: (object: ObjectReference, source: ObjectReference)?

  init(_ context: StageContext, _ mapping: EntityMappingPlan, unit: Int) throws {
    self.unit = unit
    let kinds = DestinationKinds(context.plan)
    offsets = try context.mapped.offsets().policyOffsets[unit] ?? [:]
    objects = DestinationObjects(context, kinds, ownTable: mapping.table, unit: unit)
    defaults = try DefaultLinks(context.mapped, mapping, try context.shard(unit).keys)
    copied = CopiedRows(context)
    super.init(
      context, mapping, kinds, defaults.objects,
      userInfo: try context.mapped.userInfo(before: .link))
    stored.readDestination = { [unowned self] key, object in try self.read(key, object) }
    try load()
  }

  /// Brings the shard's objects back from its copy stage. Relationships stand behind their row.
  private func load() throws {
    let reader = try context.reader(.copy, unit)
    var record = RawBuffer(capacity: 4 << 10)
    var waiting: Int?
    func take(_ links: LinkBytes.Links) throws {
      guard let table = waiting else { return }
      waiting = nil
      try objects.load(table: table, record: record.bytes, links: links)
    }
    while let entry = try reader.next() {
      if let row = entry.row(ownTable: mapping.table) {
        try take([])
        record.removeAll()
        record.append(row.record)
        waiting = row.table
      } else if entry.channel == PolicyChannel.links, let (_, bytes) = entry.tabled {
        try take(withFinalKeys(LinkBytes.links(bytes)))
      }
    }
    try take([])
    objects.remembersChanges = true
  }

  /// In the copy stage members are objects of this shard, told by their ordinals.
  private func withFinalKeys(_ links: LinkBytes.Links) -> LinkBytes.Links {
    links.map { link in
      (
        link.relationship,
        link.targets.map { target in
          let table = kinds[target.entity]?.plan.table ?? -1
          return LinkTargets.Target(entity: target.entity, key: target.key + offset(of: table))
        }
      )
    }
  }

  private func offset(of table: Int) -> Int64 { offsets[table] ?? 0 }

  /// Calls the body with every object that the mapping was associated with, once, in the order of
  /// the associations.
  func forEachAssociated(_ body: (ObjectReference, Float) throws -> Void) throws {
    let reader = try context.reader(.copy, unit)
    var seen: [Int: OrdinalSet] = [:]
    let all = Float(max(1, objects.tables.reduce(0) { $0 + objects.count(of: $1) }))
    var count: Float = 0
    while let entry = try reader.next() {
      guard let pair = entry.association, let kind = kinds[pair.destinationEntity] else { continue }
      let table = kind.plan.table
      guard seen[table, default: OrdinalSet()].insert(pair.destination) else { continue }
      let key = pair.destination + offset(of: table)
      let object = ObjectReference(kind.plan.entity, key, in: .destination)
      current = context.mapped.sourceNames[pair.sourceEntity].map {
        (object, ObjectReference($0, pair.source, in: .source))
      }
      count += 1
      try body(object, count / all)
    }
    current = nil
  }

  // MARK: Objects

  /// The shard's own object; nil for one of another shard.
  private func working(_ object: ObjectReference) throws -> WorkingObject? {
    guard object.store == .destination else {
      throw PolicyError.notNow("objects of the source cannot be changed")
    }
    let kind = try kind(of: object.entity)
    return try objects.object(kind, object.primaryKey - offset(of: kind.plan.table))
  }

  override func read(_ key: String, _ object: ObjectReference) throws -> ExpressionValue? {
    guard object.store == .destination else { return try super.read(key, object) }
    if let own = try working(object) { return try read(key, own, objects) }
    let kind = try kind(of: object.entity)
    if let number = kind.attributes[key] {
      let attribute = kind.plan.attributes[number]
      return try copied.value(of: object, kind, attribute, stored)
    }
    guard kind.relationships[key] != nil else { return nil }
    throw PolicyError.notNow(
      "relationships of objects that other shards made are known in performCustomValidation only")
  }

  override func set(_ value: ExpressionValue, _ key: String, _ object: ObjectReference) throws {
    if let own = try working(object) {
      return try set(value, key, own, objects, object)
    }
    let kind = try kind(of: object.entity)
    if kind.attributes[key] != nil {
      throw PolicyError.notNow(
        "attributes of objects that another mapping or shard made cannot be changed. "
          + "Do it in that mapping's policy")
    }
    guard let number = kind.relationships[key] else {
      throw PolicyError.unknownKey(
        entity: object.entity.rawValue, primaryKey: object.primaryKey, key: key)
    }
    let relationship = kind.plan.relationships[number]
    let found = try targets(value, relationship, object)
    guard !found.isEmpty else {
      throw PolicyError.notNow(
        "a relationship of an object that another mapping or shard made can be set, not emptied")
    }
    try emitForeign(found, relationship, object, kind)
  }

  override func add(_ member: ObjectReference, _ key: String, _ object: ObjectReference) throws {
    if let own = try working(object) {
      return try add(member, key, own, objects, object)
    }
    try set(.set([.object(member)]), key, object)
  }

  private func emitForeign(
    _ targets: [LinkTargets.Target], _ relationship: DestinationRelationship,
    _ object: ObjectReference, _ kind: DestinationKind
  ) throws {
    try Edge.emit(
      targets, relationship.emissions, isToMany: relationship.isToMany, key: object.primaryKey,
      number: kind.plan.number, context.plan.mapped?.groups ?? []
    ) { group, edge in foreign.append((group, edge)) }
  }

  // MARK: Relationships by mapping

  override func linkByDefault(_ destination: ObjectReference) throws {
    guard let own = try working(destination) else {
      throw PolicyError.notNow("createRelationships sets those of the object at hand only")
    }
    guard let source = try source(of: destination) else { return }
    try defaults.find(source, for: destination) { property, targets in
      guard let number = own.kind.relationships[property] else { return }
      let relationship = own.kind.plan.relationships[number]
      objects.set(relationship.isToMany ? targets : Array(targets.prefix(1)), own, number)
    }
  }

  private func source(of destination: ObjectReference) throws -> ObjectReference? {
    if let current, current.object == destination { return current.source }
    return try sources(mapping.name, [destination]).first
  }

  // MARK: The end

  func finish(to writer: CheckpointWriter) throws -> ShardSummary {
    var summary = ShardSummary()
    let groups = context.plan.mapped?.groups ?? []
    let rows = PolicyRowWriter(writer: writer, ownTable: mapping.table)
    var buffer = RawBuffer(capacity: 4 << 10)
    var edgeBytes = RawBuffer(capacity: 64)
    func append(_ group: Int, _ edge: Edge) throws {
      edge.encode(into: &edgeBytes)
      try writer.append(channel: Edge.channel, key: Int64(group), edgeBytes.bytes)
    }
    for table in objects.tables {
      let plan = context.plan.tables[table]
      let columns = RowValues(count: plan.relationshipPlaces.count)
      var record = RawBuffer(capacity: 1 << 10)
      try objects.settle()
      let changed = objects.changed[table] ?? []
      try objects.forEach(in: table) { ordinal, attributes, links in
        guard let kind = DestinationObjects.kind(of: attributes, kinds) else { return }
        let key = ordinal + offset(of: table)
        for place in 0..<columns.count { columns.values[place] = .null }
        for (number, targets) in links
        where kind.plan.relationships.indices.contains(number) {
          let relationship = kind.plan.relationships[number]
          if let place = relationship.keyPlace, let first = targets.first {
            columns.values[place] = .integer(first.key)
            if let place = relationship.entityPlace {
              columns.values[place] = .integer(first.entity)
            }
          }
          try Edge.emit(
            targets, relationship.emissions, isToMany: relationship.isToMany, key: key,
            number: kind.plan.number, groups, isOwnWord: true, append)
        }
        record.removeAll()
        RecordFormat.encode(columns.values, count: plan.relationshipPlaces.count, into: &record)
        try rows.append(record.bytes, table: table, ordinal: ordinal, &buffer)
        if changed.contains(ordinal) {
          try rows.append(
            PolicyChannel.changed, attributes, table: table, ordinal: ordinal, &buffer)
        }
        summary.rows += 1
        summary.bytes += Int64(record.count)
      }
    }
    for (group, edge) in foreign { try append(group, edge) }
    summary.userInfo = userInfo.isEmpty ? nil : userInfo
    return summary
  }
}

/// Ordinals that were met, a bit each.
struct OrdinalSet {
  private var words: [UInt64] = []

  /// - Returns: False when it was there already.
  mutating func insert(_ ordinal: Int64) -> Bool {
    let place = Int(max(0, ordinal))
    let word = place >> 6
    if word >= words.count { words += Array(repeating: 0, count: word + 1 - words.count) }
    let bit = UInt64(1) << UInt64(place & 63)
    defer { words[word] |= bit }
    return words[word] & bit == 0
  }
}

/// What the relationship mappings of an entity mapping give, for one source object after another.
final class DefaultLinks {
  private let context: MappedContext
  private let mapping: EntityMappingPlan
  private let evaluator: LinkEvaluator
  private let links: [LinkTargets]
  private let rows: Statement?
  private let row: RowValues
  private var last = Int64.min
  private var expressions: [Int: ValueExpression] = [:]

  var objects: SourceObjects { evaluator.objects }

  init(
    _ context: MappedContext, _ mapping: EntityMappingPlan, _ keys: ClosedRange<Int64>
  ) throws {
    self.context = context
    self.mapping = mapping
    evaluator = LinkEvaluator(context, mapping)
    links = try mapping.links.map { [evaluator] in
      try LinkTargets($0, mapping, context, evaluator, keys: keys)
    }
    row = RowValues(count: 1 + mapping.linkColumns.count)
    guard let table = mapping.sourceTable, !mapping.links.isEmpty else {
      rows = nil
      return
    }
    let names = (["Z_PK"] + mapping.linkColumns.map(quoted)).joined(separator: ", ")
    let statement = try context.source.prepare(
      """
      SELECT \(names)
        FROM \(quoted(table))
       WHERE Z_PK BETWEEN ?1 AND ?2 AND Z_ENT = ?3
       ORDER BY Z_PK
      """)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    try statement.bind(3, mapping.sourceNumber)
    rows = statement
  }

  /// Calls the body with every relationship that has an expression.
  func find(
    _ source: ObjectReference, for destination: ObjectReference,
    _ body: (String, [LinkTargets.Target]) throws -> Void
  ) throws {
    evaluator.destination = destination
    // Source objects that come in order are met by going on; others are looked up.
    guard source.entity == mapping.source, source.primaryKey > last, try advance(source.primaryKey)
    else {
      for (number, link) in mapping.links.enumerated() {
        let expression = try expressions[number] ?? ValueExpression(parsing: link.expression)
        expressions[number] = expression
        try body(link.property, links[number].targets(of: expression, source))
      }
      return
    }
    for (number, link) in links.enumerated() {
      try link.find(source.primaryKey, row.values + 1)
      try body(mapping.links[number].property, link.targets)
    }
  }

  private func advance(_ key: Int64) throws -> Bool {
    guard let rows else { return true }
    while last < key {
      guard try rows.step() else { return false }
      rows.read(into: row.values, from: 0, count: Int32(row.count))
      last = row.values[0].bits
    }
    return last == key
  }
}

/// Attributes of destination objects that other shards made, by key.
///
/// Checkpoints are read in one go only; those that are asked for are laid out once, some of them
/// at a time.
final class CopiedRows {
  private final class Unit {
    let number: Int
    let rows: ScratchRows
    var keys: [Int64] = []
    var places: [(start: Int, count: Int)] = []

    init(_ number: Int, _ rows: ScratchRows) {
      self.number = number
      self.rows = rows
    }
  }
  private struct Name: Hashable {
    var unit: Int
    var table: Int
  }

  /// Shards at hand at a time.
  private static let mostUnits = 8

  private let context: StageContext
  private var units: [Name: Unit] = [:]

  init(_ context: StageContext) { self.context = context }

  func value(
    of object: ObjectReference, _ kind: DestinationKind, _ attribute: DestinationAttribute,
    _ stored: SourceObjects
  ) throws -> ExpressionValue {
    guard let place = attribute.place else { return .null }
    let offsets = try context.mapped.offsets()
    for number in context.plan.units(in: .copy) {
      guard let offset = offset(of: number, object, kind, offsets) else { continue }
      let unit = try unit(number, kind.plan.table)
      guard let found = Self.search(unit.keys, object.primaryKey - offset) else { continue }
      let extent = unit.places[found]
      return try unit.rows.read(extent.start, count: extent.count) { record in
        let row = RowValues(count: 3 + place)
        guard RecordFormat.decode(record: record, into: row.values, count: row.count),
          row.values[0].bits == kind.plan.number
        else { return .null }
        return try stored.value(
          row.values[2 + place], type: attribute.type, isExternal: attribute.isExternal, object)
      }
    }
    return .null
  }

  /// What was added to the ordinals of a unit that may have made the object; nil for one that
  /// cannot.
  private func offset(
    of number: Int, _ object: ObjectReference, _ kind: DestinationKind, _ offsets: MappedOffsets
  ) -> Int64? {
    guard case .mapping(let index) = context.plan.units[number].subject,
      context.mapped.mappings.indices.contains(index)
    else { return nil }
    let mapping = context.mapped.mappings[index]
    if mapping.policy != nil {
      let offset = offsets.policyOffsets[number]?[kind.plan.table]
      return offset.flatMap { object.primaryKey > $0 ? $0 : nil }
    }
    guard mapping.destination == object.entity else { return nil }
    if mapping.assignsKeys {
      let offset = offsets.offset(of: number)
      return object.primaryKey > offset ? offset : nil
    }
    return context.plan.units[number].keys.contains(object.primaryKey) ? 0 : nil
  }

  private func unit(_ number: Int, _ table: Int) throws -> Unit {
    let name = Name(unit: number, table: table)
    if let known = units[name] { return known }
    if units.count >= Self.mostUnits { units.removeAll() }
    let unit = Unit(number, ScratchRows(in: context.run.path))
    guard case .mapping(let index) = context.plan.units[number].subject else { return unit }
    let cursor = PolicyRowCursor(
      try context.reader(.copy, number), table: table,
      ownTable: try context.mapped.mapping(index).table)
    while try cursor.next() {
      unit.keys.append(cursor.key)
      unit.places.append((try unit.rows.append(cursor.record), cursor.record.count))
    }
    units[name] = unit
    return unit
  }

  private static func search(_ keys: [Int64], _ key: Int64) -> Int? {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key ? low : nil
  }
}
