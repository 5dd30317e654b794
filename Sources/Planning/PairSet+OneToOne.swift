import GodwitPersistentStore

// Which pairs a one-to-one keeps.
extension PairSet {
  /// Pairs no two of which share an object: those of the side that decides first, and then those
  /// of the other between objects that are left. From a to-one on either side no pair can be
  /// added to them.
  func matched(_ condition: Condition) -> String {
    guard !hasList else { return matchedByPlace(condition) }
    func none(_ text: String) -> String { "NOT EXISTS (\(text))" }
    let k = Expressions(alias: "k")
    let isFree = none(firstMatches("f") { "\($0.owner) = k.o" })
    let isTargetFree = none(firstMatches("f") { "\($0.target) = k.t" })
    let isOwnerBetter = """
      SELECT 1 FROM (\(Self.edges(laterParts) { "\($0.owner) = k.o AND \($0.target) < k.t" })) AS c
       WHERE \(none(firstMatches("f") { "\($0.target) = c.t" }))
      """
    let isTargetBetter = """
      SELECT 1 FROM (\(Self.edges(laterParts) { "\($0.target) = \(k.target) AND \($0.owner) < k.o" })) AS c
       WHERE \(none(firstMatches("f") { "\($0.owner) = c.o" }))
      """
    guard !laterParts.isEmpty else { return firstMatches("k", condition) }
    let later = """
      SELECT k.* FROM (\(Self.edges(laterParts, condition))) AS k
       WHERE \(isFree) AND \(isTargetFree) AND \(none(isOwnerBetter)) AND \(none(isTargetBetter))
      """
    return parts.isEmpty ? later : firstMatches("k", condition) + " UNION ALL " + later
  }

  /// Pairs of ``parts`` that are the first of both their objects.
  private func firstMatches(_ alias: String, _ condition: Condition) -> String {
    """
    SELECT \(alias).* FROM (\(Self.edges(parts, condition))) AS \(alias)
     WHERE NOT EXISTS (\(Self.edges(parts) { "\($0.owner) = \(alias).o AND \($0.target) < \(alias).t" }))
       AND NOT EXISTS (\(Self.edges(parts) { "\($0.target) = \(alias).t AND \($0.owner) < \(alias).o" }))
    """
  }

  /// Whether the source has a list that says which pair of an object is the first.
  private var hasList: Bool {
    (parts + laterParts).contains {
      $0.storage.orderColumn != nil || $0.storage.inverseOrderColumn != nil
    }
  }

  /// The pairs that decide about those that are asked for. Where one foreign key keeps them all, its rows have one
  /// object of the other side each, and only that one's pairs come into question. Pairs of a join table hang together
  /// in any way: of them each question goes through all.
  private func rivals(_ condition: Condition) -> Condition {
    let storages = bothSides.map(\.storage)
    func isKept(by key: KeyPath<PairStorage, String>, _ other: KeyPath<PairStorage, String>) -> Bool
    {
      storages.allSatisfy {
        $0[keyPath: key] == "Z_PK" && $0.table == storages[0].table
          && $0[keyPath: other] == storages[0][keyPath: other]
      }
    }
    let asked = Self.edges(bothSides, condition)
    if isKept(by: \.targetColumn, \.ownerColumn) {
      return { "\($0.owner) IN (SELECT o FROM (\(asked)))" }
    }
    if isKept(by: \.ownerColumn, \.targetColumn) {
      return { "\($0.target) IN (SELECT t FROM (\(asked)))" }
    }
    return { _ in "1" }
  }

  /// What ``matched(_:)`` gives, where a list decides. No index has its places: to look for an earlier one pair by
  /// pair would take the square of the longest list, so that pairs are put in order, once for each question.
  private func matchedByPlace(_ condition: Condition) -> String {
    let isRival = rivals(condition)
    func matches(_ pairs: String) -> String {
      """
      SELECT o, t
        FROM (SELECT o, t, row_number() OVER (PARTITION BY o ORDER BY ifnull(tp, 0), t) AS ofOwner,
                     row_number() OVER (PARTITION BY t ORDER BY ifnull(op, 0), o) AS ofTarget
                FROM (\(pairs)))
       WHERE ofOwner = 1 AND ofTarget = 1
      """
    }
    let later = """
      SELECT o, t, op, tp
        FROM (\(Self.edges(laterParts, isRival)))
       WHERE o NOT IN (SELECT o FROM f) AND t NOT IN (SELECT t FROM f)
      """
    return """
      SELECT k.* FROM (\(all(condition))) AS k
       WHERE (k.o, k.t) IN (
         WITH f AS (\(matches(Self.edges(parts, isRival))))
         SELECT o, t FROM f UNION ALL \(matches(later)))
      """
  }
}
