import Foundation
import GodwitSQLite
import Testing

@testable import GodwitPersistentStore

/// A file with tables, indexes, overflow pages and free pages.
private struct DrawnFile {
  private let folder: TemporaryFolder
  let path: String

  init(pageSize: Int, autoVacuum: Int, rows: Int = 400, more sql: String = "") throws {
    folder = try TemporaryFolder()
    path = folder.path.appending("t.sqlite").string
    let connection = try Connection(path: path, mode: .create)
    try connection.execute(
      """
      PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(autoVacuum);
      CREATE TABLE t (id INTEGER PRIMARY KEY, few INTEGER, mixed, text VARCHAR, real FLOAT);
      CREATE INDEX few ON t (few DESC, text);
      CREATE INDEX mixed ON t (mixed);
      CREATE UNIQUE INDEX text ON t (text, id);
      CREATE INDEX real ON t (real);
      CREATE TABLE u (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
      CREATE TABLE gone (a);
      WITH n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO t
      SELECT i * 3, i % 4,
             CASE (i * 48271) % 1009 % 5 WHEN 0 THEN NULL WHEN 1 THEN i WHEN 2 THEN i + 0.5
             WHEN 3 THEN 't' || i ELSE zeroblob(i % 9 * \(pageSize / 8)) END,
             CASE WHEN i % 7 THEN substr('abcdefg', i % 7, 2) || ((i * 7919) % 500) END,
             CASE i % 3 WHEN 0 THEN i WHEN 1 THEN i / 3.0 END
        FROM n;
      INSERT INTO u SELECT id % 50, id FROM t;
      INSERT INTO gone SELECT zeroblob(300) FROM t;
      DELETE FROM t WHERE id % 7 = 3;
      UPDATE t SET text = NULL WHERE id % 5 = 1;
      DROP TABLE gone;
      \(sql)
      """)
    try connection.close()
  }

  /// What this and SQLite say of the file; nil for a file that SQLite cannot read at all.
  func answers() throws -> (raw: Bool, sqlite: Bool)? {
    guard let connection = try? Connection(path: path, mode: .immutable) else { return nil }
    let raw = try? RawTrees(connection)?.areWhole()
    let rows = try? connection.rows("PRAGMA integrity_check(1)")
    guard let rows else { return (raw ?? false, false) }
    return (raw ?? false, rows.compactMap { $0.first?.text } == ["ok"])
  }
}

/// SplitMix64.
private struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

@Suite struct `A check of all b-trees` {
  private static let shapes: [(pageSize: Int, autoVacuum: Int)] = [
    (512, 0), (512, 1), (512, 2), (1024, 2), (4096, 0), (4096, 2), (65_536, 2),
  ]

  @Test(arguments: 0..<shapes.count)
  func `proves sound files sound`(shape: Int) throws {
    let (pageSize, autoVacuum) = Self.shapes[shape]
    for rows in [0, 1, 30, 400, 3000] {
      let file = try DrawnFile(pageSize: pageSize, autoVacuum: autoVacuum, rows: rows)
      let answers = try #require(try file.answers())
      #expect(answers == (true, true), "\(rows) rows")
    }
  }

  @Test func `calls nothing whole that SQLite's full check does not`() throws {
    var generator = SeededGenerator(state: 11)
    var (accepted, refused) = (0, 0)
    for (pageSize, autoVacuum) in Self.shapes where pageSize <= 4096 {
      let file = try DrawnFile(pageSize: pageSize, autoVacuum: autoVacuum)
      let url = URL(filePath: file.path)
      let sound = try Data(contentsOf: url)
      for _ in 0..<250 {
        var bytes = sound
        var changes: [(Int, UInt8)] = []
        // Headers of pages, where structure is, more often than chance would have it.
        for _ in 0..<Int.random(in: 1...2, using: &generator) {
          let page = Int.random(in: 0..<bytes.count / pageSize, using: &generator)
          let limit = Bool.random(using: &generator) ? 24 : pageSize
          let place = page * pageSize + Int.random(in: 0..<limit, using: &generator)
          let value =
            Bool.random(using: &generator)
            ? bytes[place] &+ 1 : UInt8.random(in: 0...255, using: &generator)
          bytes[place] = value
          changes.append((place, value))
        }
        try bytes.write(to: url)
        guard let answers = try file.answers() else { continue }
        #expect(!answers.raw || answers.sqlite, "\(pageSize) \(autoVacuum) \(changes)")
        if answers.raw { accepted += 1 } else { refused += 1 }
      }
    }
    #expect(accepted > 100 && refused > 300)
  }

