import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

// What happens when a handler has returned. Source: `core-data-migration.md` §5.3 (validation),
// `core-data-sqlite-format.md` §2 (`Z_MAX`), §4 (`Z_OPT`).
extension StageStore {
  /// - Returns: Notes about rows that were not judged, and attributes that are not derived again.
  /// - Throws: ``StagedMigrationError/invalidObjects(_:)``.
  func save() throws -> [StoreFinding] {
    for (root, key) in highestKeys {
      _ = try connection.rows(
        "UPDATE Z_PRIMARYKEY SET Z_MAX = max(ifnull(Z_MAX, 0), ?1) WHERE Z_ENT = ?2",
        [.integer(key), .integer(number(of: root))])
    }
    try computeDerived()
    var findings: [StoreFinding] = []
    for entity in model.order where try isChanged(entity) {
      guard let table = layout.table(of: entity) else { continue }
      // Once for each save, as Core Data counts; a new object begins with 1.
      _ = try connection.rows(
        """
        UPDATE \(quoted(table.name)) SET Z_OPT = min(ifnull(Z_OPT, 0), \(Int64.max - 1)) + 1
         WHERE Z_PK IN (SELECT pk FROM temp.changes WHERE ent = ?1 AND inserted = 0)
        """, [.integer(number(of: entity))])
      findings += try invalidRows(of: entity, in: table)
      findings += try invalidCounts(of: entity)
    }
    let broken = findings.filter { $0.kind != .note }
    guard broken.isEmpty else { throw StagedMigrationError.invalidObjects(broken) }
    return try findings + carriedDerivations()
  }

  private func isChanged(_ entity: EntityName) throws -> Bool {
    try !connection.rows(
      "SELECT 1 FROM temp.changes WHERE ent = ?1 LIMIT 1", [.integer(number(of: entity))]
    ).isEmpty
  }

  /// The rules about one row: required properties, bounds, lengths, patterns.
  private func invalidRows(
    of entity: EntityName, in table: EntityTable
  ) throws -> [StoreFinding] {
    let columns = table.columns.map(\.name)
    let rules = ValidationRules(of: entity, in: layout, columns: columns)
    guard !rules.rules.isEmpty else { return [] }
    let judge = ValidationJudge(rules, pattern: settings.pattern)
    let statement = try connection.prepare(
      """
      SELECT Z_PK, \(columns.map(quoted).joined(separator: ", "))
        FROM \(quoted(table.name))
       WHERE Z_PK IN (SELECT pk FROM temp.changes WHERE ent = ?1)
       ORDER BY Z_PK
      """)
    try statement.bind(1, number(of: entity))
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: columns.count)
    values.initialize(repeating: .null, count: columns.count)
    defer { values.deallocate() }
    while try statement.step() {
      statement.read(into: values, from: 1, count: Int32(columns.count))
      judge.check(values, key: statement.int64(0))
    }
    return judge.findings
  }

  /// Numbers of members. An optional relationship may always be empty.
  private func invalidCounts(of entity: EntityName) throws -> [StoreFinding] {
    var findings: [StoreFinding] = []
    for declared in model.properties(of: entity) where declared.property.isStored {
      guard let relationship = declared.property.relationship, relationship.isToMany,
        relationship.minCount > 0 || relationship.maxCount > 1,
        let storage = layout.pairStorage(of: relationship, declaredBy: declared.entity)
      else { continue }
      let statement = try connection.prepare(
        """
        SELECT c.pk, (SELECT count(*)
                        FROM \(quoted(storage.table)) AS r
                       WHERE r.\(quoted(storage.ownerColumn)) = c.pk)
          FROM temp.changes AS c
         WHERE c.ent = ?1
         ORDER BY c.pk
        """)
      try statement.bind(1, number(of: entity))
      var few = StoreFinding(
        kind: .validation, entity: entity.rawValue, property: relationship.name,
        message: "has fewer members than its minimum", count: 0, code: 1580)
      var many = StoreFinding(
        kind: .validation, entity: entity.rawValue, property: relationship.name,
        message: "has more members than its maximum", count: 0, code: 1590)
      func add(_ key: Int64, to finding: inout StoreFinding) {
        finding.count += 1
        if finding.examples.count < StoreFinding.mostExamples { finding.examples.append(key) }
      }
      while try statement.step() {
        let (key, members) = (statement.int64(0), statement.int64(1))
        if members == 0, relationship.traits.isOptional { continue }
        if members < relationship.minCount {
          add(key, to: &few)
        } else if relationship.maxCount > 0, members > relationship.maxCount {
          add(key, to: &many)
        }
      }
      findings += [few, many].filter { $0.count > 0 }
    }
    return findings
  }
}
