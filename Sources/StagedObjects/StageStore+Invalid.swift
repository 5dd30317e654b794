import GodwitCommit
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

// Rows that break validation rules, one by one.
extension StageStore {
  struct BrokenRule {
    var property: String
    var message: String
    var code: Int
  }

  /// So many rows are looked up at a time, since they are changed while others are looked for.
  private static let mostBroken = 1_000

  /// Rows of an entity that break rules, in the order of their keys; a part of them at a time.
  ///
  /// - Parameters:
  ///   - key: `Z_PK` of the row before the first; nil to begin.
  ///   - onlyChanged: Looks only at rows that were changed.
  func brokenRules(
    of entity: EntityName, after key: Int64?, onlyChanged: Bool
  ) throws -> [(key: Int64, broken: [BrokenRule])] {
    guard model[entity]?.isAbstract == false, let table = layout.table(of: entity) else {
      return []
    }
    let columns = table.columns.map(\.name)
    let rules = ValidationRules(of: entity, in: layout, columns: columns)
    let judge = ValidationJudge(rules, pattern: settings.pattern)
    let counts = try memberCounts(of: entity)
    guard !rules.rules.isEmpty || !counts.isEmpty else { return [] }
    let statement = try connection.prepare(
      """
      SELECT \((["Z_PK"] + columns.map(quoted) + counts.map(\.sql)).joined(separator: ", "))
        FROM \(quoted(table.name)) AS o
       WHERE Z_ENT = ?1 \(key == nil ? "" : "AND Z_PK > ?2")
             \(onlyChanged ? "AND Z_PK IN (SELECT pk FROM temp.changes WHERE ent = ?1)" : "")
       ORDER BY Z_PK
      """)
    try statement.bind(1, number(of: entity))
    if let key { try statement.bind(2, key) }
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: columns.count)
    values.initialize(repeating: .null, count: columns.count)
    defer { values.deallocate() }
    var found: [(key: Int64, broken: [BrokenRule])] = []
    while found.count < Self.mostBroken, try statement.step() {
      statement.read(into: values, from: 1, count: Int32(columns.count))
      var broken = judge.broken(values).map {
        BrokenRule(property: $0.property, message: $0.message, code: $0.code)
      }
      for (place, count) in counts.enumerated() {
        let members = statement.int64(Int32(1 + columns.count + place))
        if let code = count.code(members) {
          broken.append(
            BrokenRule(
              property: count.name,
              message: code == 1580
                ? "has fewer members than its minimum" : "has more members than its maximum",
              code: code))
        }
      }
      if !broken.isEmpty { found.append((statement.int64(0), broken)) }
    }
    return found
  }

  private struct MemberCount {
    var name: String
    var sql: String
    var minimum: Int64
    /// 0 for none.
    var maximum: Int64
    var isOptional: Bool

    func code(_ members: Int64) -> Int? {
      if members == 0, isOptional { return nil }
      if members < minimum { return 1580 }
      return maximum > 0 && members > maximum ? 1590 : nil
    }
  }

  /// The to-many relationships whose number of members a rule is about.
  private func memberCounts(of entity: EntityName) throws -> [MemberCount] {
    model.properties(of: entity).compactMap { declared in
      guard declared.property.isStored, let relationship = declared.property.relationship,
        relationship.isToMany, relationship.minCount > 0 || relationship.maxCount > 1,
        let storage = layout.pairStorage(of: relationship, declaredBy: declared.entity)
      else { return nil }
      return MemberCount(
        name: relationship.name,
        sql: """
          (SELECT count(*) FROM \(quoted(storage.table)) AS r
            WHERE r.\(quoted(storage.ownerColumn)) = o.Z_PK)
          """,
        minimum: Int64(relationship.minCount), maximum: Int64(relationship.maxCount),
        isOptional: relationship.traits.isOptional)
    }
  }

  /// An attribute's value as it lies in the row; NULL for a relationship.
  func storedValue(_ property: String, of object: ObjectReference) throws -> SQLiteValue {
    guard let table = layout.table(of: object.entity),
      let column = layout.column(of: property, in: object.entity),
      let row = try connection.rows(
        "SELECT \(quoted(column)) FROM \(quoted(table.name)) WHERE Z_PK = ?1",
        [.integer(object.primaryKey)]
      ).first
    else { return .null }
    return row[0]
  }

  /// Gives an attribute its default value.
  ///
  /// - Returns: False where it has none.
  func setDefault(_ property: String, of object: ObjectReference) throws -> Bool {
    guard let table = layout.table(of: object.entity),
      let column = layout.column(of: property, in: object.entity),
      let value = defaults(of: object.entity).first(where: { $0.column == column })?.value
    else { return false }
    try drop(try storedValue(property, of: object))
    do {
      _ = try connection.rows(
        "UPDATE \(quoted(table.name)) SET \(quoted(column)) = ?1 WHERE Z_PK = ?2",
        [value, .integer(object.primaryKey)])
    } catch let error as SQLiteError where error.isConstraintUnique {
      throw RepeatedValue(entity: object.entity, property: property, key: object.primaryKey)
    }
    return true
  }

  /// Takes one object out, and no other: what refers to it does so no longer.
  ///
  /// - Parameter cleared: Is given each object that loses a reference by it, and the relationship's name.
  func takeOut(
    _ object: ObjectReference, cleared: (_ owner: ObjectReference, _ property: String) -> Void
  ) throws {
    for relationship in try relationships(of: object.entity) {
      let inverse = relationship.inverse?.description
      for member in try members(of: relationship, object) {
        // A column of the row itself goes with the row; below, the member is met as the owner.
        guard relationship.storage.isJoinTable || relationship.description.isToMany else {
          if inverse != nil { try note(member) }
          continue
        }
        if let inverse, member != object { cleared(member, inverse.name) }
        try relationship.disconnect(object, member, self)
        try note(member)
      }
    }
    for entity in model.order where model[entity]?.isAbstract == false {
      for relationship in try relationships(of: entity) {
        guard
          model.concrete(of: relationship.description.destinationEntity).contains(object.entity)
        else { continue }
        for owner in try relationship.owners(of: object.primaryKey, self) where owner != object {
          try relationship.disconnect(owner, object, self)
          cleared(owner, relationship.description.name)
          try note(owner)
        }
      }
    }
    try dropRow(of: object)
    deletions += 1
  }
}
