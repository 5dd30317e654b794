import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPages
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

// One table each.
extension StoreAssembly {
  func fill(
    _ table: TablePlan, number index: Int, in file: Connection, _ schema: inout SchemaWriter,
    _ rows: inout RowCounter
  ) throws {
    let columns = ["Z_PK", "Z_ENT", "Z_OPT"]
    switch table.way {
    case .empty, .removed: break
    case .carried:
      try carry(
        table.name, columns + table.columns, from: table.sourceTable,
        columns + table.carriedColumns, in: file, &schema, &rows)
    case .computed:
      // Its indexes are part of what it is, and go.
      let covered = try DestinationTables.of(plan).covered(table)
      try schema.dropIndexes(of: table.name)
      let insert = try file.prepare(insertion(into: table.name, columns + table.columns))
      if plan.mapped != nil {
        try MappedRows(plan: plan, run: run).insert(table: index, by: insert, &rows)
        return
      }
      var source = CheckpointRows(plan: plan, run: run, table: table.name)
      for unit in units(of: .table(index)) {
        try source.forEach(of: table, covered: covered, unit: unit) { row in
          for place in 0..<table.columns.count + 3 { try insert.bind(Int32(place + 1), row[place]) }
          try insert.run()
          try rows.add()
        }
      }
    }
  }

  func fill(
    _ table: JoinTablePlan, number index: Int, in file: Connection, _ schema: inout SchemaWriter,
    _ rows: inout RowCounter
  ) throws {
    switch table.way {
    case .empty, .removed: break
    case .carried:
      try carry(
        table.name, table.columns, from: table.sourceTable, table.carriedColumns, in: file,
        &schema, &rows)
    case .computed:
      try schema.dropIndexes(of: table.name)
      let insert = try file.prepare(insertion(into: table.name, table.columns))
      var source = CheckpointRows(plan: plan, run: run, table: table.name)
      for unit in units(of: .joinTable(index)) {
        try source.forEach(of: table, unit: unit) { row in
          for place in 1...table.columns.count { try insert.bind(Int32(place), row[place]) }
          try insert.run()
          try rows.add()
        }
      }
    }
  }

  func carry(
    _ table: String, _ columns: [String], from source: String?, _ sourceColumns: [String],
    in file: Connection, _ schema: inout SchemaWriter, _ rows: inout RowCounter
  ) throws {
    guard let source else {
      throw CommitError.unusablePlan("\(table) is carried from nowhere")
    }
    try carry(
      table, columns, from: source, expressions: sourceColumns.map(quoted), in: file, &schema,
      &rows)
  }

  func carry(
    _ table: String, _ columns: [String], from source: String, expressions: [String],
    rowIDName: String? = nil, in file: Connection, _ schema: inout SchemaWriter,
    _ rows: inout RowCounter
  ) throws {
    guard columns.count == expressions.count else {
      throw CommitError.unusablePlan("\(table) is carried from another number of columns")
    }
    let sql = try Transfer.statement(
      into: table, columns, from: source, expressions: expressions, in: file)
    let isWhole = try Transfer.isWhole(sql, into: table, from: source, in: file) { index in
      try schema.drop(index)
    }
    if !isWhole { try schema.dropIndexes(of: table) }
    try file.execute(
      try !isWhole || rowIDName.map { try !Transfer.numbersEqually(source, $0, in: file) } ?? false
        ? Transfer.statement(
          into: table, columns, from: source, expressions: expressions, rowIDName: rowIDName,
          in: file) : sql)
    try rows.add(count: file.changes)
  }

  func carry(
    _ table: ForeignTablePlan, in file: Connection, _ schema: inout SchemaWriter,
    _ rows: inout RowCounter
  ) throws {
    // Whether rows keep an application's CHECK constraints is its own matter: they are carried as they are, and
    // where a file may not be written SQLite does not ask.
    try file.execute("PRAGMA ignore_check_constraints = ON")
    defer { try? file.execute("PRAGMA ignore_check_constraints = OFF") }
    try plan.boundingValues(of: table.name, in: file) {
      try carry(
        table.name, table.columns, from: table.name, expressions: table.expressions,
        rowIDName: table.rowIDName, in: file, &schema, &rows)
      try computeColumns(of: table.name, in: file)
    }
    // AUTOINCREMENT: numbers of deleted rows must not be given out again.
    let hasSequences = try file.rows(
      "SELECT 1 FROM src.sqlite_master WHERE CAST(name AS TEXT) = 'sqlite_sequence'")
    guard !hasSequences.isEmpty else { return }
    for row in try file.rows(
      "SELECT seq FROM src.sqlite_sequence WHERE name = ?1", [.text(table.name)])
    {
      _ = try file.rows(
        "DELETE FROM main.sqlite_sequence WHERE name = ?1", [.text(table.name)])
      _ = try file.rows(
        "INSERT INTO main.sqlite_sequence (name, seq) VALUES (?1, ?2)", [.text(table.name), row[0]])
    }
  }

  /// Columns that are computed when they are read no row was asked for yet; the checks of the written
  /// file ask for them.
  private func computeColumns(of table: String, in file: Connection) throws {
    let columns = try file.rows(
      "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 2", [.text(table)]
    ).compactMap { $0[0].text }
    guard !columns.isEmpty else { return }
    let counts = columns.map { "count(\(quoted($0)))" }.joined(separator: ", ")
    _ = try file.rows("SELECT \(counts) FROM main.\(quoted(table))")
  }

  /// The units of a table in the order of their keys: rows are appended, never inserted between.
  func units(of subject: Shard.Subject) -> [Int] {
    plan.units.indices.filter { plan.units[$0].subject == subject }
      .sorted { plan.units[$0].keys.lowerBound < plan.units[$1].keys.lowerBound }
  }

  private func insertion(into table: String, _ columns: [String]) -> String {
    """
    INSERT INTO main.\(quoted(table)) (\(columns.map(quoted).joined(separator: ", ")))
    VALUES (\((1...columns.count).map { "?\($0)" }.joined(separator: ", ")))
    """
  }

  /// Format reference §2 and §3.
  func writeControlRows(in file: Connection) throws {
    let control = plan.control
    let highest = plan.mapped == nil ? [:] : try MappedRows(plan: plan, run: run).primaryKeys()
    for row in control.primaryKeys {
      _ = try file.rows(
        "INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, ?4)",
        [
          .integer(row.number), .text(row.name), .integer(row.superNumber),
          .integer(highest[row.number] ?? row.highestKey),
        ])
    }
    _ = try file.rows(
      "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?1, ?2)",
      [.text(control.storeUUID), .blob(control.metadata)])
    _ = try file.rows(
      "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?1)", [.blob(control.modelCache)])
    if control.userVersion != 0 {
      try file.execute("PRAGMA main.user_version = \(control.userVersion)")
    }
    if control.applicationID != 0 {
      try file.execute("PRAGMA main.application_id = \(control.applicationID)")
    }
  }
}

extension MigrationPlan {
  /// Does what computes an application's own columns and expressions.
  ///
  /// - Throws: `StoreError/damaged(_:reason:)` for a value that is longer than the store.
  func boundingValues(of table: String, in file: Connection, _ compute: () throws -> Void) throws {
    let length = file.boundValues(byFile: readPath)
    defer { file.setLengthLimit(length) }
    do {
      try compute()
    } catch let error as SQLiteError where error.isTooLong {
      throw StoreError.damaged(
        FilePath(sourcePath),
        reason:
          "an expression of the table \(table) computes a value that is longer than the store, and than 1 MiB"
      )
    }
  }
}
