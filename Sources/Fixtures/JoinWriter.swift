import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Writes the pairs of one many-to-many relationship.
///
/// Source: `core-data-sqlite-format.md` §6 and §7.
struct JoinWriter {
  private let join: JoinTable
  private let first: Population
  private let second: Population
  private let statement: Statement
  private let seed: UInt64
  /// Fewest and most members in the list of an object of the first column.
  private let degree: ClosedRange<Int>
  /// All pairs, where they are dealt out so that each side has about as many as the other of its kind:
  /// rules bound both sides, or leave no object out.
  private let dealt: Int?
  private let places: Shuffle
  /// Others in the list of each object, where the relationship is its own inverse.
  private let neighbours: Int

  /// - Returns: nil when one of the sides can have no objects.
  init?(
    _ join: JoinTable, spaces: KeySpaces, connection: Connection, options: StoreOptions
  ) throws {
    let hierarchy = spaces.hierarchy
    guard
      let relationship = hierarchy.property(join.relationship, of: join.entity)?.property
        .relationship,
      let inverse = hierarchy.property(join.inverse, of: join.inverseEntity)?.property.relationship
    else { return nil }
    // Each side is what both the declaration and the other side's destination allow.
    let isLower = hierarchy.isKind(inverse.destinationEntity, of: join.entity)
    let isOtherLower = hierarchy.isKind(relationship.destinationEntity, of: join.inverseEntity)
    guard
      let first = spaces.population(of: isLower ? inverse.destinationEntity : join.entity),
      let second = spaces.population(
        of: isOtherLower ? relationship.destinationEntity : join.inverseEntity),
      first.count > 0, second.count > 0
    else { return nil }
    self.join = join
    self.first = first
    self.second = second
    seed = SplitMix64.seed(options.seed, "pairs of " + join.name)
    let most = min(
      relationship.maxCount > 0 ? relationship.maxCount : 2 * options.joinDegree, second.count)
    degree = min(max(0, relationship.minCount), most)...max(0, most)
    let isBounded = inverse.minCount > 0 || inverse.maxCount > 0
    let isOwnSide = join.entity == join.inverseEntity && relationship.minCount > 0
    dealt =
      isBounded || isOwnSide
      ? Self.pairs(
        (first.count, relationship), (second.count, inverse),
        wish: options.joinDegree * first.count) : nil
    places = Shuffle(count: first.count, seed: seed)
    neighbours = Self.neighbours(first.count, relationship)
    let columns = join.columns
    statement = try connection.prepare(
      "INSERT INTO \(StoreLayout.identifier(join.name)) "
        + "(\(columns.map { StoreLayout.identifier($0) }.joined(separator: ", "))) "
        + "VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))")
  }

  /// The members of the first side, for ``write(members:)``.
  var memberCount: Int { first.count }

  /// - Returns: How many pairs were written.
  func write(members: Range<Int>) throws -> Int {
    if join.isReflexive { return try writeNeighbours(members) }
    if let dealt { return try deal(dealt, to: members) }
    return try writePairs(members)
  }

  /// How many pairs keep the numbers of members of both sides, as near to a wish as can be.
  private static func pairs(
    _ first: (count: Int, rule: RelationshipDescription),
    _ second: (count: Int, rule: RelationshipDescription), wish: Int
  ) -> Int {
    func most(_ side: (count: Int, rule: RelationshipDescription), _ other: Int) -> Int {
      let each = side.rule.maxCount > 0 ? min(side.rule.maxCount, other) : other
      return each * side.count
    }
    let least = max(
      max(0, first.rule.minCount) * first.count, max(0, second.rule.minCount) * second.count)
    return min(max(wish, least), most(first, second.count), most(second, first.count))
  }

