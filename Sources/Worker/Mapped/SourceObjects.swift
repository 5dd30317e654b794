import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The source's objects and what became of them, for expressions that are evaluated as they are.
///
/// One row is at hand, that of the current source object; everything else is looked up by key.
final class SourceObjects: ObjectAccess {
  /// The relationship stage: what became of objects is known.
  enum Pass { case copy, link }

  let context: MappedContext
  private let stage: Pass
  /// The mapping at hand: mappings find each other within its pass.
  let pass: Int
  private let source: EntityName?
  private let external: ExternalData
  private let newExternal: ExternalData
  /// Where objects are read: the source, or the written destination.
  private let connection: Connection
  private let home: ObjectReference.Store
  /// Reads a destination object that a policy's shard has at hand.
  @exclusivity(unchecked) var readDestination:
    ((String, ObjectReference) throws -> ExpressionValue?)?
  /// `$manager.userInfo` as the policy at hand has it.
  @exclusivity(unchecked) var readUserInfo: (() -> [String: ExpressionValue])?
  /// What policies left in it, for mappings without one: known from the link stage on.
  @exclusivity(unchecked) private var carriedUserInfo: [String: ExpressionValue]?
  /// Answers `FUNCTION($entityPolicy, …)`; nil for a selector that is not the policy's.
  @exclusivity(unchecked) var policy: ((String, [ExpressionValue]) throws -> ExpressionValue?)?
  @exclusivity(unchecked) private var entities: [EntityName: Entity] = [:]
  @exclusivity(unchecked) private var recent: Entity?
  @exclusivity(unchecked) private var names: [Int64: EntityName] = [:]
  @exclusivity(unchecked) private var destinationNames: [Int64: EntityName] = [:]
  /// The values of the object at hand, in the order of its entity's attributes.
  @exclusivity(unchecked) private var current:
    (object: ObjectReference, values: UnsafePointer<RawValue>)?
  @exclusivity(unchecked) private var currentEntity: Entity?
  /// `$destination`, where expressions of the mapping speak of it.
  @exclusivity(unchecked) var destinationRow: DestinationRow?

  convenience init(_ context: MappedContext, _ mapping: EntityMappingPlan, stage: Pass) {
    self.init(
      context, mapping, stage: stage, home: .source, context.source,
      context.plan.mapped?.sourceEntities ?? [])
  }

  /// Reads the objects of the written destination.
  convenience init(
    _ context: MappedContext, _ mapping: EntityMappingPlan, written: Connection
  ) {
    self.init(
      context, mapping, stage: .link, home: .destination, written,
      context.plan.mapped?.writtenEntities ?? [])
  }

  private init(
    _ context: MappedContext, _ mapping: EntityMappingPlan, stage: Pass,
    home: ObjectReference.Store, _ connection: Connection, _ entities: [SourceEntityAccess]
  ) {
    self.context = context
    self.stage = stage
    self.home = home
    self.connection = connection
    pass = mapping.pass
    source = mapping.source
    external = ExternalData(folder: context.plan.externalDataPath)
    newExternal = ExternalData(folder: context.run.external.string)
    for access in entities {
      self.entities[access.entity] = Entity(access)
      names[access.number] = access.entity
    }
    for mapping in context.mappings {
      if let name = mapping.destination { destinationNames[mapping.destinationNumber] = name }
    }
  }

  /// - Parameter values: As many as the entity has ``SourceEntityAccess/attributes``; read until
  ///   the next object takes their place.
  func settle(on object: ObjectReference, _ values: UnsafePointer<RawValue>) {
    current = (object, values)
    if currentEntity?.access.entity != object.entity { currentEntity = entity(object.entity) }
  }

  /// Forgets the object at hand, whose row is gone.
  func unsettle() { current = nil }

  var managerUserInfo: [String: ExpressionValue] {
    get throws {
      if let known = readUserInfo?() ?? carriedUserInfo { return known }
      let carried = stage == .link ? try context.userInfo(before: .link) : [:]
      carriedUserInfo = carried
      return carried
    }
  }

