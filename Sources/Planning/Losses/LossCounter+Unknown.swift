import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

// What the model knows nothing of: an application's own, or what an older version left.
extension LossCounter {
  /// Rows of tables with names like the model's, and values of columns in the model's tables, for which
  /// the model has no place. Tables whose names do not begin with a Z are carried instead.
  func unknownLosses() throws -> [Loss] {
    var columns: [NameKey: Set<NameKey>] = [:]
    for table in layout.tables {
      columns[NameKey(table.name)] = Set(
        (EntityTable.systemColumns + table.columns.map(\.name)).map { NameKey($0) })
    }
    for join in layout.joinTables {
      columns[NameKey(join.name)] = Set(join.columns.map { NameKey($0) })
    }
    var losses: [Loss] = []
    for object in store.schemaObjects
    where object.kind == .table && SchemaObject.isApplicationTable(object.name)
      && !LayoutProblem.controlTables.contains(object.name)
    {
      let name = object.name
      // Core Data's R-trees are virtual tables, and can be made again of the rows.
      guard try store.connection.shape(of: name)?.kind == "table" else { continue }
      guard let known = columns[NameKey(name)] else {
        losses += try loss(.table, name, nil, "row")
        continue
      }
      for column in store.columns(of: name).map(\.name) where !known.contains(NameKey(column)) {
        losses += try loss(.column, name, column, "value")
      }
    }
    return losses
  }

  /// Nothing where the table or the column is empty.
  private func loss(
    _ kind: Loss.Kind, _ table: String, _ column: String?, _ noun: String
  ) throws -> [Loss] {
    let counted = column.map(quoted) ?? "*"
    let count =
      try store.connection.rows("SELECT count(\(counted)) FROM \(quoted(table))")
      .first?.first?.integer ?? 0
    guard count > 0 else { return [] }
    let place = column.map { "column \(table).\($0)" } ?? "table \(table)"
    return [
      Loss(
        kind, entity: table, property: column, count: count,
        message: "The \(place) is none of the model's: \(Loss.number(count, noun)) "
          + "\(count == 1 ? "is" : "are") dropped.")
    ]
  }
}
