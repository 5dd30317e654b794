import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

@Suite struct `Tables that an application added to its store` {
  /// One name to Swift, two to SQLite.
  private static let spellings = ["Caf\u{E9}", "Cafe\u{301}"]

  private static let added = """
    CREATE TABLE "\(spellings[0])" (a INTEGER, b TEXT);
    CREATE TABLE "\(spellings[1])" ("\(spellings[0])" TEXT, "\(spellings[1])" TEXT);
    CREATE INDEX "i\(spellings[0])" ON "\(spellings[0])" (a);
    CREATE INDEX "i\(spellings[1])" ON "\(spellings[1])" ("\(spellings[1])", "\(spellings[0])");
    INSERT INTO "\(spellings[0])" VALUES (1, 'one'), (2, 'two');
    INSERT INTO "\(spellings[1])" VALUES ('x', 'y'), ('z', 'x'), ('y', 'z');
    CREATE TABLE EXCHANGES (a); CREATE INDEX byExchange ON EXCHANGES (a);
    INSERT INTO EXCHANGES VALUES (3);
    CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
    CREATE INDEX ACHANGE_ZENTITY ON ACHANGE (ZENTITY);
    """

  private func added(_ folder: PipelineFolder, _ store: String) throws -> [String] {
    let file = try Connection(path: folder.path(store), mode: .immutable)
    let names = Self.spellings + ["EXCHANGES"]
    let schema = try file.drawn(
      """
      SELECT name, sql FROM sqlite_master
       WHERE tbl_name IN (\(names.map { "'\($0)'" }.joined(separator: ", "))) ORDER BY name
      """)
    let sound = try file.drawn("PRAGMA integrity_check")
    return try schema + sound + names.flatMap { try file.drawn("SELECT * FROM \(quoted($0))") }
  }

  private func make(
    _ output: String, of store: String, _ way: [String], _ folder: PipelineFolder
  ) throws {
    var words = [way[0], folder.path(store), "--output", folder.path(output)]
    words += ["--models", folder.path("Orders.xcdatamodeld")]
    if way.last == "mapped" { words += ["--mapping", folder.path("orders.mapping.yaml")] }
    if way.last == "inferred" { words += ["--losses", "allow"] }
    let run = try Godwit.run(words)
    #expect(run.status == 0, "\(run.messages)")
  }

