import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// The forms that relationship expressions of mapping models are made of: what entity mappings
/// made of the object itself, or of the objects of one of its relationships. Several such calls, in an
/// aggregate, ask one mapping after the other.
struct LinkRoutes {
  /// Where an expression of a known form leads.
  struct Route {
    /// The source's relationship that is followed; nil for the object itself.
    var followed: (entity: EntityName, relationship: RelationshipDescription)?
    /// The entity mappings that are asked for what they made, by the calls that ask them; each once.
    var calls: [[Int]]

    var mappings: [Int] { calls.flatMap(\.self) }
    /// How many mappings each call asks, where that makes a difference.
    var counts: [Int]? { calls.count > 1 ? calls.map(\.count) : nil }

    func followsSame(as other: Route) -> Bool {
      followed?.entity == other.followed?.entity
        && followed?.relationship.name == other.followed?.relationship.name
    }
  }

  /// An entity mapping that sets a relationship.
  struct Setter {
    var mapping: Int
    /// One for each relationship that is followed; nil in a form that is not known.
    var routes: [Route]?
    /// Whether the relationship that is set has room for several objects.
    var isToMany: Bool

    /// True where the source may have several objects, of which the first is taken.
    var narrows: Bool {
      guard !isToMany, let routes else { return false }
      return routes.count > 1 || routes.contains { $0.followed?.relationship.isToMany ?? false }
    }
  }

  /// How what two entity mappings say of the two sides of a relationship goes together.
  enum Agreement: Int, Comparable {
    /// They give the same pairs.
    case same
    /// They would, if there were room for all objects.
    case narrowed
    case different

    static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
  }

  let context: PlanContext
  let members: [MappedBuilder.Member]

  func setter(
    _ member: MappedBuilder.Member, _ value: ValueExpression, isToMany: Bool
  ) -> Setter {
    Setter(
      mapping: member.index,
      routes: member.mapping.sourceEntity.flatMap {
        routes(of: value, source: $0, pass: member.pass)
      }, isToMany: isToMany)
  }

  /// Two entity mappings give the two sides of a relationship the same pairs when each relationship of
  /// the source along which one asks for what the other one makes is followed back by that one, or
  /// neither asks for what the other one makes: what they ask others for is no matter between the two.
  /// A to-one that follows a to-many, or several relationships, gives some of them only.
  ///
  /// - Parameter isReflexive: True for a relationship that is its own inverse.
  func agreement(_ one: Setter, _ other: Setter, isReflexive: Bool) -> Agreement {
    guard let first = one.routes, let second = other.routes else { return .different }
    let there = first.filter { $0.mappings.contains(other.mapping) }
    let back = second.filter { $0.mappings.contains(one.mapping) }
    guard !there.isEmpty || !back.isEmpty else { return .same }
    let sources = [one, other].map { members[$0.mapping].mapping.sourceEntity }
    // One relationship of the source, set both ways; with others in the braces each object is set as its own says.
    let isReflexive = isReflexive && first.count == 1 && second.count == 1
    guard there.count == back.count, !(first + second).contains(where: asksPolicyForOthers),
      there.allSatisfy({ route in
        back.contains {
          route.followed == nil && $0.followed == nil
            ? sources[0] == sources[1] : followsBack($0, route, isReflexive: isReflexive)
        }
      })
    else { return .different }
    return one.narrows || other.narrows ? .narrowed : .same
  }

  /// True where a route follows the inverse of what another one follows. What both sides of a reflexive
  /// relationship take from one to-many relationship without inverse is set both ways.
  private func followsBack(_ back: Route, _ there: Route, isReflexive: Bool) -> Bool {
    guard let one = there.followed, let other = back.followed else { return false }
    if let inverse = context.source.hierarchy.inverse(of: one.relationship) {
      return inverse.entity == other.entity
        && inverse.relationship.name == other.relationship.name
    }
    return isReflexive && one.relationship.isToMany && there.followsSame(as: back)
  }

  /// True where a policy is asked for objects that no entity mapping takes: what it associated with them
  /// is in no pair of the other side.
  private func asksPolicyForOthers(_ route: Route) -> Bool {
    guard let followed = route.followed,
      route.mappings.contains(where: { members[$0].mapping.policy != nil })
    else { return false }
    let taken = Set(
      members.map(\.mapping).filter { $0.policy != nil || $0.destinationEntity != nil }
        .compactMap(\.sourceEntity))
    return context.source.hierarchy.concrete(of: followed.relationship.destinationEntity)
      .contains { !taken.contains($0) }
  }

