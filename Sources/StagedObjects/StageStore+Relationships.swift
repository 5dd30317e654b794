import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

extension StageStore {
  func members(
    of relationship: StageRelationship, _ object: ObjectReference
  ) throws -> [ObjectReference] {
    try relationship.members(of: object.primaryKey, self)
  }

  /// The inverse of a relationship, reached from an object on its other side.
  private func inverse(
    of relationship: StageRelationship, on object: ObjectReference
  ) throws -> StageRelationship? {
    guard let inverse = relationship.inverse,
      case .relationship(let found) = try place(of: inverse.description.name, in: object.entity)
    else { return nil }
    return found
  }

  /// The objects that a value names, each once.
  func targets(
    _ value: ExpressionValue, _ relationship: StageRelationship, _ object: ObjectReference
  ) throws -> [ObjectReference] {
    let name = relationship.description.name
    guard try exists(object) else { throw missing(object, name) }
    let listed: [ExpressionValue]
    switch (value, value.members) {
    case (.null, _): listed = []
    case (.object, _) where !relationship.description.isToMany: listed = [value]
    case (_, let members?) where relationship.description.isToMany: listed = members
    default:
      let wanted = relationship.description.isToMany ? "objects" : "an object, or nil"
      throw refused(object, name, "the relationship is set to \(wanted)")
    }
    var seen: Set<ObjectReference> = []
    var targets: [ObjectReference] = []
    for value in listed {
      guard case .object(let named) = value,
        model.isKind(named.entity, of: relationship.description.destinationEntity)
      else {
        throw refused(
          object, name,
          "its objects are of the entity \(relationship.description.destinationEntity)")
      }
      // A reference may come from the stage's other handler.
      let target = ObjectReference(named.entity, named.primaryKey, in: side)
      guard try exists(target) else { throw missing(target, "") }
      if seen.insert(target).inserted { targets.append(target) }
    }
    return targets
  }

  /// Sets a relationship, and keeps its inverse.
  func set(
    _ relationship: StageRelationship, to targets: [ObjectReference], _ object: ObjectReference
  ) throws {
    let current = try members(of: relationship, object)
    guard current != targets else {
      // A reference to what does not exist is not a member, and may be cleared.
      if !relationship.description.isToMany, targets.isEmpty {
        try clear(relationship, of: object)
      }
      return
    }
    try whole { try replace(current, with: targets, relationship, object) }
  }

  private func replace(
    _ current: [ObjectReference], with targets: [ObjectReference],
    _ relationship: StageRelationship, _ object: ObjectReference
  ) throws {
    let (kept, wanted) = (Set(targets), Set(current))
    for old in current where !kept.contains(old) {
      try relationship.disconnect(object, old, self)
      try letGo(old, of: object, relationship)
      try note(old)
    }
    for (index, target) in targets.enumerated() where !wanted.contains(target) {
      try takeFromOthers(target, relationship, object)
      try relationship.connect(
        object, target, place: try place(index, target, relationship), self)
      if let inverse = try inverse(of: relationship, on: target), isOneToOne(relationship, inverse)
      {
        try inverse.connect(target, object, place: nil, self)
      }
      try note(target)
    }
    if relationship.description.isToMany, relationship.storage.orderColumn != nil {
      for (index, target) in targets.enumerated()
      where try relationship.move(target, of: object, to: StageOrder.place(index)) {
        try note(target)
      }
    }
    try note(object)
  }

  package func add(
    _ member: ObjectReference, toKey key: String, of object: ObjectReference
  ) throws {
    guard case .relationship(let relationship) = try place(of: key, in: object.entity),
      relationship.description.isToMany
    else { throw refused(object, key, "it is not a to-many relationship") }
    for target in try targets(.array([.object(member)]), relationship, object)
    where try !relationship.has(object, target) {
      try whole {
        try takeFromOthers(target, relationship, object)
        try relationship.connect(
          object, target, place: try relationship.nextPlace(of: object), self)
        try note(target)
        try note(object)
      }
    }
  }

  /// The place that goes into a pair's order column: the target's in an ordered to-many, the
  /// object's own in its target's list where the inverse is one.
  private func place(
    _ index: Int, _ target: ObjectReference, _ relationship: StageRelationship
  ) throws -> Int64? {
    if relationship.description.isToMany {
      return relationship.storage.orderColumn == nil ? nil : StageOrder.place(index)
    }
    guard relationship.storage.inverseOrderColumn != nil else { return nil }
    return try relationship.lastPlace(inListOf: target.primaryKey) + StageOrder.step
  }

  private func isOneToOne(_ relationship: StageRelationship, _ inverse: StageRelationship) -> Bool {
    !relationship.description.isToMany && !inverse.description.isToMany
  }

  /// Clears the other column of a one-to-one relationship, where it names the object.
  private func letGo(
    _ old: ObjectReference, of object: ObjectReference, _ relationship: StageRelationship
  ) throws {
    guard let inverse = try inverse(of: relationship, on: old), isOneToOne(relationship, inverse),
      try members(of: inverse, old) == [object]
    else { return }
    try inverse.disconnect(old, object, self)
  }

  /// A member that can have one owner only is taken from the one that it has.
  private func takeFromOthers(
    _ target: ObjectReference, _ relationship: StageRelationship, _ object: ObjectReference
  ) throws {
    guard !relationship.storage.isJoinTable else { return }
    let isOne = try inverse(of: relationship, on: target).map { !$0.description.isToMany }
    // Without an inverse, a to-many has its member in a column all the same; a to-one shares it.
    guard isOne ?? relationship.description.isToMany else { return }
    for owner in try relationship.owners(of: target.primaryKey, self) where owner != object {
      try relationship.disconnect(owner, target, self)
      try note(owner)
    }
  }

  private func clear(_ relationship: StageRelationship, of object: ObjectReference) throws {
    let column = StageColumn(
      AttributeDescription(traits: PropertyTraits(name: ""), type: .integer64),
      table: relationship.storage.table, column: relationship.storage.targetColumn)
    guard try !stored(column, object, relationship.description.name).isNull else { return }
    try relationship.disconnect(object, object, self)
    try note(object)
  }
}
