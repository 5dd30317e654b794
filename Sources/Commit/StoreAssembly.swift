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
    // Beside a store, SQLite's own mode would let others read it before it has the store's rights.
    try RegularFile.open(path, .readWrite, options: [.create, .exclusiveCreate]).close()
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