  /// - Parameter value: A call, or an aggregate of calls.
  /// - Returns: A route for each relationship that the calls follow, in their order; nil where one of
  ///   them has no known form.
  private func routes(of value: ValueExpression, source: EntityName, pass: Int) -> [Route]? {
    guard case .aggregate(let parts) = value else {
      return route(ofCall: value, source: source, pass: pass).map { [$0] }
    }
    var whole: [Route] = []
    for part in parts {
      guard let found = routes(of: part, source: source, pass: pass) else { return nil }
      for route in found {
        guard let known = whole.firstIndex(where: { $0.followsSame(as: route) }) else {
          whole.append(route)
          continue
        }
        // What a mapping made of an object comes where it is asked for first.
        for call in route.calls {
          let new = call.filter { !whole[known].mappings.contains($0) }
          if !new.isEmpty { whole[known].calls.append(new) }
        }
      }
    }
    return whole.isEmpty ? nil : whole
  }

  /// A policy may have associated objects of any entity: it is asked whatever its mapping takes.
  private func route(ofCall value: ValueExpression, source: EntityName, pass: Int) -> Route? {
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
      $0.mapping.policy != nil
        || ($0.mapping.sourceEntity != nil && $0.mapping.destinationEntity != nil)
    }
    if case .variable("source") = arguments[1] {
      let same = candidateMappings.filter {
        $0.mapping.policy != nil || $0.mapping.sourceEntity == source
      }
      return Route(followed: nil, calls: [same.map(\.index)])
    }
    guard let key = arguments[1].plainSourceKey,
      let declared = own.property(key, of: source),
      let relationship = declared.property.relationship, declared.property.isStored
    else { return nil }
    let entity = relationship.destinationEntity
    let found = candidateMappings.filter {
      $0.mapping.policy != nil
        || own.root(of: $0.mapping.sourceEntity ?? entity) == own.root(of: entity)
    }
    return Route(followed: (declared.entity, relationship), calls: [found.map(\.index)])
  }

  /// How the worker finds the objects of an expression, and of how many mappings each of its calls asks
  /// for the objects of a to-many. To-one columns that it reads are added.
  func way(
    of value: ValueExpression, source: EntityName, pass: Int, _ linkColumns: inout [String]
  ) -> (way: LinkProgram.Way, calls: [Int]?) {
    guard let routes = routes(of: value, source: source, pass: pass), routes.count == 1 else {
      return (.evaluated, nil)
    }
    let route = routes[0]
    let way = way(along: route, source: source, &linkColumns)
    if case .toMany = way { return (way, route.counts) }
    return (way, nil)
  }

  private func way(
    along route: Route, source: EntityName, _ linkColumns: inout [String]
  ) -> LinkProgram.Way {
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
    let sql = context.pairSQL(
      storage, isOrdered: relationship.isOrdered,
      of: context.strayTable(of: relationship, declaredBy: entity) == nil
        ? nil : followed.allowed)
    return .toMany(sql: sql, mappings: route.mappings, followed)
  }
}

extension PlanContext {
  /// Owner and target keys of a to-many relationship, in the order of the relationship, of the
  /// owners between `?1` and `?2`.
  ///
  /// - Parameter numbers: `Z_ENT` of what can be a target, where the table has other rows; nil where it has none.
  fileprivate func pairSQL(
    _ storage: PairStorage, isOrdered: Bool, of numbers: [Int64]?
  ) -> String {
    let owner = quoted(storage.ownerColumn)
    let target = quoted(storage.targetColumn)
    var order = [owner]
    if isOrdered, let column = storage.orderColumn { order.append(quoted(column)) }
    order.append(target)
    let condition =
      numbers.map {
        " AND Z_ENT IN (\($0.map(String.init).joined(separator: ", ")))"
      } ?? ""
    return """
      SELECT \(owner), \(target)
        FROM \(quoted(storage.table))
       WHERE \(owner) BETWEEN ?1 AND ?2 AND \(target) IS NOT NULL\(condition)
       ORDER BY \(order.joined(separator: ", "))
      """
  }
}