  /// Of which no row is computed before somebody reads it.
  @Test(arguments: [
    ("CREATE TABLE own (a, b AS (hex(zeroblob(a))))", "damaged", "table own"),
    (
      "CREATE TABLE own (a); CREATE INDEX longer ON own (length(hex(zeroblob(a))))", "file",
      "too big"
    ),
  ])
  func `are refused where they compute more than a store holds`(
    sql: String, reason: String, said: String
  ) throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute("\(sql); INSERT INTO own (a) VALUES (700000)")
    try store.close()
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == reason, "\(run.messages)")
    #expect(run.messages.contains(said), "\(run.messages)")
  }

  /// SQLite's own check is blind to both.
  @Test
  func
    `are refused with entries of an index that it does not write, and noted with values behind the columns`()
    throws
  {
    let folder = try PipelineFolder.orders(["a", "b"])
    for (name, sql, changed) in [
      (
        "a", "CREATE INDEX i ON own (d, id, x)",
        "UPDATE sqlite_master SET sql = 'CREATE INDEX i ON own (d)' WHERE name = 'i'"
      ),
      (
        "b", "",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE own (id INTEGER PRIMARY KEY, d TEXT)' "
          + "WHERE name = 'own'"
      ),
    ] {
      let store = try Connection(path: folder.path("stores/\(name).sqlite"), mode: .readWrite)
      try store.execute(
        """
        CREATE TABLE own (id INTEGER PRIMARY KEY, d TEXT, x);
        INSERT INTO own VALUES (1, 'a', 7), (2, 'b', NULL); \(sql);
        PRAGMA writable_schema = ON; \(changed)
        """)
      try store.close()
      #expect(try folder.table("stores/\(name).sqlite", "PRAGMA integrity_check") == ["ok"])
    }
    let index = try Godwit.run(["verify", folder.path("stores/a.sqlite")])
    #expect(index.status == 65 && (index.output + index.messages).contains("an index of own"))
    let values = try Godwit.run(["verify", folder.path("stores/b.sqlite")])
    #expect(values.status == 0 && (values.output + values.messages).contains("more values"))
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == "file", "\(run.messages)")
    #expect(try folder.table("stores/b.sqlite", "SELECT * FROM own") == ["1 a", "2 b"])
  }

  @Test(arguments: [["migrate", "mapped"], ["migrate", "inferred"], ["repair"]])
  func `are carried with their indexes, whatever their names`(way: [String]) throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5);"
        + Self.added)
    try make("stores/b.sqlite", of: "stores/a.sqlite", way, folder)
    let before = try added(folder, "stores/a.sqlite")
    #expect(before.count == 13)
    #expect(try added(folder, "stores/b.sqlite") == before)
  }

  /// SQLite reads the columns of its schema as text, whatever is stored.
  @Test(
    arguments: [["migrate", "mapped"], ["migrate", "inferred"], ["repair"]],
    ["type", "name", "tbl_name", "sql"])
  func `are carried where a text of their schema is stored as a blob`(
    way: [String], column: String
  ) throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY AUTOINCREMENT, a); CREATE INDEX i ON own (a);
      INSERT INTO own (a) VALUES ('x'), ('y'), ('z'); DELETE FROM own WHERE a = 'z';
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET \(column) = CAST(\(column) AS BLOB)
       WHERE name IN ('own', 'i', 'sqlite_sequence')
      """)
    #expect(try folder.table("stores/a.sqlite", "PRAGMA integrity_check") == ["ok"])
    try make("stores/b.sqlite", of: "stores/a.sqlite", way, folder)
    for (query, expected) in [
      ("SELECT * FROM own INDEXED BY i WHERE a > 'a' ORDER BY a", ["1 x", "2 y"]),
      ("SELECT seq FROM sqlite_sequence WHERE name = 'own'", ["3"]),
    ] {
      #expect(try folder.table("stores/b.sqlite", query) == expected)
    }
  }

  /// SQLite goes by the statement, which has the name in other letters.
  @Test func `are refused by their name where the schema gives them two, and can be saved`() throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute(
      """
      CREATE TABLE own (a); INSERT INTO own VALUES (1); PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET name = 'OWN', tbl_name = 'OWN' WHERE name = 'own'
      """)
    try store.close()
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.reason(of: "a") == "damaged", "\(run.messages)")
    #expect(run.messages.contains("disagree about the table OWN"), "\(run.messages)")
    try make("stores/b.sqlite", of: "stores/a.sqlite", ["repair"], folder)
    #expect(try folder.table("stores/b.sqlite", "SELECT a FROM own") == ["1"])
  }

  /// SQLite 3.40 counts its JSON functions among those that a schema should not call, and its quick check
  /// takes columns of the second table for each other.
  @Test(arguments: [["migrate", "mapped"], ["migrate", "inferred"], ["repair"]])
  func `are carried where they use JSON, or a key in another order than the columns`(way: [String])
    throws
  {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      """
      CREATE TABLE cache (body TEXT CHECK (json_valid(body)), title AS (json_extract(body, '$.title')));
      CREATE INDEX byTitle ON cache (json_extract(body, '$.title'));
      INSERT INTO cache VALUES ('{"title":"t"}');
      CREATE TABLE tags (name, item, note, PRIMARY KEY (item, name)) WITHOUT ROWID;
      INSERT INTO tags VALUES ('a', 1, NULL), ('b', 2, 'x')
      """)
    #expect(try Godwit.run(["verify", folder.path("stores/a.sqlite")]).status == 0)
    try make("stores/b.sqlite", of: "stores/a.sqlite", way, folder)
    for (query, expected) in [
      ("SELECT body, title FROM cache", ["{\"title\":\"t\"} t"]),
      ("SELECT name FROM sqlite_master WHERE name = 'byTitle'", ["byTitle"]),
      ("SELECT * FROM tags", ["a 1 -", "b 2 x"]),
    ] {
      #expect(try folder.table("stores/a.sqlite", query) == expected)
      #expect(try folder.table("stores/b.sqlite", query) == expected)
    }
  }

  /// No statement has room for the row id beside so many columns.
  @Test(arguments: [["migrate", "mapped"], ["migrate", "inferred"], ["repair"]], [1_999, 2_000])
  func `are carried where they have as many columns as SQLite makes`(way: [String], count: Int)
    throws
  {
    let folder = try PipelineFolder("total-cost")
    let columns = (1...count).map { "c\($0)" }.joined(separator: ", ")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      """
      CREATE TABLE wide (\(columns)); CREATE INDEX byLast ON wide (c\(count));
      INSERT INTO wide (rowid, c1, c\(count)) VALUES (2, 'a', 1), (4, 'b', 2)
      """)
    try make("stores/b.sqlite", of: "stores/a.sqlite", way, folder)
    let query = "SELECT rowid, c1, c2, c\(count) FROM wide ORDER BY rowid"
    #expect(try folder.table("stores/a.sqlite", query) == ["2 a - 1", "4 b - 2"])
    #expect(try folder.table("stores/b.sqlite", query) == ["2 a - 1", "4 b - 2"])
    #expect(try Godwit.run(["verify", folder.path("stores/b.sqlite")]).status == 0)
  }

  // The first and a later row are gone, so that the rows would get other numbers.
  @Test(arguments: [["migrate", "mapped"], ["migrate", "inferred"], ["repair"]])
  func `keep the row ids that others refer to`(way: [String]) throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/a.sqlite", "Orders.xcdatamodeld/Orders",
      """
      CREATE TABLE foo (a); CREATE TABLE byName (name TEXT PRIMARY KEY);
      CREATE TABLE hidden (rowid TEXT, a); CREATE TABLE own (id INTEGER PRIMARY KEY, a);
      INSERT INTO foo VALUES (1), (2), (3), (4); DELETE FROM foo WHERE a IN (1, 3);
      INSERT INTO byName VALUES ('c'), ('a'), ('b'); DELETE FROM byName WHERE name = 'a';
      INSERT INTO hidden VALUES ('x', 1), ('y', 2), ('z', 3); DELETE FROM hidden WHERE a = 1;
      INSERT INTO own VALUES (3, 'x'), (7, 'y')
      """)
    try make("stores/b.sqlite", of: "stores/a.sqlite", way, folder)
    for (query, expected) in [
      ("SELECT rowid, a FROM foo", ["2 2", "4 4"]),
      ("SELECT rowid, name FROM byName ORDER BY 1", ["1 c", "3 b"]),
      ("SELECT _rowid_, rowid FROM hidden", ["2 y", "3 z"]),
      ("SELECT id, a FROM own", ["3 x", "7 y"]),
    ] {
      #expect(try folder.table("stores/a.sqlite", query) == expected)
      #expect(try folder.table("stores/b.sqlite", query) == expected)
    }
  }
}
