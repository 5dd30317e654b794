import GodwitObjectModel

extension InferredMapping {
  /// What the source store's rows must fulfil. The models leave these open; whoever has the store
  /// asks it.
  public var rowConditions: [RowCondition] {
    var conditions: [RowCondition] = []
    for name in destination.order {
      guard let old = entityPairs[name], let entity = destination[name] else { continue }
      if entity.isAbstract {
        conditions.append(
          RowCondition(
            .noRows(of: old),
            refusal: Refusal(
              .abstractWithRows, entity: name,
              message: "\(name) becomes abstract and \(old) has objects",
              advice: "Write a mapping model that turns them into objects of a sub-entity.",
              certainty: .unspecified)))
        continue  // whatever else its rows would break, there must be none
      }
      for declared in destination.properties(of: name) {
        guard declared.property.isStored, !declared.property.traits.isOptional else { continue }
        switch declared.property {
        case .attribute(let attribute):
          if let condition = condition(on: attribute, of: name, from: old) {
            conditions.append(condition)
          }
        case .relationship(let relationship):
          if let condition = condition(on: relationship, of: name, from: old) {
            conditions.append(condition)
          }
        case .fetchedProperty: break
        }
      }
    }
    return conditions + uniquenessConditions
  }

  private func condition(
    on new: AttributeDescription, of name: EntityName, from old: EntityName
  ) -> RowCondition? {
    // A composite's elements carry their own rules; a derived value is computed.
    guard new.type != .composite, new.defaultValue == nil, new.derivationExpression == nil else {
      return nil
    }
    let advice = "Give \(new.name) a default value or make it optional, or write a mapping model."
    guard let hit = correspondence(of: new.name, in: name) else {
      return RowCondition(
        .noRows(of: old),
        refusal: Refusal(
          .requiredWithoutDefault, entity: name, properties: [new.name],
          message: "the attribute is new, required and without a default, and \(old) has objects",
          advice: advice))
    }
    guard hit.property.traits.isOptional else { return nil }
    return RowCondition(
      .noNulls(entity: old, property: hit.property.name),
      refusal: Refusal(
        .requiredWithoutDefault, entity: name, properties: [new.name],
        message: "the attribute becomes required without a default, and objects of \(old) have no "
          + "value",
        advice: advice))
  }

  private func condition(
    on new: RelationshipDescription, of name: EntityName, from old: EntityName
  ) -> RowCondition? {
    let advice = "Make \(new.name) optional, or write a mapping model that finds the target."
    guard let hit = correspondence(of: new.name, in: name)?.property.relationship else {
      if new.isToMany && new.minCount <= 0 { return nil }
      let demand = new.isToMany ? "asks for at least \(new.minCount) targets" : "required"
      return RowCondition(
        .noRows(of: old),
        refusal: Refusal(
          .requiredRelationship, entity: name, properties: [new.name],
          message: "the relationship is new and \(demand), and \(old) has objects", advice: advice,
          certainty: new.isToMany ? .unspecified : .documented))
    }
    guard !new.isToMany, !hit.isToMany, hit.traits.isOptional else { return nil }
    return RowCondition(
      .noNulls(entity: old, property: hit.name),
      refusal: Refusal(
        .requiredRelationship, entity: name, properties: [new.name],
        message: "the relationship becomes required, and objects of \(old) have no target",
        advice: advice))
  }

  /// A constraint counts across the entity that declares it and everything below.
  private var uniquenessConditions: [RowCondition] {
    var conditions: [RowCondition] = []
    for name in destination.order {
      for constraint in destination[name]?.uniquenessConstraints ?? [] {
        let parts = destination.concrete(of: name).compactMap { below in
          entityPairs[below].map { old in
            UniquePart(entity: old, terms: constraint.map { term(of: $0, in: below) })
          }
        }
        guard !parts.isEmpty else { continue }
        conditions.append(
          RowCondition(
            .unique(parts),
            refusal: Refusal(
              .uniqueness, entity: name, properties: constraint,
              message: "values under the uniqueness constraint occur more than once",
              advice: "Remove the duplicates, or write a mapping model with a policy that merges "
                + "them.")))
      }
    }
    return conditions
  }

  private func term(of property: String, in entity: EntityName) -> UniquePart.Term {
    let new = destination.property(property, of: entity)?.property
    let value = new?.attribute?.defaultValue
    guard let hit = correspondence(of: property, in: entity)?.property, hit.hasColumn else {
      return .constant(value)
    }
    // NULLs become the default only where the attribute is required (§2.4).
    let isRequired = new?.traits.isOptional == false
    return .source(property: hit.name, default: isRequired ? value : nil)
  }
}

extension PropertyDescription {
  /// True for a property with one column of its own: an attribute that is not composite, or a
  /// to-one.
  fileprivate var hasColumn: Bool {
    switch self {
    case .attribute(let attribute): isStored && attribute.type != .composite
    case .relationship(let relationship): isStored && !relationship.isToMany
    case .fetchedProperty: false
    }
  }
}
