// Places in ordered relationships.
extension PairSet {
  /// Whether owners have places in the lists of targets.
  var placesOwners: Bool { !lists.isEmpty || keepsOwnerPlaces }

  /// Whether targets have places in the lists of owners.
  var placesTargets: Bool { !ownerLists.isEmpty || keepsTargetPlaces }

  // Places of two source relationships say nothing about each other. An object that has the relationship itself has
  // one of them only; an object at its other end may be in lists of several.

  /// Whether the places in the lists of targets are those that the source has.
  private var keepsOwnerPlaces: Bool {
    limit != .oneToOne && !parts.isEmpty
      && parts.allSatisfy {
        (parts.count == 1 || $0.isSwapped) && $0.storage.inverseOrderColumn != nil
      }
  }

  /// Whether the places in the lists of owners are.
  private var keepsTargetPlaces: Bool {
    limit != .oneToOne && !parts.isEmpty
      && parts.allSatisfy { (parts.count == 1 || !$0.isSwapped) && $0.storage.orderColumn != nil }
  }

  /// Where several source relationships give the pairs, and one list may come from more than one of them: has
  /// their lists follow one another.
  ///
  /// - Parameters:
  ///   - ofTargets: The inverse is ordered.
  ///   - ofOwners: The relationship is ordered, in a join table.
  mutating func joinLists(ofTargets: Bool, ofOwners: Bool) {
    guard parts.count > 1, limit != .oneToOne else { return }
    if ofTargets, !keepsOwnerPlaces {
      lists += parts.filter { $0.storage.inverseOrderColumn != nil }
    }
    if ofOwners, !keepsTargetPlaces {
      ownerLists = parts.filter { $0.storage.orderColumn != nil }
    }
  }

  /// 8. Of so many parts each can name all others: SQLite takes 65535 references to one table in a statement.
  private static let mostRelated = 8

  /// The pairs that the destination has, with the places that ``lists`` and ``ownerLists`` give them.
  ///
  /// - Parameter condition: About the owner, so that it holds for all pairs of one.
  func placed(_ condition: Condition) -> String {
    guard !lists.isEmpty || !ownerLists.isEmpty else { return kept(condition) }
    // A place counts the members before it, which in a target's list may be pairs of other owners.
    let asked = Self.edges(parts, condition)
    let ofTargets: Condition = { pair in
      parts.count <= Self.mostRelated ? "\(pair.target) IN (SELECT t FROM (\(asked)))" : "1"
    }
    let related = lists.isEmpty ? condition : ofTargets
    var (ownerPlace, targetPlace, joins) = ("k.op", "k.tp", "")
    if !lists.isEmpty {
      ownerPlace = OrderPlace.sql(
        at: "row_number() OVER (PARTITION BY k.t ORDER BY l.n IS NULL, l.n, k.op, k.o) - 1")
      joins += """

        LEFT JOIN (\(Self.order(in: lists, of: "op", related))) AS l ON l.o = k.o AND l.t = k.t
        """
    }
    if !ownerLists.isEmpty {
      targetPlace = OrderPlace.sql(
        at: "row_number() OVER (PARTITION BY k.o ORDER BY m.n IS NULL, m.n, k.tp, k.t) - 1")
      joins += """

        LEFT JOIN (\(Self.order(in: ownerLists, of: "tp", related))) AS m ON m.o = k.o AND m.t = k.t
        """
    }
    // The limit, which is none, keeps SQLite from joining each part by itself: it would copy the lists for each.
    return """
      SELECT * FROM (
        SELECT k.o, k.t, k.oe, k.te, \(ownerPlace) AS op, \(targetPlace) AS tp
          FROM (SELECT * FROM (\(kept(related))) LIMIT -1) AS k\(joins)) AS p
       WHERE \(condition(Expressions(alias: "p")))
      """
  }

  /// A number `n` for each pair that has a place in one of the lists: it ascends in each of them, and from one to the
  /// next.
  private static func order(in lists: [Part], of place: String, _ condition: Condition) -> String {
    let places = union(
      lists.enumerated().map { index, list in
        "SELECT o, t, \(index) AS list, \(place) AS place FROM (\(edges([list], condition)))"
      })
    return """
      SELECT o, t, min(n) AS n
        FROM (SELECT o, t, rank() OVER (ORDER BY list, place) AS n
                FROM (\(places)) WHERE place IS NOT NULL)
       GROUP BY o, t
      """
  }
}
