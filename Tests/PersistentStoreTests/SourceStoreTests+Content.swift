import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

/// What lies in it beside the rows of the model.
extension `A source store` {
  @Test func `tells a schema that cannot be parsed`() throws {
    let library = try makeLibrary()
    try library.execute(
      "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = 'CREATE TABLE (' WHERE name = 'ZREADER'"
    )
    #expect(throws: StoreError.self) {
      try SourceStore(path: path, snapshotFolder: snapshots.path)
    }
  }

  /// Views and generated columns could compute without end.
  @Test(arguments: ["", "WHERE Z_UUID < 0"])
  func `asks nothing of a control table that is a view`(condition: String) throws {
    let library = try makeLibrary()
    try library.execute(
      """
      DROP TABLE Z_METADATA;
      CREATE VIEW Z_METADATA AS WITH RECURSIVE n(Z_UUID) AS (
        SELECT 1 UNION ALL SELECT Z_UUID + 1 FROM n)
      SELECT Z_UUID, Z_UUID AS Z_PLIST, Z_UUID AS rowid FROM n \(condition);
      """)
    let store = try library.open(snapshots: snapshots.path)
    #expect(store.metadata.problems == [.unreadableTable("it or a column is missing")])
    #expect(try store.foreignIssues().count == 1)
    let connection = try Connection(path: path.string, mode: .immutable)
    #expect(try StoreMetadata(connection).problems == store.metadata.problems)
    #expect(StoreFiles(path).storedUUID == nil)
  }

  @Test func `lists what is not the model's`() throws {
    let library = try makeLibrary()
    try library.execute(
      """
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
      CREATE INDEX ACHANGE_I ON ACHANGE (ZENTITY);
      CREATE TABLE pairs (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID;
      CREATE TABLE hidden (rowid TEXT);
      CREATE VIRTUAL TABLE search USING fts5(a);
      """)
    let tables = Dictionary(
      uniqueKeysWithValues: try library.open(snapshots: snapshots.path).foreignTables().map {
        ($0.name, $0)
      })
    #expect(tables["ACHANGE"]?.rowIDName == "rowid")
    #expect(tables["ACHANGE"]?.indexes == ["CREATE INDEX ACHANGE_I ON ACHANGE (ZENTITY)"])
    #expect(tables["pairs"]?.rowIDName == nil)
    #expect(tables["hidden"]?.rowIDName == "_rowid_")
    #expect(tables["search"]?.isVirtual == true && tables["search_data"]?.isVirtual == true)
    #expect(tables["ZREADER"] == nil && tables["Z_METADATA"] == nil)
  }

  @Test(arguments: [("STORED", [2]), ("VIRTUAL", [])] as [(String, [Int64])])
  func `names generated columns, and counts what is stored in them`(
    kind: String, counts: [Int64]
  ) throws {
    let library = try makeLibrary()
    try library.execute(
      """
      CREATE TABLE before AS SELECT * FROM ZNOTE;
      DROP TABLE ZNOTE;
      CREATE TABLE ZNOTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, Z3NOTES INTEGER,
        ZTWICE INTEGER GENERATED ALWAYS AS (Z_PK * 2) \(kind));
      INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, Z3NOTES) SELECT Z_PK, Z_ENT, Z_OPT, Z3NOTES FROM before;
      DROP TABLE before;
      """)
    let store = try library.open(snapshots: snapshots.path)
    #expect(
      try store.foreignIssues() == [
        "The generated column ZTWICE of ZNOTE and its expression are not carried."
      ])
    let unknown = try StoreBinding(store, library.hierarchy).unknownContents()
    #expect(unknown.map(\.count) == counts)
    #expect(unknown.allSatisfy { $0.table == "ZNOTE" && $0.column == "ZTWICE" })
  }

  @Test func `counts what an application put into Core Data's own tables`() throws {
    let library = try makeLibrary()
    try library.execute(
      """
      ALTER TABLE Z_METADATA ADD COLUMN ZTOKEN TEXT;
      ALTER TABLE Z_PRIMARYKEY ADD COLUMN ZSYNC INTEGER;
      ALTER TABLE Z_PRIMARYKEY ADD COLUMN ZEMPTY INTEGER;
      UPDATE Z_METADATA SET ZTOKEN = 'secret';
      UPDATE Z_PRIMARYKEY SET ZSYNC = 7 WHERE Z_ENT = 1;
      """)
    let store = try library.open(snapshots: snapshots.path)
    let unknown = try StoreBinding(store, library.hierarchy).unknownContents()
    #expect(unknown.map(\.table) == ["Z_PRIMARYKEY", "Z_METADATA"])
    #expect(unknown.map(\.column) == ["ZSYNC", "ZTOKEN"])
    #expect(unknown.map(\.count) == [1, 1])
  }

  @Test func `notes tables without rows that only their names make Core Data's, and no columns`()
    throws
  {
    let library = try makeLibrary()
    try library.execute(
      """
      CREATE TABLE Zqueue (a UNIQUE); CREATE TABLE ZFULL (a); INSERT INTO ZFULL VALUES (1);
      CREATE TABLE queue (a); ALTER TABLE ZREADER ADD COLUMN ZEMPTY TEXT
      """)
    let binding = StoreBinding(try library.open(snapshots: snapshots.path), library.hierarchy)
    #expect(
      try binding.emptyTableNotes() == [
        "The table Zqueue is none of the model's and has no rows. It is not carried."
      ])
    #expect(try binding.unknownContents().map(\.table) == ["ZFULL"])
  }

  /// That of a name is the model's: before indexes kept uniqueness, Core Data's tables had it.
  @Test(
    arguments: [
      ("", "", "", nil), ("", "CHECK (ZAGE < 200)", "", "CHECK"), ("", "", "UNIQUE", "UNIQUE"),
      ("", "", ", UNIQUE (ZNAME, Z_PK)", "UNIQUE"), ("", "NOT NULL", "", "NOT NULL"),
      ("", "DEFAULT 7", "", "DEFAULT"), ("REFERENCES ZNOTE (Z_PK)", "", "", "FOREIGN KEY"),
      ("", "", "COLLATE NOCASE", "COLLATE"), ("AUTOINCREMENT", "", "", "AUTOINCREMENT"),
      ("", "NOT NULL DEFAULT 1 CHECK (ZAGE > 0)", "", "CHECK, NOT NULL, DEFAULT"),
      ("", ", \"ZA CHECK\" INTEGER", "", nil),
    ] as [(String, String, String, String?)])
  func `names what an application asks of the rows of a table`(
    key: String, age: String, end: String, clauses: String?
  ) throws {
    let library = try makeLibrary()
    try library.execute(
      """
      DROP TABLE ZREADER;
      CREATE TABLE ZREADER (Z_PK INTEGER PRIMARY KEY \(key), Z_ENT INTEGER, Z_OPT INTEGER, ZAGE INTEGER \(age),
        ZISMEMBER INTEGER, ZNAME VARCHAR UNIQUE, ZID BLOB \(end));
      CREATE TABLE own (a UNIQUE CHECK (a > 0) REFERENCES ZREADER (Z_PK))
      """)
    let binding = StoreBinding(try library.open(snapshots: snapshots.path), library.hierarchy)
    let notes = clauses.map {
      "The table ZREADER has clauses that are not Core Data's and are not carried: \($0)."
    }
    #expect(try binding.constraintNotes() == [notes].compactMap(\.self))
  }

  /// Of a file system that keeps them, or of a clock that is wrong.
  @Test(arguments: [
    Int(Int64.min), -9_223_372_036, -1, 13_569_465_600, 9_223_372_036, Int(Int64.max),
  ])
  func `has an identity whenever it was written`(seconds: Int) throws {
    let library = try makeLibrary()
    var times = [timespec(tv_sec: seconds, tv_nsec: 0), timespec(tv_sec: seconds, tv_nsec: 0)]
    // What the file system does not keep it brings nearer.
    _ = utimensat(AT_FDCWD, library.path.string, &times, 0)
    let files = StoreFiles(FilePath(library.path.string))
    #expect(try files.identity() == files.identity())
  }

  @Test func `names an index that an application put on a table of the model`() throws {
    let library = try makeLibrary()
    try library.execute(
      """
      CREATE TABLE pairs (a, b UNIQUE);
      CREATE INDEX pairs_a ON pairs (a);
      CREATE INDEX Z_Reader_old ON ZREADER (Z_OPT);
      CREATE INDEX "my index" ON ZREADER (Z_ENT);
      """)
    #expect(
      try library.open(snapshots: snapshots.path).foreignIssues() == [
        "The index my index on ZREADER is not Core Data's and is not carried."
      ])
  }
}
