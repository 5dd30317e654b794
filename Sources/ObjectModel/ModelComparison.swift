/// Compares two models; the working part of ``ModelDifference``.
struct ModelComparison {
  typealias Change = ModelDifference.Change
  typealias Aspect = ModelDifference.Aspect

  private let source: EntityHierarchy
  private let destination: EntityHierarchy
  private let sourceHashes: [EntityName: VersionHash]
  private let destinationHashes: [EntityName: VersionHash]
  /// Destination entity → source entity, and back.
  private let predecessors: [EntityName: EntityName]
  private let successors: [EntityName: EntityName]

  init(source: EntityHierarchy, destination: EntityHierarchy) {
    self.source = source
    self.destination = destination
    sourceHashes = source.versionHashes
    destinationHashes = destination.versionHashes
    let (old, new) = (source.model.entities, destination.model.entities)
    let pairs = Self.pairs(
      old.map { ($0.name.rawValue, NameKey($0.mappingKey)) },
      new.map { ($0.name.rawValue, NameKey($0.mappingKey)) }
    ).map { (old[$0].name, new[$1].name) }
    predecessors = Dictionary(pairs.map { ($1, $0) }) { a, _ in a }
    successors = Dictionary(pairs) { a, _ in a }
  }

  /// The places of items that correspond: those with one key. Of several, those of one name first,
  /// so that a model is equal to itself, then the others in their order.
  private static func pairs<Key: Hashable>(
    _ before: [(name: String, key: Key)], _ after: [(name: String, key: Key)]
  ) -> [(Int, Int)] {
    var left: [Key: [Int]] = [:]
    for (place, item) in before.enumerated() { left[item.key, default: []].append(place) }
    var found: [(Int, Int)] = []
    var others: [Int] = []
    for (place, item) in after.enumerated() {
      let same = left[item.key]?.firstIndex { before[$0].name.isSameName(as: item.name) }
      if let same, let old = left[item.key]?.remove(at: same) {
        found.append((old, place))
      } else {
        others.append(place)
      }
    }
    for place in others where left[after[place].key]?.isEmpty == false {
      if let old = left[after[place].key]?.removeFirst() { found.append((old, place)) }
    }
    return found
  }

  func entities() -> [ModelDifference.EntityDifference] {
    var found: [ModelDifference.EntityDifference] = []
    for entity in destination.model.entities {
      guard let before = predecessors[entity.name].flatMap({ source[$0] }) else {
        found.append(whole(entity, .added))
        continue
      }
      let changes = changes(before, entity)
      let properties = properties(before, entity)
      // An ancestor's change is in the hash as well; then the entity counts as changed too.
      let hashChanged =
        before.name != entity.name || sourceHashes[before.name] != destinationHashes[entity.name]
      if !changes.isEmpty || !properties.isEmpty || hashChanged {
        found.append(
          .init(
            kind: .changed, source: before.name, destination: entity.name, changes: changes,
            properties: properties, hashChanged: hashChanged))
      }
    }
    for entity in source.model.entities where successors[entity.name] == nil {
      found.append(whole(entity, .removed))
    }
    return found.sorted {
      ($0.destination ?? $0.source ?? "", $0.kind.rawValue) < (
        $1.destination ?? $1.source ?? "", $1.kind.rawValue
      )
    }
  }

  private func whole(
    _ entity: EntityDescription, _ kind: ModelDifference.Kind
  ) -> ModelDifference.EntityDifference {
    .init(
      kind: kind, source: kind == .removed ? entity.name : nil,
      destination: kind == .added ? entity.name : nil, changes: [],
      properties: entity.properties.map { whole($0, kind) }, hashChanged: true)
  }

  private func whole(
    _ property: PropertyDescription, _ kind: ModelDifference.Kind
  ) -> ModelDifference.PropertyDifference {
    .init(
      kind: kind, source: kind == .removed ? property.name : nil,
      destination: kind == .added ? property.name : nil,
      summary: PropertyAspects.summary(of: property), changes: [])
  }

  /// The source entity's name in the destination, so that renaming an entity does not show
  /// again at everything that leads to it.
  private func translated(_ name: EntityName?) -> String? {
    name.map { (successors[$0] ?? $0).rawValue }
  }

