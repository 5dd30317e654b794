import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// The sound store, as it is being written: the schema that Core Data gives the model, and the
/// salvaged rows.
struct OutputStore {
  let schema: DestinationSchema
  let connection: Connection
  let path: FilePath

  /// Makes the model's tables, without indexes.
  init(_ hierarchy: EntityHierarchy, at path: FilePath) throws {
    let layout = StoreLayout(hierarchy)
    try layout.requireUsable()
    schema = DestinationSchema(layout)
    self.path = path
    connection = try StoreSalvage.create(path)
    try connection.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    for statement in layout.statements where statement.kind == .table {
      try connection.execute(statement.sql)
    }
  }

  var layout: StoreLayout { schema.layout }

  /// Whether something of its own has such a name.
  func isTaken(_ name: String) throws -> Bool {
    try !connection.rows(
      "SELECT 1 FROM main.sqlite_master WHERE name = ?1 COLLATE NOCASE", [.text(name)]
    ).isEmpty
  }

  /// Copies the rows of the model's tables out of the salvaged file, which is attached as `salvage`.
  ///
  /// - Returns: The salvaged join tables that have pairs more than once, of which the output has one.
  func copyRows(from binding: StoreBinding, _ doubted: DoubtedRows) throws -> Set<NameKey> {
    try connection.attachImmutable(binding.store.readPath.string, as: "salvage")
    let numbers = numbers(binding)
    try connection.execute("BEGIN")
    for (own, source) in zip(layout.tables, binding.layout.tables) {
      let columns = Dictionary(
        source.columns.map { ($0.role, $0.name) }, uniquingKeysWith: { first, _ in first })
      var (names, values) = (
        EntityTable.systemColumns, ["Z_PK", renumbered("Z_ENT", numbers), "Z_OPT"]
      )
      for column in own.columns {
        guard let name = columns[column.role], binding.has(name, in: source.name) else { continue }
        names.append(column.name)
        if case .targetEntity = column.role {
          values.append(renumbered(quoted(name), numbers))
        } else {
          values.append(quoted(name))
        }
      }
      try connection.execute(
        """
        INSERT INTO main.\(quoted(own.name)) (\(names.map(quoted).joined(separator: ", ")))
        SELECT \(values.joined(separator: ", "))
          FROM salvage.\(quoted(source.name))
         ORDER BY Z_PK
        """)
    }
    var repeated: Set<NameKey> = []
    for (own, source) in zip(layout.joinTables, binding.layout.joinTables) {
      guard binding.has(source.firstColumn, in: source.name),
        binding.has(source.secondColumn, in: source.name)
      else { continue }
      let pairs = [
        (own.firstColumn as String?, source.firstColumn as String?),
        (own.secondColumn, source.secondColumn), (own.firstOrderColumn, source.firstOrderColumn),
        (own.secondOrderColumn, source.secondOrderColumn),
      ].compactMap { a, b in
        if let a, let b, binding.has(b, in: source.name) { (a, b) } else { nil }
      }
      var count: Int64 = 0
      for part in doubted.parts(of: own.name, key: "rowid") {
        try connection.execute(
          """
          INSERT OR IGNORE INTO main.\(quoted(own.name)) (\(pairs.map { quoted($0.0) }.joined(separator: ", ")))
          SELECT \(pairs.map { quoted($0.1) }.joined(separator: ", "))
            FROM salvage.\(quoted(source.name)) WHERE \(part)
           ORDER BY rowid
          """)
        count += connection.changes
      }
      let all = try connection.rows("SELECT count(*) FROM salvage.\(quoted(source.name))")
      if let all = all.first?.first?.integer, all > count { repeated.insert(NameKey(source.name)) }
    }
    try connection.execute("COMMIT")
    return repeated
  }

  /// Entity numbers that the source gives otherwise than the rules.
  private func numbers(_ binding: StoreBinding) -> [(from: Int64, to: Int64)] {
    layout.hierarchy.order.compactMap { name in
      let (from, to) = (binding.number(of: name), Int64(layout.entityNumbers[name] ?? 0))
      return from == to ? nil : (from, to)
    }
  }

