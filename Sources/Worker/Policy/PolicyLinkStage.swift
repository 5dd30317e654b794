import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// The link stage of an entity mapping with a policy. Source: `core-data-migration.md` §5.1.
struct PolicyLinkStage {
  let context: ShardContext

  func run(_ index: Int, _ unit: Int, to writer: CheckpointWriter) throws -> ShardSummary {
    let mapping = try context.mapped.mapping(index)
    let engine = try PolicyLinkEngine(context, mapping, unit: unit, writer)
    let run = try PolicyRun(context, engine)
    engine.stored.policy = run.selectorAnswer
    defer { engine.stored.policy = nil }
    let (policy, current, manager) = (run.policy, run.mapping, run.manager)
    try PolicyEngine.working(for: engine) {
      try run.perform("resumeEntityMapping") {
        try policy.resumeEntityMapping(current, manager: manager)
      }
      try engine.forEachAssociated { object, progress in
        engine.progress = progress
        try run.perform("createRelationships", for: object) {
          try policy.createRelationships(
            forDestination: ManagedObject(engine.shared, object), in: current, manager: manager)
        }
      }
      engine.progress = 1
      try run.perform("endRelationshipCreation") {
        try policy.endRelationshipCreation(forMapping: current, manager: manager)
      }
    }
    return try engine.finish()
  }
}

/// Sets relationships of the shard's objects, which are at hand again, and of others by their keys.
final class PolicyLinkEngine: PolicyStageEngine {
  private let unit: Int
  private let objects: DestinationObjects
  /// What to add to ordinals, by table.
  private let offsets: [Int: Int64]
  private let defaults: DefaultLinks
  private let copied: CopiedRows
  private let writer: CheckpointWriter
  @exclusivity(unchecked) private var edge = RawBuffer(capacity: 64)
  /// By group.
  @exclusivity(unchecked) private var hookWords: [Int: HookWords] = [:]
  /// The first source object of the object at hand.
  @exclusivity(unchecked) private var current: (object: ObjectReference, source: ObjectReference)?
  @exclusivity(unchecked) private var dropped = DroppedDefaults()

  init(
    _ context: ShardContext, _ mapping: EntityMappingPlan, unit: Int, _ writer: CheckpointWriter
  ) throws {
    self.unit = unit
    self.writer = writer
    let kinds = DestinationKinds(context.plan)
    offsets = try context.mapped.offsets().policyOffsets[unit] ?? [:]
    objects = DestinationObjects(context, kinds, ownTable: mapping.table, unit: unit, .link)
    defaults = try DefaultLinks(context.mapped, mapping, try context.shard(unit).keys)
    copied = CopiedRows(context)
    super.init(
      context, mapping, kinds, defaults.objects,
      userInfo: try context.mapped.userInfo(before: .link))
    stored.readDestination = { [unowned self] key, object in try self.read(key, object) }
    derive(in: objects) { [unowned self] in
      let plan = $0.kind.plan
      return ObjectReference(plan.entity, $0.ordinal + offset(of: plan.table), in: .destination)
    }
    try load()
  }

  /// Brings the shard's objects back from its copy stage. What else there is of one stands behind its
  /// row.
  private func load() throws {
    let reader = try context.reader(.copy, unit)
    var record = RawBuffer(capacity: 4 << 10)
    var waiting: (table: Int, transients: [UInt8], links: LinkBytes.Links)?
    func take() throws {
      guard let found = waiting else { return }
      waiting = nil
      try objects.load(
        table: found.table, record: record.bytes, transients: found.transients, links: found.links)
    }
    while let entry = try reader.next() {
      if let row = entry.row(ownTable: mapping.table) {
        try take()
        record.removeAll()
        record.append(row.record)
        waiting = (row.table, [], [])
      } else if entry.channel == PolicyChannel.links, let (_, bytes) = entry.tabled {
        waiting?.links = withFinalKeys(LinkBytes.links(bytes))
      } else if entry.channel == PolicyChannel.transients, let (_, bytes) = entry.tabled {
        waiting?.transients = Array(bytes)
      } else if entry.channel == PolicyChannel.words {
        try repeatWord(entry)
      }
    }
    try take()
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

  private func repeatWord(_ entry: CheckpointReader.Entry) throws {
    guard entry.payload.count >= 8,
      let kind = kinds[Int64(littleEndian: entry.payload.loadUnaligned(as: Int64.self))],
      case let rest = UnsafeRawBufferPointer(rebasing: entry.payload[8...]),
      let word = RelationshipWord(rest),
      let link = withFinalKeys(
        LinkBytes.links(UnsafeRawBufferPointer(rebasing: rest[RelationshipWord.byteCount...]))
      ).first, kind.plan.relationships.indices.contains(link.relationship)
    else {
      throw StageError.checkpointMismatch(
        table: "relationships", unit: unit, what: "what a hook set is malformed")
    }
    try emit(
      word, link.targets, kind.plan.relationships[link.relationship],
      key: entry.key + offset(of: kind.plan.table), kind, Edge.earlyChannel)
  }

  private func offset(of table: Int) -> Int64 { offsets[table] ?? 0 }

  /// Calls the body with every object that the mapping was associated with, once, in the order of
  /// the associations.
  func forEachAssociated(_ body: (ObjectReference, Float) throws -> Void) throws {
    let reader = try context.reader(.copy, unit)
    // By table.
    var seen = Array(repeating: OrdinalSet(), count: context.plan.tables.count)
    // Most sources are of the same entity as the one before.
    var source: (number: Int64, name: EntityName?) = (.min, nil)
    let all = Float(max(1, objects.tables.reduce(0) { $0 + objects.count(of: $1) }))
    var count: Float = 0
    while let entry = try reader.next() {
      guard let pair = entry.association, let kind = kinds[pair.destinationEntity] else { continue }
      let table = kind.plan.table
      guard seen[table].insert(pair.destination) else { continue }
      let key = pair.destination + offset(of: table)
      let object = ObjectReference(kind.plan.entity, key, in: .destination)
      if source.number != pair.sourceEntity {
        source = (pair.sourceEntity, context.mapped.sourceNames[pair.sourceEntity])
      }
      current = source.name.map { (object, ObjectReference($0, pair.source, in: .source)) }
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
    guard kind.relationships[key] != nil else {
      return try kind.composites.value(of: key) {
        try copied.value(of: object, kind, kind.plan.attributes[$0], stored)
      }
    }
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
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: key)
    }
    try sayForeign(.whole, value, number, object, kind)
  }

