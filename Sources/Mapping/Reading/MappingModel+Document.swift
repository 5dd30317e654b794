import GodwitExpressions
import GodwitObjectModel

extension MappingModel {
  /// Completes a document with what its automatic rows come to between two models.
  ///
  /// Entities and properties that a model does not have are no error here: they get no automatic
  /// value, and ``MappingCheck`` names them.
  ///
  /// Source: `core-data-migration.md` §3.3.
  package init(
    _ document: MappingDocument, source: EntityHierarchy, destination: EntityHierarchy
  ) {
    let compiler = MappingCompiler(document: document, source: source, destination: destination)
    self.init(entityMappings: document.entityMappings.map(compiler.entityMapping))
  }
}

/// The rules by which Xcode's mapping model compiler completes rows.
private struct MappingCompiler {
  let source: EntityHierarchy
  let destination: EntityHierarchy
  /// Destination entity → the names of the mappings that make its objects.
  private let makers: [EntityName: [String]]
  private let entries: [MappingDocument.Entry]

  init(document: MappingDocument, source: EntityHierarchy, destination: EntityHierarchy) {
    self.source = source
    self.destination = destination
    var makers: [EntityName: [String]] = [:]
    for entry in document.entityMappings {
      if let entity = entry.destination { makers[entity, default: []].append(entry.effectiveName) }
    }
    self.makers = makers
    entries = document.entityMappings
  }

  func entityMapping(_ entry: MappingDocument.Entry) -> EntityMapping {
    // A remove mapping creates nothing: its policy's hooks run without source objects.
    let takesNone = entry.kind == .remove && entry.policy != nil
    var mapping = EntityMapping(
      name: entry.effectiveName, type: type(of: entry), sourceHash: entry.sourceHash,
      destinationHash: entry.destinationHash,
      sourceSelection: takesNone ? .filter(.constant(false)) : entry.selection,
      userInfo: entry.userInfo)
    mapping.unusedExpressions = entry.unusedExpressions + leadingNowhere(entry)
    mapping.hasUnusedRows = entry.hasUnusedRows
    return mapping
  }

  private func type(of entry: MappingDocument.Entry) -> EntityMapping.MappingType {
    // Whatever type a file gives, a policy that it names is run. Source: §5.1.
    if let policy = entry.policy {
      return .custom(
        source: entry.source, destination: entry.destination, policy: policy, properties(of: entry))
    }
    switch (entry.source, entry.destination) {
    case (let source?, let destination?):
      let properties = properties(of: entry)
      let isCopy = entry.kind == .copy || (entry.kind == nil && isCopy(entry, properties))
      return isCopy
        ? .copy(source: source, destination: destination, properties)
        : .transform(source: source, destination: destination, properties)
    case (let source?, nil): return .remove(source: source)
    case (nil, let destination?): return .add(destination: destination, properties(of: entry))
    case (nil, nil): return .undefined
    }
  }

  /// A copy takes every object and every attribute from the attribute of the same name. It is run
  /// like a transform; the word is for people. Apple's rule is known from one compiled file only.
  private func isCopy(_ entry: MappingDocument.Entry, _ properties: PropertyMappings) -> Bool {
    guard entry.selection == .all else { return false }
    return properties.attributes.allSatisfy { mapping in
      guard mapping.expression == .sourceKeyPath(mapping.name),
        let old = attribute(mapping.name, of: entry.source, in: source),
        let new = attribute(mapping.name, of: entry.destination, in: destination)
      else { return false }
      return old.type == new.type
    }
  }

  private func attribute(
    _ name: String, of entity: EntityName?, in model: EntityHierarchy
  ) -> AttributeDescription? {
    entity.flatMap { model.property(name, of: $0)?.property.attribute }
  }

  private func relationship(
    _ name: String, of entity: EntityName?, in model: EntityHierarchy
  ) -> RelationshipDescription? {
    entity.flatMap { model.property(name, of: $0)?.property.relationship }
  }

