import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

extension PolicyStageEngine {
  final func kind(of entity: EntityName) throws -> DestinationKind {
    guard let kind = kinds[entity] else { throw PolicyError.unknownEntity(entity.rawValue) }
    return kind
  }

  final func reference(_ target: LinkTargets.Target) -> ObjectReference? {
    kinds[target.entity].map { ObjectReference($0.plan.entity, target.key, in: .destination) }
  }

  /// The members of a relationship as an expression's value.
  final func value(
    _ targets: [LinkTargets.Target], _ relationship: DestinationRelationship
  ) -> ExpressionValue {
    let objects = targets.compactMap(reference).map { ExpressionValue.object($0) }
    if !relationship.isToMany { return objects.first ?? .null }
    return relationship.isOrdered ? .orderedSet(of: objects) : .set(of: objects)
  }

  /// What a policy sets a relationship to.
  final func targets(
    _ value: ExpressionValue, _ relationship: DestinationRelationship, _ object: ObjectReference
  ) throws -> [LinkTargets.Target] {
    func unacceptable(_ reason: String) -> PolicyError {
      .unacceptable(
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: relationship.name,
        reason: reason)
    }
    var found: [LinkTargets.Target] = []
    func take(_ member: ExpressionValue) throws {
      guard case .object(let target) = member else {
        throw unacceptable("its members are objects")
      }
      guard target.store == .destination, let kind = kinds[target.entity] else {
        throw unacceptable("an object of the source cannot be its member. Take what became of it")
      }
      guard relationship.allowed.contains(kind.plan.number) else {
        throw unacceptable("\(target.entity) is none of its entities")
      }
      found.append(LinkTargets.Target(entity: kind.plan.number, key: target.primaryKey))
    }
    switch value {
    case .null: break
    case .object: try take(value)
    default:
      guard relationship.isToMany else { throw unacceptable("a to-one relationship takes one") }
      guard let members = value.members else { throw unacceptable("its members are objects") }
      for member in members { try take(member) }
    }
    return found
  }

  /// A value as an attribute takes it.
  final func assigned(
    _ value: ExpressionValue, _ kind: DestinationKind, _ number: Int, _ object: ObjectReference
  ) throws -> ExpressionValue {
    do {
      return try value.assigned(to: kind.columns[number].type)
    } catch let problem {
      throw PolicyError.unacceptable(
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object),
        key: kind.plan.attributes[number].name, reason: "\(problem)")
    }
  }

  /// What a value makes of the elements of a composite attribute; nil where there is no such attribute.
  private func elements(
    _ value: ExpressionValue, _ key: String, _ kind: DestinationKind, _ object: ObjectReference
  ) throws -> [(number: Int, value: ExpressionValue)]? {
    do {
      return try kind.composites.elements(of: key, in: value)?.map { number, value in
        (number: number, value: try assigned(value, kind, number, object))
      }
    } catch let problem as EvaluationProblem {
      throw PolicyError.unacceptable(
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: key,
        reason: "\(problem)")
    }
  }

  /// The value of a property that a shard's own objects have.
  final func read(_ key: String, _ working: WorkingObject, _ objects: DestinationObjects) throws
    -> ExpressionValue?
  {
    let kind = working.kind
    if let number = kind.attributes[key] { return try attribute(number, working, objects) }
    guard let number = kind.relationships[key] else {
      return try kind.composites.value(of: key) { try attribute($0, working, objects) }
    }
    return value(objects.targets(working, number) ?? [], kind.plan.relationships[number])
  }

  private func attribute(
    _ number: Int, _ working: WorkingObject, _ objects: DestinationObjects
  ) throws -> ExpressionValue {
    switch objects.value(working, number) {
    case .value(let value): return value
    case .raw(let raw):
      let column = working.kind.columns[number]
      return try stored.value(
        raw, type: column.type, isExternal: column.isExternal,
        ObjectReference(working.kind.plan.entity, working.ordinal, in: .destination))
    }
  }

  /// Has derived attributes follow what is set, as Core Data does when it saves.
  final func derive(
    in objects: DestinationObjects, _ reference: @escaping (WorkingObject) -> ObjectReference
  ) {
    objects.derive = { [unowned self, unowned objects] derivation, working in
      let reader = stored.readDestination
      defer { stored.readDestination = reader }
      stored.readDestination = { key, _ in try self.read(key, working, objects) }
      var scope = EvaluationScope(
        entityMapping: mapping.name, property: derivation.description.name)
      scope.evaluatedObject = .object(reference(working))
      return try Evaluator(access: stored, runDate: context.mapped.runDate).attributeValue(
        of: derivation.expression, for: derivation.description, in: scope)
    }
  }

  final func set(
    _ value: ExpressionValue, _ key: String, _ working: WorkingObject,
    _ objects: DestinationObjects, _ object: ObjectReference
  ) throws {
    let kind = working.kind
    if let number = kind.attributes[key] {
      objects.set(try assigned(value, kind, number, object), working, attribute: number)
    } else if let number = kind.relationships[key] {
      let relationship = kind.plan.relationships[number]
      let found = try targets(value, relationship, object)
      let isRevision = relationship.isToMany && objects.targets(working, number) != nil
      try say(RelationshipWord(kind: .whole, isRevision: isRevision), found, number, working)
      objects.set(found, working, number)
    } else if let elements = try elements(value, key, kind, object) {
      for (number, value) in elements { objects.set(value, working, attribute: number) }
    } else {
      throw PolicyError.unknownKey(
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: key)
    }
  }

  /// The number of a to-many relationship.
  final func toMany(
    _ key: String, _ kind: DestinationKind, _ object: ObjectReference
  ) throws -> Int {
    guard let number = kind.relationships[key], kind.plan.relationships[number].isToMany else {
      throw PolicyError.unacceptable(
        entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: key,
        reason: "it is not a to-many relationship")
    }
    return number
  }

  /// Where the object is a member because its own side says so, it is taken away when the sides
  /// are brought together.
  final func remove(
    _ member: ObjectReference, _ key: String, _ working: WorkingObject,
    _ objects: DestinationObjects, _ object: ObjectReference
  ) throws {
    let number = try toMany(key, working.kind, object)
    let gone = try targets(.object(member), working.kind.plan.relationships[number], object)
    try say(RelationshipWord(kind: .removed), gone, number, working)
    guard let members = objects.targets(working, number) else { return }
    let left = members.filter { !gone.contains($0) }
    if left.count < members.count { objects.set(left, working, number) }
  }

  final func add(
    _ member: ObjectReference, _ key: String, _ working: WorkingObject,
    _ objects: DestinationObjects, _ object: ObjectReference
  ) throws {
    let number = try toMany(key, working.kind, object)
    let added = try targets(.object(member), working.kind.plan.relationships[number], object)
    let members = objects.targets(working, number)?.count ?? 0
    try say(RelationshipWord(kind: .added, members: members), added, number, working)
    for target in added { objects.add(target, working, number) }
  }
}
