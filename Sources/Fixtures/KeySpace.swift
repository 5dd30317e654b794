import GodwitObjectModel

/// The rows of one root entity's table, all known by arithmetic.
///
/// A row has three numbers. Its *slot* counts rows by ascending `Z_PK`. Its *ordinal* counts
/// objects entity by entity in number order, so that the objects of an entity and of everything
/// below it are one range. Its *key* is `Z_PK`, with gaps where rows were deleted. A shuffle takes
/// slots to ordinals, so that sub-entities lie mixed in their table as in real stores.
struct KeySpace: Sendable {
  /// Products of two counts must fit into an `Int`.
  static let largestCount = 1 << 30

  struct Share: Sendable {
    let entity: EntityName
    let number: Int
    /// The first ordinal.
    let start: Int
    let count: Int
  }

  let root: EntityName
  let shares: [Share]
  let count: Int
  private let shuffle: Shuffle
  /// A hole after every so many rows; 0 for none.
  private let period: Int
  private let seed: UInt64

  init(
    root: EntityName, hierarchy: EntityHierarchy, counts: [EntityName: Int],
    deletedFraction: Double, seed: UInt64
  ) throws {
    self.root = root
    var shares: [Share] = []
    var start = 0
    for entity in hierarchy.concrete(of: root) {
      let count = counts[entity] ?? 0
      guard count <= Self.largestCount - start else {
        throw FixtureError.tooManyRows(entity: root.rawValue)
      }
      shares.append(
        Share(
          entity: entity, number: hierarchy.numbers[entity] ?? 0, start: start, count: count))
      start += count
    }
    self.shares = shares
    self.count = start
    self.seed = SplitMix64.seed(seed, "keys of " + root.rawValue)
    shuffle = Shuffle(count: start, seed: shares.count > 1 ? self.seed : nil)
    period = deletedFraction > 0 ? max(1, Int(1 / deletedFraction)) : 0
  }

  @inline(__always)
  func ordinal(ofSlot slot: Int) -> Int { shuffle.forward(slot) }

  /// `Z_PK` of a row by its place in the table.
  @inline(__always)
  func key(ofSlot slot: Int) -> Int64 {
    guard period > 0 else { return Int64(slot + 1) }
    let (block, place) = slot.quotientAndRemainder(dividingBy: period)
    let hole = Int(SplitMix64.at(block, seed: seed) % UInt64(period + 1))
    return Int64(block * (period + 1) + (place < hole ? place : place + 1) + 1)
  }

  @inline(__always)
  func key(ofOrdinal ordinal: Int) -> Int64 { key(ofSlot: shuffle.backward(ordinal)) }

  /// The index in ``shares``.
  @inline(__always)
  func share(ofOrdinal ordinal: Int) -> Int {
    var index = shares.count - 1
    while index > 0 && ordinal < shares[index].start { index -= 1 }
    return index
  }

  /// The highest key ever given out.
  var highestKey: Int64 {
    guard count > 0 else { return 0 }
    return key(ofSlot: count - 1) + (period > 0 ? Int64(seed % 4) : 0)
  }
}

/// The objects of an entity and of everything below it: a range of ordinals of one table.
struct Population: Sendable {
  let space: KeySpace
  let start: Int
  let count: Int

  @inline(__always)
  func key(_ member: Int) -> Int64 { space.key(ofOrdinal: start + member) }

  /// `Z_ENT` of a member.
  @inline(__always)
  func number(_ member: Int) -> Int64 {
    Int64(space.shares[space.share(ofOrdinal: start + member)].number)
  }
}

/// All tables of a store.
struct KeySpaces: Sendable {
  let hierarchy: EntityHierarchy
  let spaces: [EntityName: KeySpace]
  /// Which entities have more objects than was asked for, and why.
  let notes: [String]

  init(_ hierarchy: EntityHierarchy, options: StoreOptions) throws {
    self.hierarchy = hierarchy
    let (counts, reasons) = Self.counts(hierarchy, options: options)
    notes = hierarchy.order.compactMap { entity in
      guard let reason = reasons[entity], let count = counts[entity] else { return nil }
      return "\(entity) has \(count) \(count == 1 ? "object" : "objects") instead of "
        + "\(options.count(of: entity)): \(reason)"
    }
    var spaces: [EntityName: KeySpace] = [:]
    for root in hierarchy.roots {
      spaces[root] = try KeySpace(
        root: root, hierarchy: hierarchy, counts: counts,
        deletedFraction: options.deletedFraction, seed: options.seed)
    }
    self.spaces = spaces
  }

  func population(of entity: EntityName) -> Population? {
    guard let space = spaces[hierarchy.root(of: entity)] else { return nil }
    let below = Set(hierarchy.concrete(of: entity))
    let shares = space.shares.filter { below.contains($0.entity) }
    return Population(
      space: space, start: shares.first?.start ?? 0, count: shares.reduce(0) { $0 + $1.count })
  }

  /// More than a table can have, and little enough to add up for as many entities as a model may have.
  private static let mostObjects = KeySpace.largestCount + 1

  /// The wished numbers of objects, raised where a required one-to-one needs as many partners and
  /// a required to-one at least one; and for each raised one which relationship raised it last.
  private static func counts(
    _ hierarchy: EntityHierarchy, options: StoreOptions
  ) -> (counts: [EntityName: Int], reasons: [EntityName: String]) {
    var counts: [EntityName: Int] = [:]
    var reasons: [EntityName: String] = [:]
    for entity in hierarchy.order where hierarchy[entity]?.isAbstract == false {
      counts[entity] = min(max(0, options.count(of: entity)), mostObjects)
    }
    func total(_ entity: EntityName) -> Int {
      hierarchy.concrete(of: entity).reduce(0) { $0 + (counts[$1] ?? 0) }
    }
    for _ in 0..<4 {
      for entity in hierarchy.order {
        for property in hierarchy[entity]?.properties ?? [] {
          guard let relationship = property.relationship, property.isStored,
            !relationship.isToMany, !relationship.traits.isOptional,
            let first = hierarchy.concrete(of: relationship.destinationEntity).first
          else { continue }
          let inverse = hierarchy.inverse(of: relationship)?.relationship
          let oneToOne = inverse.map { !$0.isToMany } ?? false
          let needed = oneToOne ? total(entity) : min(1, total(entity))
          let lack = needed - total(relationship.destinationEntity)
          guard lack > 0 else { continue }
          counts[first] = min((counts[first] ?? 0) + lack, mostObjects)
          reasons[first] =
            "\(entity).\(property.name) is required" + (oneToOne ? ", and one-to-one" : "")
        }
      }
    }
    return (counts, reasons)
  }
}
