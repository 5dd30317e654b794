import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPages
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Writes the destination store out of the source and the checkpoints.
///
/// The file is nobody's until the commit publishes it, so it is written without a journal and
/// without a sync: a crash leaves a file that the next attempt deletes. Whoever publishes it syncs
/// it first.
///
/// SQLite makes the file and everything that is small. Tables and their indexes are written as pages
/// behind the file that SQLite has closed, see ``PageAssembly``. Tables that are anything unusual
/// go through SQLite: carried ones by its transfer optimisation, others in key order with their indexes
/// made afterwards by sorting.
package struct StoreAssembly: Sendable {
  let plan: MigrationPlan
  let run: RunDirectory
  let usesPages: Bool
  let carriesIndexes: Bool

  /// - Parameters:
  ///   - usesPages: False to write everything through SQLite, which gives a store of the same content.
  ///   - carriesIndexes: False to make the indexes of computed tables of their rows, where references
  ///     have no targets: what becomes NULL then, the source's index has.
  package init(
    plan: MigrationPlan, run: RunDirectory, usesPages: Bool = true, carriesIndexes: Bool = true
  ) {
    self.plan = plan
    self.run = run
    self.usesPages = usesPages
    self.carriesIndexes = carriesIndexes
  }
}

extension StoreAssembly {
  /// SQLite's page cache, in KiB. An index sort holds as much again: 36 MiB in all.
  ///
  /// Three indexes over two million rows cost 2.6 s of processor time with 16 MiB and 3.2 s with
  /// 32 MiB, since a run of keys then no longer fits the processor's cache. `PRAGMA threads = 1`
  /// costs half as much again and is faster only while the other processors have nothing to do,
  /// which they have: the source is audited meanwhile.
  static let cacheKibibytes = 16 * 1024

  /// Makes the whole file. What an earlier attempt left at the path is deleted first.
  ///
  /// - Parameters:
  ///   - path: Where the new file goes; a private name that nobody else opens.
  ///   - source: The file that the plan says is read, where it is open.
  ///   - isStopped: Asked now and then; true ends the work with a `CancellationError`.
  ///   - progress: Called now and then with the number of rows written so far.
  package func assemble(
    at path: FilePath, reading source: Connection? = nil,
    isStopped: @escaping () -> Bool = { false },
    progress: @escaping (Int64) -> Void = { _ in }
  ) throws {
    do {
      let rows = RowCounter(isStopped: isStopped, progress)
      do {
        let pages = PageAssembly(
          plan: plan, run: run, source: source, carriesIndexes: carriesIndexes)
        try write(path, pages, rows, isStopped)
      } catch is TreeScan.NotUnderstood {
        // What is unusual about the source's pages, or wrong with them, SQLite knows.
        let pages = PageAssembly(plan: plan, run: run, carriesTrees: false)
        try write(path, pages, rows, isStopped)
      }
    } catch let error as SQLiteError where error.isInterrupted {
      throw CancellationError()
    } catch let error as SQLiteError where error.isOutOfSpace {
      throw CommitError.outOfSpace(path: path)
    } catch let error as DurabilityError where error.isOutOfSpace {
      throw CommitError.outOfSpace(path: path)
    }
  }

