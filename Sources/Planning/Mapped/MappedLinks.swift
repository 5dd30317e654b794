import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans how relationships are set: what gives the destination objects, and which columns and
/// join tables the pairs go to.
///
/// Core Data keeps inverses: whichever side is set, the other follows. A store has one place for
/// both. Where both sides say the same (see ``LinkRoutes``), the planner decides which one speaks:
/// a to-one side with an expression of its own, else the pairs of the other side, gathered and
/// sorted. Where they do not, pairs are set one after the other, and the last one stands. Ordered
/// relationships take their order from the side that is ordered.
struct MappedLinks {
  struct Key: Hashable {
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
  private(set) var notes: [String] = []
  private(set) var groupNumbers: [Key: Int] = [:]

  var hierarchy: EntityHierarchy { context.destination.hierarchy }

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
    OtherTakers(context: context, members: members, plans).add(to: &plans)
    SplitAttributes(context: context, members: members).add(to: &plans)
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
  func expression(of relationship: String, in member: MappedBuilder.Member)
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
          let other = (inverse.entity, inverse.relationship.name)
          let agreement = agreement((entity, name), other)
          let isSequential = !isOneToOne && agreement != .same
          let isCounted = context.isCounted(name, declaredBy: entity)
          let isAlways = isOrdered || isOneToOne || isCounted || isSequential
          guard hasPolicies || (others && lacks) || (isAlways && (others || isSet)) else {
            continue
          }
          let mirror = Key(entity: inverse.entity, relationship: inverse.relationship.name)
          let isMirror = groupNumbers[mirror] != nil
          add(
            Key(entity: entity, relationship: name), .columns(table: number, isOrdered: isOrdered))
          groups[groups.count - 1].isOneToOne = isOneToOne
          if isOneToOne, other == (entity, name) { groups[groups.count - 1].isOwnInverse = true }
          groups[groups.count - 1].isMirror = isOneToOne && isMirror
          groups[groups.count - 1].isCounted = isCounted
          groups[groups.count - 1].isSequential = isSequential ? true : nil
          if !groups[groups.count - 1].isMirror { note(agreement, (entity, name), other) }
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

  /// How what entity mappings set the two sides of a relationship to goes together: the worst of it.
  private func agreement(
    _ one: (entity: EntityName, name: String), _ other: (entity: EntityName, name: String)
  ) -> LinkRoutes.Agreement {
    let routes = LinkRoutes(context: context, members: members)
    func setters(_ side: (entity: EntityName, name: String)) -> [LinkRoutes.Setter] {
      let relationship = hierarchy.property(side.name, of: side.entity)?.property.relationship
      return makers(of: side.entity).compactMap { member in
        expression(of: side.name, in: member).map {
          routes.setter(member, $0, isToMany: relationship?.isToMany ?? false)
        }
      }
    }
    let others = setters(other)
    return setters(one).flatMap { setter in
      others.map { routes.agreement(setter, $0, isReflexive: one == other) }
    }.max() ?? .same
  }

  /// Says that the pairs of a relationship are set one after the other, and why.
  private mutating func note(
    _ agreement: LinkRoutes.Agreement, _ one: (entity: EntityName, name: String),
    _ other: (entity: EntityName, name: String)
  ) {
    guard agreement != .same else { return }
    let side = "\(one.entity).\(one.name)"
    guard one != other else {
      notes.append(
        "\(side) is its own inverse, and objects say different things of it: it is set object "
          + "by object, and the last word stands.")
      return
    }
    let why =
      agreement == .narrowed
      ? "which has room for one object where the source may have several"
      : "and the mapping model sets them to different things"
    notes.append(
      "\(side) and \(other.entity).\(other.name) are two sides of one relationship, \(why): they are "
        + "set one entity mapping after the other, and the last word stands. Where one is meant to "
        + "follow the other, write default for it: for the one without an order, where the other "
        + "has one.")
  }

  private mutating func add(_ key: Key, _ target: RelationshipGroup.Target) {
    groupNumbers[key] = groups.count
    groups.append(
      RelationshipGroup(
        entity: key.entity, relationship: key.relationship, target: target,
        isOpen: hasPolicies ? true : nil))
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
        let (one, other) = ((join.entity, join.relationship), (join.inverseEntity, join.inverse))
        let agreement = agreement(one, other)
        if agreement != .same { groups[groups.count - 1].isSequential = true }
        note(agreement, one, other)
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
}
