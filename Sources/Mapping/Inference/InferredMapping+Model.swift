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
    let names = mappingNames(sourceHashes, destinationHashes)
    var mappings: [EntityMapping] = []
    for name in destination.order where destination[name]?.isAbstract == false {
      let new = destinationHashes[name]
      guard let old = entityPairs[name], let mapping = names[name] else {
        mappings.append(
          EntityMapping(
            name: "IEM_Add_\(name)",
            type: .add(destination: name, propertyMappings(of: name, names)),
            destinationHash: new))
        continue
      }
      let isCopy = mapping == "IEM_Copy_\(old)"
      let properties = propertyMappings(of: name, names)
      mappings.append(
        EntityMapping(
          name: mapping,
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

  /// The names of the entity mappings with objects of both models, by their destination entities.
  private func mappingNames(
    _ sourceHashes: [EntityName: VersionHash], _ destinationHashes: [EntityName: VersionHash]
  ) -> [EntityName: String] {
    var names: [EntityName: String] = [:]
    for (name, old) in entityPairs where destination[name]?.isAbstract == false {
      let new = destinationHashes[name]
      let isCopy = old == name && new != nil && sourceHashes[old] == new
      names[name] = (isCopy ? "IEM_Copy_" : "IEM_Transform_") + old.rawValue
    }
    return names
  }

  private func propertyMappings(
    of name: EntityName, _ names: [EntityName: String]
  ) -> PropertyMappings {
    var result = PropertyMappings()
    for declared in destination.properties(of: name) where declared.property.isStored {
      let property = declared.property.name
      let old = correspondence(of: property, in: name)?.property
      switch declared.property {
      case .attribute:
        result.attributes.append(
          PropertyMapping(name: property, expression: old.map { .sourceValue(forKey: $0.name) }))
      case .relationship(let new):
        result.relationships.append(
          PropertyMapping(
            name: property,
            expression: old?.relationship.flatMap { instances(for: new, along: $0, names) }))
      case .fetchedProperty: break
      }
    }
    return result
  }

  /// Whatever became of the objects of a source relationship. Inference drops references to what may no
  /// longer be a target, and asking for these objects would be an error: then those entity mappings are
  /// asked that make targets.
  private func instances(
    for new: RelationshipDescription, along old: RelationshipDescription,
    _ names: [EntityName: String]
  ) -> ValueExpression? {
    let path = ValueExpression.sourceValue(forKey: old.name)
    let taken = Set(source.subtree(of: old.destinationEntity))
    let targets = Set(destination.subtree(of: new.destinationEntity))
    let makers = destination.order.filter { name in
      names[name] != nil && entityPairs[name].map(taken.contains) ?? false
    }
    let asked = makers.filter(targets.contains)
    // An ordered relationship cannot do with the objects of one entity mapping after those of another.
    guard asked.count < makers.count, asked.count < 2 || !new.isOrdered else {
      return .function(
        receiver: .variable("manager"), selector: ManagerSelector.instancesForRelationship,
        arguments: [.constant(.string(old.name)), path])
    }
    let calls = asked.compactMap { names[$0] }.map {
      ValueExpression.destinationInstances(ofMapping: $0, from: path)
    }
    return calls.count > 1 ? .aggregate(calls) : calls.first
  }
}
