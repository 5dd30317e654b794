import GodwitObjectModel

/// What becomes of a source model's entities and properties when nobody has written a mapping
/// model; and the reasons why that may be impossible.
///
/// Two items correspond when their renaming identifiers are equal; an item without one has its
/// own name for an identifier. An explicit identifier *replaces* the name: a destination `bar`
/// with the identifier `foo` is the source's `foo`, never its `bar`. Entities are matched first,
/// then the properties within matched entities, inherited ones included, so that a property may
/// move between parent and child.
///
/// Source: `core-data-migration.md` §2.
package struct InferredMapping: Sendable {
  /// The model that the store is written under.
  package let source: EntityHierarchy
  /// The model that the store is migrated to.
  package let destination: EntityHierarchy
  /// Destination entity → the source entity that it comes from.
  package private(set) var entityPairs: [EntityName: EntityName] = [:]
  /// Source entity → the destination entity that it becomes.
  package private(set) var successors: [EntityName: EntityName] = [:]
  /// What the two models alone forbid.
  package private(set) var refusals: [Refusal] = []
  /// What a person should know of the inferred mapping. Nothing in it prevents a migration.
  package private(set) var notes: [InferenceNote] = []

  private var matches: [EntityName: [NameKey: EntityHierarchy.Declared]] = [:]

  let conditions: Memo<[RowCondition]>

  /// Infers the mapping. Always succeeds: ``refusals`` names what forbids it.
  package init(source: EntityHierarchy, destination: EntityHierarchy) {
    let pair = Pair(source: source.hashes, destination: destination.hashes)
    self = Self.recent.output(for: pair) {
      InferredMapping(inferring: source, to: destination)
    }
  }

  /// Two hierarchies, told by what their copies share.
  private struct Pair: Equatable, Sendable {
    var source: Memo<[EntityName: VersionHash]>
    var destination: Memo<[EntityName: VersionHash]>

    static func == (a: Pair, b: Pair) -> Bool {
      a.source === b.source && a.destination === b.destination
    }
  }

  /// The stores of a fleet have the same few.
  private static let recent = RecentResults<Pair, InferredMapping>(limit: 8)

  private init(inferring source: EntityHierarchy, to destination: EntityHierarchy) {
    conditions = Memo()
    self.source = source
    self.destination = destination
    matchEntities()
    for name in destination.order {
      guard let old = entityPairs[name] else { continue }
      matchProperties(of: name, from: old)
    }
    for name in destination.order {
      guard let old = entityPairs[name] else {
        noteUnmatched(name)
        continue
      }
      judgeProperties(of: name)
      if old != name {
        note(.renamedEntity, name, nil, "entity \(old) becomes \(name)")
      }
    }
    judgeRoots()
    noteInverses()
  }
}

extension InferredMapping {
  /// Which references a store has on one side alone, its rows tell.
  private mutating func noteInverses() {
    for entity in destination.order {
      for property in destination[entity]?.properties ?? [] where property.isStored {
        guard let relationship = property.relationship else { continue }
        let pairs = pairs(of: relationship, declaredBy: entity)
        for part in pairs.unusedParts where !part.isSwapped {
          note(
            .inverseDecides, entity, relationship.name,
            "\(entity).\(relationship.name) takes the references of its inverse; those that only "
              + "\(part.source.entity).\(part.source.relationship.name) has are dropped")
        }
      }
    }
  }

  /// True when the models allow it; the store's rows may still forbid it, see ``rowConditions``.
  package var isPossible: Bool { refusals.isEmpty }

  /// The source's property that a property of a destination entity comes from, with the source
  /// entity that declares it. Nil for a property that is new, or not stored.
  package func correspondence(
    of property: String, in entity: EntityName
  ) -> EntityHierarchy.Declared? {
    matches[entity]?[NameKey(property)]
  }

  /// What the destination calls otherwise, as `X.a becomes X.b`.
  package var renames: [String] { notes.filter(\.isRename).map(\.message) }

  private mutating func note(
    _ kind: InferenceNote.Kind, _ entity: EntityName, _ property: String?, _ message: String
  ) {
    notes.append(InferenceNote(kind, entity: entity, property: property, message: message))
  }

  private mutating func refuse(_ refusal: Refusal) {
    if !refusals.contains(refusal) { refusals.append(refusal) }
  }

