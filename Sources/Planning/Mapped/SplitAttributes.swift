import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Finds the attributes of which some entity mappings of an entity keep less than others do: what only
/// they take loses the values, or its numbers change, and the link stage counts that.
///
/// Each mapping is judged as if it were the entity's only one. Nothing is said of what a key path reads of
/// other objects, or of an entity that a policy takes.
struct SplitAttributes {
  private struct Reader {
    var index: Int
    var properties: PropertyReaders
    /// What the mapping alone would lose of the entity's values, by their columns.
    var doubts: [String: LossScan.Question]
    /// First keys of `$source` in expressions that are no plain ones.
    var ownKeys: Set<String>

    /// Whether the mapping reads the property of other objects than the one at hand.
    func isOpen(_ place: PropertyReaders.Property) -> Bool {
      properties.readsOtherwise(place) && !ownKeys.contains(place.name)
    }

    /// The types in which the mapping has an attribute's values: its own where it keeps them all.
    func types(of attribute: SourceAttribute) -> [AttributeType] {
      switch doubts[attribute.column] {
      case .changed(_, let chains): chains.flatMap(\.self)
      case .value, .row: []
      case nil: [attribute.type]
      }
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
      let others = PropertyReaders(
        members.map(\.mapping).filter { $0.sourceEntity != entity },
        source: context.source.hierarchy, destination: context.destination.hierarchy)
      add(entity, makers.map { reader($0, of: entity) }, others: others, &plans)
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
      let kept = makers.map { (index: $0.index, types: $0.types(of: attribute)) }
      for own in kept where ![attribute.type].areKept(in: own.types) {
        let wider = kept.filter { !$0.types.areKept(in: own.types) }
        guard !wider.isEmpty, !wider.contains(where: { plans[$0.index].takesAll }) else { continue }
        let equal = kept.filter {
          $0.index < own.index && $0.types.areKept(in: own.types)
            && own.types.areKept(in: $0.types)
        }
        let elsewhere = (wider + equal).map(\.index)
        let column =
          plans[own.index].linkColumns.firstIndex(of: attribute.column)
          ?? plans[own.index].linkColumns.count
        if column == plans[own.index].linkColumns.count {
          plans[own.index].linkColumns.append(attribute.column)
        }
        var dropped = DroppedValue(
          property: attribute.name, column: column, elsewhere: elsewhere)
        if !own.types.isEmpty {
          let isKept = kept.contains { [attribute.type].areKept(in: $0.types) }
          dropped.narrowing = DroppedValue.Narrowing(
            types: own.types, counted: isKept ? nil : kept.flatMap(\.types))
        }
        plans[own.index].dropped = (plans[own.index].dropped ?? []) + [dropped]
        for index in elsewhere { plans[index].isReferenced = true }
      }
    }
  }

  private func reader(_ index: Int, of entity: EntityName) -> Reader {
    let mapping = members[index].mapping
    let rows = mapping.properties.attributes + mapping.properties.relationships
    let successors = MappedSuccession(
      [mapping], source: context.source.hierarchy, destination: context.destination.hierarchy)
    let doubts = LossQuestions(
      layout: context.source, successors: successors, mayHaveRows: { _ in true }
    ).values(of: entity)
    return Reader(
      index: index, properties: successors.readers,
      doubts: Dictionary(
        doubts.map { ($0.column, $0.question) }, uniquingKeysWith: { first, _ in first }),
      ownKeys: Set(
        rows.compactMap(\.expression).filter { $0.plainSourceKey == nil }
          .flatMap { $0.firstKeys(of: "source") }))
  }
}

extension [AttributeType] {
  /// Whether each number that one of these types holds is held by one of the others.
  fileprivate func areKept(in others: Self) -> Bool {
    allSatisfy { type in others.contains { type == $0 || type.keepsNumbers(as: $0) } }
  }
}
