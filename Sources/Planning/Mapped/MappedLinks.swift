import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans how relationships are set: what gives the destination objects, and which columns and
/// join tables the pairs go to.
///
/// Core Data keeps inverses: whichever side is set, the other follows. A store has one place for
/// both, so the planner decides which side speaks: a to-one side with an expression of its own,
/// else the pairs of the other side, gathered and sorted. Ordered relationships take their order
/// from the side that is ordered.
struct MappedLinks {
  private struct Key: Hashable {
    var entity: EntityName
    var relationship: String
  }

  let context: PlanContext
  let members: [MappedBuilder.Member]
  let tables: [TablePlan]
  /// A policy may set any relationship of any object: then every column and join table has a
  /// group.
  private let hasPolicies: Bool
  private(set) var groups: [RelationshipGroup] = []
  private(set) var joinTables: [JoinTablePlan] = []
  private var groupNumbers: [Key: Int] = [:]

  private var hierarchy: EntityHierarchy { context.destination.hierarchy }

  init(context: PlanContext, members: [MappedBuilder.Member], tables: [TablePlan]) {
    self.context = context
    self.members = members
    self.tables = tables
    hasPolicies = members.contains { $0.mapping.policy != nil }
  }

  mutating func build(_ plans: inout [EntityMappingPlan]) {
    makeGroups()
    makeJoins()
    makeCounts()
    for (index, member) in members.enumerated() where plans[index].table != nil {
      link(member, &plans[index])
    }
    for index in plans.indices {
      if hasPolicies { plans[index].isReferenced = true }
      for link in plans[index].links {
        switch link.way {
        case .ownObject(let mappings), .toOne(_, let mappings, _), .toMany(_, let mappings, _):
          for mapping in mappings { plans[mapping].isReferenced = true }
        case .evaluated:
          for other in plans.indices where plans[other].pass <= plans[index].pass {
            plans[other].isReferenced = true
          }
        }
      }
      // An expression for an attribute may ask for destination objects, too, and gets none: they
      // are not all there yet.
    }
  }

  // MARK: Who sets what

  /// The relationship's expression in an entity mapping that makes rows.
  private func expression(of relationship: String, in member: MappedBuilder.Member)
    -> ValueExpression?
  {
    guard member.mapping.sourceEntity != nil else { return nil }
    return member.mapping.properties.relationships.first { $0.name == relationship }?.expression
  }

  private func makers(of entity: EntityName) -> [MappedBuilder.Member] {
    members.filter { member in
      guard member.mapping.sourceEntity != nil, let made = member.mapping.destinationEntity else {
        return false
      }
      return hierarchy.isKind(made, of: entity)
    }
  }

  private mutating func makeGroups() {
    for (number, table) in context.destination.tables.enumerated() {
      for column in table.columns {
        switch column.role {
        case .toOne(let entity, let name):
          guard let toOne = hierarchy.property(name, of: entity)?.property.relationship else {
            continue
          }
          guard let inverse = hierarchy.inverse(of: toOne) else {
            if hasPolicies {
              add(
                Key(entity: entity, relationship: name), .columns(table: number, isOrdered: false))
            }
            continue
          }
          let isOrdered = inverse.relationship.isToMany && inverse.relationship.isOrdered
          let others = makers(of: inverse.entity).contains {
            expression(of: inverse.relationship.name, in: $0) != nil
          }
          let own = makers(of: entity)
          let isSet = own.contains { expression(of: name, in: $0) != nil }
          let lacks = own.contains { expression(of: name, in: $0) == nil }
          let isOneToOne = !inverse.relationship.isToMany
          let isCounted = context.isCounted(name, declaredBy: entity)
          let isAlways = isOrdered || isOneToOne || isCounted
          guard hasPolicies || (others && lacks) || (isAlways && (others || isSet)) else {
            continue
          }
          let mirror = Key(entity: inverse.entity, relationship: inverse.relationship.name)
          let isMirror = groupNumbers[mirror] != nil
          add(
            Key(entity: entity, relationship: name), .columns(table: number, isOrdered: isOrdered))
          groups[groups.count - 1].isOneToOne = isOneToOne
          groups[groups.count - 1].isMirror = isOneToOne && isMirror
          groups[groups.count - 1].isCounted = isCounted
        case .owner(let owner, let name):
          guard
            hasPolicies
              || makers(of: owner).contains(where: { expression(of: name, in: $0) != nil })
          else { continue }
          add(Key(entity: owner, relationship: name), .columns(table: number, isOrdered: false))
        case .attribute, .leaf, .targetEntity, .order: continue
        }
      }
    }
  }

  private mutating func add(_ key: Key, _ target: RelationshipGroup.Target) {
    groupNumbers[key] = groups.count
    groups.append(
      RelationshipGroup(entity: key.entity, relationship: key.relationship, target: target))
  }

  private mutating func makeJoins() {
    for (number, join) in context.destination.joinTables.enumerated() {
      let isSet =
        hasPolicies
        || [(join.entity, join.relationship), (join.inverseEntity, join.inverse)].contains {
          entity, name in makers(of: entity).contains { expression(of: name, in: $0) != nil }
        }
      joinTables.append(
        JoinTablePlan(
          name: join.name,
          columns: [join.firstColumn, join.secondColumn]
            + [join.firstOrderColumn, join.secondOrderColumn].compactMap { $0 },
          way: isSet ? .computed : .empty, sourceTable: nil, carriedColumns: [], sql: nil,
          ranks: []))
      if isSet {
        add(
          Key(entity: join.entity, relationship: join.relationship),
          .join(
            number, firstIsOrdered: join.firstOrderColumn != nil,
            secondIsOrdered: join.secondOrderColumn != nil, isReflexive: join.isReflexive))
      }
    }
  }

