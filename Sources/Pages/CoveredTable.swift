import GodwitPlanning
import GodwitSQLite

/// A table of the destination that can be written by pages, with its indexes.
package struct CoveredTable {
  /// An index, as its entries are made.
  package struct Index {
    /// One value of an entry.
    package struct Field {
      /// Place in a row: 0 is the row's key, the columns of the plan follow.
      package var place: Int
      package var isDescending = false
    }

    package var name: String
    /// True for the index of a PRIMARY KEY or UNIQUE clause.
    package var isAutomatic: Bool
    package var isUnique: Bool
    /// What entries are ordered by, and then the row's key.
    package var fields: [Field]
    /// How many of the fields were asked for.
    package var keyCount: Int
  }

  package var name: String
  /// For each column of the table its place in a row; `nil` for the one that is the row's key,
  /// which is NULL in the record.
  package var recordPlaces: [Int?]
  /// For each place in a row.
  package var affinities: [ColumnAffinity]
  package var indexes: [Index]
}

extension CoveredTable {
  /// The table of an entity and of those below it.
  package init?(_ table: TablePlan, in file: Connection) throws {
    try self.init(
      table.name, key: "Z_PK", columns: ["Z_ENT", "Z_OPT"] + table.columns, in: file)
  }

  /// Looks at a table as SQLite sees it.
  ///
  /// - Parameters:
  ///   - key: The column that is the row's key, when there is one; the first of a row.
  ///   - columns: The other columns of a row.
  /// - Returns: `nil` when the table has anything that takes SQLite to write it.
  package init?(_ name: String, key: String?, columns: [String], in file: Connection) throws {
    self.name = name
    let kind = try file.rows(
      """
      SELECT l.type, l.wr, l.strict, m.sql FROM pragma_table_list AS l, main.sqlite_master AS m
       WHERE l.schema = 'main' AND l.name = ?1 AND m.type = 'table' AND m.name = l.name
      """, [.text(name)])
    guard kind.count == 1, kind[0][0].text == "table", kind[0][1].integer == 0,
      kind[0][2].integer == 0, let sql = kind[0][3].text, CoveredTable.isPlain(sql)
    else { return nil }
    var places: [String: Int] = [:]
    for (place, column) in columns.enumerated() { places[column.lowercased()] = place + 1 }
    guard places.count == columns.count else { return nil }

    recordPlaces = []
    affinities = Array(repeating: .blob, count: columns.count + 1)
    affinities[0] = .integer
    var placeOfColumn: [Int64: Int] = [:]
    let listed = try file.rows(
      """
      SELECT cid, name, type, "notnull", pk, hidden FROM pragma_table_xinfo(?1, 'main')
       ORDER BY cid
      """, [.text(name)])
    guard listed.count == columns.count + (key == nil ? 0 : 1) else { return nil }
    for column in listed {
      guard let number = column[0].integer, let columnName = column[1].text?.lowercased(),
        column[3].integer == 0, column[5].integer == 0
      else { return nil }
      let type = column[2].text ?? ""
      if columnName == key?.lowercased() {
        guard type.uppercased() == "INTEGER", column[4].integer == 1 else { return nil }
        recordPlaces.append(nil)
        placeOfColumn[number] = 0
      } else {
        // A single INTEGER PRIMARY KEY would be the row's key.
        guard let place = places[columnName], key == nil || column[4].integer == 0 else {
          return nil
        }
        recordPlaces.append(place)
        affinities[place] = ColumnAffinity(declaredType: type)
        placeOfColumn[number] = place
      }
    }
    guard key == nil || recordPlaces.contains(where: { $0 == nil }) else { return nil }
    if key == nil {
      let keys = listed.filter { $0[4].integer != 0 }
      if keys.count == 1, keys[0][2].text?.uppercased() == "INTEGER" { return nil }
    }

    indexes = []
    for row in try file.rows(
      #"SELECT name, "unique", origin, partial FROM pragma_index_list(?1, 'main') ORDER BY seq DESC"#,
      [.text(name)])
    {
      // An index that stands for the row's key says that the key is an ordinary column.
      guard let indexName = row[0].text, row[3].integer == 0,
        key == nil || row[2].text != "pk",
        let index = try CoveredTable.index(
          indexName, isAutomatic: row[2].text != "c", isUnique: row[1].integer != 0,
          placeOfColumn, in: file)
      else { return nil }
      indexes.append(index)
    }
  }

  private static func index(
    _ name: String, isAutomatic: Bool, isUnique: Bool, _ places: [Int64: Int],
    in file: Connection
  ) throws -> Index? {
    var index = Index(
      name: name, isAutomatic: isAutomatic, isUnique: isUnique, fields: [], keyCount: 0)
    for row in try file.rows(
      #"SELECT cid, "desc", coll, key FROM pragma_index_xinfo(?1, 'main') ORDER BY seqno"#,
      [.text(name)])
    {
      guard let column = row[0].integer, row[2].text?.uppercased() == "BINARY" else { return nil }
      // -1 is the row's key; -2 an expression.
      guard let place = column == -1 ? 0 : places[column] else { return nil }
      let isKey = row[3].integer != 0
      // Behind what was asked for comes the row's key and nothing else.
      guard isKey ? index.keyCount == index.fields.count : place == 0 else { return nil }
      index.fields.append(.init(place: place, isDescending: isKey && row[1].integer != 0))
      if isKey { index.keyCount += 1 }
    }
    guard index.keyCount > 0, index.fields.count == index.keyCount + 1 else { return nil }
    return index
  }

  /// Constraints of which the pragmas say nothing.
  private static func isPlain(_ sql: String) -> Bool {
    let unusual: Set<String> = ["CHECK", "AUTOINCREMENT", "CONFLICT", "COLLATE", "GENERATED"]
    let words = sql.uppercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }
    return !words.contains { unusual.contains(String($0)) }
  }
}
