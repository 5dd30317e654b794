import GodwitObjectModel

/// Which object each to-one relationship points to, by arithmetic.
///
/// Nothing is remembered: both sides of a one-to-one, and the places of an ordered list, follow
/// from the member's number alone.
struct ToOneTargets: Sendable {
  private enum Rule: Sendable {
    case none
    /// Any target, drawn for each member.
    case drawn
    /// `2 · length` members in a row share two lists; a drawn cut decides who has how many.
    case lists(length: Int)
    /// Members are dealt out like cards: for lists with a least or most number of members.
    case dealt(rounds: Int, most: Int)
    /// Member *m* and its partner at the shuffled place.
    case pairs(Shuffle, isForward: Bool)
    /// Neighbours point at each other: a one-to-one that is its own inverse.
    case neighbours
    /// Every member another target, in order: a to-one that must be unique.
    case distinct
  }

  struct Target { var member: Int; var place: Int64 }

  let members: Population
  let targets: Population
  private let rule: Rule
  private let seed: UInt64
  private let nullThreshold: UInt64

  init?(
    _ relationship: RelationshipDescription, of entity: EntityName, isUnique: Bool,
    in spaces: KeySpaces, options: StoreOptions
  ) {
    let hierarchy = spaces.hierarchy
    let inverse = hierarchy.inverse(of: relationship)
    // A relationship may be declared higher up than its inverse reaches.
    var owner = entity
    var destination = relationship.destinationEntity
    if let inverse {
      if hierarchy.isKind(inverse.relationship.destinationEntity, of: owner) {
        owner = inverse.relationship.destinationEntity
      }
      if hierarchy.isKind(inverse.entity, of: destination) { destination = inverse.entity }
    }
    guard let members = spaces.population(of: owner),
      let targets = spaces.population(of: destination)
    else { return nil }
    self.members = members
    self.targets = targets
    var nulls = relationship.traits.isOptional ? options.nullFraction : 0
    let own = "\(entity).\(relationship.name)"
    var purpose = own
    guard members.count > 0, targets.count > 0 else {
      (rule, seed, nullThreshold) = (.none, 0, 0)
      return
    }
    if let inverse, !inverse.relationship.isToMany {
      let other = "\(inverse.entity).\(inverse.relationship.name)"
      let isMutual =
        inverse.relationship.inverseName == relationship.name
        && hierarchy.isKind(entity, of: hierarchy.root(of: inverse.relationship.destinationEntity))
      let isForward = own <= other
      purpose = isForward ? own : other
      if !inverse.relationship.traits.isOptional { nulls = 0 }  // both sides must agree
      if !isMutual {
        rule = .none
      } else if own == other {
        rule = .neighbours
      } else {
        let count = min(members.count, targets.count)
        rule = .pairs(
          Shuffle(count: count, seed: SplitMix64.seed(options.seed, "pairs " + purpose)),
          isForward: isForward)
      }
    } else if isUnique {
      rule = .distinct
    } else if let list = inverse?.relationship, let dealt = Self.dealt(list, members, targets) {
      if list.minCount > 0 { nulls = 0 }
      rule = dealt
    } else if let inverse, inverse.relationship.isOrdered {
      rule = .lists(length: max(1, Self.average(members, targets)))
    } else {
      rule = .drawn
    }
    seed = SplitMix64.seed(options.seed, "targets " + purpose)
    nullThreshold = threshold(nulls)
  }

  /// The owners of a to-many without inverse, which are kept in the members' table.
  ///
  /// Source: `core-data-sqlite-format.md` §4.4.
  init?(
    ownerOf relationship: RelationshipDescription, declaredBy entity: EntityName,
    in spaces: KeySpaces, options: StoreOptions
  ) {
    guard let members = spaces.population(of: relationship.destinationEntity),
      let targets = spaces.population(of: entity)
    else { return nil }
    self.members = members
    self.targets = targets
    rule =
      members.count > 0 && targets.count > 0
      ? Self.dealt(relationship, members, targets) ?? .drawn : .none
    seed = SplitMix64.seed(options.seed, "owners \(entity).\(relationship.name)")
    nullThreshold = threshold(relationship.minCount > 0 ? 0 : max(0.3, options.nullFraction))
  }

  /// How members come into the targets' lists where these have a least or most number of members; nil where
  /// they have none.
  private static func dealt(
    _ list: RelationshipDescription, _ members: Population, _ targets: Population
  ) -> Rule? {
    guard list.minCount > 0 || list.maxCount > 1 else { return nil }
    return .dealt(
      rounds: average(members, targets), most: list.maxCount > 1 ? list.maxCount : Int.max)
  }

  private static func average(_ members: Population, _ targets: Population) -> Int {
    (members.count + targets.count - 1) / targets.count
  }

  /// The target of the object with this ordinal, or nil for NULL.
  @inline(__always)
  func target(ofOrdinal ordinal: Int) -> Target? {
    let member = ordinal - members.start
    guard member >= 0, member < members.count else { return nil }
    switch rule {
    case .none: return nil
    case .drawn:
      let random = SplitMix64.at(member, seed: seed)
      guard random >= nullThreshold else { return nil }
      let place = SplitMix64.mix(random ^ seed).multipliedFullWidth(by: UInt64(targets.count)).high
      return Target(member: Int(place), place: 0)
    case .lists(let length):
      guard SplitMix64.at(member, seed: seed) >= nullThreshold else { return nil }
      return listed(member, length: length)
    case .dealt(let rounds, let most):
      let (round, list) = member.quotientAndRemainder(dividingBy: targets.count)
      guard round < most, SplitMix64.at(member, seed: seed) >= nullThreshold else { return nil }
      return Target(member: list, place: 2048 + 1024 * Int64(rounds - 1 - round))
    case .pairs(let shuffle, let isForward):
      guard member < shuffle.count else { return nil }
      let partner = isForward ? shuffle.forward(member) : shuffle.backward(member)
      let pair = isForward ? member : partner
      guard SplitMix64.at(pair, seed: seed) >= nullThreshold else { return nil }
      return Target(member: partner, place: 0)
    case .neighbours:
      guard member ^ 1 < members.count,
        SplitMix64.at(member >> 1, seed: seed) >= nullThreshold
      else { return nil }
      return Target(member: member ^ 1, place: 0)
    case .distinct:
      return member < targets.count ? Target(member: member, place: 0) : nil
    }
  }

  /// Places are shuffled inside a pair of lists, since the order of a list is not that of `Z_PK`.
  /// A list's places therefore have holes, as after members were removed.
  private func listed(_ member: Int, length: Int) -> Target {
    let pair = 2 * length
    let (block, place) = member.quotientAndRemainder(dividingBy: pair)
    let random = SplitMix64.at(block, seed: ~seed)
    let cut = Int(random % UInt64(pair + 1))
    let list = min(2 * block + (place < cut ? 0 : 1), targets.count - 1)
    let turned = random & 1 == 0 ? pair - 1 - place : (place + Int(random >> 33)) % pair
    return Target(member: list, place: 2048 + 1024 * Int64(turned))
  }
}
