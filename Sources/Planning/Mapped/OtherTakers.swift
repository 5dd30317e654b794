import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Finds, for relationships of known forms, the references that an entity mapping does not ask for: to
/// what other mappings than the asked ones took, and all of those that it has no row for where another
/// mapping of the entity has one. They are dropped.
///
/// An entity that filters split among mappings is what this is about. A pair of objects is kept where
/// a mapping that takes the owner asks the target's mapping along the relationship, or the target's
/// mapping asks one of those along the inverse. What a policy does, and what other expressions make of
/// the relationship, nobody sees.
///
/// Likewise the members of a list, where a mapping keeps them without their places and another row has
/// these.
struct OtherTakers {
  /// A relationship program that follows a relationship of the source.
  private struct Follower {
    var mapping: Int
    var link: Int
    var asked: [Int]
  }

  private typealias Property = PropertyReaders.Property

  private let context: PlanContext
  private let members: [MappedBuilder.Member]
  private var followers: [Property: [Follower]] = [:]

  private var source: EntityHierarchy { context.source.hierarchy }

  init(context: PlanContext, members: [MappedBuilder.Member], _ plans: [EntityMappingPlan]) {
    self.context = context
    self.members = members
    for (index, plan) in plans.enumerated() where plan.policy == nil && plan.table != nil {
      guard let entity = plan.source else { continue }
      for (number, link) in plan.links.enumerated() {
        switch link.way {
        case .toOne(_, let asked, let followed), .toMany(_, let asked, let followed):
          followers[Property(entity: entity, name: followed.relationship), default: []].append(
            Follower(mapping: index, link: number, asked: asked))
        case .ownObject, .evaluated: break
        }
      }
    }
  }

  func add(to plans: inout [EntityMappingPlan]) {
    guard !followers.isEmpty else { return }
    let readers = PropertyReaders(
      members.map(\.mapping), source: source, destination: context.destination.hierarchy)
    let properties = followers.keys.sorted {
      $0.entity == $1.entity
        ? $0.name.precedesInBytes($1.name) : $0.entity.rawValue.precedesInBytes($1.entity.rawValue)
    }
    var counted: Set<Property> = []
    for property in properties { add(property, readers, &counted, &plans) }
  }

  /// - Parameter counted: The properties along which references are counted already. Each relationship is
  ///   counted along one of its sides, so that no pair of objects is counted twice.
  private func add(
    _ property: Property, _ readers: PropertyReaders, _ counted: inout Set<Property>,
    _ plans: inout [EntityMappingPlan]
  ) {
    guard
      let relationship = source.property(property.name, of: property.entity)?.property.relationship
    else { return }
    let inverse = source.inverse(of: relationship)?.relationship
    let takers = plans.indices.filter { index in
      plans[index].source.map { source.isKind($0, of: relationship.destinationEntity) } ?? false
    }
    let owners = plans.indices.filter { plans[$0].source == property.entity }
    guard (takers + owners).allSatisfy({ plans[$0].policy == nil }),
      !readers.linksOtherwise(property)
    else { return }
    let made = takers.filter { plans[$0].table != nil }
    var sides: [Int: Property] = [:]
    for taker in made {
      guard let inverse, let entity = plans[taker].source else { continue }
      sides[taker] = Property(entity: entity, name: inverse.name)
    }
    // What is kept of the targets' side by an expression of another form cannot be told.
    let open = made.filter { sides[$0].map(readers.linksOtherwise) ?? false }
    func asks(_ sides: [Int: Property]) -> [Int: Set<Int>] {
      Dictionary(
        uniqueKeysWithValues: owners.filter { plans[$0].table != nil }.map { owner in
          let kept = made.filter { taker in
            self.asks(owner, taker, along: property)
              || sides[taker].map { self.asks(taker, owner, along: $0) } ?? false
          }
          return (owner, Set(open + kept))
        })
    }
    let kept = asks(sides)
    addPlaces(of: property, kept.mapValues { $0.subtracting(open) }, readers, &plans)
    counted.insert(property)
    func others(of owner: Int, _ asks: [Int: Set<Int>], _ sides: [Int: Property])
      -> LinkProgram.Others?
    {
      let lost = made.filter { taker in
        !asks.contains { $0.value.contains(taker) && ($0.key == owner || plans[$0.key].takesAll) }
          && (sides[taker] == property || !(sides[taker].map(counted.contains) ?? false))
      }
      guard !lost.isEmpty else { return nil }
      let rivals = asks.keys.sorted().filter { $0 != owner }.map {
        LinkProgram.Rival(mapping: $0, asks: asks[$0]?.sorted() ?? [], isFirst: $0 < owner)
      }
      let mutual = lost.filter { sides[$0] == property }
      return .init(
        missed: lost.filter { sides[$0] != property }, mutual: mutual.isEmpty ? nil : mutual,
        kept: made.filter { asks[owner]?.contains($0) ?? false },
        rivals: rivals.isEmpty ? nil : rivals)
    }
    // Of a pair that one column of a one-to-one alone has, rows for the other side see nothing.
    let inverseSQL = inverseSQL(of: relationship)
    let keptAlone = inverseSQL == nil ? kept : asks([:])
    for owner in kept.keys.sorted() {
      let shared = others(of: owner, kept, sides)
      let alone = inverseSQL == nil ? shared : others(of: owner, keptAlone, [:])
      guard let alone, let link = program(of: property, for: owner, &plans) else { continue }
      plans[owner].links[link].others = shared
      if let inverseSQL, alone != shared {
        plans[owner].links[link].oneSided = .init(others: alone, inverse: inverseSQL)
      }
      for index in alone.mappings + (shared?.mappings ?? []) { plans[index].isReferenced = true }
    }
  }

