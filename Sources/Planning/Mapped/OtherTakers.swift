import GodwitObjectModel
import GodwitPersistentStore

/// Finds, for relationships of known forms, the entity mappings that take objects of the relationship
/// and that nobody asks for what they made: references to such objects are dropped.
///
/// An entity that filters split among mappings is what this is about. A pair of objects is kept where
/// any mapping of the owner's entity asks the target's mapping along the relationship, or the target's
/// mapping asks one of those along the inverse. What a policy does, and what other expressions make of
/// the relationship, nobody sees.
struct OtherTakers {
  /// A relationship program that follows a relationship of the source.
  private struct Follower {
    var mapping: Int
    var link: Int
    var asked: [Int]
  }

  private let source: EntityHierarchy
  private let members: [MappedBuilder.Member]
  private let destination: EntityHierarchy
  private var followers: [PropertyReaders.Property: [Follower]] = [:]

  init(context: PlanContext, members: [MappedBuilder.Member], _ plans: [EntityMappingPlan]) {
    (source, destination) = (context.source.hierarchy, context.destination.hierarchy)
    self.members = members
    for (index, plan) in plans.enumerated() where plan.policy == nil && plan.table != nil {
      guard let entity = plan.source else { continue }
      for (number, link) in plan.links.enumerated() {
        switch link.way {
        case .toOne(_, let asked, let followed), .toMany(_, let asked, let followed):
          followers[.init(entity: entity, name: followed.relationship), default: []].append(
            Follower(mapping: index, link: number, asked: asked))
        case .ownObject, .evaluated: break
        }
      }
    }
  }

  func add(to plans: inout [EntityMappingPlan]) {
    var readers: PropertyReaders?
    for (property, followers) in followers {
      guard
        let relationship = source.property(property.name, of: property.entity)?.property
          .relationship
      else { continue }
      let inverse = source.inverse(of: relationship)?.relationship
      // Its own inverse: either object may say the pair.
      if inverse?.name == property.name,
        source.isKind(property.entity, of: relationship.destinationEntity)
      {
        continue
      }
      let takers = plans.indices.filter { index in
        plans[index].source.map { source.isKind($0, of: relationship.destinationEntity) } ?? false
      }
      let owners = plans.indices.filter { plans[$0].source == property.entity }
      guard (takers + owners).allSatisfy({ plans[$0].policy == nil }) else { continue }
      let missed = takers.filter { taker in
        plans[taker].table != nil
          && !isAsked(taker, plans, followers, owners, inverse)
      }
      guard !missed.isEmpty else { continue }
      let known =
        readers
        ?? PropertyReaders(
          members.map(\.mapping), source: source, destination: destination)
      readers = known
      guard !known.linksOtherwise(property) else { continue }
      let unread = missed.filter { taker in
        guard let inverse, let entity = plans[taker].source else { return true }
        return !known.linksOtherwise(.init(entity: entity, name: inverse.name))
      }
      let kept = takers.filter { plans[$0].table != nil && !unread.contains($0) }
      for follower in counting(followers, plans) {
        let mine = unread.filter {
          !isCounted($0, insteadOf: follower.mapping, property.name, plans, inverse)
        }
        guard !mine.isEmpty else { continue }
        plans[follower.mapping].links[follower.link].others = .init(missed: mine, kept: kept)
        for taker in mine + kept { plans[taker].isReferenced = true }
      }
    }
  }

  private func isAsked(
    _ taker: Int, _ plans: [EntityMappingPlan], _ followers: [Follower], _ owners: [Int],
    _ inverse: RelationshipDescription?
  ) -> Bool {
    if followers.contains(where: { $0.asked.contains(taker) }) { return true }
    guard let inverse, let entity = plans[taker].source else { return false }
    return self.followers[.init(entity: entity, name: inverse.name)]?.contains {
      $0.mapping == taker && !Set($0.asked).isDisjoint(with: owners)
    } ?? false
  }

  /// The programs that count an owner's references, each owner's once: of a mapping that takes all
  /// objects, else of each mapping, which take different ones.
  private func counting(_ followers: [Follower], _ plans: [EntityMappingPlan]) -> [Follower] {
    if let whole = followers.first(where: { plans[$0.mapping].takesAll }) { return [whole] }
    var seen: Set<Int> = []
    return followers.filter { seen.insert($0.mapping).inserted }
  }

  /// Where both mappings follow the relationship, each from its side, the first one counts.
  private func isCounted(
    _ taker: Int, insteadOf owner: Int, _ relationship: String, _ plans: [EntityMappingPlan],
    _ inverse: RelationshipDescription?
  ) -> Bool {
    guard let inverse, let entity = plans[taker].source,
      let others = followers[.init(entity: entity, name: inverse.name)],
      counting(others, plans).contains(where: { $0.mapping == taker })
    else { return false }
    return taker == owner ? inverse.name.precedesInBytes(relationship) : taker < owner
  }
}