  private func properties(of entry: MappingDocument.Entry) -> PropertyMappings {
    var attributes = entry.attributes
    var relationships = entry.relationships
    if entry.others == .automatic, let entity = entry.destination {
      let written = Set((attributes + relationships).map(\.name))
      var added = (attributes: [MappingDocument.Row](), relationships: [MappingDocument.Row]())
      for declared in destination.properties(of: entity)
      where declared.property.isStored && !written.contains(declared.property.name) {
        switch declared.property {
        case .attribute(let new): added.attributes.append(.init(new.name, .automatic))
        case .relationship(let new): added.relationships.append(.init(new.name, .automatic))
        case .fetchedProperty: break
        }
      }
      attributes = rows(
        added.attributes, attributes, inOrder: attributes.contains(where: \.readsDestination))
      relationships = rows(added.relationships, relationships, inOrder: writesBothSides(entry))
    }
    return PropertyMappings(
      attributes: attributes.map { row in
        PropertyMapping(
          name: row.name, expression: attributeValue(row, of: entry), userInfo: row.userInfo)
      },
      relationships: relationships.map { row in
        PropertyMapping(
          name: row.name, expression: relationshipValue(row, of: entry), userInfo: row.userInfo)
      })
  }

  /// What is added comes before what is written, which may read it. Where no order of written rows
  /// shows, all have that of compiled files: by name (rule 6).
  private func rows(
    _ added: [MappingDocument.Row], _ written: [MappingDocument.Row], inOrder: Bool
  ) -> [MappingDocument.Row] {
    let sorted = (inOrder ? added : added + written).sorted { $0.name.precedesInBytes($1.name) }
    return inOrder ? sorted + written : sorted
  }

  /// True when two written rows set the two sides of one relationship: the later one has the last
  /// word.
  private func writesBothSides(_ entry: MappingDocument.Entry) -> Bool {
    guard let entity = entry.destination else { return false }
    let names = Set(entry.relationships.lazy.filter { $0.value != .unset }.map(\.name))
    return names.contains { name in
      guard let own = relationship(name, of: entity, in: destination),
        let inverse = destination.inverse(of: own)
      else { return false }
      return inverse.relationship.name != own.name && names.contains(inverse.relationship.name)
        && destination.isKind(entity, of: inverse.entity)
    }
  }

  private func attributeValue(
    _ row: MappingDocument.Row, of entry: MappingDocument.Entry
  ) -> ValueExpression? {
    switch row.value {
    case .expression(let value): value
    case .along(let path): path
    case .unset: nil
    case .automatic:
      attribute(row.name, of: entry.source, in: source) == nil ? nil : .sourceKeyPath(row.name)
    }
  }

  private func relationshipValue(
    _ row: MappingDocument.Row, of entry: MappingDocument.Entry
  ) -> ValueExpression? {
    switch row.value {
    case .expression(let value): return value
    case .unset: return nil
    case .along(let path): return instances(of: row.name, of: entry, along: path)
    case .automatic:
      guard relationship(row.name, of: entry.source, in: source) != nil else { return nil }
      return automaticRelationship(row.name, of: entry, from: row.name)
    }
  }

  /// Rule 4 (c): the one mapping that makes the target's objects, or, where several may, whatever
  /// becomes of the source relationship's objects.
  private func automaticRelationship(
    _ name: String, of entry: MappingDocument.Entry, from old: String
  ) -> ValueExpression? {
    guard let target = relationship(name, of: entry.destination, in: destination)?.destinationEntity
    else { return nil }
    if !destination.hasSubentities(target), let names = makers[target], names.count == 1 {
      return .destinationInstances(ofMapping: names[0], from: .sourceKeyPath(old))
    }
    guard destination.subtree(of: target).contains(where: { makers[$0] != nil }) else {
      return nil
    }
    // What becomes of the source's objects may be objects of other entities, too. An ordered relationship
    // cannot do with the objects of one entity mapping after those of another.
    if let own = relationship(name, of: entry.destination, in: destination), !own.isOrdered,
      let end = sourceEntity(along: .sourceKeyPath(old), of: entry),
      case let targets = Set(destination.subtree(of: target)),
      entries.contains(where: { other in
        guard let made = other.destination else { return false }
        return !targets.contains(made) && mayTake(other, objectsOf: end)
      })
    {
      let calls = mappings(making: target, from: end).map {
        ValueExpression.destinationInstances(
          ofMapping: $0.effectiveName, from: .sourceKeyPath(old))
      }
      return calls.count > 1 ? .aggregate(calls) : calls.first
    }
    return .function(
      receiver: .variable("manager"), selector: ManagerSelector.instancesForRelationship,
      arguments: [.constant(.string(old)), .sourceKeyPath(old)])
  }