  /// Member *m* of *n* gets the pairs from *m*/*n* to (*m* + 1)/*n* of all; their other objects follow
  /// each other round and round.
  private func deal(_ pairs: Int, to members: Range<Int>) throws -> Int {
    let (each, rest) = pairs.quotientAndRemainder(dividingBy: first.count)
    var written = 0
    var list: [(key: Int64, place: Int)] = []
    for member in members {
      let start = each * member + rest * member / first.count
      let end = each * (member + 1) + rest * (member + 1) / first.count
      list = (start..<end).map { (second.key($0 % second.count), end - 1 - $0) }
      list.sort { $0.key < $1.key }
      try write(list, of: member)
      written += list.count
    }
    return written
  }

  /// Writes the pairs of one member, by the keys of the other side.
  private func write(_ list: [(key: Int64, place: Int)], of member: Int) throws {
    let key = first.key(member)
    for pair in list {
      try statement.bind(1, key)
      try statement.bind(2, pair.key)
      var column: Int32 = 3
      if join.firstOrderColumn != nil {
        try statement.bind(column, 2048 + 1024 * Int64(places.forward(member)))
        column += 1
      }
      if join.secondOrderColumn != nil {
        try statement.bind(column, 2048 + 1024 * Int64(pair.place))
      }
      try statement.step()
      statement.reset()
    }
  }

  private func writePairs(_ members: Range<Int>) throws -> Int {
    let isSelfJoin = join.entity == join.inverseEntity
    var written = 0
    var list: [(key: Int64, place: Int)] = []
    for member in members {
      var random = SplitMix64(seed: SplitMix64.at(member, seed: seed))
      let count = random.within(degree)
      guard count > 0 else { continue }
      let start = random.below(second.count)
      let stride = stride(&random)
      list.removeAll(keepingCapacity: true)
      for index in 0..<count {
        let target = (start + index * stride) % second.count
        if isSelfJoin && second.start + target == first.start + member { continue }
        // Reversed, for the order of a list is not that of Z_PK.
        list.append((second.key(target), count - 1 - index))
      }
      list.sort { $0.key < $1.key }
      try write(list, of: member)
      written += list.count
    }
    return written
  }

  /// The least number that a rule allows, and one more where an odd number of objects cannot have it.
  private static func neighbours(_ count: Int, _ rule: RelationshipDescription) -> Int {
    let most = min(rule.maxCount > 0 ? rule.maxCount : .max, count - 1)
    let least = max(1, min(rule.minCount, most))
    let isOdd = rule.minCount > 0 && count % 2 == 1 && least % 2 == 1
    return isOdd && least < most ? least + 1 : least
  }

  /// A relationship that is its own inverse holds both directions of each pair.
  private func writeNeighbours(_ members: Range<Int>) throws -> Int {
    let (each, half, count) = (neighbours / 2, first.count / 2, first.count)
    var written = 0
    for member in members {
      // Each with its place in the member's list, and the member's in its own.
      var list: [(key: Int64, place: Int, own: Int)] = []
      for step in 0..<each {
        let (ahead, back) = ((member + step + 1) % count, (member + count - step - 1) % count)
        list.append((first.key(ahead), step, each + step))
        list.append((first.key(back), each + step, step))
      }
      if neighbours == 1, member ^ 1 < count {
        list.append((first.key(member ^ 1), 0, 0))
      } else if neighbours > 1, neighbours % 2 == 1, member < 2 * half {
        list.append((first.key(member < half ? member + half : member - half), 2 * each, 2 * each))
      }
      list.sort { $0.key < $1.key }
      for other in list {
        try statement.bind(1, first.key(member))
        try statement.bind(2, other.key)
        var column: Int32 = 3
        if join.firstOrderColumn != nil {
          try statement.bind(column, 2048 + 1024 * Int64(other.own))
          column += 1
        }
        if join.secondOrderColumn != nil {
          try statement.bind(column, 2048 + 1024 * Int64(other.place))
        }
        try statement.step()
        statement.reset()
      }
      written += list.count
    }
    return written
  }

  /// A step that visits as many different members as a list can have.
  private func stride(_ random: inout SplitMix64) -> Int {
    for _ in 0..<4 {
      let candidate = 1 + random.below(second.count)
      var (a, b) = (candidate, second.count)
      while b != 0 { (a, b) = (b, a % b) }
      if a == 1 { return candidate }
    }
    return 1
  }
}
