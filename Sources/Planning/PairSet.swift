import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// The pairs (owner, target) that a destination relationship will have, as SQL over the source.
///
/// Texts give the columns `o` and `t`, the keys of owner and target; `oe` and `te`, their `Z_ENT`
/// in the destination; `op`, the owner's place in the target's list, and `tp`, the target's place
/// in the owner's, NULL where the source has none. They are made of quoted names and numbers only.
struct PairSet {
  /// One source relationship's pairs.
  struct Part {
    var source: RelationshipSource
    var storage: PairStorage
    /// `Z_ENT` in the source → `Z_ENT` in the destination.
    var owners: [Int: Int64]
    var targets: [Int: Int64]
    var isSwapped: Bool
    /// Pairs with objects that do not exist stay, where those that exist do.
    var keepsDangling = false

    var swapped: Part {
      Part(
        source: source, storage: storage.swapped, owners: targets, targets: owners,
        isSwapped: !isSwapped, keepsDangling: keepsDangling)
    }
  }

  /// The SQL expressions of one pair that a condition may refer to.
  struct Expressions {
    var owner: String
    var target: String
    var ownerPlace: String
    var targetPlace: String

    /// Those of a row of a subquery that goes by `alias`.
    init(alias: String) {
      self.init(
        owner: "\(alias).o", target: "\(alias).t", ownerPlace: "\(alias).op",
        targetPlace: "\(alias).tp")
    }

    init(owner: String, target: String, ownerPlace: String, targetPlace: String) {
      self.owner = owner
      self.target = target
      self.ownerPlace = ownerPlace
      self.targetPlace = targetPlace
    }

    var swapped: Expressions {
      Expressions(
        owner: target, target: owner, ownerPlace: targetPlace, targetPlace: ownerPlace)
    }
  }

  typealias Condition = (Expressions) -> String

  var parts: [Part]
  /// Of the other side of a one-to-one, as seen from this one.
  var laterParts: [Part] = []
  /// Lists of the source that the targets' lists come from, where their places are not simply those of
  /// ``parts``: owners that are in one keep their order in it, one list after the other.
  var lists: [Part] = []
  /// The same of the owners' lists.
  var ownerLists: [Part] = []
  var limit: RelationshipPairs.Limit
  var isReflexive = false
  /// True when the source has pairs without room: then one of several is kept.
  var isCrowded = false
  /// True when a one-to-one is decided from the other side, and only looked at from this one.
  var isFlipped = false

  /// The same pairs, seen from the other side.
  mutating func swap() {
    parts = parts.map(\.swapped)
    laterParts = laterParts.map(\.swapped)
    lists = []
    ownerLists = []
    isFlipped.toggle()
    limit =
      switch limit {
      case .oneTarget: .oneOwner
      case .oneOwner: .oneTarget
      case .none, .oneToOne: limit
      }
  }

  /// The pairs of objects that exist: no other is a member that a derived attribute counts.
  var living: PairSet {
    var living = self
    for place in parts.indices { living.parts[place].keepsDangling = false }
    return living
  }

  /// References of owners to objects that do not exist, where all of the owners' come from here: they
  /// stay as they are.
  func dangling(_ condition: Condition) -> [String] {
    guard limit == .oneToOne || !lists.isEmpty else { return [] }
    return parts.compactMap { part in
      let storage = part.storage
      guard !part.isSwapped, storage.ownerColumn == "Z_PK", !part.owners.isEmpty else { return nil }
      let target = "r." + quoted(storage.targetColumn)
      let pair = Expressions(
        owner: "r.Z_PK", target: target, ownerPlace: "NULL", targetPlace: "NULL")
      func rows(place: String, _ condition: Condition) -> String {
        """
        SELECT r.Z_PK AS o, \(target) AS t, NULL AS oe, NULL AS te, \(place) AS op, NULL AS tp
          FROM \(quoted(storage.table)) AS r
         WHERE r.Z_ENT IN (\(Self.list(part.owners))) AND \(target) IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM \(quoted(storage.targetTable)) AS y WHERE y.Z_PK = \(target))
           AND \(condition(pair))
        """
      }
      if lists.isEmpty { return rows(place: "NULL", condition) }
      let index = "row_number() OVER (PARTITION BY \(target) ORDER BY r.Z_PK) - 1"
      return """
        SELECT * FROM (\(rows(place: OrderPlace.sql(at: index)) { _ in "1" })) AS d
         WHERE \(condition(Expressions(alias: "d")))
        """
    }
  }

  var isEmpty: Bool { parts.isEmpty && laterParts.isEmpty }

  /// The whole pairs, those without room included.
  func all(_ condition: Condition) -> String {
    switch limit {
    case .none, .oneTarget, .oneOwner: Self.edges(parts, condition)
    case .oneToOne:
      // Both sides may give one pair, without places: the destination has no list.
      "SELECT DISTINCT o, t, oe, te, NULL AS op, NULL AS tp FROM (\(Self.edges(bothSides, condition)))"
    }
  }

  var bothSides: [Part] {
    isReflexive ? parts + parts.map(\.swapped) : parts + laterParts
  }

