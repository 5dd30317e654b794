import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// The forms that relationship expressions of mapping models are made of: what entity mappings
/// made of the object itself, or of the objects of one of its relationships.
struct LinkRoutes {
  /// Where an expression of a known form leads.
  struct Route {
    /// The source's relationship that is followed; nil for the object itself.
    var followed: (entity: EntityName, relationship: RelationshipDescription)?
    /// The entity mappings that are asked for what they made.
    var mappings: [Int]
  }

  /// An entity mapping that sets a relationship; without a route in a form that is not known.
  struct Setter {
    var mapping: Int
    var route: Route?
  }

  let context: PlanContext
  let members: [MappedBuilder.Member]

  func setter(_ member: MappedBuilder.Member, _ value: ValueExpression) -> Setter {
    Setter(
      mapping: member.index,
      route: member.mapping.sourceEntity.flatMap {
        route(of: value, source: $0, pass: member.pass)
      })
  }

  /// True when two entity mappings give the two sides of a relationship the same pairs: both
  /// follow the two sides of one relationship of the source to what the other one makes, or
  /// neither asks for what the other one makes.
  ///
  /// - Parameter isReflexive: True for a relationship that is its own inverse. What both take from
  ///   one relationship without inverse is then set both ways.
  func agree(_ one: Setter, _ other: Setter, isReflexive: Bool) -> Bool {
    guard let first = one.route, let second = other.route else { return false }
    let asks = first.mappings.contains(other.mapping)
    guard asks == second.mappings.contains(one.mapping) else { return false }
    guard asks else { return true }
    switch (first.followed, second.followed) {
    case (nil, nil): return true
    case (let first?, let second?):
      if isReflexive, first.entity == second.entity,
        first.relationship.name == second.relationship.name
      {
        return true
      }
      let inverse = context.source.hierarchy.inverse(of: first.relationship)
      return inverse?.entity == second.entity
        && inverse?.relationship.name == second.relationship.name
    default: return false
    }
  }

  private func route(of value: ValueExpression, source: EntityName, pass: Int) -> Route? {
    guard case .function(.variable("manager"), let selector, let arguments) = value,
      arguments.count == 2, case .constant(.string(let name)) = arguments[0]
    else { return nil }
    let own = context.source.hierarchy
    var candidateMappings: [MappedBuilder.Member]
    switch selector {
    case ManagerSelector.instancesForMapping:
      candidateMappings = members.filter { $0.pass == pass && $0.mapping.name == name }
      // A later pass finds again what an earlier one has made.
      if candidateMappings.isEmpty {
        candidateMappings = members.filter { $0.pass < pass && $0.mapping.name == name }
      }
      if candidateMappings.isEmpty { return nil }
    case ManagerSelector.instancesForRelationship:
      guard let relationship = own.property(name, of: source)?.property.relationship else {
        return nil
      }
      candidateMappings = members.filter { member in
        member.pass == pass
          && member.mapping.sourceEntity.map {
            own.isKind($0, of: relationship.destinationEntity)
          } ?? false
      }
    default: return nil
    }
    candidateMappings = candidateMappings.filter {
      $0.mapping.sourceEntity != nil && $0.mapping.destinationEntity != nil
    }
    if case .variable("source") = arguments[1] {
      let same = candidateMappings.filter { $0.mapping.sourceEntity == source }
      return Route(followed: nil, mappings: same.map(\.index))
    }
    guard let key = arguments[1].plainSourceKey,
      let declared = own.property(key, of: source),
      let relationship = declared.property.relationship, declared.property.isStored
    else { return nil }
    let entity = relationship.destinationEntity
    let found = candidateMappings.filter {
      own.root(of: $0.mapping.sourceEntity ?? entity) == own.root(of: entity)
    }
    return Route(followed: (declared.entity, relationship), mappings: found.map(\.index))
  }

  /// How the worker finds the objects of an expression. To-one columns that it reads are added.
  func way(
    of value: ValueExpression, source: EntityName, pass: Int, _ linkColumns: inout [String]
  ) -> LinkProgram.Way {
    guard let route = route(of: value, source: source, pass: pass) else { return .evaluated }
    guard let (entity, relationship) = route.followed else {
      return .ownObject(mappings: route.mappings)
    }
    guard let storage = context.storage(of: relationship, declaredBy: entity),
      let table = context.source.table(of: relationship.destinationEntity)
    else { return .evaluated }
    let followed = SourceReference(
      relationship: relationship.name, table: table.name,
      allowed: context.allowed(relationship.destinationEntity))
    if !relationship.isToMany {
      guard let column = context.source.column(of: relationship.name, in: source) else {
        return .evaluated
      }
      let place = linkColumns.firstIndex(of: column) ?? linkColumns.count
      if place == linkColumns.count { linkColumns.append(column) }
      return .toOne(column: place, mappings: route.mappings, followed)
    }
    let sql = context.pairSQL(storage, isOrdered: relationship.isOrdered)
    return .toMany(sql: sql, mappings: route.mappings, followed)
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