  /// Derived attributes count what the groups before have sorted.
  private mutating func makeCounts() {
    for table in context.destination.tables {
      for column in table.columns {
        guard case .attribute(let bearer, let name) = column.role,
          let counted = context.countedRelationship(of: column)
        else { continue }
        add(Key(entity: bearer, relationship: name), pairs(of: counted))
      }
    }
  }

  private func pairs(
    of counted: (relationship: RelationshipDescription, entity: EntityName)
  ) -> RelationshipGroup.Target {
    let name = counted.relationship.name
    if let join = context.destination.join(of: name, in: counted.entity) {
      let key = Key(entity: join.table.entity, relationship: join.table.relationship)
      return .count(of: groupNumbers[key], side: join.isFirst ? 0 : 1)
    }
    let inverse = hierarchy.inverse(of: counted.relationship)
    let key = Key(
      entity: inverse?.entity ?? counted.entity, relationship: inverse?.relationship.name ?? name)
    return .count(of: groupNumbers[key], side: 1)
  }

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
      return RelationshipFill(
        group: group, keyPlace: place, entityPlace: nil, orderPlace: nil, keepsOwn: false,
        otherwise: 0)
    }
  }

  // MARK: One entity mapping

  private mutating func link(_ member: MappedBuilder.Member, _ plan: inout EntityMappingPlan) {
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
            keepsOwn: value != nil && !groups[group].isOneToOne,
            isDecided: groups[group].isOneToOne))
      }
      guard let value else { continue }
      let link = LinkProgram(
        property: name, expression: value.description,
        way: way(of: value, source: source, pass: member.pass, &plan.linkColumns),
        isToMany: relationship.isToMany,
        allowed: allowedTargets(of: relationship),
        keyPlace: relationship.isToMany
          ? nil : place(context.destination.column(of: name, in: destination)),
        entityPlace: relationship.isToMany
          ? nil : place(context.destination.entityColumn(of: name, in: destination)),
        emissions: emissions(of: relationship, declaredBy: declared.entity))
      plan.links.append(link)
    }
    plan.fills += ownerFills(of: destination, number) + countFills(of: destination, number)
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

  // MARK: Known ways to objects

  /// The forms that mapping models are made of: what a mapping made of the object itself, or of
  /// the objects of one of its relationships.
  private func way(
    of value: ValueExpression, source: EntityName, pass: Int, _ linkColumns: inout [String]
  ) -> LinkProgram.Way {
    guard case .function(.variable("manager"), let selector, let arguments) = value,
      arguments.count == 2, case .constant(.string(let name)) = arguments[0]
    else { return .evaluated }
    let own = context.source.hierarchy
    var candidateMappings: [MappedBuilder.Member]
    switch selector {
    case ManagerSelector.instancesForMapping:
      candidateMappings = members.filter { $0.pass == pass && $0.mapping.name == name }
      // A later pass finds again what an earlier one has made.
      if candidateMappings.isEmpty {
        candidateMappings = members.filter { $0.pass < pass && $0.mapping.name == name }
      }
      if candidateMappings.isEmpty { return .evaluated }
    case ManagerSelector.instancesForRelationship:
      guard let relationship = own.property(name, of: source)?.property.relationship else {
        return .evaluated
      }
      candidateMappings = members.filter { member in
        member.pass == pass
          && member.mapping.sourceEntity.map {
            own.isKind($0, of: relationship.destinationEntity)
          } ?? false
      }
    default: return .evaluated
    }
    candidateMappings = candidateMappings.filter {
      $0.mapping.sourceEntity != nil && $0.mapping.destinationEntity != nil
    }
    func mappings(below entity: EntityName) -> [Int] {
      candidateMappings.filter {
        own.root(of: $0.mapping.sourceEntity ?? entity) == own.root(of: entity)
      }
      .map(\.index)
    }
    if case .variable("source") = arguments[1] {
      let own = candidateMappings.filter { $0.mapping.sourceEntity == source }
      return .ownObject(mappings: own.map(\.index))
    }
    guard let key = arguments[1].plainSourceKey,
      let declared = own.property(key, of: source),
      let relationship = declared.property.relationship, declared.property.isStored,
      let storage = context.storage(of: relationship, declaredBy: declared.entity),
      let table = context.source.table(of: relationship.destinationEntity)
    else { return .evaluated }
    let found = mappings(below: relationship.destinationEntity)
    let followed = SourceReference(
      relationship: key, table: table.name,
      allowed: context.allowed(relationship.destinationEntity))
    if !relationship.isToMany {
      guard let column = context.source.column(of: key, in: source) else { return .evaluated }
      let place = linkColumns.firstIndex(of: column) ?? linkColumns.count
      if place == linkColumns.count { linkColumns.append(column) }
      return .toOne(column: place, mappings: found, followed)
    }
    let sql = context.pairSQL(storage, isOrdered: relationship.isOrdered)
    return .toMany(sql: sql, mappings: found, followed)
  }
}

extension PlanContext {
  /// Owner and target keys of a to-many relationship, in the order of the relationship, of the
  /// owners between `?1` and `?2`.
  fileprivate func pairSQL(_ storage: PairStorage, isOrdered: Bool) -> String {
    let owner = quoted(storage.ownerColumn)
    let target = quoted(storage.targetColumn)
    var order = [owner]
    if isOrdered, let column = storage.orderColumn { order.append(quoted(column)) }
    order.append(target)
    return """
      SELECT \(owner), \(target)
        FROM \(quoted(storage.table))
       WHERE \(owner) BETWEEN ?1 AND ?2 AND \(target) IS NOT NULL
       ORDER BY \(order.joined(separator: ", "))
      """
  }
}