  /// Tells whether object `?1` has `?2` in its column of a one-to-one. Nil for other relationships.
  private func inverseSQL(of relationship: RelationshipDescription) -> String? {
    guard !relationship.isToMany, let inverse = source.inverse(of: relationship),
      !inverse.relationship.isToMany, let table = context.source.table(of: inverse.entity),
      let column = context.source.column(of: inverse.relationship.name, in: inverse.entity)
    else { return nil }
    return "SELECT 1 FROM \(quoted(table.name)) WHERE Z_PK = ?1 AND \(quoted(column)) = ?2"
  }

  /// Has the places counted that a mapping does not keep and another row does.
  ///
  /// - Parameter kept: For each mapping of the owners, those whose objects stay members.
  private func addPlaces(
    of property: Property, _ kept: [Int: Set<Int>], _ readers: PropertyReaders,
    _ plans: inout [EntityMappingPlan]
  ) {
    guard let declared = source.property(property.name, of: property.entity),
      let relationship = declared.property.relationship, relationship.isOrdered,
      context.storage(of: relationship, declaredBy: declared.entity)?.orderColumn != nil,
      !readers.readsOtherwise(property)
    else { return }
    var placed: [Int: Set<Int>] = [:]
    for follower in followers[property] ?? [] where keepsPlaces(follower, plans) {
      placed[follower.mapping, default: []].formUnion(follower.asked)
    }
    // Where none does, the plan has counted the places.
    guard !placed.isEmpty else { return }
    // An owner's own row replaces what earlier mappings of the targets have set.
    let kept = Dictionary(
      uniqueKeysWithValues: kept.map { owner, members in
        let isSet = followers[property]?.contains { $0.mapping == owner } ?? false
        return (owner, members.filter { !isSet || $0 > owner || asks(owner, $0, along: property) })
      })
    for owner in kept.keys.sorted() {
      let always = placed.filter { $0.key == owner || plans[$0.key].takesAll }
      let members = always.values.reduce(kept[owner] ?? []) { $0.subtracting($1) }.sorted()
      guard !members.isEmpty, let link = program(of: property, for: owner, &plans) else { continue }
      // An earlier one has the place, or counts it.
      let elsewhere = kept.keys.sorted().compactMap { other in
        (other < owner ? kept : placed)[other].map {
          LinkProgram.Rival(mapping: other, asks: $0.sorted(), isFirst: false)
        }
      }
      plans[owner].links[link].unplaced = .init(kept: members, elsewhere: elsewhere)
      for index in members + elsewhere.flatMap(\.mappings) { plans[index].isReferenced = true }
    }
  }

  /// A to-one keeps the first one: the place decides which it is.
  private func keepsPlaces(_ follower: Follower, _ plans: [EntityMappingPlan]) -> Bool {
    let plan = plans[follower.mapping]
    let link = plan.links[follower.link]
    guard link.isToMany else { return true }
    guard let entity = plan.destination,
      let declared = context.destination.hierarchy.property(link.property, of: entity),
      let relationship = declared.property.relationship
    else { return false }
    return context.destination.storesPlaces(in: relationship, of: declared.entity)
  }

  /// Whether a row of a mapping follows a relationship to what another mapping took.
  private func asks(_ one: Int, _ other: Int, along property: Property) -> Bool {
    followers[property]?.contains { $0.mapping == one && $0.asked.contains(other) } ?? false
  }

  /// The program that counts a mapping's references along a relationship: one that follows it, else one
  /// that does nothing else.
  private func program(
    of property: Property, for owner: Int, _ plans: inout [EntityMappingPlan]
  ) -> Int? {
    if let own = followers[property]?.first(where: { $0.mapping == owner }) { return own.link }
    let along = ValueExpression.function(
      receiver: .variable("manager"), selector: ManagerSelector.instancesForRelationship,
      arguments: [
        .constant(.string(property.name)),
        .keyPath(base: .variable("source"), keys: [.key(property.name)]),
      ])
    let (way, _) = LinkRoutes(context: context, members: members)
      .way(
        of: along, source: property.entity, pass: plans[owner].pass, &plans[owner].linkColumns)
    let counting: LinkProgram.Way
    switch way {
    case .toOne(let column, _, let followed):
      counting = .toOne(column: column, mappings: [], followed)
    case .toMany(let sql, _, let followed): counting = .toMany(sql: sql, mappings: [], followed)
    case .ownObject, .evaluated: return nil
    }
    plans[owner].links.append(
      LinkProgram(
        property: property.name, expression: along.description, way: counting, isToMany: true,
        allowed: [], emissions: []))
    return plans[owner].links.count - 1
  }
}

extension LinkProgram.Others {
  fileprivate var mappings: [Int] {
    missed + (mutual ?? []) + kept + (rivals ?? []).flatMap(\.mappings)
  }
}
