import GodwitObjectModel

extension EntityHierarchy {
  /// The model with the rules of another added to its own, where that has an entity and a property of the same
  /// name: what keeps them is valid for both. Its tables are the same.
  ///
  /// - Throws: `ModelError`.
  func keepingRules(of other: EntityHierarchy) throws -> EntityHierarchy {
    var model = model
    for place in model.entities.indices {
      let entity = model.entities[place].name
      for index in model.entities[place].properties.indices {
        let name = model.entities[place].properties[index].name
        // The other model may declare it in entities below this one.
        var known: Set<EntityName> = []
        for lower in subtree(of: entity) {
          guard let found = other.property(name, of: lower), known.insert(found.entity).inserted
          else { continue }
          model.entities[place].properties[index].narrow(by: found.property)
        }
      }
    }
    return try EntityHierarchy(model)
  }
}

extension PropertyDescription {
  fileprivate mutating func narrow(by other: PropertyDescription) {
    switch (self, other) {
    case (.attribute(var attribute), .attribute(let other)):
      attribute.narrow(by: other)
      self = .attribute(attribute)
    case (.relationship(var relationship), .relationship(let other)):
      if !other.traits.isOptional { relationship.traits.isOptional = false }
      if relationship.isToMany, other.isToMany {
        relationship.minCount = max(relationship.minCount, other.minCount)
        let most = [relationship.maxCount, other.maxCount].filter { $0 > 0 }
        relationship.maxCount = most.min() ?? 0
      }
      self = .relationship(relationship)
    default: break
    }
  }
}

extension AttributeDescription {
  fileprivate mutating func narrow(by other: AttributeDescription) {
    validation += other.validation
    if !other.traits.isOptional { traits.isOptional = false }
    if let range = other.type.range {
      validation += [
        .minimum(ValidationBound(range.lowerBound)), .maximum(ValidationBound(range.upperBound)),
      ]
    }
    for element in other.compositeElements ?? [] {
      guard
        let place = compositeElements?.firstIndex(where: { $0.name.isSameName(as: element.name) })
      else { continue }
      compositeElements?[place].narrow(by: element)
    }
  }
}

extension AttributeType {
  fileprivate var range: ClosedRange<Double>? {
    switch self {
    case .integer16: -0x8000...0x7FFF
    case .integer32: -0x8000_0000...0x7FFF_FFFF
    default: nil
    }
  }
}
