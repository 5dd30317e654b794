import GodwitObjectModel

extension MappingDocument {
  /// What a mapping model leaves undone between two models, a sentence each without its full stop: source
  /// entities whose objects are dropped, destination entities without a source, and properties that get
  /// no value although they need one, or although the source has one of their name.
  package func gaps(source: EntityHierarchy, destination: EntityHierarchy) -> [String] {
    let model = MappingModel(self, source: source, destination: destination)
    let taken = Set(model.entityMappings.filter(\.mayMakeObjects).compactMap(\.sourceEntity))
    let made = Set(
      model.entityMappings.filter { $0.sourceEntity != nil }.compactMap(\.destinationEntity))
    var gaps = source.order.filter { source[$0]?.isAbstract == false && !taken.contains($0) }.map {
      "the source entity \($0) has no destination: its objects are dropped"
    }
    gaps += destination.order.filter { destination[$0]?.isAbstract == false && !made.contains($0) }
      .map { "the destination entity \($0) has no source: it gets no objects" }
    for mapping in model.entityMappings where mapping.policy == nil && mapping.sourceEntity != nil {
      gaps += mapping.gaps(source: source, destination: destination)
    }
    return gaps
  }

  /// Removals that nobody asked for by their type: an entry that names a source entity and no destination,
  /// which is how a file looks before it is finished. Their objects are dropped.
  package var unsaidRemovals: [MappingFinding] {
    let taken = Set(
      entityMappings.filter { $0.destination != nil || $0.policy != nil }.compactMap(\.source))
    return entityMappings.compactMap { entry in
      guard let source = entry.source, entry.effectiveKind == .remove, entry.kind == nil,
        !taken.contains(source)
      else { return nil }
      return MappingFinding(
        .uncoveredSource, .warning, mapping: entry.effectiveName,
        message:
          "the objects of the source entity \(source) are dropped: no entity mapping gives them "
          + "a destination. Add the key destination, or type: remove if that is meant")
    }
  }
}

extension EntityMapping {
  /// A mapping with a destination, or with a policy, whose code may make any object.
  fileprivate var mayMakeObjects: Bool { destinationEntity != nil || policy != nil }

  fileprivate func gaps(source: EntityHierarchy, destination: EntityHierarchy) -> [String] {
    guard let old = sourceEntity, let new = destinationEntity else { return [] }
    let given = Set(
      (properties.attributes + properties.relationships).filter { $0.expression != nil }.map(\.name)
    )
    return destination.properties(of: new).compactMap { declared in
      let property = declared.property
      guard property.isStored, !given.contains(property.name) else { return nil }
      let place = "\(new).\(property.name)"
      if property.needsValue { return "\(place) is required and has no value" }
      guard property.attribute?.derivationExpression == nil,
        source.property(property.name, of: old)?.property.isStored == true
      else { return nil }
      return "\(place) has no value: the source's property of this name is not carried over"
    }
  }
}

extension PropertyDescription {
  /// Whether validation fails where a mapping gives it no value (1570).
  fileprivate var needsValue: Bool {
    switch self {
    case .attribute(let attribute):
      !attribute.mayBeNull && attribute.defaultValue == nil && attribute.type != .composite
    case .relationship(let relationship): !relationship.traits.isOptional
    case .fetchedProperty: false
    }
  }
}
