import GodwitObjectModel

extension InferredMapping {
  /// What the source store's rows must fulfil. The models leave these open; whoever has the store
  /// asks it.
  package var rowConditions: [RowCondition] { conditions.value { findRowConditions() } }

  private func findRowConditions() -> [RowCondition] {
    var conditions: [RowCondition] = []
    for name in destination.order {
      guard let old = entityPairs[name], let entity = destination[name] else { continue }
      // An abstract entity has no objects, whatever becomes of it.
      guard source[old]?.isAbstract == false else { continue }
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
    return conditions + roomConditions + countConditions + uniquenessConditions
  }

  /// One for each derived attribute that begins to count, and has a type that may be too small.
  private var countConditions: [RowCondition] {
    var conditions: [RowCondition] = []
    for name in destination.order {
      guard let old = entityPairs[name], destination[name]?.isAbstract == false,
        source[old]?.isAbstract == false
      else { continue }
      for declared in destination.properties(of: name) where declared.property.isStored {
        guard let attribute = declared.property.attribute,
          let counted = attribute.countedRelationship, let most = attribute.type.highestCount,
          let relationship = destination.property(counted, of: name)?.property.relationship,
          !counts(attribute, counted, as: correspondence(of: attribute.name, in: name), name)
        else { continue }
        conditions.append(
          RowCondition(
            .countable(entity: old, relationship: relationship.name, most: most),
            refusal: Refusal(
              .countOutOfRange, entity: name, properties: [attribute.name],
              message: "the derived attribute counts \(relationship.name), and objects have more "
                + "objects in it than \(attribute.type.xmlName) can hold",
              advice: "Give \(attribute.name) a wider type in the destination model, such as "
                + "Integer 64.",
              certainty: .unspecified)))
      }
    }
    return conditions
  }

  /// Whether the source's attribute counts the same relationship in the same type.
  private func counts(
    _ attribute: AttributeDescription, _ counted: String, as hit: EntityHierarchy.Declared?,
    _ name: EntityName
  ) -> Bool {
    guard let was = hit?.property.attribute, was.type == attribute.type,
      let key = was.countedRelationship,
      let old = correspondence(of: counted, in: name)?.property
    else { return false }
    return old.name.isSameName(as: key)
  }

  private func condition(
    on new: AttributeDescription, of name: EntityName, from old: EntityName
  ) -> RowCondition? {
    // A composite's elements carry their own rules; a derived value is computed.
    guard new.type != .composite, new.defaultValue == nil, !new.mayBeNull else { return nil }
    let lack =
      new.hasUnstorableDefault
      ? "with a default that only the application can store" : "without a default"
    let advice =
      (new.hasUnstorableDefault
        ? "Make \(new.name)" : "Give \(new.name) a default value or make it")
      + " optional, or write a mapping model."
    guard let hit = correspondence(of: new.name, in: name) else {
      return RowCondition(
        .noRows(of: old),
        refusal: Refusal(
          .requiredWithoutDefault, entity: name, properties: [new.name],
          message: "the attribute is new, required and \(lack), and \(old) has objects",
          advice: advice))
    }
    guard hit.property.attribute?.mayBeNull ?? false else { return nil }
    return RowCondition(
      .noNulls(entity: old, property: hit.property.name),
      refusal: Refusal(
        .requiredWithoutDefault, entity: name, properties: [new.name],
        message: "the attribute becomes required \(lack), and objects of \(old) have no "
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
    guard !new.isToMany, hit.isToMany || hit.traits.isOptional else { return nil }
    return RowCondition(
      hit.isToMany
        ? .noneEmpty(entity: old, relationship: hit.name)
        : .noNulls(entity: old, property: hit.name),
      refusal: Refusal(
        .requiredRelationship, entity: name, properties: [new.name],
        message: "the relationship becomes required, and objects of \(old) have no target",
        advice: advice))
  }

  /// One for each relationship, or pair of inverses, whose storage may lack room.
  private var roomConditions: [RowCondition] {
    var conditions: [RowCondition] = []
    var seen: Set<[NameKey]> = []
    for name in destination.order {
      for property in destination[name]?.properties ?? [] where property.isStored {
        guard let relationship = property.relationship,
          seen.insert([NameKey(name.rawValue), NameKey(relationship.name)]).inserted
        else { continue }
        let pairs = pairs(of: relationship, declaredBy: name)
        if let inverse = pairs.inverse {
          seen.insert([NameKey(inverse.entity.rawValue), NameKey(inverse.relationship.name)])
        }
        if pairs.needsMatching { conditions.append(condition(onRoomFor: pairs)) }
      }
    }
    return conditions
  }

  /// Names the side whose references would vanish: one that was a to-many and becomes a to-one,
  /// else the side that the pairs come from.
  private func condition(onRoomFor pairs: RelationshipPairs) -> RowCondition {
    let parts = pairs.parts + pairs.laterParts
    let narrowed = parts.first { part in
      let new = part.isSwapped ? pairs.inverse?.relationship : pairs.relationship
      return part.source.relationship.isToMany && new?.isToMany == false
    }
    let named = narrowed ?? parts.first
    let (entity, relationship) =
      named?.isSwapped == true
      ? pairs.inverse ?? (pairs.entity, pairs.relationship) : (pairs.entity, pairs.relationship)
    let question = RowCondition.Question.room(entity: entity, relationship: relationship.name)
    let choice =
      "write a mapping model that chooses, or run with --losses allow to keep the first of each."
    if narrowed != nil {
      return RowCondition(
        question,
        refusal: Refusal(
          .toManyToOne, entity: entity, properties: [relationship.name],
          message: "\(entity).\(relationship.name) becomes a to-one, and objects have several "
            + "objects in it",
          advice: "Leave one object in each, \(choice)", certainty: .unspecified))
    }
    return RowCondition(
      question,
      refusal: Refusal(
        .sharedTargets, entity: entity, properties: [relationship.name],
        message: "objects share an object of \(relationship.destinationEntity), which has room "
          + "for one of them in \(entity).\(relationship.name)",
        advice: "Make \(relationship.name) a to-one without a to-one inverse or a many-to-many, "
          + choice,
        certainty: .unspecified))
  }

  /// A constraint counts across the entity that declares it and everything below.
  private var uniquenessConditions: [RowCondition] {
    var conditions: [RowCondition] = []
    for name in destination.order {
      for constraint in destination[name]?.uniquenessConstraints ?? []
      where constraint.allSatisfy({ hasColumn($0, in: name) }) {
        let parts = entities(under: constraint, of: name).compactMap { below in
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

  /// Whether a property of the destination has a column of its own, over which an index can be: nothing
  /// keeps a constraint on any other, so that no row is refused for it.
  private func hasColumn(_ name: String, in entity: EntityName) -> Bool {
    guard let property = destination.property(name, of: entity)?.property, property.isStored else {
      return false
    }
    if let relationship = property.relationship { return !relationship.isToMany }
    return property.attribute.map { $0.type != .composite && $0.type != .undefined } ?? false
  }

  /// The entities whose objects an index of the constraint holds: all of the table that have its
  /// properties, also those that the constraint's entity only inherits.
  private func entities(under constraint: [String], of name: EntityName) -> [EntityName] {
    let owners = constraint.compactMap { destination.property($0, of: name)?.entity }
    return destination.concrete(of: destination.root(of: name)).filter { entity in
      destination.isKind(entity, of: name)
        || (owners.count == constraint.count
          && owners.allSatisfy { destination.isKind(entity, of: $0) })
    }
  }

  /// Whether the source's own constraints keep the destination's rows apart, so that no row can
  /// break the condition: the same properties under one constraint, with the same values.
  private func isKept(_ condition: RowCondition) -> Bool {
    guard case .unique(let parts) = condition.question else { return false }
    let name = condition.refusal.entity
    var names: Set<Set<NameKey>> = []
    for (property, place) in zip(condition.refusal.properties, 0...) {
      for below in destination.concrete(of: name) where entityPairs[below] != nil {
        guard let old = correspondence(of: property, in: below)?.property.attribute,
          let new = destination.property(property, of: below)?.property.attribute
        else { continue }
        // A narrower type may make two values one. So may an end of external storage: two files have two
        // names, and one content.
        guard old.type == new.type || old.type.widens(to: new.type), !old.leavesFiles(as: new)
        else { return false }
      }
      for part in parts {
        guard part.terms.indices.contains(place),
          case .source(_, _, default: nil) = part.terms[place]
        else { return false }
      }
    }
    for part in parts {
      names.insert(
        Set(
          part.terms.compactMap { term in
            if case .source(let property, _, _) = term { NameKey(property) } else { nil }
          }))
    }
    guard names.count == 1, let columns = names.first, columns.count == parts.first?.terms.count
    else {
      return false
    }
    return source.order.contains { owner in
      (source[owner]?.uniquenessConstraints ?? []).contains { Set($0.map(NameKey.init)) == columns }
        && parts.allSatisfy { source.isKind($0.entity, of: owner) }
    }
  }

  /// ``rowConditions`` without those that the source's own uniqueness constraints fulfil: what a
  /// change of the model may make rows break.
  package var changedRowConditions: [RowCondition] { rowConditions.filter { !isKept($0) } }

  private func term(of property: String, in entity: EntityName) -> UniquePart.Term {
    guard let declared = destination.property(property, of: entity) else { return .constant(nil) }
    let hit = correspondence(of: property, in: entity)?.property
    if let relationship = declared.property.relationship {
      let pairs = pairs(of: relationship, declaredBy: declared.entity)
      if pairs.parts.isEmpty && pairs.laterParts.isEmpty { return .constant(nil) }
      guard let hit = hit?.relationship, !hit.isToMany,
        pairs.limit == .oneTarget || !pairs.needsMatching
      else { return .target(relationship: property) }
      return .source(property: hit.name, convertedTo: nil, default: nil)
    }
    guard let new = declared.property.attribute else { return .constant(nil) }
    if let counted = new.countedRelationship,
      destination.property(counted, of: entity)?.property.relationship != nil
    {
      return .count(relationship: counted)
    }
    guard let old = hit?.attribute, old.type != .composite else {
      return .constant(new.derivationExpression == nil ? new.defaultValue : nil)
    }
    if new.derivationExpression != nil, new.derivationExpression != old.derivationExpression {
      return .constant(nil)
    }
    // NULLs become the default only where the attribute is required (§2.4).
    return .source(
      property: old.name,
      convertedTo: old.type == new.type && !old.leavesFiles(as: new) ? nil : new.type,
      default: new.mayBeNull ? nil : old.isExternal ? new.storedDefault : new.defaultValue)
  }
}

extension AttributeDescription {
  /// Whether values of this attribute may lie in files, and those of the other do not.
  fileprivate func leavesFiles(as new: AttributeDescription) -> Bool {
    isExternal && new.type == .binary && !new.isExternal
  }
}
