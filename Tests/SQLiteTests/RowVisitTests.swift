import Testing

@testable import GodwitSQLite

@Suite struct `A visit of rows` {
  private struct Stop: Error, Equatable {}

  private func connection() throws -> Connection {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(
      """
      CREATE TABLE t (a, b);
      INSERT INTO t VALUES (1, 'one'), (-9223372036854775808, ''), (2.5, x''), (NULL, x'00ff'),
        ('a text of more than a few bytes', 'æ');
      """)
    return connection
  }

  private func visited(_ columns: [String], _ source: String, _ connection: Connection) throws
    -> [[SQLiteValue]]
  {
    var rows: [[SQLiteValue]] = []
    try connection.visitRows(columns, source) { row in
      rows.append(columns.indices.map { SQLiteValue(row[$0]) })
    }
    return rows
  }

  @Test func `gives the values that stepping gives, in the same order`() throws {
    let connection = try connection()
    let rows = try connection.rows("SELECT a, b, rowid FROM t")
    #expect(rows.count == 5)
    #expect(try visited(["a", "b", "rowid"], "FROM t", connection) == rows)
    #expect(try visited(["a"], "FROM t WHERE 0", connection) == [])
  }

  /// 127 arguments are what SQLite allows a function.
  @Test(arguments: [1, 100, 101, 128, 500])
  func `takes any number of columns`(count: Int) throws {
    let columns = (0..<count).map { "a + \($0)" }
    let found = try visited(columns, "FROM t WHERE rowid = 1", try connection())
    #expect(found == [(0..<count).map { .integer(Int64($0) + 1) }])
  }

  @Test func `binds values`() throws {
    var keys: [Int64] = []
    try connection().visitRows(
      ["rowid"], "FROM t WHERE rowid BETWEEN ?1 AND ?2", [.integer(2), .integer(4)]
    ) { keys.append($0[0].bits) }
    #expect(keys == [2, 3, 4])
  }

  @Test func `may visit other rows, and go on`() throws {
    let connection = try connection()
    var pairs: [[Int64]] = []
    try connection.visitRows(["rowid"], "FROM t WHERE rowid < 4") { outer in
      let key = outer[0].bits
      try connection.visitRows(["rowid"], "FROM t WHERE rowid < 3") { inner in
        pairs.append([key, inner[0].bits])
      }
    }
    #expect(pairs == [[1, 1], [1, 2], [2, 1], [2, 2], [3, 1], [3, 2]])
  }

  @Test(arguments: [1, 200])
  func `ends with the error of the visitor, and can be made again`(columns: Int) throws {
    let connection = try connection()
    let list = Array(repeating: "rowid", count: columns)
    var count = 0
    #expect(throws: Stop()) {
      try connection.visitRows(list, "FROM t") { _ in
        count += 1
        if count == 2 { throw Stop() }
      }
    }
    #expect(count == 2)
    #expect(try visited(["rowid"], "FROM t", connection).count == 5)
  }

  @Test func `tells what SQLite says`() throws {
    let error = #expect(throws: SQLiteError.self) {
      try connection().visitRows(["a"], "FROM nothing") { _ in }
    }
    #expect(error?.isOfContent == true)
  }
}