  override func add(_ member: ObjectReference, _ key: String, _ object: ObjectReference) throws {
    if let own = try working(object) {
      return try add(member, key, own, objects, object)
    }
    let kind = try kind(of: object.entity)
    try sayForeign(.added, .object(member), toMany(key, kind, object), object, kind)
  }

  override func remove(
    _ member: ObjectReference, _ key: String, _ object: ObjectReference
  ) throws {
    if let own = try working(object) {
      return try remove(member, key, own, objects, object)
    }
    let kind = try kind(of: object.entity)
    try sayForeign(.removed, .object(member), toMany(key, kind, object), object, kind)
  }

  /// What an object's own shard says of it is not known here: as if it were taken back.
  private func sayForeign(
    _ word: RelationshipWord.Kind, _ value: ExpressionValue, _ number: Int,
    _ object: ObjectReference, _ kind: DestinationKind
  ) throws {
    let relationship = kind.plan.relationships[number]
    try emit(
      RelationshipWord(kind: word, isRevision: true), targets(value, relationship, object),
      relationship, key: object.primaryKey, kind)
  }

  override func say(
    _ word: RelationshipWord, _ targets: [LinkTargets.Target], _ relationship: Int,
    _ object: WorkingObject
  ) throws {
    try emit(
      word, targets, object.kind.plan.relationships[relationship],
      key: object.ordinal + offset(of: object.kind.plan.table), object.kind)
  }

  private func emit(
    _ word: RelationshipWord, _ targets: [LinkTargets.Target],
    _ relationship: DestinationRelationship, key: Int64, _ kind: DestinationKind,
    _ channel: UInt8 = Edge.channel
  ) throws {
    try Edge.emit(
      targets, relationship.emissions, isToMany: relationship.isToMany, key: key,
      number: kind.plan.number, context.plan.mapped?.groups ?? [], manner: word.manner,
      after: word.first
    ) { group, edge in
      edge.encode(into: &self.edge)
      try writer.append(channel: channel, key: Int64(group), self.edge.bytes)
    }
    guard word.isHook || word.isRevision else { return }
    for emission in relationship.emissions {
      hookWords[emission.group, default: []].formUnion(word.hookWords(side: emission.side))
    }
  }

  // MARK: Relationships by mapping

  override func linkByDefault(_ destination: ObjectReference) throws {
    guard !mapping.links.isEmpty else { return }
    guard try working(destination) != nil else {
      throw PolicyError.notNow("createRelationships sets those of the object at hand only")
    }
    guard let source = try source(of: destination) else { return }
    try defaults.find(source, for: destination) { property, targets in
      // Anew each time: an expression may have asked for other objects, and this one made room.
      guard let own = try working(destination), let number = own.kind.relationships[property] else {
        return
      }
      let relationship = own.kind.plan.relationships[number]
      if !relationship.isToMany, targets.count > 1, !isDecisive(relationship) {
        dropped.add(targets.count - 1, own, number, key: destination.primaryKey)
      }
      let isRevision = objects.targets(own, number) != nil
      try say(
        RelationshipWord(kind: .whole, isHook: false, isRevision: isRevision), targets, number, own)
      objects.set(relationship.isToMany ? targets : Array(targets.prefix(1)), own, number)
    }
  }

  /// Pairs of such relationships are counted where they are sorted.
  private func isDecisive(_ relationship: DestinationRelationship) -> Bool {
    let groups = context.plan.mapped?.groups ?? []
    return relationship.emissions.contains { groups[$0.group].isDecisive }
  }

  private func source(of destination: ObjectReference) throws -> ObjectReference? {
    if let current, current.object == destination { return current.source }
    return try sources(mapping.name, [destination]).first
  }

  // MARK: The end

  func finish() throws -> ShardSummary {
    var summary = ShardSummary()
    let rows = PolicyRowWriter(writer: writer, ownTable: mapping.table)
    var buffer = RawBuffer(capacity: 4 << 10)
    for table in objects.tables {
      let plan = context.plan.tables[table]
      let columns = RowValues(count: plan.relationshipPlaces.count)
      var record = RawBuffer(capacity: 1 << 10)
      try objects.settle()
      let changed = objects.changed[table] ?? []
      try objects.forEach(in: table) { ordinal, attributes, _, links in
        guard let kind = DestinationObjects.kind(of: attributes, kinds) else { return }
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
    summary.hookWords = hookWords.isEmpty ? nil : hookWords
    summary.findings = defaults.findings
    summary.losses = dropped.losses
    summary.userInfo = changedUserInfo
    return summary
  }
}
