import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Finds the attributes that some entity mappings of an entity read and others do not: what only the
/// others take loses the values, and the link stage counts them.
///
/// Nothing is said of what a key path reads of other objects, or of an entity that a policy takes.
struct SplitAttributes {
  private struct Reader {
    var index: Int
    var properties: PropertyReaders
    /// First keys of `$source` in expressions that are no plain ones.
    var ownKeys: Set<String>

    /// Whether the mapping reads the property of other objects than the one at hand.
    func isOpen(_ place: PropertyReaders.Property) -> Bool {
      properties.readsOtherwise(place) && !ownKeys.contains(place.name)
    }
  }

  let context: PlanContext
  let members: [MappedBuilder.Member]

  func add(to plans: inout [EntityMappingPlan]) {
    let entities = Dictionary(grouping: plans.indices, by: { plans[$0].source })
    for (entity, indices) in entities {
      guard let entity, indices.count > 1, indices.allSatisfy({ plans[$0].policy == nil }) else {
        continue
      }
      let makers = indices.filter { plans[$0].table != nil }
      guard makers.count > 1 else { continue }
      add(entity, makers.map(reader), others: readers { $0.sourceEntity != entity }, &plans)
    }
  }

  private func add(
    _ entity: EntityName, _ makers: [Reader], others: PropertyReaders,
    _ plans: inout [EntityMappingPlan]
  ) {
    for attribute in context.attributes(ofSource: entity) {
      let path = attribute.name.keyPathParts
      guard let first = path.first else { continue }
      let place = PropertyReaders.Property(entity: entity, name: first)
      let declared = context.source.hierarchy.property(first, of: entity)?.property.attribute
      guard declared?.derivationExpression == nil, !others.readsOtherwise(place),
        !makers.contains(where: { $0.isOpen(place) })
      else {
        continue
      }
      let keepers = makers.filter { $0.properties.reads(place, Array(path.dropFirst())) }
        .map(\.index)
      guard !keepers.isEmpty, !keepers.contains(where: { plans[$0].takesAll }) else { continue }
      let droppers = makers.map(\.index).filter { !keepers.contains($0) }
      for dropper in droppers {
        let column =
          plans[dropper].linkColumns.firstIndex(of: attribute.column)
          ?? plans[dropper].linkColumns.count
        if column == plans[dropper].linkColumns.count {
          plans[dropper].linkColumns.append(attribute.column)
        }
        let elsewhere = keepers + droppers.filter { $0 < dropper }
        plans[dropper].dropped =
          (plans[dropper].dropped ?? [])
          + [DroppedValue(property: attribute.name, column: column, elsewhere: elsewhere)]
        for index in elsewhere { plans[index].isReferenced = true }
      }
    }
  }

  private func readers(_ isIncluded: (EntityMapping) -> Bool) -> PropertyReaders {
    PropertyReaders(
      members.map(\.mapping).filter(isIncluded), source: context.source.hierarchy,
      destination: context.destination.hierarchy)
  }

  private func reader(_ index: Int) -> Reader {
    let mapping = members[index].mapping
    let rows = mapping.properties.attributes + mapping.properties.relationships
    return Reader(
      index: index,
      properties: PropertyReaders(
        [mapping], source: context.source.hierarchy, destination: context.destination.hierarchy),
      ownKeys: Set(
        rows.compactMap(\.expression).filter { $0.plainSourceKey == nil }
          .flatMap { $0.firstKeys(of: "source") }))
  }
}

extension PropertyReaders {
  /// Whether some row reads an attribute, or of a composite one the element that `path` leads to.
  func reads(_ place: Property, _ path: [String]) -> Bool {
    if handedTo[place] != nil || derived[place] != nil { return true }
    return path.isEmpty
      ? readsOtherwise(place) : readsAllOtherwise(place) || names(element: path, of: place)
  }
}
