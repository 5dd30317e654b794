import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension Mender {
  /// References to what is not there, and the columns that go with a reference.
  ///
  /// - Parameter isAgain: What was taken away since is not given back.
  func mendReferences(isAgain: Bool = false) throws {
    for rule in rules where [.type, .dangling, .targetEntity].contains(rule.kind) {
      guard let entity = rule.entity, let property = rule.property,
        let relationship = hierarchy.property(property, of: entity)?.property.relationship
      else { continue }
      if relationship.isToMany {
        try clearOwner(rule, relationship, of: entity)
      } else {
        try clear(rule, relationship, of: entity)
      }
    }
    if !isAgain { try restoreFromInverses() }
    try mendInverses()
    for rule in rules where rule.kind == .entityColumn {
      guard let entity = rule.entity, let property = rule.property,
        let relationship = hierarchy.property(property, of: entity)?.property.relationship,
        let table = binding.table(of: entity),
        let target = binding.table(of: relationship.destinationEntity),
        let column = binding.column(of: property, in: entity),
        let extra = binding.entityColumn(of: property, in: entity)
      else { continue }
      let keys = try keys(rule)
      guard !keys.isEmpty else { continue }
      try connection.execute(
        """
        UPDATE \(quoted(table.name))
           SET \(quoted(extra)) = (SELECT b.Z_ENT FROM \(quoted(target.name)) AS b
                                    WHERE b.Z_PK = \(quoted(table.name)).\(quoted(column)))
         WHERE Z_PK IN (\(selection(rule)))
        """)
      let rest = keys.subtracting(clearedReferences[Self.place(table.name, column)])
      guard !rest.isEmpty else { continue }
      rebuilt.append(
        .init(
          .reference, entity: entity.rawValue, property: property, keys: rest,
          "had a wrong \(extra); it now has the entity of the object that it leads to"))
    }
  }

  private static func place(_ table: String, _ column: String) -> String { table + "." + column }

  func noteCleared(_ keys: KeyRanges, _ table: String, _ column: String) {
    clearedReferences[Self.place(table, column), default: KeyRanges()].formUnion(keys)
  }

  private func clear(
    _ rule: RowRule, _ relationship: RelationshipDescription, of entity: EntityName
  ) throws {
    guard let table = binding.table(of: entity),
      let column = binding.column(of: relationship.name, in: entity),
      let target = binding.table(of: relationship.destinationEntity)
    else { return }
    let keys = try keys(rule)
    guard !keys.isEmpty else { return }
    if rule.kind == .dangling {
      missingTargets[target.name, default: KeyRanges()].formUnion(
        try self.keys(
          "SELECT DISTINCT a.\(quoted(column)) FROM \(rule.source) WHERE (\(rule.condition)) "
            + "AND typeof(a.\(quoted(column))) = 'integer'"))
    }
    let order = binding.orderColumn(of: relationship.name, in: entity)
    let columns = [column, order].compactMap { $0 }.map { "\(quoted($0)) = NULL" }
    try connection.execute(
      "UPDATE \(quoted(table.name)) SET \(columns.joined(separator: ", ")) "
        + "WHERE Z_PK IN (\(selection(rule)))")
    noteCleared(keys, table.name, column)
    lost.append(
      .init(
        .reference, entity: entity.rawValue, property: relationship.name, keys: keys,
        "\(rule.message); now it is absent"))
  }

  private func clearOwner(
    _ rule: RowRule, _ relationship: RelationshipDescription, of entity: EntityName
  ) throws {
    guard let column = binding.layout.ownerColumn(of: relationship.name, in: entity),
      let table = binding.table(of: relationship.destinationEntity)
    else { return }
    let keys = try keys(rule)
    guard !keys.isEmpty else { return }
    try connection.execute(
      "UPDATE \(quoted(table.name)) SET \(quoted(column)) = NULL "
        + "WHERE Z_PK IN (\(selection(rule)))")
    lost.append(
      .init(
        .reference, entity: relationship.destinationEntity.rawValue,
        property: "\(relationship.name) of \(entity)", keys: keys,
        "\(rule.message); now it is in none"))
  }

  // MARK: One-to-one relationships

  private struct Pair {
    var entity: EntityName
    var name: String
    var table: String
    var column: String
    var inverseTable: String
    var inverseColumn: String
    var inverseEntities: String
  }

  private func pairs() -> [Pair] {
    hierarchy.order.flatMap { entity in
      (hierarchy[entity]?.properties ?? []).compactMap { property -> Pair? in
        guard let relationship = property.relationship, property.isStored, !relationship.isToMany,
          let inverse = hierarchy.inverse(of: relationship), !inverse.relationship.isToMany,
          let table = binding.table(of: entity),
          let column = binding.column(of: relationship.name, in: entity),
          let other = binding.table(of: inverse.entity),
          let back = binding.column(of: inverse.relationship.name, in: inverse.entity)
        else { return nil }
        let numbers = hierarchy.subtree(of: inverse.entity).map { String(binding.number(of: $0)) }
        return Pair(
          entity: entity, name: relationship.name, table: table.name, column: column,
          inverseTable: other.name, inverseColumn: back,
          inverseEntities: numbers.joined(separator: ", "))
      }
    }
  }

  /// Sets references that were taken away where just one object's inverse still says them.
  private func restoreFromInverses() throws {
    for pair in pairs() {
      let place = Self.place(pair.table, pair.column)
      guard let cleared = clearedReferences[place], !cleared.isEmpty else { continue }
      let rows = try connection.rows(
        """
        SELECT b.\(quoted(pair.inverseColumn)), min(b.Z_PK)
          FROM \(quoted(pair.inverseTable)) AS b
         WHERE b.\(quoted(pair.inverseColumn)) IS NOT NULL AND b.Z_ENT IN (\(pair.inverseEntities))
         GROUP BY 1
        HAVING count(*) = 1
        """)
      var restored: [Int64] = []
      for row in rows {
        guard let key = row[0].integer, let partner = row[1].integer, cleared.contains(key) else {
          continue
        }
        _ = try connection.rows(
          "UPDATE \(quoted(pair.table)) SET \(quoted(pair.column)) = ?1 "
            + "WHERE Z_PK = ?2 AND \(quoted(pair.column)) IS NULL",
          [.integer(partner), .integer(key)])
        restored.append(key)
      }
      guard !restored.isEmpty else { continue }
      let keys = KeyRanges(restored)
      clearedReferences[place] = cleared.subtracting(keys)
      rebuilt.append(
        .init(
          .reference, entity: pair.entity.rawValue, property: pair.name, keys: keys,
          "is set to the object whose inverse leads here"))
    }
  }

  /// Two sides that disagree: the pair whose sides agree stays, the other reference goes.
  private func mendInverses() throws {
    for rule in rules where rule.kind == .inverse {
      guard let entity = rule.entity, let property = rule.property,
        let relationship = hierarchy.property(property, of: entity)?.property.relationship
      else { continue }
      try clear(rule, relationship, of: entity)
    }
  }
}

extension KeyRanges {
  /// Without the keys of another set.
  func subtracting(_ other: KeyRanges?) -> KeyRanges {
    guard let other, !other.isEmpty else { return self }
    var result = KeyRanges()
    var rest = ranges[...]
    while var range = rest.popFirst() {
      guard let cut = other.ranges.first(where: { $0.overlaps(range) }) else {
        result.insert(range)
        continue
      }
      if cut.lowerBound > range.lowerBound {
        result.insert(range.lowerBound...(cut.lowerBound - 1))
      }
      if cut.upperBound < range.upperBound {
        range = (cut.upperBound + 1)...range.upperBound
        rest = [range] + rest
      }
    }
    return result
  }
}