  @Test(arguments: [0, 2])
  func `ends where the list of free pages leads back to itself`(autoVacuum: Int) throws {
    let file = try DrawnFile(pageSize: 1024, autoVacuum: autoVacuum)
    var bytes = try Data(contentsOf: URL(filePath: file.path))
    let first = bytes[32..<36].reduce(0) { $0 << 8 | Int($1) }
    try #require(first > 0)
    // The trunk page has no other page, and the header counts as many as a number can say.
    let trunk = (first - 1) * 1024
    bytes.replaceSubrange(trunk..<trunk + 4, with: bytes[32..<36])
    bytes.replaceSubrange(trunk + 4..<trunk + 8, with: [0, 0, 0, 0])
    bytes.replaceSubrange(36..<40, with: [0xFF, 0xFF, 0xFF, 0xFF])
    try bytes.write(to: URL(filePath: file.path))
    let answers = try #require(try file.answers())
    #expect(answers == (false, false))
  }

  @Test(arguments: [
    (
      "two roots of one",
      "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'few') WHERE name = 'mixed'"
    ),
    (
      "a number in a column of text",
      "UPDATE sqlite_master SET sql = replace(sql, 'few INTEGER', 'few TEXT') WHERE name = 't'"
    ),
    (
      "NULL where none may be",
      "UPDATE sqlite_master SET sql = replace(sql, 'mixed,', 'mixed NOT NULL,') WHERE name = 't'"
    ),
    (
      "an index of another column",
      "UPDATE sqlite_master SET sql = 'CREATE INDEX few ON t (real DESC, text)' WHERE name = 'few'"
    ),
    (
      "an index in another order",
      "UPDATE sqlite_master SET sql = 'CREATE INDEX few ON t (few, text)' WHERE name = 'few'"
    ),
    ("a page that nobody uses", "DELETE FROM sqlite_master WHERE name = 'mixed'"),
  ])
  func `sees what only the schema tells`(what: String, sql: String) throws {
    let file = try DrawnFile(pageSize: 1024, autoVacuum: 0)
    let connection = try Connection(path: file.path, mode: .readWrite)
    try connection.execute("PRAGMA writable_schema = ON; \(sql)")
    try connection.close()
    let answers = try #require(try file.answers())
    #expect(answers == (false, false), "\(what)")
  }

  @Test(.enabled(if: Corpus.isPresent))
  func `proves real stores sound where SQLite does, and no others`() throws {
    let folder = try TemporaryFolder()
    var proven = 0
    for name in Corpus.stores {
      // With its WAL, a store is another.
      guard
        let store = try? SourceStore(
          path: Corpus.path(name), snapshotFolder: folder.path.appending("\(UUID())"))
      else { continue }
      let sqlite = try? store.connection.rows("PRAGMA integrity_check(1)").first?.first?.text
      let raw = try? RawTrees(store.connection)?.areWhole()
      #expect(raw != true || sqlite == "ok", "\(name)")
      if raw == true {
        proven += 1
      } else {
        // Written by an SQLite of before 2010, which did not say how many pages there are.
        #expect(sqlite != "ok" || name.hasSuffix("RecipeData/Recipes.sqlite"), "\(name)")
      }
    }
    #expect(proven > Corpus.stores.count / 2)
  }

  @Test func `asks SQLite about tables of other kinds, and goes on`() throws {
    let file = try DrawnFile(
      pageSize: 4096, autoVacuum: 2,
      more: """
        CREATE TABLE w (a TEXT PRIMARY KEY, b UNIQUE) WITHOUT ROWID;
        INSERT INTO w SELECT id, id FROM t;
        CREATE TABLE c (a CHECK (a > 0), b NOT NULL); INSERT INTO c VALUES (1, 2);
        CREATE INDEX part ON c (a) WHERE a > 3;
        CREATE TABLE d (a); INSERT INTO d VALUES (1);
        ALTER TABLE d ADD COLUMN b DEFAULT 7; CREATE INDEX e ON d (b);
        CREATE TABLE s (a INT) STRICT; INSERT INTO s VALUES (1);
        """)
    let answers = try #require(try file.answers())
    #expect(answers == (true, true))
  }

