import Foundation
import GodwitSQLite
import Testing

@Suite struct `A connection` {
  @Test(arguments: ["plain.db", "with space.db", "50%.db", "a?mode=memory.db", "#1.db", "é漢.db"])
  func `opens a path as it is spelled`(name: String) throws {
    let folder = try TemporaryFolder()
    try Connection(path: folder.file(name), mode: .create).execute("CREATE TABLE t (a)")
    #expect(try folder.names() == [name])
    let again = try Connection(path: folder.file(name), mode: .immutable)
    #expect(try again.rows("SELECT name FROM sqlite_master") == [[.text("t")]])
  }

  @Test(arguments: [Connection.Mode.immutable, .readOnly, .readWrite, .create])
  func `does not wait for who writes to a FIFO`(mode: Connection.Mode) throws {
    let folder = try TemporaryFolder()
    #expect(mkfifo(folder.file("pipe.db"), 0o600) == 0)
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: folder.file("pipe.db"), mode: mode)
    }
    #expect(error?.codeName == "SQLITE_CANTOPEN")
  }

  @Test(arguments: [Connection.Mode.immutable, .readOnly, .readWrite])
  func `makes no file unless told to`(mode: Connection.Mode) throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: folder.file("none.db"), mode: mode)
    }
    #expect(error?.codeName == "SQLITE_CANTOPEN")
    #expect(try folder.names() == [])
  }

  @Test(arguments: [
    (
      Definition.table,
      "CREATE TABLE u (a INTEGER PRIMARY KEY AUTOINCREMENT, b UNIQUE, CHECK (length(b) < 9))", true
    ),
    (.table, "CREATE TABLE u (a, b AS (a + 1) STORED, PRIMARY KEY (a)) WITHOUT ROWID;\n", true),
    (.table, "CREATE TABLE u AS SELECT a FROM t", false),
    (.table, "CREATE TEMP TABLE u (a)", false),
    (.table, "CREATE VIRTUAL TABLE u USING rtree(a, b, c)", false),
    (.table, "CREATE VIEW u AS SELECT a FROM t", false),
    (.table, "CREATE TABLE u (a); DELETE FROM t", false),
    (.table, "CREATE INDEX u ON t (a)", false),
    (.index, "CREATE UNIQUE INDEX u ON t (lower(a)) WHERE a IS NOT NULL", true),
    (.index, "CREATE TABLE u (a)", false),
    (.trigger, "CREATE TRIGGER u AFTER INSERT ON t BEGIN UPDATE t SET a = 1; END", true),
    (.trigger, "CREATE TEMP TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END", false),
    (.trigger, "DELETE FROM t", false), (.trigger, "DROP TABLE t", false),
    (.trigger, "ATTACH '/tmp/other.db' AS x", false),
    (.index, "VACUUM INTO '/tmp/other.db'", false),
    (.index, "PRAGMA writable_schema = ON", false), (.table, "INSERT INTO t VALUES (2)", false),
  ])
  func `lets a statement of a store's schema define what it should, and do nothing else`(
    definition: Definition, sql: String, isAllowed: Bool
  ) throws {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES ('x')")
    let before = try connection.rows("SELECT name FROM sqlite_master")
    if isAllowed {
      try connection.define(definition, sql)
      #expect(try connection.rows("SELECT type FROM sqlite_master WHERE name = 'u'").count == 1)
    } else {
      let error = #expect(throws: SQLiteError.self) { try connection.define(definition, sql) }
      // No fault of the volume, and the same the next time.
      #expect(error?.isRefused == true && error?.isOfContent == true)
      #expect(try connection.rows("SELECT name FROM sqlite_master") == before)
    }
    #expect(try connection.rows("SELECT a FROM t") == [[.text("x")]])
    // What we ask for is not asked about.
    try connection.execute("CREATE TABLE own AS SELECT a FROM t; DROP TABLE own")
  }

  @Test func `lets no trigger fire once it is told so`() throws {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(
      """
      CREATE TABLE t (a); CREATE TABLE seen (a);
      CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO seen VALUES (new.a); END;
      INSERT INTO t VALUES (1)
      """)
    connection.disableTriggers()
    try connection.execute("INSERT INTO t VALUES (2)")
    #expect(try connection.rows("SELECT a FROM seen") == [[.integer(1)]])
  }

  @Test func `changes no rows by a file's foreign keys`() throws {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(
      """
      CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE u (b REFERENCES t ON DELETE CASCADE);
      INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); DELETE FROM t
      """)
    #expect(try connection.rows("SELECT b FROM u") == [[.integer(1)]])
  }

  @Test func `refuses an empty path and one with a zero byte`() {
    #expect(throws: SQLiteError.self) { try Connection(path: "", mode: .create) }
    #expect(throws: SQLiteError.self) { try Connection(path: "/tmp/a\0b", mode: .create) }
  }

  @Test(arguments: [(504, true), (505, false)])
  func `says that a path is too long`(size: Int, opens: Bool) throws {
    let folder = try TemporaryFolder()
    var path = folder.file("a")
    while path.utf8.count + 200 < size {
      path += String(repeating: "b", count: 150)
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      path += "/"
    }
    path += String(repeating: "c", count: size - path.utf8.count)
    if opens { return try Connection(path: path, mode: .create).execute("CREATE TABLE t (a)") }
    let error = #expect(throws: SQLiteError.self) { try Connection(path: path, mode: .create) }
    #expect(error.map { "\($0)" }?.contains("SQLite opens none of more than 504") == true)
  }

  @Test func `that is immutable leaves no files beside a WAL database`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("wal.db")
    try Connection(path: path, mode: .create)
      .execute("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    #expect(try folder.names() == ["wal.db"])
    let reader = try Connection(path: path, mode: .immutable)
    #expect(try reader.rows("SELECT a FROM t") == [[.integer(1)]])
    #expect(try folder.names() == ["wal.db"])
    #expect(throws: SQLiteError.self) { try reader.execute("INSERT INTO t VALUES (2)") }
  }

  @Test func `tells a file that is no database`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("text")
    try Data(repeating: 65, count: 4096).write(to: URL(fileURLWithPath: path))
    let error = #expect(throws: SQLiteError.self) {
      try Connection(path: path, mode: .readOnly).rows("SELECT * FROM sqlite_master")
    }
    #expect(error?.isCorruption == true)
    #expect(error?.codeName == "SQLITE_NOTADB")
  }

  @Test func `tells that another one holds the lock`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("busy.db")
    let writer = try Connection(path: path, mode: .create)
    try writer.execute("CREATE TABLE t (a); BEGIN IMMEDIATE")
    let other = try Connection(path: path, mode: .readWrite, busyTimeoutMilliseconds: 0)
    let error = #expect(throws: SQLiteError.self) { try other.execute("INSERT INTO t VALUES (1)") }
    #expect(error?.isBusy == true)
  }

  @Test func `closes only without living statements`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    do {
      let statement = try database.prepare("SELECT 1")
      let error = #expect(throws: SQLiteError.self) { try database.close() }
      #expect(error?.isBusy == true)
      #expect(try statement.step())
    }
    try database.close()
    try database.close()
    let error = #expect(throws: SQLiteError.self) { try database.execute("SELECT 1") }
    #expect(error?.codeName == "SQLITE_MISUSE")
  }

  @Test func `rolls a transaction back when its body throws`() throws {
    struct Stop: Error {}
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("CREATE TABLE t (a)")
    #expect(throws: Stop.self) {
      try database.transaction {
        try database.execute("INSERT INTO t VALUES (1)")
        throw Stop()
      }
    }
    try database.transaction { try database.execute("INSERT INTO t VALUES (2)") }
    #expect(try database.rows("SELECT a FROM t") == [[.integer(2)]])
    #expect(!database.isInTransaction)
    #expect(database.changes == 1)
    #expect(database.lastInsertRowID == 1)
  }

  @Test func `stands in for functions that triggers call`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("CREATE TABLE t (a)")
    try database.registerFunctionStubs(["NSCoreDataExample"])
    try database.execute(
      """
      CREATE TRIGGER r AFTER INSERT ON t
      BEGIN
        UPDATE t SET a = NSCoreDataExample('x', NEW.a) WHERE rowid = NEW.rowid;
      END
      """)
    try database.execute("INSERT INTO t VALUES (1)")
    #expect(try database.rows("SELECT a FROM t") == [[.null]])
  }

  @Test func `stops a statement when the check says so`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    let endless =
      "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    var asked = 0
    database.setCancelCheck(everyInstructions: 100) {
      asked += 1
      return asked == 3
    }
    let error = #expect(throws: SQLiteError.self) { try database.execute(endless) }
    #expect(error?.isInterrupted == true)
    #expect(asked == 3)
    database.setCancelCheck(nil)
    #expect(try database.rows("SELECT 1") == [[.integer(1)]])
  }

  @Test func `takes no name for a text`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    #expect(throws: SQLiteError.self) { try database.rows("SELECT \"b\" FROM t") }
    // What stores declare was written under the old rule, and stays readable.
    try database.execute("CREATE TABLE u (a CHECK (a <> \"b\"))")
    #expect(try database.rows("SELECT a FROM u").isEmpty)
  }

  @Test(arguments: [
    (sql: "CAST(x'435245415445205441424c45207420282261ff222c206229' AS TEXT)", isText: false),
    ("'CREATE TABLE t (\"a\u{FFFD}\", b)'", true), ("'CREATE TABLE t (\"ä\", b)'", true),
  ])
  func `calls a schema damaged that is not UTF-8`(sql: String, isText: Bool) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a.sqlite")
    try Connection(path: path, mode: .create).execute(
      """
      CREATE TABLE t (a, b); PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = \(sql)
      """)
    let database = try Connection(path: path, mode: .immutable)
    do {
      #expect(try database.shape(of: "t")?.columns.count == 2 && isText)
    } catch let error as SQLiteError {
      #expect(error.isCorruption && !isText, "\(error)")
    }
  }

  /// SQLite reads these columns as text, and goes by the statement.
  @Test(arguments: [
    ("type = CAST(type AS BLOB)", true), ("name = CAST(name AS BLOB)", true),
    ("tbl_name = CAST(tbl_name AS BLOB)", true), ("sql = CAST(sql AS BLOB)", true),
    ("rootpage = CAST(rootpage AS BLOB)", true),
    ("name = 'T' WHERE name = 't'", false), ("name = NULL WHERE name = 't'", false),
    ("type = 'TABLE' WHERE name = 't'", false), ("type = NULL WHERE name = 'i'", false),
    ("name = 'I' WHERE name = 'i'", false), ("tbl_name = 'u' WHERE name = 'i'", false),
    ("sql = CAST(x'435245415445205441424c45207428612c2062ff29' AS BLOB) WHERE name = 't'", false),
  ])
  func `reads a schema as SQLite does, or calls it damaged`(change: String, isRead: Bool) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a.sqlite")
    try Connection(path: path, mode: .create).execute(
      """
      CREATE TABLE t (a, b); CREATE INDEX i ON t (a); CREATE TABLE u (c PRIMARY KEY) WITHOUT ROWID;
      CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER w AFTER INSERT ON t BEGIN SELECT 1; END;
      PRAGMA writable_schema = ON; UPDATE sqlite_master SET \(change)
      """)
    let database = try Connection(path: path, mode: .immutable)
    do {
      #expect(
        try database.schemaRows().map(\.type) == ["table", "index", "table", "view", "trigger"])
      #expect(try database.shape(of: "t")?.indexes.map(\.name) == ["i"])
      #expect(try database.rootPage(of: "i") != nil && isRead)
    } catch let error as SQLiteError {
      #expect(error.isCorruption && !isRead, "\(error)")
    }
  }

  @Test(arguments: [(literal: 8_000_000, isRead: true), (8_400_000, false)])
  func `reads no statement of a schema that has more than 16 MiB, and names it`(
    literal: Int, isRead: Bool
  ) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a.sqlite")
    try Connection(path: path, mode: .create).execute(
      """
      CREATE TABLE t (a); PRAGMA writable_schema = ON;
      INSERT INTO sqlite_master
      SELECT 'view', 'long', 'long', 0, printf('CREATE VIEW long AS SELECT %Q', hex(zeroblob(\(literal))))
      """)
    let database = try Connection(path: path, mode: .immutable)
    do {
      #expect(try database.rows("SELECT count(*) FROM long") == [[.integer(1)]] && isRead)
    } catch let error as SQLiteError {
      #expect(error.isCorruption && error.message.contains("(long)") && !isRead, "\(error)")
    }
  }

  /// Of a table with the longest statement there may be, one that names its columns twice is longer.
  @Test func `takes a longer statement that was made of a schema`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    let names = (0..<1_000).map { "\"\($0)" + String(repeating: "n", count: 9_000) + "\"" }
      .joined(separator: ", ")
    try database.execute("CREATE TABLE a (\(names)); CREATE TABLE b (\(names))")
    try database.execute("INSERT INTO a (\(names)) SELECT \(names) FROM b")
    #expect(
      try database.prepare("INSERT INTO a (\(names)) SELECT \(names) FROM b").columnCount == 0)
  }

  @Test func `keeps to its limits`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    database.setLengthLimit(1000)
    let error = #expect(throws: SQLiteError.self) {
      try database.rows("SELECT zeroblob(2000)")
    }
    #expect(error?.codeName == "SQLITE_TOOBIG")
  }
}

