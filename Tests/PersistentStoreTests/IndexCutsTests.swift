import GodwitDigests
import GodwitSQLite
import Testing

@testable import GodwitPersistentStore

@Suite struct `The parts of an index` {
  /// Values of every storage class, few and many equal ones, of a text and an untyped column.
  private func connection() throws -> Connection {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(
      """
      CREATE TABLE t (id INTEGER PRIMARY KEY, few INTEGER, mixed, text VARCHAR);
      CREATE INDEX few ON t (few DESC, text);
      CREATE INDEX mixed ON t (mixed);
      CREATE INDEX text ON t (text, few);
      CREATE TABLE u (a INTEGER, UNIQUE (a));
      WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
      INSERT INTO t
      SELECT i * 3, i % 4,
             CASE (i * 48271) % 1009 % 5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i + 0.5 WHEN 3 THEN 't' || i
             ELSE CAST('b' || i AS BLOB) END,
             CASE WHEN i % 7 THEN substr('abcdefg', i % 7, 2) || ((i * 7919) % 500) END
        FROM n;
      """)
    return connection
  }

  @Test(arguments: [1, 2, 3, 7, 40])
  func `hold together what the whole holds, and each its share`(parts: Int) throws {
    let connection = try connection()
    let indexes = try #require(try TableIndex.all(of: "t", in: connection))
    #expect(Set(indexes.map(\.name)) == ["few", "mixed", "text"])
    let each = 1500 / parts + 1
    let ranges = (0..<parts).map { Int64($0 * each)...Int64(($0 + 1) * each - 1) }
    let cuts = try IndexCuts(indexes, of: "t", rowID: "rowid", ranges: ranges, in: connection)
    for index in indexes {
      let whole = try #require(try index.entries(of: "t", in: connection))
      #expect(whole.count == 500)
      let found = try (0..<parts).map { part in
        try #require(try index.entries(of: "t", cuts.part(part, of: index), in: connection))
      }
      #expect(found.map(\.count).reduce(0, +) == 500)
      var sum = found[0]
      for digest in found.dropFirst() { sum += digest }
      #expect(sum == whole)
      if parts == 3, index.name != "few" {
        #expect(found.allSatisfy { $0.count > 60 }, "\(index.name) \(found.map(\.count))")
      }
    }
  }

  @Test func `are those of the table's rows, by their keys`() throws {
    let connection = try connection()
    let indexes = try #require(try TableIndex.all(of: "t", in: connection))
    let columns = ["few", "mixed", "text"]
    var keys = try #require(IndexKeys(indexes, columns: columns, rowID: 3))
    try connection.visitRows(columns + ["rowid"], "FROM t NOT INDEXED") { keys.add($0) }
    for (index, digest) in zip(indexes, keys.digests) {
      #expect(try index.entries(of: "t", in: connection) == digest)
    }
    #expect(IndexKeys(indexes, columns: ["few", "text"], rowID: 2) == nil)
  }

  @Test(arguments: [
    ("a partial index", "CREATE INDEX x ON u (a) WHERE a > 3"),
    ("an expression", "CREATE INDEX x ON u (a + 1)"),
    ("another collation", "CREATE INDEX x ON u (a COLLATE NOCASE)"),
    ("no row id", "DROP TABLE u; CREATE TABLE u (a INTEGER PRIMARY KEY, b UNIQUE) WITHOUT ROWID"),
    ("a hidden row id", "DROP TABLE u; CREATE TABLE u (rowid TEXT UNIQUE)"),
  ])
  func `are left to SQLite's own check`(why: String, sql: String) throws {
    let connection = try connection()
    #expect(try TableIndex.all(of: "u", in: connection)?.count == 1)
    try connection.execute(sql)
    #expect(try TableIndex.all(of: "u", in: connection) == nil, "\(why)")
  }
}