  private func changes(_ before: EntityDescription, _ after: EntityDescription) -> [Change] {
    func names(_ lists: [[String]]) -> String? {
      lists.map { $0.joined(separator: ", ") }.sorted { $0.precedesInBytes($1) }
        .joined(separator: " | ").nonEmpty
    }
    return Self.differing([
      (.name, before.name.rawValue, after.name.rawValue),
      (.superentity, translated(before.superentity), after.superentity?.rawValue),
      (.isAbstract, before.isAbstract.word, after.isAbstract.word),
      (.className, before.managedObjectClassName, after.managedObjectClassName),
      (.versionHashModifier, before.versionHashModifier, after.versionHashModifier),
      (
        .uniquenessConstraints, names(before.uniquenessConstraints),
        names(after.uniquenessConstraints)
      ),
      (
        .fetchIndexes, PropertyAspects.text(of: before.fetchIndexes),
        PropertyAspects.text(of: after.fetchIndexes)
      ),
      (
        .userInfo, PropertyAspects.text(of: before.userInfo),
        PropertyAspects.text(of: after.userInfo)
      ),
    ])
  }

  static func differing(_ aspects: [(Aspect, String?, String?)]) -> [Change] {
    aspects.filter { !$0.1.isSameName(as: $0.2) }.map {
      Change(aspect: $0.0, before: $0.1, after: $0.2)
    }
  }

  /// Own properties of the two; one that is inherited on the other side corresponds too.
  private func properties(
    _ before: EntityDescription, _ after: EntityDescription
  ) -> [ModelDifference.PropertyDifference] {
    let (old, new) = (source.properties(of: before.name), destination.properties(of: after.name))
    func keyed(_ declared: [EntityHierarchy.Declared]) -> [(String, PropertyKey)] {
      declared.map { ($0.property.name, PropertyKey($0.property)) }
    }
    let pairs = Self.pairs(keyed(old), keyed(new))
    var found: [ModelDifference.PropertyDifference] = []
    for (a, b) in pairs where old[a].entity == before.name || new[b].entity == after.name {
      let changes = changes(old[a], new[b])
      if !changes.isEmpty { found.append(changed(old[a].property, new[b].property, changes)) }
    }
    let (known, made) = (Set(pairs.map(\.0)), Set(pairs.map(\.1)))
    for place in new.indices where new[place].entity == after.name && !made.contains(place) {
      found.append(whole(new[place].property, .added))
    }
    for place in old.indices where old[place].entity == before.name && !known.contains(place) {
      found.append(whole(old[place].property, .removed))
    }
    return found.sorted {
      let (a, b) = ($0.destination ?? $0.source ?? "", $1.destination ?? $1.source ?? "")
      return a == b ? $0.kind.rawValue > $1.kind.rawValue : a.precedesInBytes(b)
    }
  }

  private func changed(
    _ before: PropertyDescription, _ after: PropertyDescription, _ changes: [Change]
  ) -> ModelDifference.PropertyDifference {
    .init(
      kind: .changed, source: before.name, destination: after.name, summary: nil,
      changes: changes)
  }

  private func changes(
    _ before: EntityHierarchy.Declared, _ after: EntityHierarchy.Declared
  ) -> [Change] {
    let owner = Self.differing([
      (.declaringEntity, translated(before.entity), after.entity.rawValue)
    ])
    var relation: [Change] = []
    if let old = before.property.relationship, let new = after.property.relationship {
      relation = Self.differing([
        (
          .destination, translated(old.destinationEntity), new.destinationEntity.rawValue
        ),
        (.inverse, inverseKey(of: old, in: source), inverseKey(of: new, in: destination)),
      ])
    }
    return owner + PropertyAspects.changes(before.property, after.property) + relation
  }

  /// The inverse by its mapping key: renaming it is not a change of this side.
  private func inverseKey(
    of relationship: RelationshipDescription, in hierarchy: EntityHierarchy
  ) -> String? {
    hierarchy.inverse(of: relationship)?.relationship.traits.mappingKey
      ?? relationship.inverseName
  }
}

/// What two properties must agree on to correspond: an attribute never becomes a relationship.
private struct PropertyKey: Hashable {
  let kind: String
  let identifier: NameKey

  init(_ property: PropertyDescription) {
    kind = property.kindName
    identifier = NameKey(property.traits.mappingKey)
  }
}

extension Bool {
  var word: String { self ? "yes" : "no" }
}