  /// Deletes an unpublished destination file and whatever SQLite may have left beside it.
  package func discard(_ path: FilePath) throws {
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try DurableFile.removeIfPresent(FilePath(path.string + suffix))
    }
  }

  private func write(
    _ path: FilePath, _ assembly: PageAssembly, _ counter: RowCounter,
    _ isStopped: @escaping () -> Bool
  ) throws {
    try discard(path)
    var (rows, pages) = (counter, assembly)
    let rest = usesPages ? try take(&pages) : Rest(plan)
    if run.memory != nil {
      try writeSmall(path, rest, &rows, &pages, isStopped)
      try pages.write(path, &rows)
      return rows.report()
    }
    let file = try Connection(path: path.string, mode: .create)
    file.setCancelCheck(isStopped)
    try file.execute(
      """
      \(DestinationTables.form);
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA cache_size = -\(StoreAssembly.cacheKibibytes);
      """)
    if rest.readsSource { try file.attachImmutable(plan.readPath, as: "src") }
    try file.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    try file.execute("BEGIN EXCLUSIVE")
    let schema = SchemaWriter(file, plan: plan)
    try schema.makeTables()
    try fill(file, schema, rest, &rows)
    try file.execute("COMMIT")
    if rest.readsSource { try file.execute("DETACH src") }
    try pages.findRoots(in: file)
    // A file whose header says WAL is opened in that mode by whoever opens it next.
    if pages.isEmpty, plan.control.isWAL { try file.execute("PRAGMA journal_mode = WAL") }
    try file.close()
    try pages.write(path, &rows)
    rows.report()
    try DurableFile.removeIfPresent(FilePath(path.string + "-wal"))
    try DurableFile.removeIfPresent(FilePath(path.string + "-shm"))
  }

  /// Writes all but the pages of a small store, out of an empty file that is made once for a pair of
  /// models and filled in memory.
  private func writeSmall(
    _ path: FilePath, _ rest: Rest, _ rows: inout RowCounter, _ pages: inout PageAssembly,
    _ isStopped: @escaping () -> Bool
  ) throws {
    let read = rest.readsSource ? plan.readPath : nil
    try DestinationTables.of(plan).fillBlank(reading: read) { file in
      file.setCancelCheck(isStopped)
      try file.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
      let schema = SchemaWriter(file, plan: plan)
      try schema.makeTables(isBlank: true)
      try fill(file, schema, rest, &rows)
      // Of a file, the form is one transaction, what is in it another, a vacuum and a change to WAL
      // one each.
      let isVacuumed = try !pages.isEmpty && file.rows("PRAGMA freelist_count")[0][0] != .integer(0)
      try pages.findRoots(in: file)
      let isWAL = pages.isEmpty && plan.control.isWAL
      try file.withImage(commits: 2 + (isVacuumed ? 1 : 0) + (isWAL ? 1 : 0)) {
        if isWAL { ($0[18], $0[19]) = (2, 2) }
        let image = UnsafeRawBufferPointer($0)
        let new = try RegularFile.open(path, .readWrite, options: [.create, .exclusiveCreate])
        try new.closeAfter { _ = try failing("write", path) { try new.writeAll(image) } }
      }
    }
  }

  /// What SQLite writes, by numbers in the plan.
  private struct Rest {
    var tables: [Int]
    var joinTables: [Int]
    /// Whether something of it is carried.
    var readsSource = true

    init(_ plan: MigrationPlan) {
      tables = Array(plan.tables.indices)
      joinTables = Array(plan.joinTables.indices)
    }
  }

  private func take(_ pages: inout PageAssembly) throws -> Rest {
    var rest = Rest(plan)
    let mapped = try plan.mapped.map { _ in try MappedRows(plan: plan, run: run) }
    try rest.tables.removeAll { number in
      // Rows of many entity mappings need not come in the order of their keys.
      try mapped?.ascends(table: number) ?? true
        && pages.takes(plan.tables[number], number: number, units(of: .table(number)))
    }
    try rest.joinTables.removeAll { number in
      try pages.takes(plan.joinTables[number], units(of: .joinTable(number)))
    }
    rest.readsSource =
      !plan.foreignTables.isEmpty || rest.tables.contains { plan.tables[$0].way == .carried }
      || rest.joinTables.contains { plan.joinTables[$0].way == .carried }
    return rest
  }

  /// Everything but what is written by pages.
  private func fill(
    _ file: Connection, _ writer: SchemaWriter, _ rest: Rest, _ rows: inout RowCounter
  ) throws {
    var schema = writer
    for number in rest.tables {
      try fill(plan.tables[number], number: number, in: file, &schema, &rows)
    }
    for number in rest.joinTables {
      try fill(plan.joinTables[number], number: number, in: file, &schema, &rows)
    }
    try writeControlRows(in: file)
    for table in plan.foreignTables { try carry(table, in: file, &schema, &rows) }
    try schema.finish()
  }
}

// MARK: - One table each

extension StoreAssembly {
  private func fill(
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

  private func fill(
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

  private func carry(
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

  private func carry(
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

  private func carry(
    _ table: ForeignTablePlan, in file: Connection, _ schema: inout SchemaWriter,
    _ rows: inout RowCounter
  ) throws {
    // An application's own constraints and columns are computed here.
    let length = file.boundValues(byFile: plan.readPath)
    defer { file.setLimit(.length, to: length) }
    do {
      try carry(
        table.name, table.columns, from: table.name, expressions: table.expressions,
        rowIDName: table.rowIDName, in: file, &schema, &rows)
      try computeColumns(of: table.name, in: file)
    } catch let error as SQLiteError where error.isTooLong {
      throw StoreError.damaged(
        FilePath(plan.sourcePath),
        reason:
          "an expression of the table \(table.name) computes a value that is longer than the store, "
          + "and than 1 MiB")
    }
    // AUTOINCREMENT: numbers of deleted rows must not be given out again.
    let hasSequences = try file.rows(
      "SELECT 1 FROM src.sqlite_master WHERE name = 'sqlite_sequence'")
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
  private func units(of subject: Shard.Subject) -> [Int] {
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
  private func writeControlRows(in file: Connection) throws {
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
