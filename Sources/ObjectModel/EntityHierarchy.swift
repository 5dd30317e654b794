/// What follows from a model's inheritance: numbers, trees, inherited properties, inverses.
///
/// Built once for a model and asked often; every look-up is O(1) in the number of entities.
/// Source: `core-data-sqlite-format.md` §2 (numbering), §4 (one table a root entity).
package struct EntityHierarchy: Sendable {
  /// A property and the entity that declares it.
  package struct Declared: Sendable, Equatable {
    /// The entity whose description lists the property.
    package let entity: EntityName
    /// The property as that entity declares it.
    package let property: PropertyDescription

    /// Pairs a property with the entity that declares it. Nothing is checked.
    package init(entity: EntityName, property: PropertyDescription) {
      self.entity = entity
      self.property = property
    }
  }

  /// The model that all of this was computed from.
  package let model: ManagedObjectModel
  /// Version hashes that count instead of the computed ones, since Core Data's own are known; most often none.
  package let recordedHashes: [EntityName: VersionHash]
  /// Every entity in the order of its number: depth first, roots and siblings by name without
  /// regard to case.
  package let order: [EntityName]
  /// `Z_ENT` of each entity, from 1.
  package let numbers: [EntityName: Int]
  /// Entities without superentity, in number order.
  package let roots: [EntityName]

  private let descriptions: [EntityName: EntityDescription]
  private let subtrees: [EntityName: [EntityName]]
  private let rootOf: [EntityName: EntityName]
  private let allProperties: [EntityName: [Declared]]
  private let propertyIndex: [EntityName: [NameKey: Int]]
  /// Shared by all copies: one object for one computed hierarchy.
  package let hashes: Memo<[EntityName: VersionHash]>
  let modelCache: Memo<[UInt8]>

  /// 4 million places in all subtrees: what grows with the square of a hostile model. The largest
  /// model seen has a few thousand.
  package static let sizeLimit = 4_000_000
  /// Properties of all entities with inherited ones: as much, and each is looked at many times.
  package static let propertyLimit = 250_000

  /// The entities of a model, each with what it inherits.
  ///
  /// - Throws: ``ModelError`` when inheritance goes in a circle, a superentity is not in the
  ///   model, two entities have one name, or ``sizeLimit``
  ///   or ``propertyLimit`` is passed.
  package init(
    _ model: ManagedObjectModel, recordedHashes: [EntityName: VersionHash] = [:]
  ) throws {
    self.model = model
    self.recordedHashes = recordedHashes
    (hashes, modelCache) = (Memo(), Memo())
    var descriptions: [EntityName: EntityDescription] = [:]
    var children: [EntityName: [EntityName]] = [:]
    var top: [EntityName] = []
    for entity in model.entities {
      guard descriptions.updateValue(entity, forKey: entity.name) == nil else {
        throw ModelError.duplicateEntity(entity.name)
      }
    }
    for entity in model.entities {
      guard let parent = entity.superentity else {
        top.append(entity.name)
        continue
      }
      guard descriptions[parent] != nil else {
        throw ModelError.unknownSuperentity(entity: entity.name, superentity: parent)
      }
      children[parent, default: []].append(entity.name)
    }
    let byName = { (a: EntityName, b: EntityName) in
      let (x, y) = (a.rawValue.lowercased(), b.rawValue.lowercased())
      return x == y ? a < b : x.precedesInBytes(y)
    }
    top.sort(by: byName)
    var order: [EntityName] = []
    var subtrees: [EntityName: [EntityName]] = [:]
    var rootOf: [EntityName: EntityName] = [:]
    // An explicit stack: a hostile model may nest as deep as it likes.
    for root in top {
      var stack = [root]
      while let name = stack.popLast() {
        order.append(name)
        rootOf[name] = root
        stack.append(contentsOf: (children[name] ?? []).sorted(by: byName).reversed())
      }
    }
    guard order.count == descriptions.count else {
      let lost = model.entities.map(\.name).filter { rootOf[$0] == nil }
      throw ModelError.circularInheritance(lost)
    }
    var sizes: [EntityName: Int] = [:]
    for name in order.reversed() {
      sizes[name] = 1 + (children[name] ?? []).reduce(0) { $0 + (sizes[$1] ?? 0) }
    }
    guard sizes.values.reduce(0, +) <= Self.sizeLimit else {
      throw ModelError.tooLarge(
        what: "entities with those they inherit from", limit: Self.sizeLimit)
    }
    for (index, name) in order.enumerated() {
      subtrees[name] = Array(order[index..<(index + (sizes[name] ?? 1))])
    }
    var all: [EntityName: [Declared]] = [:]
    var indexes: [EntityName: [NameKey: Int]] = [:]
    var listedCount = 0
    for name in order {
      guard let entity = descriptions[name] else { continue }
      var listed = entity.superentity.flatMap { all[$0] } ?? []
      var index = entity.superentity.flatMap { indexes[$0] } ?? [:]
      for property in entity.properties {
        let declared = Declared(entity: name, property: property)
        if let place = index[NameKey(property.name)] {
          listed[place] = declared
        } else {
          index[NameKey(property.name)] = listed.count
          listed.append(declared)
        }
      }
      listedCount += listed.count
      guard listedCount <= Self.propertyLimit else {
        throw ModelError.tooLarge(
          what: "properties with inherited ones", limit: Self.propertyLimit)
      }
      all[name] = listed
      indexes[name] = index
    }
    self.descriptions = descriptions
    self.order = order
    self.numbers = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0 + 1) })
    self.roots = top
    self.subtrees = subtrees
    self.rootOf = rootOf
    self.allProperties = all
    self.propertyIndex = indexes
  }
}