@Suite struct `An SQLite error` {
  @Test func `keeps the extended code, the message and the statement`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("CREATE TABLE ZTRADE (ZAMOUNT INTEGER NOT NULL, ZKEY UNIQUE)")
    let insert = try database.prepare("INSERT INTO ZTRADE\n     VALUES (?1, ?2)")
    try insert.bind(2, .text("a secret"))
    let error = #expect(throws: SQLiteError.self) { try insert.step() }
    #expect(
      error?.description
        == "SQLite error 1299 (SQLITE_CONSTRAINT_NOTNULL): NOT NULL constraint failed: "
        + "ZTRADE.ZAMOUNT, in INSERT INTO ZTRADE VALUES (?1, ?2).")
    try insert.bind(1, 1)
    try insert.run()
    let second = #expect(throws: SQLiteError.self) { try insert.step() }
    #expect(second?.isConstraintUnique == true)
    #expect(second?.description.contains("secret") == false)
  }

  @Test func `tells a full database`() throws {
    let database = try Connection(path: ":memory:", mode: .create)
    try database.execute("PRAGMA max_page_count = 2; CREATE TABLE t (a)")
    let error = #expect(throws: SQLiteError.self) {
      try database.execute("INSERT INTO t VALUES (zeroblob(100000))")
    }
    #expect(error?.isOutOfSpace == true)
  }

  @Test(arguments: [
    (code: Int32(1), name: "SQLITE_ERROR"),
    (522, "SQLITE_IOERR_SHORT_READ"),
    (516, "SQLITE_ABORT_ROLLBACK"),
    (8714, "SQLITE_IOERR_IN_PAGE"),
    (267, "SQLITE_CORRUPT_VTAB"),
    (28, "SQLITE_WARNING"),
    (99, "SQLITE_99"),
    (-1, "SQLITE_-1"),
  ])
  func `has its name in SQLite's documentation`(code: Int32, name: String) {
    let error = SQLiteError.failed(code: code, message: "", statement: "", database: "")
    #expect(error.codeName == name)
  }
}

@Suite struct `An identifier` {
  @Test(arguments: [
    (name: "ZTRADE", quoted: "\"ZTRADE\""), ("", "\"\""), ("a\"b", "\"a\"\"b\""),
    ("\"\u{301}", "\"\"\"\u{301}\""),  // a quote with an accent is a quote all the same
  ])
  func `is quoted`(name: String, expected: String) {
    #expect(Array(quoted(name).utf8) == Array(expected.utf8))
  }
}