  /// The pairs that the destination has: one of several that there is no room for, the one with
  /// the lowest place, else the lowest key.
  func kept(_ condition: Condition) -> String {
    guard isCrowded else { return all(condition) }
    switch limit {
    case .none: return all(condition)
    case .oneTarget:
      return firsts(condition) { k, l in
        "\(l.owner) = \(k.owner) AND \(Self.isBefore(l.targetPlace, l.target, k.targetPlace, k.target))"
      }
    case .oneOwner:
      return firsts(condition) { k, l in
        "\(l.target) = \(k.target) AND \(Self.isBefore(l.ownerPlace, l.owner, k.ownerPlace, k.owner))"
      }
    case .oneToOne where isReflexive:
      // Seen from either of its objects a pair is the same, and so is what is kept.
      let k = Expressions(alias: "k")
      return """
        SELECT k.* FROM (\(all(condition))) AS k
         WHERE NOT EXISTS (\(Self.edges(bothSides) { "\($0.owner) = \(k.owner) AND \($0.target) < \(k.target)" }))
           AND NOT EXISTS (\(Self.edges(bothSides) { "\($0.target) = \(k.target) AND \($0.owner) < \(k.owner)" }))
        """
    case .oneToOne:
      guard isFlipped else { return matched(condition) }
      var canonical = self
      canonical.parts = laterParts.map(\.swapped)
      canonical.laterParts = parts.map(\.swapped)
      canonical.isFlipped = false
      return """
        SELECT t AS o, o AS t, te AS oe, oe AS te, NULL AS op, NULL AS tp
          FROM (\(canonical.matched { condition($0.swapped) }))
        """
    }
  }

  private static func isBefore(
    _ place: String, _ key: String, _ otherPlace: String, _ other: String
  )
    -> String
  {
    "(ifnull(\(place), 0), \(key)) < (ifnull(\(otherPlace), 0), \(other))"
  }

  /// Pairs that no other one stands before.
  private func firsts(
    _ condition: Condition, isBefore: (Expressions, Expressions) -> String
  ) -> String {
    let k = Expressions(alias: "k")
    return """
      SELECT k.* FROM (\(Self.edges(parts, condition))) AS k
       WHERE NOT EXISTS (\(Self.edges(parts) { isBefore(k, $0) }))
      """
  }

  // MARK: One part

  /// No pair at all.
  static let nothing =
    "SELECT NULL AS o, NULL AS t, NULL AS oe, NULL AS te, NULL AS op, NULL AS tp WHERE 0"

  /// The pairs in some parts: of existing objects, but for ``Part/keepsDangling``.
  static func edges(_ parts: [Part], _ condition: Condition) -> String {
    guard let first = parts.first else { return nothing }
    // Places of two lists say nothing about each other. An object has the list of one part only, where all are of
    // one side; where they are not, nobody asks for places.
    let isOne = parts.count == 1
    return union(
      parts.map {
        edges(
          $0, placesOwners: isOne || first.isSwapped, placesTargets: isOne || !first.isSwapped,
          condition)
      })
  }

  /// What several questions give together. SQLite takes 500 parts of a compound question at most, and a hierarchy
  /// may have more entities: each hundred is a question by itself.
  static func union(_ questions: [String]) -> String {
    let groups = stride(from: 0, to: questions.count, by: 100).map { start in
      questions[start...].prefix(100).joined(separator: " UNION ALL ")
    }
    if groups.count == 1 { return groups[0] }
    return groups.map { "SELECT * FROM (\($0))" }.joined(separator: " UNION ALL ")
  }

  private static func edges(
    _ part: Part, placesOwners: Bool, placesTargets: Bool, _ condition: Condition
  ) -> String {
    let storage = part.storage
    func column(_ name: String) -> String { "r." + quoted(name) }
    let ownerPlace = placesOwners ? storage.inverseOrderColumn : nil
    let targetPlace = placesTargets ? storage.orderColumn : nil
    let pair = Expressions(
      owner: column(storage.ownerColumn), target: column(storage.targetColumn),
      ownerPlace: ownerPlace.map(column) ?? "NULL", targetPlace: targetPlace.map(column) ?? "NULL")
    // Either join keeps the order: conditions are about keys, and those have an index.
    let join = part.keepsDangling ? "LEFT JOIN" : "CROSS JOIN"
    func isTaken(_ alias: String, _ key: String, _ numbers: [Int: Int64]) -> String {
      let isOne = "\(alias).Z_ENT IN (\(list(numbers)))"
      guard part.keepsDangling else { return isOne }
      return "(\(isOne) OR \(alias).Z_PK IS NULL AND typeof(\(key)) = 'integer')"
    }
    return """
      SELECT \(pair.owner) AS o, \(pair.target) AS t, \(number("x", part.owners)) AS oe,
             \(number("y", part.targets)) AS te, \(pair.ownerPlace) AS op, \(pair.targetPlace) AS tp
        FROM \(quoted(storage.table)) AS r
        \(join) \(quoted(storage.ownerTable)) AS x ON x.Z_PK = \(pair.owner)
        \(join) \(quoted(storage.targetTable)) AS y ON y.Z_PK = \(pair.target)
       WHERE \(isTaken("x", pair.owner, part.owners)) AND \(isTaken("y", pair.target, part.targets))
         AND \(condition(pair))
      """
  }

  private static func number(_ alias: String, _ numbers: [Int: Int64]) -> String {
    let cases = numbers.keys.sorted().map { "WHEN \($0) THEN \(numbers[$0] ?? 0)" }
    return "CASE \(alias).Z_ENT \(cases.joined(separator: " ")) END"
  }

  static func list(_ numbers: [Int: Int64]) -> String {
    numbers.keys.sorted().map(String.init).joined(separator: ", ")
  }
}
