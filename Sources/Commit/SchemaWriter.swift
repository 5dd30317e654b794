import GodwitDurableFiles
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// Makes what `sqlite_master` holds, and leaves it in the order in which Core Data makes it.
///
/// Everything is made at once while the file is empty; indexes that rows are better loaded
/// without are dropped for the time and made again by ``finish()``, which then puts the entries
/// of `sqlite_master` back into order.
struct SchemaWriter {
  private let file: Connection
  private let plan: MigrationPlan
  private typealias Waiting = (name: String, sql: String, table: String)

  /// Indexes in the order in which they were dropped.
  private var waiting: [Waiting] = []
  /// Names of all entries as they shall be ordered, those that SQLite adds by itself included; found
  /// when the first index is dropped.
  private var order: [String] = []

  init(_ file: Connection, plan: MigrationPlan) {
    self.file = file
    self.plan = plan
  }
}

extension SchemaWriter {
  /// Makes tables and indexes, all but the triggers.
  ///
  /// - Parameter isBlank: The file has the model's by now.
  func makeTables(isBlank: Bool = false) throws {
    if !isBlank { for object in plan.schema { try file.execute(object.sql) } }
    let made = Set(plan.schema.map { NameKey($0.name) })
    for table in plan.foreignTables where !made.contains(NameKey(table.name)) {
      try file.define(.table, table.sql)
    }
    for sql in plan.foreignIndexes { try file.define(.index, sql) }
  }

  /// Takes all indexes of a table away until ``finish()``.
  mutating func dropIndexes(of table: String) throws {
    let indexes = try file.rows(
      """
      SELECT name FROM main.sqlite_master
       WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL
       ORDER BY rowid
      """, [.text(table)])
    for index in indexes { try drop(index[0].text ?? "") }
  }

  /// Takes one index away until ``finish()``.
  mutating func drop(_ index: String) throws {
    let rows = try file.rows(
      "SELECT sql, tbl_name FROM main.sqlite_master WHERE type = 'index' AND name = ?1",
      [.text(index)])
    guard let row = rows.first, let sql = row[0].text, let table = row[1].text else { return }
    if waiting.isEmpty { order = try names() }
    try file.execute("DROP INDEX main.\(quoted(index))")
    waiting.append((index, sql, table))
  }

  /// Makes the dropped indexes by sorting, orders `sqlite_master`, and adds the triggers, which
  /// must not see the rows arrive.
  mutating func finish() throws {
    for index in waiting {
      do {
        try make(index)
      } catch let error as SQLiteError where error.isConstraintUnique {
        throw CommitError.uniqueness(
          entity: plan.entity(ofUniqueIndex: index.name), index: index.name,
          rows: try repeatedRows(of: index))
      }
    }
    if !waiting.isEmpty { try restoreOrder() }
    for sql in plan.triggers { try file.define(.trigger, sql) }
  }

  private func make(_ index: Waiting) throws {
    guard plan.foreignTables.contains(where: { $0.name.isSameName(as: index.table) }) else {
      return try file.execute(index.sql)
    }
    try plan.boundingValues(of: index.table, in: file) { try file.execute(index.sql) }
  }

  /// The rows that a unique index refuses. Without a journal the index is half there now.
  private func repeatedRows(of index: Waiting) throws -> RowTally {
    let sql = try file.rows(
      "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = ?1", [.text(index.table)]
    ).first?[0].text
    let trial = try Connection(path: ":memory:", mode: .create)
    try trial.execute("\(sql ?? ""); \(index.sql)")
    let columns = try trial.rows(
      "SELECT name, coll FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno",
      [.text(index.name)]
    ).map { "\(quoted($0[0].text ?? "")) COLLATE \($0[1].text ?? "BINARY")" }
    let statement = try file.prepare(
      """
      SELECT key FROM (
        SELECT rowid AS key, count(*) OVER (PARTITION BY \(columns.joined(separator: ", "))) AS n
          FROM main.\(quoted(index.table)) NOT INDEXED
         WHERE \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")))
       WHERE n > 1 ORDER BY key
      """)
    var repeated = RowTally()
    while try statement.step() { repeated.add(statement.int64(0)) }
    return repeated
  }

  private func names() throws -> [String] {
    try file.rows("SELECT name FROM main.sqlite_master ORDER BY rowid").map { $0[0].text ?? "" }
  }

  /// `sqlite_master` is a table like any other once `writable_schema` is on, and its entries are
  /// read in the order of their row numbers.
  ///
  /// Source: https://sqlite.org/pragma.html#pragma_writable_schema.
  private func restoreOrder() throws {
    let rows = try file.rows("SELECT rowid, name FROM main.sqlite_master ORDER BY rowid")
    var numbers: [NameKey: Int64] = [:]
    for row in rows { numbers[NameKey(row[1].text ?? "")] = row[0].integer ?? 0 }
    try file.execute("PRAGMA writable_schema = ON; UPDATE main.sqlite_master SET rowid = -rowid")
    let move = try file.prepare("UPDATE main.sqlite_master SET rowid = ?1 WHERE rowid = ?2")
    for (place, name) in order.enumerated() {
      guard let number = numbers[NameKey(name)] else {
        throw CommitError.unusablePlan("\(name) went missing from sqlite_master")
      }
      try move.bind(1, Int64(place + 1))
      try move.bind(2, -number)
      try move.run()
    }
    try file.execute("PRAGMA writable_schema = OFF")
  }
}

extension MigrationPlan {
  /// The entity whose constraint an index keeps: `Z_<Entity>_UNIQUE_<properties>`, format
  /// reference §8. Entities may have underscores, so the longest name that fits is the one.
  func entity(ofUniqueIndex index: String) -> String? {
    let destinations = tables.flatMap { table in
      table.entities.compactMap { $0.destination?.description } + [table.root.description]
    }
    return destinations.filter { index.begins(with: "Z_\($0)_UNIQUE_") }
      .max { $0.utf8.count < $1.utf8.count }
  }
}
