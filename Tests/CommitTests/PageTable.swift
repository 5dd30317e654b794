import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPages
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

/// One table made twice: by pages, and by SQLite.
final class PageTable {
  let scratch: Scratch
  let pages: FilePath
  let twin: FilePath
  let statements: [String]

  /// - Parameter indexes: What follows `CREATE`.
  init(columns: String, indexes: [String] = []) throws {
    scratch = try Scratch()
    pages = scratch.path.appending("pages.sqlite")
    twin = scratch.path.appending("twin.sqlite")
    statements =
      ["CREATE TABLE T (K INTEGER PRIMARY KEY, \(columns))"] + indexes.map { "CREATE " + $0 }
    for path in [pages, twin] {
      let file = try Connection(path: path.string, mode: .create)
      try file.execute("PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA synchronous = OFF")
      for sql in statements { try file.execute(sql) }
      try file.close()
    }
  }

  /// Puts the same rows into both.
  func fill(_ rows: [(Int64, [SQLiteValue])], budget: Int = TablePages.memoryBudget) throws {
    try fillTwin(rows)
    try fillPages(rows, budget: budget)
  }

  func fillTwin(_ rows: [(Int64, [SQLiteValue])]) throws {
    let file = try Connection(path: twin.string, mode: .readWrite)
    try file.execute("BEGIN")
    let count = try columnNames(in: file).count
    let places = (1...count).map { "?\($0)" }.joined(separator: ", ")
    let insert = try file.prepare("INSERT INTO T VALUES (\(places))")
    for (key, values) in rows {
      try insert.bind(1, key)
      for (place, value) in values.enumerated() { try insert.bind(Int32(place + 2), value) }
      try insert.run()
    }
    try file.execute("COMMIT")
  }

  /// By one thread, and again by two, which gives the same bytes.
  func fillPages(_ rows: [(Int64, [SQLiteValue])], budget: Int = TablePages.memoryBudget) throws {
    let threaded = scratch.path.appending("threaded.sqlite")
    try FileManager.default.copyItem(atPath: pages.string, toPath: threaded.string)
    let results = [(pages, false), (threaded, true)].map { path, isThreaded in
      Result { try fill(path, rows, budget, isThreaded: isThreaded) }
    }
    try results[0].get()
    try results[1].get()
    #expect(
      FileManager.default.contentsEqual(atPath: pages.string, andPath: threaded.string))
    try FileManager.default.removeItem(atPath: threaded.string)
  }

  private func fill(
    _ pages: FilePath, _ rows: [(Int64, [SQLiteValue])], _ budget: Int, isThreaded: Bool
  ) throws {
    let file = try Connection(path: pages.string, mode: .readWrite)
    let names = try columnNames(in: file).dropFirst()
    let table = try #require(
      try CoveredTable("T", key: "K", columns: Array(names), in: file))
    var roots: [NameKey: UInt32] = [:]
    for row in try file.rows("SELECT name, rootpage FROM sqlite_master") {
      roots[NameKey(row[0].text ?? "")] = UInt32(row[1].integer ?? 0)
    }
    try file.close()
    let out = try PageFile(pages)
    let feed = TreeFeed(out, isThreaded: isThreaded)
    let writer = try TablePages(
      table, roots: roots, to: feed, folder: scratch.path, budget: budget)
    for (key, values) in rows {
      let bytes = record(values)
      try bytes.withUnsafeBytes { bytes in
        try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: values.count + 1) { row in
          row.initialize(repeating: .null)
          let start = try #require(row.baseAddress)
          start[0] = .integer(key)
          #expect(RecordFormat.decode(record: bytes, into: start + 1, count: values.count))
          try writer.append(start)
        }
      }
    }
    let finished = Result {
      try writer.finish { CommitError.uniqueness(entity: nil, index: $0.name, rows: $1) }
    }
    try feed.finish()
    try finished.get()
    try out.finish(isWAL: false)
  }

  private func columnNames(in file: Connection) throws -> [String] {
    try file.rows("SELECT name FROM pragma_table_info('T') ORDER BY cid").map { $0[0].text ?? "" }
  }

  /// SQLite finds nothing wrong, and both files give the same rows by the table and each index.
  func expectAlike(_ comment: Comment? = nil) throws {
    let one = try Connection(path: pages.string, mode: .readOnly)
    let other = try Connection(path: twin.string, mode: .readOnly)
    #expect(try one.rows("PRAGMA integrity_check") == [[.text("ok")]], comment)
    let types = try columnNames(in: one).map { "typeof(\($0))" }.joined(separator: ", ")
    let all = "SELECT *, \(types) FROM T ORDER BY K"
    #expect(try one.rows(all) == other.rows(all), comment)
    for index in try one.rows("SELECT name FROM pragma_index_list('T')") {
      let name = index[0].text ?? ""
      let keys = try one.rows(
        "SELECT name, \"desc\" FROM pragma_index_xinfo('\(name)') WHERE key ORDER BY seqno")
      let order = keys.map { ($0[0].text ?? "K") + ($0[1].integer == 1 ? " DESC" : "") }
        .joined(separator: ", ")
      let columns = keys.map { $0[0].text ?? "K" }.joined(separator: ", ")
      let sql = "SELECT \(columns), K FROM T INDEXED BY \(name) ORDER BY \(order)"
      let plan = try one.rows("EXPLAIN QUERY PLAN " + sql).map { $0[3].text ?? "" }
      #expect(plan.count == 1, "\(name) is not read in its order: \(plan)")
      #expect(try one.rows(sql) == other.rows(sql), comment)
    }
  }

  /// SQLite can go on with the file: every page is where the pointer maps say.
  func expectWritable() throws {
    let file = try Connection(path: pages.string, mode: .readWrite)
    try file.execute(
      """
      PRAGMA synchronous = OFF;
      DELETE FROM T WHERE K % 3 = 0;
      CREATE TABLE OTHER AS SELECT * FROM T;
      CREATE TABLE MORE AS SELECT * FROM T LIMIT 50;
      UPDATE T SET K = -K WHERE K % 7 = 1;
      DROP TABLE OTHER;
      """)
    #expect(try file.rows("PRAGMA integrity_check") == [[.text("ok")]])
    try file.execute("PRAGMA incremental_vacuum")
    #expect(try file.rows("PRAGMA freelist_count") == [[.integer(0)]])
    #expect(try file.rows("PRAGMA integrity_check") == [[.text("ok")]])
    try file.execute("DELETE FROM T WHERE K % 5 < 4; PRAGMA incremental_vacuum; DROP TABLE MORE")
    #expect(try file.rows("PRAGMA integrity_check") == [[.text("ok")]])
    try file.execute("DELETE FROM T; PRAGMA incremental_vacuum")
    #expect(try file.rows("PRAGMA integrity_check") == [[.text("ok")]])
  }
}
