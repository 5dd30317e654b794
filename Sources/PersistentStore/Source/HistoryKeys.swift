import GodwitSQLite

/// The rows of `Z_PRIMARYKEY` for Core Data's own entities, held against the tables of these.
package struct HistoryKeys: Sendable, Equatable {
  /// What keeps Core Data, which takes new keys from `Z_MAX`, from giving one out that a row has: each of history's
  /// tables has its row, and no `Z_MAX` is lower than the highest `Z_PK`.
  package fileprivate(set) var rows: [PrimaryKeyRow]
  /// What the store has otherwise.
  package fileprivate(set) var faults: [Fault] = []

  package struct Fault: Sendable, Equatable {
    package let entity: String
    /// As a sentence that the entity begins.
    package let message: String
  }

  /// For a result that has these rows instead.
  package var notes: [String] {
    faults.map { "\($0.entity) \($0.message). The migrated store has one." }
  }
}

extension PrimaryKeyRow {
  /// What the entity is called, whatever a damaged row of history says.
  package var knownName: String { Self.historyNames[number] ?? name }

  /// The table with its rows, as Core Data names it.
  package var tableName: String { "A" + knownName.uppercased() }
}

extension SourceStore {
  /// ``historyKeys`` as they have to be. What cannot be read of a table says nothing.
  ///
  /// Source: `core-data-sqlite-format.md` §2 and §10.
  ///
  /// - Throws: `SQLiteError` that is none of the store's content.
  package func soundHistoryKeys() throws -> HistoryKeys {
    var keys = HistoryKeys(rows: historyKeys)
    for (number, name) in PrimaryKeyRow.historyNames.sorted(by: { $0.key < $1.key })
    where !keys.rows.contains(where: { $0.number == number || $0.name == name }) {
      guard try holdsOwnRows("A" + name) else { continue }
      // Of the name alone, whether its number is damaged or it is the model's: too high a number does no harm.
      let highest = entityKeys.filter { $0.name == name }.map(\.highestKey).max()
      keys.rows.append(
        PrimaryKeyRow(number: number, name: name, superNumber: 0, highestKey: highest ?? 0))
      keys.faults.append(
        .init(
          entity: name, message: "has a table and no row of its number, \(number), in Z_PRIMARYKEY")
      )
    }
    var named = Set(keys.faults.map(\.entity))
    // Each table is asked once: a damaged store may have many rows of one name.
    var highestKeys: [String: Int64?] = [:]
    for place in keys.rows.indices {
      let name = keys.rows[place].knownName
      let table = keys.rows[place].tableName
      let found = try highestKeys[table] ?? highestOwnKey(in: table)
      highestKeys[table] = .some(found)
      guard let highest = found, keys.rows[place].highestKey < highest else { continue }
      keys.rows[place].highestKey = highest
      guard named.insert(name).inserted else { continue }
      keys.faults.append(
        .init(
          entity: name,
          message:
            "has no Z_MAX in Z_PRIMARYKEY as high as \(highest), the highest Z_PK of \(table)"))
    }
    keys.rows.sort { $0.number < $1.number }
    return keys
  }

  /// The highest `Z_PK` of a table; nil where there is none, or none that may be Core Data's own.
  private func highestOwnKey(in table: String) throws -> Int64? {
    guard try holdsOwnRows(table) else { return nil }
    return try SQLiteError.nilByContent {
      try connection.rows("SELECT max(Z_PK) FROM \(quoted(table))").first?.first?.integer
    }
  }

  /// Whether a table is there that may be Core Data's own.
  private func holdsOwnRows(_ table: String) throws -> Bool {
    try connection.shape(of: table)?.kind == "table"
      && connection.holds(["Z_PK", "Z_ENT"], in: table)
  }
}