  /// An index over more columns goes by the name of one over fewer: SQLite looks at the entries' first values.
  @Test(arguments: [
    ("real", "real, id, few", ""), ("real", "real, id, few", " WHERE real > 3"),
    ("real + 1", "real + 1, id, few", ""), ("real COLLATE NOCASE", "real COLLATE NOCASE, id", ""),
  ])
  func `tells entries with a value too many, which SQLite's check takes for sound`(
    declared: String, made: String, condition: String
  ) throws {
    let file = try DrawnFile(
      pageSize: 1024, autoVacuum: 0, more: "CREATE INDEX more ON t (\(made))\(condition)")
    let connection = try Connection(path: file.path, mode: .readWrite)
    #expect(try connection.isWhole())
    try connection.execute(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = 'CREATE INDEX more ON t (\(declared))\(condition)'
       WHERE name = 'more'
      """)
    try connection.close()
    let answers = try #require(try file.answers())
    #expect(answers == (false, true))
    let damaged = try Connection(path: file.path, mode: .immutable)
    let rows = try damaged.rows("SELECT count(*) FROM t NOT INDEXED\(condition)")
    let odd = try RawTrees(damaged)?.oddEntries() ?? []
    #expect(odd.map(\.name) == ["more"] && odd.map(\.count) == [rows[0][0].integer])
    #expect(try RawTrees(damaged)?.oddEntries(of: "u").isEmpty == true)
    #expect(try !damaged.isWhole())
  }

  @Test func `proves no index with a type in more bytes than it takes`() throws {
    let file = try DrawnFile(
      pageSize: 1024, autoVacuum: 0, more: "CREATE TABLE p (a INTEGER); CREATE INDEX i ON p (a)")
    let connection = try Connection(path: file.path, mode: .readWrite)
    try connection.execute("INSERT INTO p VALUES (300), (400), (500)")
    let root = try #require(
      try connection.rows("SELECT rootpage FROM sqlite_master WHERE name = 'i'")[0][0].integer)
    try connection.close()
    let before = try #require(try file.answers())
    #expect(before == (true, true))
    let url = URL(filePath: file.path)
    var bytes = [UInt8](try Data(contentsOf: url))
    let page = (Int(root) - 1) * 1024
    // The last entry is the lowest on the page: its size, the header's size, the types, the values.
    let entry = page + Int(bytes[page + 5]) << 8 + Int(bytes[page + 6])
    #expect(bytes[entry..<entry + 4] == [6, 3, 2, 1])
    bytes.replaceSubrange(entry - 1..<entry + 4, with: [7, 4, 0x80, 2, 1])
    bytes[page + 6] -= 1
    bytes[page + 8 + 2 * 2 + 1] -= 1
    try Data(bytes).write(to: url)
    #expect(try file.answers()?.raw == false)
    let damaged = try Connection(path: file.path, mode: .immutable)
    #expect(try RawTrees(damaged)?.oddEntries().map(\.count) == [1])
    #expect(try !damaged.isWhole())
  }

  @Test func `counts rows with more values than columns`() throws {
    let file = try DrawnFile(pageSize: 1024, autoVacuum: 0)
    let connection = try Connection(path: file.path, mode: .readWrite)
    try connection.execute(
      """
      CREATE TABLE wide (a, b, c); INSERT INTO wide VALUES (1, 2, 3), (4, 5, NULL);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = 'CREATE TABLE wide (a, b)' WHERE name = 'wide'
      """)
    try connection.close()
    let answers = try #require(try file.answers())
    #expect(answers == (false, true))
    let found = try RawTrees(Connection(path: file.path, mode: .immutable))?.surplusValues() ?? []
    #expect(found.map(\.table) == ["wide"] && found.map(\.count) == [2])
  }

  @Test(arguments: [
    ("a partial index", "CREATE INDEX x ON u (a) WHERE a > 3"),
    ("an expression", "CREATE INDEX x ON u (a + 1)"),
    ("another collation", "CREATE INDEX x ON u (a COLLATE NOCASE)"),
    ("no row id", "DROP TABLE u; CREATE TABLE u (a INTEGER PRIMARY KEY, b UNIQUE) WITHOUT ROWID"),
    ("a hidden row id", "DROP TABLE u; CREATE TABLE u (rowid TEXT UNIQUE)"),
  ])
  func `leaves indexes that it does not cover to SQLite's own check`(why: String, sql: String)
    throws
  {
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute("CREATE TABLE u (a INTEGER, UNIQUE (a))")
    #expect(try TableIndex.all(of: "u", in: connection)?.count == 1)
    try connection.execute(sql)
    #expect(try TableIndex.all(of: "u", in: connection) == nil, "\(why)")
  }
}
