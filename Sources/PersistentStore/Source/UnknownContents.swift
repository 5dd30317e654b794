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

  /// Without row data.
  package var message: String {
    let (noun, verb) = count == 1 ? ("", "is") : ("s", "are")
    guard let column else {
      return "The table \(table) is none of the model's: \(count) row\(noun) \(verb) dropped."
    }
    return
      "The column \(table).\(column) is none of the model's: \(count) value\(noun) \(verb) dropped."
  }
}

extension SourceStore {
  /// What no destination of the model has. Tables whose names do not begin with a Z are another
  /// matter, see ``foreignTables()``.
  ///
  /// - Throws: `SQLiteError` for a table that cannot be read.
  package func unknownContents(_ layout: StoreLayout) throws -> [UnknownContents] {
    var known: [NameKey: [String]] = [:]
    for table in layout.tables {
      known[NameKey(table.name)] = EntityTable.systemColumns + table.columns.map(\.name)
    }
    for join in layout.joinTables { known[NameKey(join.name)] = join.columns }
    var found: [UnknownContents] = []
    func add(_ table: String, _ column: String?) throws {
      let counted = column.map(quoted) ?? "*"
      let rows = try connection.rows("SELECT count(\(counted)) FROM \(quoted(table))")
      guard let count = rows.first?.first?.integer, count > 0 else { return }
      found.append(UnknownContents(table: table, column: column, count: count))
    }
    for object in schemaObjects
    where object.kind == .table && SchemaObject.isApplicationTable(object.name)
      && !LayoutProblem.controlTables.contains(object.name)
    {
      // Core Data's R-trees are virtual tables, and can be made again of the rows.
      guard try connection.shape(of: object.name)?.kind == "table" else { continue }
      guard let columns = known[NameKey(object.name)] else {
        try add(object.name, nil)
        continue
      }
      for (name, _) in self.columns(of: object.name)
      where !columns.contains(where: { $0.isSameName(as: name) }) {
        try add(object.name, name)
      }
    }
    return found
  }
}