  private func renumbered(_ column: String, _ numbers: [(from: Int64, to: Int64)]) -> String {
    guard !numbers.isEmpty else { return column }
    let cases = numbers.map { "WHEN \($0.from) THEN \($0.to)" }.joined(separator: " ")
    return "CASE \(column) \(cases) ELSE \(column) END"
  }

  // MARK: Control tables

  /// Makes the indexes, and the control tables with their rows.
  ///
  /// - Parameter model: The model to be cached, uncut.
  func finish(
    highestKeys: [EntityName: Int64], carrying rows: [PrimaryKeyRow], metadata: StoreMetadata,
    uuid: String, caching model: EntityHierarchy
  ) throws {
    for statement in layout.statements where statement.kind == .index {
      try connection.execute(statement.sql)
    }
    for statement in DestinationSchema.controlTables { try connection.execute(statement.sql) }
    for row in schema.primaryKeys(highestKeys: highestKeys, carrying: rows) {
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, ?4)",
        [
          .integer(row.number), .text(row.name), .integer(row.superNumber),
          .integer(row.highestKey),
        ])
    }
    _ = try connection.rows(
      "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?1, ?2)",
      [.text(uuid), .blob(metadata.bytes(migratedTo: layout.hierarchy))])
    _ = try connection.rows(
      "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?1)",
      [.blob(try model.modelCacheBytes())])
  }

  /// Carries a table that is not the model's, with its indexes.
  ///
  /// - Parameters:
  ///   - salvage: The salvaged file.
  ///   - numbers: From its entity numbers to those of this store.
  /// - Returns: nil where it cannot be made.
  func carry(
    _ table: SchemaSalvage.Entry, indexes: [SchemaSalvage.Entry], columns: [SchemaSalvage.Column],
    from salvage: StoreBinding, _ numbers: EntityRenumbering, _ doubted: DoubtedRows
  ) throws -> CarriedTable? {
    guard let sql = table.sql, try !isTaken(table.name) else { return nil }
    var (usable, refused): ([String], [String]) = ([], [])
    let isCounted: Bool
    let hasRowIDs: Bool
    do {
      let trial = try Connection(path: ":memory:", mode: .create)
      try trial.define(.table, sql)
      for index in indexes {
        guard let sql = index.sql else { continue }
        do {
          try trial.define(.index, sql)
          usable.append(sql)
        } catch let error as SQLiteError where !error.isOutOfMemory {
          refused.append(index.name)
        }
      }
      // What it defines may have another name. Here alone SQLite is asked: the output may have thousands of tables.
      let made = try trial.schemaRows().first {
        $0.type == "table" && $0.name.columnKey == table.name.columnKey
      }
      guard let made, let shape = try trial.shape(of: made.name) else { return nil }
      hasRowIDs = !shape.isWithoutRowID
      isCounted =
        try !trial.rows(
          "SELECT 1 FROM sqlite_master WHERE name = ?1", [.text(AutoincrementCounters.table)]
        ).isEmpty
    } catch let error as SQLiteError where !error.isOutOfMemory {
      return nil
    }
    // Rows of other tables may refer to row ids.
    try connection.define(.table, sql)
    for sql in usable { try connection.define(.index, sql) }
    let rowIDName = ["rowid", "_rowid_", "oid"].first { name in
      hasRowIDs && !columns.contains { $0.name.columnKey == name.columnKey }
    }
    let given = columns.filter { !$0.isGenerated }.map(\.name)
    let listed = ([rowIDName].compactMap { $0 } + given).map(quoted).joined(separator: ", ")
    // Its own constraints and columns are computed here.
    let length = connection.boundValues(byFile: salvage.store.readPath.string)
    defer { connection.setLengthLimit(length) }
    let filled = try SQLiteError.nilByContent {
      let values = try given.map { try numbers.expression($0, in: table.name) ?? quoted($0) }
      if let rowIDName, given.count >= LayoutProblem.mostColumns {
        return try copyWideRows(of: table.name, given, values, rowIDName)
      }
      let read = ([rowIDName].compactMap { $0 } + values).joined(separator: ", ")
      // Where there is no name for it, the row id is none of what is doubted either.
      let parts = rowIDName.map { doubted.parts(of: table.name, key: $0) } ?? ["1"]
      var count: Int64 = 0
      for part in parts {
        try connection.execute(
          "INSERT OR IGNORE INTO main.\(quoted(table.name)) (\(listed)) "
            + "SELECT \(read) FROM salvage.\(quoted(table.name)) WHERE \(part) ORDER BY rowid")
        count += connection.changes
      }
      return count
    }
    guard let rows = filled else {
      try connection.execute("DROP TABLE main.\(quoted(table.name))")
      return nil
    }
    let all =
      try connection.rows("SELECT count(*) FROM salvage.\(quoted(table.name))").first?.first?
      .integer ?? rows
    var carried = CarriedTable(
      rows: rows, refused: all - rows, refusedIndexes: refused, isCounted: isCounted)
    if let rowIDName, carried.refused > 0 {
      carried.refusedKeys = try KeyRanges(
        connection.rows(
          "SELECT \(rowIDName) FROM salvage.\(quoted(table.name)) WHERE \(rowIDName) NOT IN "
            + "(SELECT \(rowIDName) FROM main.\(quoted(table.name)))"
        ).compactMap { $0.first?.integer })
    }
    return carried
  }

  /// What became of the rows of a table that is not the model's.
  struct CarriedTable {
    var rows: Int64
    /// Those of the salvaged file that the constraints refuse.
    var refused: Int64
    /// Their row ids, where these have a name.
    var refusedKeys = KeyRanges()
    /// Those that only the application can make, by a collation or a function of its own.
    var refusedIndexes: [String]
    /// Whether it counts its rows: `AUTOINCREMENT`.
    var isCounted: Bool
  }

  /// Copies rows with as many values as a statement gives, so that none has room for the row id beside them.
  ///
  /// - Returns: How many the table's constraints accept.
  private func copyWideRows(
    of table: String, _ columns: [String], _ values: [String], _ rowIDName: String
  ) throws -> Int64 {
    let listed = columns.map(quoted).joined(separator: ", ")
    let keys = try connection.prepare(
      "SELECT \(rowIDName) FROM salvage.\(quoted(table)) "
        + "ORDER BY \(DoubtedRows.condition(table, key: rowIDName)), 1")
    let copy = try connection.prepare(
      "INSERT OR IGNORE INTO main.\(quoted(table)) (\(listed)) "
        + "SELECT \(values.joined(separator: ", ")) FROM salvage.\(quoted(table)) WHERE \(rowIDName) = ?1"
    )
    // A new row gets a higher row id than all that are there, and then its own, which no other row has. Certain
    // rows come first, by their row ids.
    let numbering = try connection.prepare(
      "UPDATE main.\(quoted(table)) SET \(rowIDName) = ?1 WHERE \(rowIDName) = ?2")
    var count: Int64 = 0
    while try keys.step() {
      let key = keys.int64(0)
      try copy.bind(1, key)
      try copy.run()
      guard connection.changes > 0 else { continue }
      count += 1
      let last = connection.lastInsertRowID
      guard last != key else { continue }
      try numbering.bind(1, key)
      try numbering.bind(2, last)
      try numbering.run()
    }
    return count
  }

  /// Makes the triggers that mean the same here, once all rows are written: they would act on those.
  ///
  /// - Returns: Their names.
  func carryTriggers(from salvage: StoreBinding) throws -> Set<NameKey> {
    for sql in try schema.carriedTriggers(from: salvage).statements {
      try connection.define(.trigger, sql)
    }
    return try Set(
      connection.rows("SELECT name FROM main.sqlite_master WHERE type = 'trigger'")
        .compactMap { $0[0].text.map(NameKey.init) })
  }

  /// Sets the numbers that a file's header has for the application, which Core Data leaves 0.
  func setNumbers(of header: DatabaseHeader) throws {
    try connection.execute("PRAGMA main.user_version = \(header.userVersion)")
    try connection.execute(
      "PRAGMA main.application_id = \(Int32(bitPattern: header.applicationID))")
  }

  /// Closes the file, whose header says WAL as that of Core Data's stores does.
  func close() throws {
    try connection.execute("PRAGMA journal_mode = WAL")
    try connection.close()
  }
}
