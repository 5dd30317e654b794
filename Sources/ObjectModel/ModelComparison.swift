/// Compares two models; the working part of ``ModelDifference``.
struct ModelComparison {
  typealias Change = ModelDifference.Change
  typealias Aspect = ModelDifference.Aspect

  private let source: EntityHierarchy
  private let destination: EntityHierarchy
  private let sourceHashes: [EntityName: VersionHash]
  private let destinationHashes: [EntityName: VersionHash]
  /// Mapping key → entity.
  private let sourceByKey: [String: EntityName]
  private let destinationByKey: [String: EntityName]

  init(source: EntityHierarchy, destination: EntityHierarchy) {
    self.source = source
    self.destination = destination
    sourceHashes = source.versionHashes
    destinationHashes = destination.versionHashes
    func byKey(_ hierarchy: EntityHierarchy) -> [String: EntityName] {
      Dictionary(hierarchy.model.entities.map { ($0.mappingKey, $0.name) }) { first, _ in first }
    }
    sourceByKey = byKey(source)
    destinationByKey = byKey(destination)
  }

  func entities() -> [ModelDifference.EntityDifference] {
    var found: [ModelDifference.EntityDifference] = []
    var matched: Set<EntityName> = []
    for entity in destination.model.entities {
      guard let name = sourceByKey[entity.mappingKey], matched.insert(name).inserted,
        let before = source[name]
      else {
        found.append(whole(entity, .added))
        continue
      }
      let changes = changes(before, entity)
      let properties = properties(before, entity)
      // An ancestor's change is in the hash as well; then the entity counts as changed too.
      let hashChanged =
        before.name != entity.name || sourceHashes[name] != destinationHashes[entity.name]
      if !changes.isEmpty || !properties.isEmpty || hashChanged {
        found.append(
          .init(
            kind: .changed, source: before.name, destination: entity.name, changes: changes,
            properties: properties, hashChanged: hashChanged))
      }
    }
    for entity in source.model.entities where !matched.contains(entity.name) {
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
    guard let name, let entity = source[name] else { return name?.rawValue }
    return (destinationByKey[entity.mappingKey] ?? name).rawValue
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
    aspects.filter { $0.1 != $0.2 }.map { Change(aspect: $0.0, before: $0.1, after: $0.2) }
  }

  /// Own properties of the two; one that is inherited on the other side corresponds too.
  private func properties(
    _ before: EntityDescription, _ after: EntityDescription
  ) -> [ModelDifference.PropertyDifference] {
    func keyed(_ declared: [EntityHierarchy.Declared]) -> [String: EntityHierarchy.Declared] {
      Dictionary(declared.map { ($0.property.traits.mappingKey, $0) }) { a, _ in a }
    }
    let all = keyed(source.properties(of: before.name))
    let allAfter = keyed(destination.properties(of: after.name))
    var found: [ModelDifference.PropertyDifference] = []
    for property in after.properties {
      guard let old = all[property.traits.mappingKey],
        old.property.isSameKind(as: property)
      else {
        found.append(whole(property, .added))
        continue
      }
      let changes = changes(old, .init(entity: after.name, property: property))
      if !changes.isEmpty { found.append(changed(old.property, property, changes)) }
    }
    for property in before.properties {
      let old = EntityHierarchy.Declared(entity: before.name, property: property)
      guard let new = allAfter[property.traits.mappingKey],
        new.property.isSameKind(as: property)
      else {
        found.append(whole(property, .removed))
        continue
      }
      // Own here, inherited there: it moved up. Both own was told above.
      guard new.entity != after.name else { continue }
      let changes = changes(old, new)
      if !changes.isEmpty { found.append(changed(property, new.property, changes)) }
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

  /// The inverse by its mapping key: renaming it is no change of this side.
  private func inverseKey(
    of relationship: RelationshipDescription, in hierarchy: EntityHierarchy
  ) -> String? {
    hierarchy.inverse(of: relationship)?.relationship.traits.mappingKey
      ?? relationship.inverseName
  }
}

extension PropertyDescription {
  /// An attribute and a relationship of one name do not correspond.
  fileprivate func isSameKind(as other: PropertyDescription) -> Bool {
    switch (self, other) {
    case (.attribute, .attribute), (.relationship, .relationship),
      (.fetchedProperty, .fetchedProperty):
      true
    default: false
    }
  }
}

extension Bool {
  var word: String { self ? "yes" : "no" }
}
