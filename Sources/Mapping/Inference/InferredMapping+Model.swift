import GodwitObjectModel

extension InferredMapping {
  /// The mapping model that inference amounts to, with Core Data's names for its parts:
  /// `IEM_Copy_X`, `IEM_Transform_X` and `IEM_Remove_X` after the source entity, `IEM_Add_X`
  /// after the destination's.
  ///
  /// Abstract entities have no objects and no mapping. A copy is a mapping between entities of one
  /// name and one version hash. Source: `core-data-migration.md` §2.3.
  public var mappingModel: MappingModel {
    var mappings: [EntityMapping] = []
    for name in destination.order where destination[name]?.isAbstract == false {
      guard let old = entityPairs[name] else {
        mappings.append(
          EntityMapping(
            name: "IEM_Add_\(name)", type: .add(destination: name, propertyMappings(of: name))))
        continue
      }
      let isCopy = old == name && isUnchanged(name)
      let properties = propertyMappings(of: name)
      mappings.append(
        EntityMapping(
          name: isCopy ? "IEM_Copy_\(old)" : "IEM_Transform_\(old)",
          type: isCopy
            ? .copy(source: old, destination: name, properties)
            : .transform(source: old, destination: name, properties)))
    }
    for name in source.order where source[name]?.isAbstract == false && successors[name] == nil {
      mappings.append(
        EntityMapping(
          name: "IEM_Remove_\(name)", type: .remove(source: name)))
    }
    return MappingModel(entityMappings: mappings)
  }

  /// True when everything that enters the version hash of an entity is the same in both models:
  /// name, parents, properties with optionality, type, destination and counts, modifiers,
  /// uniqueness constraints. Source: `core-data-models.md` §6.
  private func isUnchanged(_ name: EntityName) -> Bool {
    var current: EntityName? = name
    while let entity = current {
      guard let a = source[entity], let b = destination[entity], a.superentity == b.superentity,
        a.isAbstract == b.isAbstract, a.versionHashModifier == b.versionHashModifier,
        a.uniquenessConstraints == b.uniquenessConstraints,
        a.properties.filter(\.isStored).map(HashedTraits.init)
          == b.properties.filter(\.isStored).map(HashedTraits.init)
      else { return false }
      current = a.superentity
    }
    return true
  }

  private func propertyMappings(of name: EntityName) -> PropertyMappings {
    var result = PropertyMappings()
    for declared in destination.properties(of: name) where declared.property.isStored {
      let property = declared.property.name
      let old = correspondence(of: property, in: name)?.property.name
      switch declared.property {
      case .attribute:
        result.attributes.append(
          PropertyMapping(name: property, expression: old.map { .sourceValue(forKey: $0) }))
      case .relationship:
        result.relationships.append(
          PropertyMapping(
            name: property,
            expression: old.map {
              .function(
                receiver: .variable("manager"), selector: ManagerSelector.instancesForRelationship,
                arguments: [.constant(.string($0)), .sourceValue(forKey: $0)])
            }))
      case .fetchedProperty: break
      }
    }
    return result
  }
}

/// The parts of a property that enter its entity's version hash.
private struct HashedTraits: Equatable {
  let name: String
  let isOptional: Bool
  let modifier: String?
  let attribute: AttributeDescription?
  let relationship: RelationshipDescription?

  init(_ property: PropertyDescription) {
    let plain = PropertyTraits(name: property.name)
    name = property.name
    isOptional = property.traits.isOptional
    modifier = property.traits.versionHashModifier
    var attribute = property.attribute
    attribute?.traits = plain
    attribute?.defaultValue = nil
    attribute?.validation = []
    attribute?.attributeValueClassName = nil
    attribute?.valueTransformerName = nil
    attribute?.allowsCloudEncryption = false
    self.attribute = attribute
    var relationship = property.relationship
    relationship?.traits = plain
    relationship?.deleteRule = .nullify
    self.relationship = relationship
  }
}