  // MARK: Values

  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue? {
    guard object.store == home else {
      if let destinationRow, object == destinationRow.object {
        return try destinationRow.value(forKey: key)
      }
      if let readDestination { return try readDestination(key, object) }
      throw EvaluationProblem.access(
        "of destination objects only $destination can be read by an expression. Use the source's")
    }
    let values = current.flatMap { $0.object == object ? $0.values : nil }
    guard let entity = values == nil ? entity(object.entity) : currentEntity else { return nil }
    if let place = entity.attributes[key] {
      return try attribute(place, of: object, entity, values)
    }
    if let place = entity.relationships[key] {
      return try objects(place, of: object, entity)
    }
    if entity.unstored.contains(key) { return .null }
    return try entity.composites.value(of: key) { try attribute($0, of: object, entity, values) }
  }

  func isComposite(_ key: String, of object: ObjectReference) -> Bool {
    guard object.store == home else {
      return destinationRow?.object == object && destinationRow?.isComposite(key) == true
    }
    return entity(object.entity)?.composites.contains(key) == true
  }

  /// Most questions are about the same entity as the one before.
  private func entity(_ name: EntityName) -> Entity? {
    if let recent, recent.access.entity == name { return recent }
    recent = entities[name]
    return recent
  }

  /// - Parameter values: Of the object at hand; nil for another one, which is looked up.
  private func attribute(
    _ place: Int, of object: ObjectReference, _ entity: Entity, _ values: UnsafePointer<RawValue>?
  ) throws -> ExpressionValue {
    let column = entity.columns[place]
    if let values {
      return try value(values[place], type: column.type, isExternal: column.isExternal, object)
    }
    let statement = try rowStatement(entity)
    try statement.bind(1, object.primaryKey)
    defer { statement.reset() }
    guard try statement.step() else {
      if home == .source { return .null }
      throw Self.missing
    }
    var raw = RawValue.null
    statement.read(into: &raw, from: Int32(place), count: 1)
    return try value(raw, type: column.type, isExternal: column.isExternal, object)
  }

  /// A column's value as an attribute's. What has no marker, and is damaged, is taken as found.
  func value(
    _ raw: RawValue, type: AttributeType, isExternal: Bool, _ object: ObjectReference
  ) throws -> ExpressionValue {
    guard isExternal, raw.kind == .blob, let marker = RowRules.marker(of: raw.buffer) else {
      return try ExpressionValue(stored: raw, as: type)
    }
    guard marker == .file else { return .data(Array(raw.buffer.dropFirst())) }
    // A destination object's file may be the source's or a new one.
    if object.store == .destination {
      do {
        return .data(
          try newExternal.file(
            named: raw, entity: object.entity.rawValue, primaryKey: object.primaryKey))
      } catch is StageError {}
    }
    return .data(
      try external.file(
        named: raw, entity: object.entity.rawValue, primaryKey: object.primaryKey))
  }

  private static let missing = EvaluationProblem.access(
    "it is not in the destination, as objects that --invalid set-aside takes out are not")

  private func rowStatement(_ entity: Entity) throws -> Statement {
    if let known = entity.row { return known }
    let columns = entity.access.attributes.map { quoted($0.column) } + ["1"]
    let statement = try connection.prepare(
      "SELECT \(columns.joined(separator: ", ")) FROM \(quoted(entity.access.table)) WHERE Z_PK = ?1"
    )
    entity.row = statement
    return statement
  }

  private func objects(_ place: Int, of object: ObjectReference, _ entity: Entity) throws
    -> ExpressionValue
  {
    let relationship = entity.access.relationships[place]
    let statement = try entity.lists[place] ?? connection.prepare(relationship.sql())
    entity.lists[place] = statement
    try statement.bind(1, object.primaryKey)
    defer { statement.reset() }
    var found: [ExpressionValue] = []
    while try statement.step() {
      guard let name = names[statement.int64(1)] else { continue }
      found.append(.object(ObjectReference(name, statement.int64(0), in: home)))
      guard found.count <= EvaluationLimits.members else {
        throw EvaluationProblem.tooLarge(what: "members", limit: EvaluationLimits.members)
      }
    }
    // Nor has an object any that is not there itself.
    if found.isEmpty, home == .destination {
      let row = try rowStatement(entity)
      try row.bind(1, object.primaryKey)
      defer { row.reset() }
      guard try row.step() else { throw Self.missing }
    }
    if !relationship.isToMany { return found.first ?? .null }
    return relationship.isOrdered ? .orderedSet(of: found) : .set(of: found)
  }