  private mutating func matchEntities() {
    var byKey: [NameKey: [EntityName]] = [:]
    for entity in source.model.entities {
      if let other = byKey[NameKey(entity.mappingKey)]?.last {
        refuse(
          Refusal(
            .duplicateIdentifier, entity: entity.name,
            message: "the source entities \(other) and \(entity.name) share the renaming "
              + "identifier \(entity.mappingKey)",
            advice: "Give each its own identifier, or write a mapping model.",
            certainty: .unspecified))
      }
      byKey[NameKey(entity.mappingKey), default: []].append(entity.name)
    }
    for entity in destination.model.entities {
      // Where several have the identifier, which is refused, a template pairs them by name.
      let candidates = byKey[NameKey(entity.mappingKey)] ?? []
      guard let old = candidates.first(where: { $0 == entity.name }) ?? candidates.last else {
        continue
      }
      if let other = successors[old] {
        refuse(
          Refusal(
            .splitEntity, entity: entity.name,
            message: "\(other) and \(entity.name) both come from \(old)",
            advice: "Inference gives a source entity one successor. Write a mapping model with "
              + "one entity mapping for each."))
        continue
      }
      entityPairs[entity.name] = old
      successors[old] = entity.name
    }
  }

  /// A destination entity without a counterpart is new. Two cases are likelier mistakes.
  private mutating func noteUnmatched(_ name: EntityName) {
    if let key = destination[name]?.renamingIdentifier, !key.isSameName(as: name.rawValue),
      let named = source[EntityName(key)], !named.mappingKey.isSameName(as: key)
    {
      note(
        .intermediateIdentifier, name, nil,
        "the identifier of \(name) names \(key), whose own identifier is \(named.mappingKey): "
          + "the entity is removed and added. "
          + "Repeat \(named.mappingKey) as the identifier to keep its objects")
    }
    guard source.contains(name) else { return }
    note(
      .differentIdentifiers, name, nil,
      "\(name) is in both models under different renaming identifiers: it is removed and added")
  }

  private mutating func matchProperties(of name: EntityName, from old: EntityName) {
    var byKey: [QualifiedProperty: [EntityHierarchy.Declared]] = [:]
    for declared in source.properties(of: old) where declared.property.isStored {
      let key = QualifiedProperty(declared.property)
      if byKey[key] != nil {
        refuse(
          Refusal(
            .duplicateIdentifier, entity: old, properties: [declared.property.name],
            message: "two source properties share the renaming identifier \(key.identifier.name)",
            advice: "Give each its own identifier, or write a mapping model.",
            certainty: .unspecified))
      }
      byKey[key, default: []].append(declared)
    }
    var found: [NameKey: EntityHierarchy.Declared] = [:]
    var used: Set<NameKey> = []
    for declared in destination.properties(of: name) where declared.property.isStored {
      let property = declared.property
      let candidates = byKey[QualifiedProperty(property)] ?? []
      guard
        let hit = candidates.first(where: { $0.property.name.isSameName(as: property.name) })
          ?? candidates.last
      else {
        noteUnmatched(property, of: name, from: old)
        continue
      }
      if !used.insert(NameKey(hit.property.name)).inserted {
        refuse(
          Refusal(
            .duplicateIdentifier, entity: name, properties: [property.name],
            message: "two destination properties come from \(old).\(hit.property.name)",
            advice: "Give each its own identifier, or write a mapping model that copies the "
              + "value twice.",
            certainty: .unspecified))
      }
      found[NameKey(property.name)] = hit
      if !hit.property.name.isSameName(as: property.name) {
        note(
          .renamedProperty, name, property.name,
          "\(old).\(hit.property.name) becomes \(name).\(property.name)")
      }
    }
    matches[name] = found
  }

  /// A stored destination property without a counterpart is new. Two cases are likelier mistakes, and one default
  /// value cannot be given.
  private mutating func noteUnmatched(
    _ property: PropertyDescription, of name: EntityName, from old: EntityName
  ) {
    if let attribute = property.attribute, attribute.hasUnstorableDefault,
      attribute.mayBeNull || attribute.type == .composite
    {
      note(
        .defaultNotGiven, name, property.name,
        "the default value of \(name).\(property.name) is an object that only the application can store: objects that "
          + "are there already get no value")
    }
    let kind = QualifiedProperty.Kind(property)
    let key = property.traits.mappingKey
    if !key.isSameName(as: property.name), let named = source.property(key, of: old)?.property,
      named.isStored, QualifiedProperty.Kind(named) == kind
    {
      note(
        .intermediateIdentifier, name, property.name,
        "the identifier of \(name).\(property.name) names \(old).\(key), whose own identifier is "
          + "\(named.traits.mappingKey): the property is removed and added. "
          + "Repeat \(named.traits.mappingKey) as the identifier to keep the values")
    }
    if let same = source.property(property.name, of: old)?.property, same.isStored,
      QualifiedProperty.Kind(same) == kind
    {
      note(
        .differentIdentifiers, name, property.name,
        "\(name).\(property.name) is in both models under different renaming identifiers: "
          + "it is removed and added")
    }
  }

