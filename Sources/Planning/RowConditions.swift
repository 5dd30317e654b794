import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Asks the source store what inference leaves open: whether its rows forbid the migration.
struct RowConditions {
  /// What the rows say to all conditions.
  struct Answer {
    /// Core Data's error code of the first refusal.
    var code = 0
    var refusals: [Reason] = []
    /// References that are dropped, where that is allowed.
    var losses: [Loss] = []
    /// Relationships for which the destination lacks room.
    var crowded: Set<PairKey> = []
  }

  /// Rows that do not fulfil a condition.
  struct Offence {
    var count: Int64
    /// The first ``Reason/mostPrimaryKeys``, ascending.
    var primaryKeys: [Int64]
    /// What ``count`` counts, as a singular.
    var unit = "object"
    /// What the objects are in the destination, where that may be others than the refusal's entity.
    var entities: [EntityName] = []
  }

  private(set) var context: PlanContext

  init(context: PlanContext) { self.context = context }

  /// - Parameter losses: ``LossPolicy/allow`` lets references without room pass, and counts them.
  mutating func answer(_ losses: LossPolicy) throws -> Answer {
    var answer = Answer()
    for condition in context.inference.rowConditions {
      guard let offence = try offence(against: condition.question) else { continue }
      if case .room(let entity, let name) = condition.question, losses == .allow,
        let pairs = pairs(of: name, declaredBy: entity)
      {
        let key = PairKey(pairs)
        answer.crowded.insert(key)
        // Later conditions look at what is kept.
        context.crowded.insert(key)
        answer.losses.append(loss(of: pairs, offence))
        continue
      }
      if answer.refusals.isEmpty { answer.code = condition.refusal.code }
      answer.refusals.append(reason(condition.refusal, offence))
    }
    answer.losses += try unusedPairs()
    return answer
  }

  private func reason(_ refusal: Refusal, _ offence: Offence) -> Reason {
    var reason = Reason(refusal: refusal)
    reason.count = offence.count
    reason.primaryKeys = offence.primaryKeys
    var message = refusal.message
    // The index of a constraint lies over a whole table: objects that are none of its entity may be in it.
    let hierarchy = context.destination.hierarchy
    if let common = hierarchy.common(of: offence.entities),
      !hierarchy.isKind(common, of: refusal.entity)
    {
      reason.entity = common.rawValue
      message =
        "values under the uniqueness constraint of \(refusal.entity) occur more than once, in objects of "
        + "\(Loss.list(offence.entities.map(\.rawValue))): it counts for the whole table of "
        + "\(hierarchy.root(of: refusal.entity))"
    }
    reason.message = "\(message) (\(text(offence))). \(refusal.advice)"
    return reason
  }

  private func text(_ offence: Offence) -> String {
    let count = "\(offence.count) \(offence.unit)\(offence.count == 1 ? "" : "s")"
    guard !offence.primaryKeys.isEmpty else { return count }
    let isWhole = offence.primaryKeys.count == offence.count
    return "\(count), Z_PK \(offence.primaryKeys.map(String.init).joined(separator: ", "))"
      + (isWhole ? "" : ", …")
  }

  private func offence(against question: RowCondition.Question) throws -> Offence? {
    switch question {
    case .noRows(let entity):
      let count = context.rows(ofSource: entity)
      guard count > 0 else { return nil }
      return Offence(count: count, primaryKeys: try keys(rows(of: entity, where: "1")))
    case .noNulls(let entity, let property):
      guard let column = context.source.column(of: property, in: entity) else { return nil }
      return try offence(rows(of: entity, where: "a.\(quoted(column)) IS NULL"))
    case .noneEmpty(let entity, let name):
      guard let declared = context.source.hierarchy.property(name, of: entity),
        let relationship = declared.property.relationship,
        let storage = context.storage(of: relationship, declaredBy: declared.entity)
      else { return nil }
      return try offence(
        rows(
          of: entity,
          where: """
            NOT EXISTS (SELECT 1 FROM \(quoted(storage.table)) AS r
                         WHERE r.\(quoted(storage.ownerColumn)) = a.Z_PK)
            """))
    case .room(let entity, let name):
      return try pairs(of: name, declaredBy: entity).flatMap(pairsWithoutRoom)
    case .countable(let entity, let name, let most):
      // Nobody has more members than the store has objects.
      guard context.census.rows.values.reduce(0, +) > most else { return nil }
      return try offence(
        rows(of: entity, where: "\(members(of: name, of: entity)) > \(most)"))
    case .unique(let parts):
      return try repeatedValues(parts)
    }
  }

  // MARK: Rows

  /// The keys, as `key`, of an entity's rows that fulfil a condition. A row goes by `a`.
  private func rows(of entity: EntityName, where condition: String) -> String? {
    guard context.rows(ofSource: entity) > 0,
      let table = context.source.table(of: entity)?.name
    else { return nil }
    return """
      SELECT a.Z_PK AS key
        FROM \(quoted(table)) AS a
       WHERE a.Z_ENT = \(context.sourceNumber(entity)) AND \(condition)
      """
  }

