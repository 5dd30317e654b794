import GodwitSQLite
import Testing

@Suite struct `A statement` {
  @Test func `gives back what was bound`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    let statement = try database.prepare("SELECT ?1, typeof(?1)")
    let cases: [(SQLiteValue, type: String)] = [
      (.null, "null"), (.integer(.min), "integer"), (.real(-0.5), "real"),
      (.text("é漢"), "text"), (.text(""), "text"),  // empty is not NULL
      (.blob([0, 255]), "blob"), (.blob([]), "blob"),
    ]
    for (value, type) in cases {
      try statement.bind(1, value)
      #expect(try statement.step())
      #expect(statement.value(0) == value)
      #expect(statement.value(1) == .text(type))
      statement.reset()
      try withRaw([value]) { raw, _ in
        try statement.bind(1, raw[0])
        #expect(try statement.step())
        #expect(statement.value(0) == value)
        #expect(statement.value(1) == .text(type))
        statement.reset()
        try statement.bind(1, SQLiteValue.null)
      }
    }
  }

  @Test(arguments: [UInt64(1), 2]) func `reads rows as they were written`(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("CREATE TABLE t (a, b, c, d, e)")
    let insert = try database.prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5)")
    let rows = (0..<200).map { _ in (0..<5).map { _ in drawValue(from: &generator) } }
    for row in rows {
      try withRaw(row) { raw, count in
        for column in 0..<count { try insert.bind(Int32(column + 1), raw[column]) }
        try insert.run()
      }
    }
    let select = try database.prepare("SELECT rowid, a, b, c, d, e FROM t ORDER BY rowid")
    #expect(select.columnCount == 6)
    let raw = UnsafeMutablePointer<RawValue>.allocate(capacity: 5)
    defer { raw.deallocate() }
    for (index, row) in rows.enumerated() {
      #expect(try select.step())
      #expect(select.int64(0) == Int64(index + 1))
      select.read(into: raw, from: 1, count: 5)
      let expected = row.map { $0.number?.isNaN == true ? SQLiteValue.null : $0 }
      #expect((0..<5).map { SQLiteValue(raw[$0]) } == expected)
    }
    #expect(try !select.step())
  }

  @Test func `reads a UTF-16 database as UTF-8`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute(
      "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES ('é漢🍲')")
    #expect(try database.rows("SELECT a FROM t") == [[.text("é漢🍲")]])
  }

  @Test(arguments: ["", "  -- nothing", "SELECT 1; SELECT 2", "SELECT 1; x"])
  func `is exactly one`(sql: String) throws {
    let database = try Connection(path: ":memory:", mode: .create)
    #expect(throws: SQLiteError.self) { try database.prepare(sql) }
  }

  @Test func `may end with a semicolon and spaces`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    #expect(try database.rows("SELECT 7;\n ") == [[.integer(7)]])
  }

  @Test func `refuses a parameter that it does not have`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    let error = #expect(throws: SQLiteError.self) {
      try database.prepare("SELECT ?1").bind(2, 5)
    }
    #expect(error?.codeName == "SQLITE_RANGE")
  }
}