  func uri(of object: ObjectReference) throws -> String {
    if stage == .copy, object.store == .destination {
      throw EvaluationProblem.access(
        "a new object has no URI yet. Use it in a relationship, or --uri-table")
    }
    let uuid =
      object.store == .source
      ? context.plan.mapped?.sourceUUID ?? "" : context.plan.control.storeUUID
    return ObjectURI.prefix(store: uuid, entity: object.entity.rawValue) + "\(object.primaryKey)"
  }

  // MARK: What became of objects

  func destinationInstances(
    forEntityMappingNamed mapping: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? {
    let found = context.mappings(named: mapping, pass: pass)
    return found.isEmpty ? nil : try instances(of: found, sourceInstances)
  }

  func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? {
    guard let own = source.flatMap({ entities[$0] }),
      let place = own.relationships[relationship]
    else { return nil }
    let targets = Set(own.access.relationships[place].destinationEntities)
    let found = context.mappings.indices.filter { index in
      let mapping = context.mappings[index]
      return mapping.pass == pass && mapping.source.map(targets.contains) ?? false
    }
    return try instances(of: found, sourceInstances)
  }

  private func instances(of mappings: [Int], _ sources: [ObjectReference]?) throws
    -> [ObjectReference]
  {
    try requireLinks()
    // A to-one relationship that is nil leads to nothing, not to all.
    guard let sources else { return [] }
    var found: [ObjectReference] = []
    var seen: Set<ObjectReference> = []
    for object in sources {
      for index in mappings {
        let mapping = context.mappings[index]
        if mapping.policy != nil {
          try forEachDestination(of: object, mapping: index) {
            if seen.insert($0).inserted { found.append($0) }
          }
          continue
        }
        guard object.store == .source, mapping.source == object.entity,
          let name = mapping.destination,
          let key = try context.association(index).destination(of: object.primaryKey)
        else { continue }
        let reference = ObjectReference(name, key, in: .destination)
        if seen.insert(reference).inserted { found.append(reference) }
      }
    }
    return found
  }

  func sourceInstances(
    forEntityMappingNamed mapping: String, destinationInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? {
    let found = context.mappings(named: mapping, pass: pass)
    guard !found.isEmpty else { return nil }
    try requireLinks()
    var sources: [ObjectReference] = []
    // Of one object, a mapping's sources come once.
    let isOne = found.count == 1 && destinationInstances?.count == 1
    var seen: Set<ObjectReference> = []
    for object in destinationInstances ?? [] where object.store == .destination {
      for index in found where context.mappings[index].policy != nil {
        try forEachSource(of: object, mapping: index) {
          if isOne || seen.insert($0).inserted { sources.append($0) }
        }
      }
      for index in found
      where context.mappings[index].policy == nil
        && context.mappings[index].destination == object.entity
      {
        guard let name = context.mappings[index].source,
          let key = try context.association(index).source(of: object.primaryKey)
        else { continue }
        let reference = ObjectReference(name, key, in: .source)
        if isOne || seen.insert(reference).inserted { sources.append(reference) }
      }
    }
    return sources
  }

  private func requireLinks() throws {
    guard stage == .link else {
      throw EvaluationProblem.access(
        "what became of other objects is known in relationships only, when all are there")
    }
  }

  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) throws -> [ObjectReference]? {
    var objects: [ObjectReference] = []
    let isKnown = try forEachKey(of: entity) { object in
      if try holds(object) { objects.append(object) }
      guard objects.count <= EvaluationLimits.members else {
        throw EvaluationProblem.tooLarge(what: "members", limit: EvaluationLimits.members)
      }
    }
    return isKnown ? objects : nil
  }

  /// Calls the body with every object of an entity, without those of its sub-entities.
  ///
  /// - Returns: False when there is no such entity.
  func forEachKey(
    of entity: EntityName, _ body: (ObjectReference) throws -> Void
  ) throws -> Bool {
    guard let found = entities[entity] else { return false }
    let statement = try connection.prepare(
      "SELECT Z_PK FROM \(quoted(found.access.table)) WHERE Z_ENT = ?1 ORDER BY Z_PK")
    try statement.bind(1, found.access.number)
    while try statement.step() {
      try body(ObjectReference(entity, statement.int64(0), in: home))
    }
    return true
  }
}
