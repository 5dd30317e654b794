import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore

/// Finds, for relationships of known forms, the references that an entity mapping does not ask for: to
/// what other mappings than the asked ones took, and all of those that it has no row for where another
/// mapping of the entity has one. They are dropped.
///
/// An entity that filters split among mappings is what this is about. A pair of objects is kept where
/// a mapping that takes the owner asks the target's mapping along the relationship, or the target's
/// mapping asks one of those along the inverse. What a policy does, and what other expressions make of
/// the relationship, nobody sees.
///
/// Likewise the members of a list, where a mapping keeps them without their places and another one of the
/// entity has these.
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
    for property in properties { add(property, readers, &plans) }
  }

  private func add(
    _ property: Property, _ readers: PropertyReaders, _ plans: inout [EntityMappingPlan]
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
    // What is kept of the targets' side by an expression of another form cannot be told.
    let open = made.filter { taker in
      guard let inverse, let entity = plans[taker].source else { return false }
      return readers.linksOtherwise(Property(entity: entity, name: inverse.name))
    }
    let asks = Dictionary(
      uniqueKeysWithValues: owners.filter { plans[$0].table != nil }.map { owner in
        (owner, Set(open + made.filter { keeps($0, owner, property, inverse, plans) }))
      })
    addPlaces(of: property, asks.mapValues { $0.subtracting(open) }, readers, &plans)
    for owner in asks.keys.sorted() {
      let missed = made.filter { taker in
        !asks.contains { $0.value.contains(taker) && ($0.key == owner || plans[$0.key].takesAll) }
          && !isCounted(taker, insteadOf: owner, property.name, plans, inverse)
      }
      guard !missed.isEmpty, let link = program(of: property, for: owner, &plans) else { continue }
      let rivals = asks.keys.sorted().filter { $0 != owner }.map {
        LinkProgram.Rival(mapping: $0, asks: asks[$0]?.sorted() ?? [], isFirst: $0 < owner)
      }
      let kept = made.filter { asks[owner]?.contains($0) ?? false }
      plans[owner].links[link].others = .init(
        missed: missed, kept: kept, rivals: rivals.isEmpty ? nil : rivals)
      for index in missed + kept + rivals.map(\.mapping) { plans[index].isReferenced = true }
    }
  }

  /// Has the places counted that a mapping does not keep and another one of the owners does.
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
    let owners = kept.keys.sorted()
    let placing = owners.filter { keepsPlaces(of: property, $0) }
    // Where none does, the plan has counted the places.
    guard !placing.isEmpty, !placing.contains(where: { plans[$0].takesAll }) else { return }
    let others = owners.filter { !placing.contains($0) }
    for owner in others {
      let members = kept[owner]?.sorted() ?? []
      guard !members.isEmpty, let link = program(of: property, for: owner, &plans) else { continue }
      let elsewhere = placing + others.filter { $0 < owner }
      plans[owner].links[link].unplaced = .init(kept: members, elsewhere: elsewhere)
      for index in members + elsewhere { plans[index].isReferenced = true }
    }
  }

  /// A to-one keeps the first one: the place decides which it is.
  private func keepsPlaces(of property: Property, _ owner: Int) -> Bool {
    let own = PropertyReaders(
      [members[owner].mapping], source: source, destination: context.destination.hierarchy)
    return own.links[property]?.contains { link in
      !link.relationship.isToMany
        || context.destination.storesPlaces(in: link.relationship, of: link.entity)
    } ?? false
  }

  /// Whether a mapping's objects keep their references to what another one took, from either side.
  private func keeps(
    _ taker: Int, _ owner: Int, _ property: Property, _ inverse: RelationshipDescription?,
    _ plans: [EntityMappingPlan]
  ) -> Bool {
    func asks(_ one: Int, _ other: Int, _ property: Property) -> Bool {
      followers[property]?.contains { $0.mapping == one && $0.asked.contains(other) } ?? false
    }
    if asks(owner, taker, property) { return true }
    guard let inverse, let entity = plans[taker].source else { return false }
    return asks(taker, owner, Property(entity: entity, name: inverse.name))
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

  /// Where both mappings count, each along its side of the relationship, the first one does.
  private func isCounted(
    _ taker: Int, insteadOf owner: Int, _ relationship: String, _ plans: [EntityMappingPlan],
    _ inverse: RelationshipDescription?
  ) -> Bool {
    guard let inverse, let entity = plans[taker].source,
      followers[Property(entity: entity, name: inverse.name)] != nil
    else { return false }
    return taker == owner ? inverse.name.precedesInBytes(relationship) : taker < owner
  }
}