  private func offence(_ rows: String?) throws -> Offence? {
    guard let rows else { return nil }
    let count = try number("SELECT count(*) FROM (\(rows))")
    return count == 0 ? nil : Offence(count: count, primaryKeys: try keys(rows))
  }

  func keys(_ rows: String?, _ values: [SQLiteValue] = []) throws -> [Int64] {
    guard let rows else { return [] }
    return try context.store.connection.rows(
      "SELECT DISTINCT key FROM (\(rows)) ORDER BY key LIMIT \(Reason.mostPrimaryKeys)", values
    ).compactMap { $0.first?.integer }
  }

  func number(_ sql: String, _ values: [SQLiteValue] = []) throws -> Int64 {
    try context.store.connection.rows(sql, values).first?.first?.integer ?? 0
  }

  // MARK: Pairs

  private func pairs(of name: String, declaredBy entity: EntityName) -> RelationshipPairs? {
    context.destination.hierarchy.property(name, of: entity)?.property.relationship.map {
      context.inference.pairs(of: $0, declaredBy: entity)
    }
  }

  /// Pairs that the destination's storage has no room for, by the keys of their owners.
  private func pairsWithoutRoom(_ pairs: RelationshipPairs) throws -> Offence? {
    var set = context.pairSet(of: pairs.relationship, declaredBy: pairs.entity)
    // Of a relationship that is its own inverse each pair is there both ways round.
    let once = set.isReflexive ? "o <= t" : "1"
    let all = "SELECT * FROM (\(set.all { _ in "1" })) WHERE \(once)"
    set.isCrowded = true
    let kept = "SELECT * FROM (\(set.kept { _ in "1" })) WHERE \(once)"
    let count =
      try number("SELECT count(*) FROM (\(all))") - number("SELECT count(*) FROM (\(kept))")
    guard count > 0 else { return nil }
    let dropped = "SELECT o AS key, t FROM (\(all)) EXCEPT SELECT o, t FROM (\(kept))"
    return Offence(count: count, primaryKeys: try keys(dropped), unit: "reference")
  }

  private func loss(of pairs: RelationshipPairs, _ offence: Offence) -> Loss {
    let parts = pairs.parts + pairs.laterParts
    let source = (parts.first { !$0.isSwapped } ?? parts.first)?.source
    let place = "\(pairs.entity).\(pairs.relationship.name)"
    let kept =
      context.pairSet(of: pairs.relationship, declaredBy: pairs.entity).isReflexive
      ? "a pair is kept where neither object has another one with a lower Z_PK"
      : "the first of each object is kept"
    return Loss(
      .sharedTarget, entity: source?.entity.rawValue ?? pairs.entity.rawValue,
      property: source?.relationship.name ?? pairs.relationship.name, count: offence.count,
      primaryKeys: offence.primaryKeys,
      message: "\(place) has no room for all references; \(kept), and the others are "
        + "dropped (\(text(offence)))")
  }

  /// Pairs of a relationship whose inverse decides and does not have them: two relationships of the
  /// source that become inverses of each other. A pair that two inverses have counts once.
  private func unusedPairs() throws -> [Loss] {
    var losses: [Loss] = []
    var counted: [[NameKey]: String] = [:]
    for entity in context.destination.hierarchy.order {
      for property in context.destination.hierarchy[entity]?.properties ?? []
      where property.isStored {
        guard let relationship = property.relationship else { continue }
        let pairs = context.inference.pairs(of: relationship, declaredBy: entity)
        // Each is looked at from its own side.
        for part in pairs.unusedParts where !part.isSwapped {
          let unused = PairSet.edges(context.parts([part], of: pairs)) { _ in "1" }
          let kept = context.pairSet(of: relationship, declaredBy: entity).kept { _ in "1" }
          var dropped = "SELECT o AS key, t FROM (\(unused)) EXCEPT SELECT o, t FROM (\(kept))"
          let old = part.source
          let own = [NameKey(old.entity.rawValue), NameKey(old.relationship.name)]
          if let inverse = context.source.hierarchy.inverse(of: old.relationship) {
            let other = [NameKey(inverse.entity.rawValue), NameKey(inverse.relationship.name)]
            if other == own {
              dropped = "SELECT DISTINCT min(key, t) AS key, max(key, t) AS t FROM (\(dropped))"
            } else if let seen = counted[other] {
              dropped = "SELECT key, t FROM (\(dropped)) EXCEPT SELECT t, key FROM (\(seen))"
            }
          }
          counted[own] = dropped
          let count = try number("SELECT count(*) FROM (\(dropped))")
          guard count > 0 else { continue }
          losses.append(
            Loss(
              .relationship, entity: old.entity.rawValue, property: old.relationship.name,
              count: count, primaryKeys: try keys(dropped),
              message: "\(entity).\(relationship.name) takes the references of its inverse; "
                + "those that only \(old.entity).\(old.relationship.name) has are "
                + "dropped."))
        }
      }
    }
    return losses
  }
}
