import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore

// One entity mapping.
extension MappedLinks {
  /// For attributes that count, 0 where there is nothing to count.
  func countFills(of entity: EntityName, _ number: Int) -> [RelationshipFill] {
    let table = tables[number]
    return context.destination.tables[number].columns.compactMap { column in
      guard case .attribute(let bearer, let name) = column.role,
        context.countedRelationship(of: column) != nil, hierarchy.isKind(entity, of: bearer),
        let group = groupNumbers[Key(entity: bearer, relationship: name)],
        let place = table.relationshipPlaces.firstIndex(where: {
          table.columns[$0] == column.name
        })
      else { return nil }
      let type = hierarchy.property(name, of: bearer)?.property.attribute?.type
      let counted = context.countedRelationship(of: column)?.relationship.name
      return RelationshipFill(
        group: group, keyPlace: place, entityPlace: nil, orderPlace: nil, keepsOwn: false,
        otherwise: 0, isReal: type?.storesReals == true ? true : nil,
        limit: type.flatMap { type in
          type.highestCount.map {
            CountLimit(
              entity: entity, attribute: name, relationship: counted ?? "", type: type, most: $0)
          }
        })
    }
  }

  mutating func link(_ member: MappedBuilder.Member, _ plan: inout EntityMappingPlan) {
    guard let source = plan.source, let destination = plan.destination, let number = plan.table
    else { return }
    let table = tables[number]
    func place(_ column: String?) -> Int? {
      column.flatMap { name in table.relationshipPlaces.firstIndex { table.columns[$0] == name } }
    }
    for declared in hierarchy.properties(of: destination) where declared.property.isStored {
      guard let relationship = declared.property.relationship else { continue }
      let name = relationship.name
      let value = expression(of: name, in: member)
      if !relationship.isToMany,
        let group = groupNumbers[Key(entity: declared.entity, relationship: name)],
        let key = place(context.destination.column(of: name, in: destination))
      {
        plan.fills.append(
          RelationshipFill(
            group: group, keyPlace: key,
            entityPlace: place(context.destination.entityColumn(of: name, in: destination)),
            orderPlace: place(context.destination.orderColumn(of: name, in: destination)),
            keepsOwn: value != nil && !groups[group].isDecisive,
            isDecided: groups[group].isDecisive))
      }
      guard let value else { continue }
      let (way, calls) = LinkRoutes(context: context, members: members)
        .way(of: value, source: source, pass: member.pass, &plan.linkColumns)
      let link = LinkProgram(
        property: name, expression: value.description, way: way, calls: calls,
        isToMany: relationship.isToMany,
        allowed: allowedTargets(of: relationship),
        keyPlace: relationship.isToMany
          ? nil : place(context.destination.column(of: name, in: destination)),
        entityPlace: relationship.isToMany
          ? nil : place(context.destination.entityColumn(of: name, in: destination)),
        emissions: emissions(of: relationship, declaredBy: declared.entity))
      plan.links.append(link)
    }
    putInOrder(&plan, as: member.mapping.properties.relationships.map(\.name))
    plan.fills += ownerFills(of: destination, number) + countFills(of: destination, number)
  }

  /// Where an object sets both sides of one relationship, the later row has the last word.
  private func putInOrder(_ plan: inout EntityMappingPlan, as rows: [String]) {
    let named = plan.links.flatMap { link in
      Set(link.emissions.map(\.group)).filter {
        groups[$0].isDecisive || groups[$0].isOpen == true
      }
    }
    guard Set(named).count < named.count else { return }
    plan.links.sort {
      rows.firstIndex(of: $0.property) ?? 0 < rows.firstIndex(of: $1.property) ?? 0
    }
  }

  /// `Z_ENT` in the destination of everything that a relationship may point to.
  func allowedTargets(of relationship: RelationshipDescription) -> [Int64] {
    hierarchy.concrete(of: relationship.destinationEntity).map(context.destinationNumber).sorted()
  }

  /// The group that sets the columns of a to-one relationship.
  func group(of relationship: String, declaredBy entity: EntityName) -> Int? {
    groupNumbers[Key(entity: entity, relationship: relationship)]
  }

  /// For rows that are members of somebody's to-many relationship without inverse.
  func ownerFills(of entity: EntityName, _ number: Int) -> [RelationshipFill] {
    let table = tables[number]
    return context.destination.tables[number].columns.compactMap { column in
      guard case .owner(let owner, let name) = column.role,
        let group = groupNumbers[Key(entity: owner, relationship: name)],
        let key = table.relationshipPlaces.firstIndex(where: {
          table.columns[$0] == column.name
        }),
        hierarchy.isKind(entity, of: context.bearer(of: column))
      else { return nil }
      return RelationshipFill(
        group: group, keyPlace: key, entityPlace: nil, orderPlace: nil, keepsOwn: false)
    }
  }

  func emissions(
    of relationship: RelationshipDescription, declaredBy entity: EntityName
  ) -> [LinkProgram.Emission] {
    var found: [LinkProgram.Emission] = []
    if let join = context.destination.join(of: relationship.name, in: entity) {
      let key = Key(entity: join.table.entity, relationship: join.table.relationship)
      if let group = groupNumbers[key] {
        found.append(.init(group: group, side: join.isFirst ? 0 : 1))
      }
      return found
    }
    if !relationship.isToMany,
      let own = groupNumbers[Key(entity: entity, relationship: relationship.name)]
    {
      found.append(.init(group: own, side: 0))
    }
    if let inverse = hierarchy.inverse(of: relationship) {
      if !inverse.relationship.isToMany,
        let other = groupNumbers[
          Key(entity: inverse.entity, relationship: inverse.relationship.name)]
      {
        found.append(.init(group: other, side: 1))
      }
    } else if relationship.isToMany,
      let group = groupNumbers[Key(entity: entity, relationship: relationship.name)]
    {
      found.append(.init(group: group, side: 1))
    }
    return found
  }
}