  /// A key path without a mapping's name: as automatic for one relationship of the source, else
  /// what all the mappings that make objects of the target make of those at its end.
  private func instances(
    of name: String, of entry: MappingDocument.Entry, along path: ValueExpression
  ) -> ValueExpression? {
    if case .keyPath(.variable("source"), let keys) = path, keys.count == 1,
      case .key(let old)? = keys.first, relationship(old, of: entry.source, in: source) != nil
    {
      return automaticRelationship(name, of: entry, from: old)
    }
    guard let target = relationship(name, of: entry.destination, in: destination)?.destinationEntity
    else { return nil }
    let calls = mappings(making: target, from: sourceEntity(along: path, of: entry)).map {
      ValueExpression.destinationInstances(ofMapping: $0.effectiveName, from: path)
    }
    return calls.count > 1 ? .aggregate(calls) : calls.first
  }

  /// The mappings that make objects of an entity or of its sub-entities, in their order.
  ///
  /// - Parameter old: The source entity whose objects they are asked for; nil where it cannot be
  ///   told. Mappings that take other objects are left out, unless there are none but them.
  private func mappings(
    making target: EntityName, from old: EntityName?
  ) -> [MappingDocument.Entry] {
    let targets = Set(destination.subtree(of: target))
    let all = entries.filter { $0.destination.map(targets.contains) ?? false }
    let asked = all.filter { entry in
      // A policy's code may make anything of anything.
      guard entry.policy == nil else { return true }
      guard entry.source != nil else { return false }
      return old.map { mayTake(entry, objectsOf: $0) } ?? true
    }
    return asked.isEmpty ? all : asked
  }

  /// Whether an entity mapping may take objects of an entity or of its sub-entities. Those of its own source
  /// entity's sub-entities it takes only where an expression of the file yields them (`core-data-migration.md` §3.1).
  private func mayTake(_ entry: MappingDocument.Entry, objectsOf entity: EntityName) -> Bool {
    guard let taken = entry.source else { return false }
    if source.isKind(taken, of: entity) { return true }
    guard case .expression = entry.selection else { return false }
    return source.isKind(entity, of: taken)
  }

  /// The entity of the objects at the end of a key path; nil where the models do not tell.
  private func sourceEntity(
    along path: ValueExpression, of entry: MappingDocument.Entry
  ) -> EntityName? {
    var keys: [KeyPathElement] = []
    switch path {
    case .variable("source"): break
    case .keyPath(.variable("source"), let found): keys = found
    default: return nil
    }
    var current = entry.source
    for key in keys {
      guard case .key(let name) = key, let found = relationship(name, of: current, in: source)
      else { return nil }
      current = found.destinationEntity
    }
    return current
  }

  /// Rows along a key path whose target no mapping makes objects of: they have no expression.
  private func leadingNowhere(
    _ entry: MappingDocument.Entry
  ) -> [MappingDocument.UnusedExpression] {
    guard !entry.evaluatesNothing else { return [] }
    return entry.relationships.compactMap { row in
      guard case .along = row.value,
        let target = relationship(row.name, of: entry.destination, in: destination)?
          .destinationEntity,
        mappings(making: target, from: nil).allSatisfy(\.evaluatesNothing)
      else { return nil }
      return .init(
        property: row.name,
        reason: "no entity mapping makes objects of \(target), which the relationship leads to")
    }
  }
}

extension MappingDocument.Row {
  /// True when the value depends on what other rows have set.
  fileprivate var readsDestination: Bool {
    switch value {
    case .expression(let value), .along(let value): value.mentions("destination")
    case .automatic, .unset: false
    }
  }
}

extension ValueExpression {
  /// `FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", …)`
  package static func destinationInstances(
    ofMapping name: String, from instances: ValueExpression
  ) -> ValueExpression {
    .function(
      receiver: .variable("manager"), selector: ManagerSelector.instancesForMapping,
      arguments: [.constant(.string(name)), instances])
  }
}