  private mutating func judgeProperties(of name: EntityName) {
    for declared in destination.properties(of: name) {
      guard let hit = correspondence(of: declared.property.name, in: name) else { continue }
      switch (hit.property, declared.property) {
      case (.attribute(let old), .attribute(let new)): judge(new, from: old, of: name)
      case (.relationship(let old), .relationship(let new)): judge(new, from: old, of: name)
      default: break
      }
    }
  }

  private mutating func judge(
    _ new: AttributeDescription, from old: AttributeDescription, of name: EntityName
  ) {
    guard new.type != old.type else { return }
    if !(new.type.isNumber && old.type.isNumber) {
      refuse(
        Refusal(
          .attributeType, entity: name, properties: [new.name],
          message: "\(old.type.xmlName) cannot become \(new.type.xmlName)",
          advice: "Only numbers convert into each other. Write a mapping model with an expression "
            + "for \(new.name), or add a new attribute beside the old one."))
    } else if !old.type.widens(to: new.type) {
      note(
        .narrowing, name, new.name,
        "\(name).\(new.name) goes from \(old.type.xmlName) to \(new.type.xmlName): what becomes "
          + "of values that do not fit is not specified")
    }
  }

  private mutating func judge(
    _ new: RelationshipDescription, from old: RelationshipDescription, of name: EntityName
  ) {
    if entityPairs[new.destinationEntity] != old.destinationEntity,
      !leadsOut(from: old.destinationEntity, to: new.destinationEntity)
    {
      // The same name under two identifiers: Apple says nothing about it.
      let sameName =
        new.destinationEntity == old.destinationEntity
        && entityPairs[new.destinationEntity] == nil
      // Renaming identifiers may have given the name to another entity.
      let namesake =
        new.destinationEntity == old.destinationEntity ? entityPairs[new.destinationEntity] : nil
      refuse(
        Refusal(
          .relationshipDestination, entity: name, properties: [new.name],
          message: namesake.map {
            "the destination \(old.destinationEntity) cannot become the new \(new.destinationEntity), which is "
              + "the successor of \($0)"
          } ?? "the destination \(old.destinationEntity) cannot become \(new.destinationEntity)",
          advice: "A destination entity may be renamed but not exchanged. Give "
            + "\(new.destinationEntity) the renaming identifier of \(old.destinationEntity), or "
            + "write a mapping model.",
          certainty: sameName ? .unspecified : .documented))
    }
  }

  /// Whether the destination of a relationship lies in another configuration than the store is of, before or
  /// after, and the store has nothing else for it: then there is no object that is exchanged for another.
  private func leadsOut(from old: EntityName, to new: EntityName) -> Bool {
    (!source.contains(old) || !destination.contains(new)) && successors[old] == nil
      && entityPairs[new] == nil
  }

  /// One root entity is one table: rows of two tables cannot come together in one.
  private mutating func judgeRoots() {
    for root in destination.roots {
      var roots: Set<EntityName> = []
      for name in destination.subtree(of: root) {
        if let old = entityPairs[name] { roots.insert(source.root(of: old)) }
      }
      guard roots.count > 1 else { continue }
      let listed = roots.sorted().map(\.rawValue).joined(separator: ", ")
      refuse(
        Refusal(
          .mergeRoots, entity: root,
          message: "its table would take the rows of \(listed), which have no common parent",
          advice: "Keep the hierarchies apart, or write a mapping model."))
    }
  }
}

extension AttributeType {
  /// True when every value of this number type is one of the other as well.
  func widens(to new: AttributeType) -> Bool {
    func rank(_ type: AttributeType) -> Int? {
      switch type {
      case .boolean: 0
      case .integer16: 1
      case .integer32: 2
      case .integer64: 3
      default: nil
      }
    }
    if let a = rank(self), let b = rank(new) { return a <= b && new != .boolean }
    return switch new {
    case .decimal: rank(self) != nil
    // Of 64 bits a double holds 53.
    case .double: self == .float || rank(self) != nil && self != .integer64
    default: false
    }
  }
}
