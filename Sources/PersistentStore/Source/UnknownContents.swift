import GodwitObjectModel
import GodwitSQLite

/// Rows or values that a model has no place for, in what has a name like the model's own: an
/// application's, or what an older version left behind.
package struct UnknownContents: Sendable, Equatable {
  package let table: String
  /// nil for a whole table.
  package let column: String?
  /// Rows, or values other than NULL; never 0.
  package let count: Int64
}

extension StoreBinding {
  /// What no destination of the model has. Of generated columns those count whose values are stored: any
  /// other value can be computed again. Tables whose names do not begin with a Z are another
  /// matter, see ``SourceStore/foreignTables()``.
  ///
  /// - Throws: `SQLiteError` for a table that cannot be read.
  package func unknownContents() throws -> [UnknownContents] {
    let places = try Self.recentPlaces.output(for: form) { try unknownPlaces() }
    return try places.compactMap { place in
      let counted = place.column.map(quoted) ?? "*"
      let rows = try store.connection.rows("SELECT count(\(counted)) FROM \(quoted(place.table))")
      guard let count = rows.first?.first?.integer, count > 0 else { return nil }
      return UnknownContents(table: place.table, column: place.column, count: count)
    }
  }

  /// The tables that no destination of the model has, with rows or without.
  package func unknownTables() throws -> [String] {
    try Self.recentPlaces.output(for: form) { try unknownPlaces() }
      .filter { $0.column == nil }.map(\.table)
  }

  /// A sentence about those of them that have no rows, if there are any. A column without values has none: migrations of
  /// Core Data's own may leave such columns behind in any store.
  ///
  /// - Throws: `SQLiteError` for a table that cannot be read.
  package func emptyTableNotes() throws -> [String] {
    let tables = try unknownTables().filter { table in
      try store.connection.rows("SELECT 1 FROM \(quoted(table)) LIMIT 1").isEmpty
    }
    guard let first = tables.first else { return [] }
    if tables.count == 1 {
      return ["The table \(first) is none of the model's and has no rows. It is not carried."]
    }
    let names = tables.prefix(5).joined(separator: ", ") + (tables.count > 5 ? " …" : "")
    return [
      "\(tables.count) tables are none of the model's and have no rows: \(names). They are not carried."
    ]
  }

  /// A table, or a column of one of the model's tables.
  private struct UnknownPlace: Sendable {
    var table: String
    var column: String?
  }

  private static let recentPlaces = RecentResults<Form, [UnknownPlace]>(limit: 4)

  /// Their rows are Core Data's own, and are written anew.
  /// Source: `core-data-sqlite-format.md` §2.
  private static let controlColumns: [NameKey: Set<NameKey>] = [
    "Z_PRIMARYKEY": ["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX"],
    "Z_METADATA": ["Z_VERSION", "Z_UUID", "Z_PLIST"], "Z_MODELCACHE": ["Z_CONTENT"],
  ].reduce(into: [:]) { known, table in
    known[NameKey(table.key)] = Set(table.value.map { NameKey($0) })
  }

  private func unknownPlaces() throws -> [UnknownPlace] {
    var known = Self.controlColumns
    for table in layout.tables {
      let columns = EntityTable.systemColumns + table.columns.map(\.name)
      known[NameKey(table.name)] = Set(columns.map { NameKey($0) })
    }
    for join in layout.joinTables {
      known[NameKey(join.name)] = Set(join.columns.map { NameKey($0) })
    }
    var places: [UnknownPlace] = []
    for object in store.schemaObjects
    where object.kind == .table && SchemaObject.isApplicationTable(object.name) {
      // Core Data's R-trees are virtual tables, and can be made again of the rows.
      guard try store.connection.shape(of: object.name)?.kind == "table" else { continue }
      guard let columns = known[NameKey(object.name)] else {
        places.append(UnknownPlace(table: object.name))
        continue
      }
      let names =
        try store.columns(of: object.name).map(\.name)
        + store.generatedColumns(of: object.name).filter(\.isStored).map(\.name)
      for name in names where !columns.contains(NameKey(name)) {
        places.append(UnknownPlace(table: object.name, column: name))
      }
    }
    return places
  }
}