extension EntityHierarchy {
  /// The description of an entity; nil where the model has none of the name.
  package subscript(name: EntityName) -> EntityDescription? { descriptions[name] }

  /// Whether the model has an entity of this name.
  package func contains(_ name: EntityName) -> Bool { descriptions[name] != nil }

  /// The entity whose table holds the objects of `name`; `name` itself where it is unknown.
  package func root(of name: EntityName) -> EntityName { rootOf[name] ?? name }

  /// The entity and everything below it, in number order.
  package func subtree(of name: EntityName) -> [EntityName] { subtrees[name] ?? [] }

  /// The entities of the subtree that may have objects.
  package func concrete(of name: EntityName) -> [EntityName] {
    subtree(of: name).filter { descriptions[$0]?.isAbstract == false }
  }

  /// Whether other entities inherit from this one. False for an unknown name.
  package func hasSubentities(_ name: EntityName) -> Bool { subtree(of: name).count > 1 }

  /// Whether `ancestor` is the entity itself or one that it inherits from, directly or not.
  package func isKind(_ name: EntityName, of ancestor: EntityName) -> Bool {
    var current: EntityName? = name
    while let entity = current {
      if entity == ancestor { return true }
      current = descriptions[entity]?.superentity
    }
    return false
  }

  /// The nearest entity that all of these are or inherit from; nil for none, and for those of several tables.
  package func common(of names: [EntityName]) -> EntityName? {
    var current = names.first
    while let entity = current, !names.allSatisfy({ isKind($0, of: entity) }) {
      current = descriptions[entity]?.superentity
    }
    return current
  }

  /// Whether Core Data may have numbered the entities so: by the rule, but for siblings of which a `_` or a letter that is
  /// not ASCII decides. How these stand to other letters is not known. Source: `core-data-sqlite-format.md` §2.
  package func mayHave(numbers: [EntityName: Int64]) -> Bool {
    let siblings = Dictionary(grouping: order) { self[$0]?.superentity }
      .mapValues { $0.sorted { numbers[$0] ?? 0 < numbers[$1] ?? 0 } }
    guard siblings.values.allSatisfy(Self.mayStandInOrder) else { return false }
    var next: Int64 = 1
    var stack = Array((siblings[nil as EntityName?] ?? []).reversed())
    while let name = stack.popLast() {
      guard numbers[name] == next else { return false }
      next += 1
      stack += (siblings[name] ?? []).reversed()
    }
    return true
  }

  /// Groups of names that begin alike are compared by their next byte alone, so that each byte is looked at once.
  private static func mayStandInOrder(_ names: [EntityName]) -> Bool {
    var groups = [(names: names.map { Array($0.rawValue.lowercased().utf8) }, place: 0)]
    while let (names, place) = groups.popLast() {
      let next = names.map { place < $0.count ? $0[place] : nil }
      let known = next.compactMap(\.self).filter { $0 < 0x80 && $0 != UInt8(ascii: "_") }
      // Where a name ends, it comes first.
      guard known == known.sorted(), !next.dropFirst().contains(nil) else { return false }
      let longer = names.filter { place < $0.count }
      for alike in Dictionary(grouping: longer, by: { $0[place] }).values where alike.count > 1 {
        groups.append((alike, place + 1))
      }
    }
    return true
  }

  /// Inherited properties first, then own ones; each level by name in byte order. An own
  /// property hides an inherited one of the same name.
  package func properties(of name: EntityName) -> [Declared] { allProperties[name] ?? [] }

  /// An own or inherited property of an entity; nil where it has none of the name.
  package func property(_ property: String, of name: EntityName) -> Declared? {
    guard let place = propertyIndex[name]?[NameKey(property)] else { return nil }
    return allProperties[name]?[place]
  }

  /// The inverse of a relationship with the entity that declares it, or nil.
  package func inverse(of relationship: RelationshipDescription) -> (
    entity: EntityName, relationship: RelationshipDescription
  )? {
    guard let name = relationship.inverseName,
      let found = property(name, of: relationship.destinationEntity),
      let inverse = found.property.relationship
    else { return nil }
    return (found.entity, inverse)
  }

  /// Whether a store has a place for the pairs of a relationship that the relationship itself says
  /// something about.
  ///
  /// A transient one has none. Nor has a to-many whose inverse is a transient to-one: its pairs
  /// would be the to-one's column. Of a many-to-many either side has the join table made, and of a
  /// one-to-one each side has a column of its own.
  /// Source: `core-data-sqlite-format.md` §4.3, §4.4, §7.
  package func storesPairs(of relationship: RelationshipDescription) -> Bool {
    guard !relationship.traits.isTransient else { return false }
    guard relationship.isToMany, relationship.inverseName != nil else { return true }
    guard let inverse = self.inverse(of: relationship)?.relationship else { return false }
    return inverse.isToMany || !inverse.traits.isTransient
  }
}
