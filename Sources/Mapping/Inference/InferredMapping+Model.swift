import GodwitExpressions
import GodwitObjectModel

extension InferredMapping {
  /// The mapping model that inference amounts to, with Core Data's names for its parts:
  /// `IEM_Copy_X`, `IEM_Transform_X` and `IEM_Remove_X` after the source entity, `IEM_Add_X`
  /// after the destination's.
  ///
  /// Abstract entities have no objects and no mapping. A copy is a mapping between entities of one
  /// name and one version hash. Source: `core-data-migration.md` §2.3.
  package var mappingModel: MappingModel {
    let sourceHashes = source.versionHashes
    let destinationHashes = destination.versionHashes
    var mappings: [EntityMapping] = []
    for name in destination.order where destination[name]?.isAbstract == false {
      let new = destinationHashes[name]
      guard let old = entityPairs[name] else {
        mappings.append(
          EntityMapping(
            name: "IEM_Add_\(name)", type: .add(destination: name, propertyMappings(of: name)),
            destinationHash: new))
        continue
      }
      let isCopy = old == name && new != nil && sourceHashes[old] == new
      let properties = propertyMappings(of: name)
      mappings.append(
        EntityMapping(
          name: isCopy ? "IEM_Copy_\(old)" : "IEM_Transform_\(old)",
          type: isCopy
            ? .copy(source: old, destination: name, properties)
            : .transform(source: old, destination: name, properties),
          sourceHash: sourceHashes[old], destinationHash: new))
    }
    for name in source.order where source[name]?.isAbstract == false && successors[name] == nil {
      mappings.append(
        EntityMapping(
          name: "IEM_Remove_\(name)", type: .remove(source: name), sourceHash: sourceHashes[name]))
    }
    return MappingModel(entityMappings: mappings)
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
