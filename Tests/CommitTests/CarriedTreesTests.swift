import Foundation
import GodwitPages
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPlanning

@Suite struct `Carried trees` {
  /// Pages of these sizes, with so many bytes that are not SQLite's; where there are more than SQLite
  /// itself would ask for, it reads the source.
  @Test(
    arguments: [
      (512, 0), (1024, 0), (4096, 0), (4096, 32), (16384, 0), (65536, 0), (4096, 40), (512, 32),
    ])
  func `give what SQLite would carry`(pageSize: Int, reserved: Int) throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    try makeSource(fixture, pageSize: pageSize, reserved: reserved)
    let other = fixture.scratch.path.appending("other.sqlite")
    let store = try fixture.assembled()
    try StoreAssembly(plan: fixture.plan, run: fixture.run, usesPages: false).assemble(at: other)
    let reference = try Connection(path: other.string, mode: .readOnly)
    for sql in [
      "SELECT * FROM ZCARRIED ORDER BY Z_PK",
      "SELECT Z_PK, ZA FROM ZCARRIED INDEXED BY ZCARRIED_ZA_INDEX ORDER BY ZA, Z_PK",
      "SELECT Z_PK, ZB FROM ZCARRIED INDEXED BY Z_Carried_byB ORDER BY ZB, Z_PK",
      "SELECT rowid, * FROM Z_1NEW ORDER BY rowid",
      "SELECT * FROM Z_1NEW INDEXED BY Z_1NEW_Z_2RIGHT_INDEX ORDER BY 2, 1",
      "PRAGMA integrity_check",
    ] {
      let rows = try store.rows(sql)
      #expect(try rows == reference.rows(sql))
      #expect(!rows.isEmpty)
    }
    #expect(try store.rows("PRAGMA integrity_check") == [[.text("ok")]])
    #expect(try store.rows("PRAGMA freelist_count") == [[.integer(0)]])
  }

  @Test(arguments: [
    "ZX INTEGER DEFAULT 3", "ZX INTEGER CHECK (ZX < 100)", "ZX INTEGER NOT NULL", "ZX VARCHAR",
    "ZX INTEGER COLLATE NOCASE", "ZX INTEGER UNIQUE ON CONFLICT IGNORE",
  ])
  func `are not made of columns that keep other values`(column: String) throws {
    let fixture = try AssemblyFixture()
    let source = try Connection(path: ":memory:", mode: .create)
    try source.execute(
      """
      CREATE TABLE ZOLD (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, \(column),
        ZY VARCHAR)
      """)
    let table = try #require(
      try DestinationTables.of(fixture.plan).covered(fixture.plan.tables[0]))
    #expect(try carried(table, source) == nil)
  }

  @Test func `bring the entries of equal indexes and make the others of rows`() throws {
    let fixture = try AssemblyFixture()
    let source = try Connection(path: fixture.source.string, mode: .immutable)
    let table = try #require(
      try DestinationTables.of(fixture.plan).covered(fixture.plan.tables[0]))
    let trees = try #require(try carried(table, source))
    #expect(trees.indexes.table.indexes.map(\.name) == ["Z_Carried_byB"])
    var names: [String] = []
    try trees.indexes.forEach {
      names.append($0.name)
    } entry: { _ in
    } end: {
    }
    #expect(names == ["ZCARRIED_ZA_INDEX"])
  }

  /// The indexes of a computed table that are made of its rows, where it keeps so many columns.
  @Test(arguments: [
    (["ZX", "ZY"], "ZX INTEGER", ["Z_Carried_byB"]),
    (["ZX", nil], "ZX INTEGER", ["Z_Carried_byB"]),
    ([nil, "ZY"], "ZX INTEGER", nil), (["ZY", "ZX"], "ZX INTEGER", nil), ([], "ZX INTEGER", nil),
    (["ZX", "ZY"], "ZX VARCHAR", nil), (["ZX", "ZY"], "ZX INTEGER DEFAULT 1", nil),
  ])
  func `bring the entries of indexes over values that rows keep`(
    kept: [String?], column: String, made: [String]?
  ) throws {
    let fixture = try AssemblyFixture()
    let source = try Connection(path: fixture.scratch.path.appending("s").string, mode: .create)
    try source.execute(
      """
      CREATE TABLE ZOLD (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZGONE BLOB, Z_OPT INTEGER,
        \(column), ZY VARCHAR);
      CREATE INDEX ZOLD_ZX_INDEX ON ZOLD (ZX);
      CREATE UNIQUE INDEX ZOLD_ZY_INDEX ON ZOLD (ZY);
      CREATE INDEX ZOLD_ZY_DOWN ON ZOLD (ZY DESC);
      """)
    try source.close()
    let read = try Connection(path: fixture.scratch.path.appending("s").string, mode: .immutable)
    var plan = fixture.plan.tables[0]
    plan.way = .computed
    plan.keptColumns = kept
    let table = try #require(try DestinationTables.of(fixture.plan).covered(plan))
    let found = try CarriedIndexes(table, of: plan, in: read)
    #expect(found?.table.indexes.map(\.name) == made)
  }

  /// Pages that cannot be read raw are SQLite's to read, and to complain of.
  @Test func `leave damage to SQLite`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let source = try Connection(path: fixture.source.string, mode: .immutable)
    let root = try #require(try source.rootPage(of: "ZOLD_ZX_INDEX"))
    try source.close()
    let file = try FileHandle(forUpdating: URL(filePath: fixture.source.string))
    try file.seek(toOffset: UInt64(root - 1) * 4096)
    try file.write(contentsOf: [99])
    try file.close()
    let error = #expect(throws: SQLiteError.self) {
      try fixture.assembly.assemble(at: fixture.destination)
    }
    #expect(error?.isCorruption == true)
  }

  private func carried(_ table: CoveredTable, _ source: Connection) throws -> CarriedTrees? {
    try CarriedTrees(
      table, from: "ZOLD", key: "Z_PK", columns: ["Z_ENT", "Z_OPT", "ZX", "ZY"], in: source)
  }

  /// Rows of all sizes, long ones with pages of their own, some of them deleted again.
  private func makeSource(_ fixture: AssemblyFixture, pageSize: Int, reserved: Int) throws {
    try FileManager.default.removeItem(atPath: fixture.source.string)
    let empty = try Connection(path: fixture.source.string, mode: .create)
    try empty.execute("PRAGMA page_size = \(pageSize); CREATE TABLE t (a); DROP TABLE t")
    try empty.close()
    // Bytes are reserved by the header, and the schema's empty page ends before them.
    let file = try FileHandle(forUpdating: URL(filePath: fixture.source.string))
    let end = pageSize - reserved
    for (offset, bytes) in [(20, [reserved]), (105, [end >> 8 & 255, end & 255])] {
      try file.seek(toOffset: UInt64(offset))
      try file.write(contentsOf: bytes.map { UInt8($0) })
    }
    try file.close()
    let source = try Connection(path: fixture.source.string, mode: .readWrite)
    try source.execute(
      """
      CREATE TABLE ZOLD ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZX INTEGER, ZY VARCHAR );
      CREATE INDEX ZOLD_ZX_INDEX ON ZOLD (ZX);
      INSERT INTO ZOLD
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      SELECT i * 3 - 4000, 1, 1, CASE WHEN i % 5 THEN i % 7 ELSE i * 1234567890 END,
             CASE i % 50 WHEN 0 THEN NULL WHEN 1 THEN hex(zeroblob(i * 3)) ELSE 'row ' || i END FROM n;
      CREATE TABLE Z_1OLD ( Z_1L INTEGER, Z_2R INTEGER, PRIMARY KEY (Z_1L, Z_2R) );
      CREATE INDEX Z_1OLD_Z_2R_INDEX ON Z_1OLD (Z_2R, Z_1L);
      INSERT INTO Z_1OLD SELECT Z_PK, Z_PK % 5 FROM ZOLD;
      DELETE FROM ZOLD WHERE Z_PK % 11 = 0;
      DELETE FROM Z_1OLD WHERE Z_1L % 13 = 0;
      CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY AUTOINCREMENT, ZENTITYID INTEGER, ZNOTE VARCHAR);
      """)
    #expect(try source.rows("PRAGMA page_size") == [[.integer(Int64(pageSize))]])
    try source.close()
  }
}
