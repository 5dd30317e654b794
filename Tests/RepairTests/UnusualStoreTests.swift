import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import Testing

/// Nothing of these stores is damaged: what `repair` loses of them, it loses without need.
@Suite struct `A sound store that is unusual` {
  @Test(arguments: [
    (what: "an object of a negative Z_PK", keys: [-5] as [Int64], isDoubtful: false),
    (what: "an object of the lowest Z_PK", keys: [.min], isDoubtful: false),
    (
      what: "an object of the Z_PK 0, which one damaged byte makes of another", keys: [0],
      isDoubtful: true
    ),
    (what: "objects of several such", keys: [-5, -1, 0], isDoubtful: true),
  ])
  func `keeps every object where it has`(what: String, keys: [Int64], isDoubtful: Bool) throws {
    let patient = try Patient(rows: 300)
    let columns = try patient.read("SELECT name FROM pragma_table_info('ZTAG')")
      .compactMap { $0[0].text }
    for key in keys {
      let values = columns.map { $0 == "Z_PK" ? "\(key)" : $0 == "ZNAME" ? "'own \(key)'" : $0 }
      try patient.sql(
        "INSERT INTO ZTAG (\(columns.joined(separator: ", "))) "
          + "SELECT \(values.joined(separator: ", ")) FROM ZTAG WHERE Z_PK > 0 LIMIT 1")
    }
    let query = "SELECT * FROM ZTAG ORDER BY Z_PK"
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(query, of: patient.output) == patient.read(query))
    #expect(report.lost.isEmpty, "\(report.lost)")
    let doubtful = report.doubtful.compactMap(\.primaryKeys)
    #expect(doubtful == (isDoubtful ? [KeyRanges(0...0)] : []), "\(report.doubtful)")
  }

  @Test func `has an object of a negative Z_PK named where its page is lost`() throws {
    let patient = try Patient(rows: 600)
    let columns = try patient.read("SELECT name FROM pragma_table_info('ZSTEP')")
      .compactMap { $0[0].text }
    try patient.sql(
      "INSERT INTO ZSTEP (\(columns.joined(separator: ", "))) "
        + "SELECT \(columns.map { $0 == "Z_PK" ? "-5" : $0 }.joined(separator: ", ")) FROM ZSTEP LIMIT 1"
    )
    let keys = try patient.keys(of: "ZSTEP")
    #expect(keys.first == -5)
    patient.zero(page: try #require(try patient.leaves(of: "ZSTEP").first))
    let report = try patient.repair()
    #expect(try patient.unaccounted(["ZSTEP": keys], report).isEmpty)
    #expect(report.lost.contains { !$0.isCertain && $0.primaryKeys?.contains(-5) == true })
  }

  @Test(arguments: [0, 72])
  func `keeps the application's numbers in its header where it can be believed`(damagedByte: Int)
    throws
  {
    let patient = try Patient(rows: 5)
    try patient.sql("PRAGMA user_version = -77; PRAGMA application_id = 1234")
    func numbers(_ path: String) throws -> [Int64?] {
      try ["user_version", "application_id"].map {
        try patient.read("PRAGMA \($0)", of: path)[0][0].integer
      }
    }
    var report = try patient.repair()
    #expect(try numbers(patient.output) == [-77, 1234])
    #expect(report.lost.isEmpty)
    patient.bytes[damagedByte] ^= 0x20
    report = try patient.repair()
    #expect(try numbers(patient.output) == [0, 0])
    #expect(report.lost.map(\.subject) == [.file])
  }

  @Test(arguments: [#""""#, "''", "[]", "``"])
  func `keeps its table and its index without a name`(name: String) throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE \(name) (a);
      INSERT INTO "" VALUES (1), (2), (3);
      CREATE TABLE other (a)
      """)
    var report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
    #expect(try patient.read("SELECT a FROM \"\"", of: patient.output).count == 3)
    try patient.sql("DROP TABLE \"\"; CREATE UNIQUE INDEX \(name) ON other (a)")
    report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
    let indexes = "SELECT tbl_name FROM sqlite_master WHERE type = 'index' AND name = ''"
    #expect(try patient.read(indexes, of: patient.output) == [[.text("other")]])
  }

  @Test(arguments: [1_998, 1_999, 2_000])
  func `keeps the rows of a table of as many columns as SQLite makes, under their row ids`(
    count: Int
  ) throws {
    let patient = try Patient(rows: 5)
    let columns = (1...count).map { "c\($0)" }.joined(separator: ", ")
    try patient.sql(
      """
      CREATE TABLE wide (\(columns));
      INSERT INTO wide (rowid, c1, c\(count)) VALUES (-7, 'a', 1), (1, 'b', 2), (3, 'c', 3), (90, 'd', 4)
      """)
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost) \(report.doubtful)")
    #expect(report.keptForeignRows == 4)
    let query = "SELECT rowid, c1, c2, c\(count) FROM wide ORDER BY rowid"
    #expect(try patient.read(query, of: patient.output) == patient.read(query))
  }

  @Test(arguments: ["WITHOUT ROWID", ""])
  func `has rows of which a text is odd counted, and named where they have row ids`(option: String)
    throws
  {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE keyed (name TEXT PRIMARY KEY, note TEXT) \(option);
      INSERT INTO keyed VALUES
        ('a', CAST(x'ff' AS TEXT)), ('b', 'sound'), ('c', CAST(x'c3' AS TEXT)), ('d', CAST(x'fe' AS TEXT))
      """)
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.keptForeignRows == 4, "\(report.lost)")
    let item = try #require(report.doubtful.first { $0.entity == "keyed" && $0.property == "note" })
    #expect(item.count == 3)
    #expect(item.primaryKeys == (option.isEmpty ? KeyRanges([1, 3, 4]) : nil))
    #expect(report.doubtful.count == 1, "\(report.doubtful)")
  }

  /// To SQLite it is the same table.
  @Test(arguments: [false, true])
  func `keeps the rows of tables whose names have letters of another case`(hasOwnColumn: Bool)
    throws
  {
    let patient = try Patient()
    let queries = ["SELECT * FROM ZSTEP ORDER BY Z_PK", "SELECT * FROM Z_8TAGS ORDER BY 1, 2"]
    let before = try queries.map { try patient.read($0) }
    for (name, spelling) in [("ZSTEP", "zStep"), ("Z_8TAGS", "z_8tags")] {
      try patient.sql(
        "ALTER TABLE \(name) RENAME TO other; ALTER TABLE other RENAME TO \(spelling)")
    }
    if hasOwnColumn { try patient.sql("ALTER TABLE zStep ADD COLUMN app TEXT DEFAULT 'x'") }
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try queries.map { try patient.read($0, of: patient.output) } == before)
    #expect(report.lost.map(\.property) == (hasOwnColumn ? ["app"] : []), "\(report.lost)")
    #expect(report.doubtful.isEmpty, "\(report.doubtful)")
    let said = report.rebuilt.map(\.message)
    #expect(said.contains("the table ZSTEP was called zStep"), "\(said)")
  }

  @Test func `keeps the values of columns whose names have letters of another case`() throws {
    let patient = try Patient()
    let queries = ["SELECT * FROM ZSTEP ORDER BY Z_PK", "SELECT * FROM Z_8TAGS ORDER BY 1, 2"]
    let before = try queries.map { try patient.read($0) }
    try patient.sql(
      """
      ALTER TABLE ZSTEP RENAME COLUMN Z_PK TO z_pk;
      ALTER TABLE ZSTEP RENAME COLUMN ZCODE TO zCode;
      ALTER TABLE Z_8TAGS RENAME COLUMN Z_10TAGS TO z_10tags;
      """)
    for columns in [0, 1] {
      if columns == 1 { try patient.sql("ALTER TABLE ZSTEP ADD COLUMN app TEXT DEFAULT 'x'") }
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty)
      #expect(try queries.map { try patient.read($0, of: patient.output) } == before)
      #expect(report.lost.map(\.property) == (columns == 1 ? ["app"] : []), "\(report.lost)")
      #expect(report.doubtful.isEmpty, "\(report.doubtful)")
      let said = report.rebuilt.map(\.message)
      #expect(said.contains("the column ZSTEP.ZCODE was called zCode"), "\(said)")
      #expect(!said.contains { $0.hasPrefix("missing column") }, "\(said)")
      #expect(!said.contains { $0.contains("damaged") }, "\(said)")
    }
  }

  @Test func `keeps its many tables`() throws {
    let patient = try Patient(rows: 5)
    for number in 0..<300 {
      try patient.sql("CREATE TABLE app\(number) (a); INSERT INTO app\(number) VALUES (\(number))")
    }
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.keptForeignRows == 300, "\(report.lost)")
    #expect(try patient.read("SELECT a FROM app299", of: patient.output) == [[.integer(299)]])
  }

  @Test(arguments: [
    (rows: [(17_005, "NSFoo"), (17_006, "NSFoo")], kept: 1),
    (rows: [(17_005, "Recipe")], kept: 1),  // the model's has its own row
    (rows: [(16_000, "CHANGE")], kept: 0),
    (rows: [(16_004, "CHANGE")], kept: 0),
    (rows: [(17_005, "NS\u{E9}"), (17_006, "NSe\u{301}")], kept: 2),
  ])
  func `is made sound where Z_PRIMARYKEY has one name twice`(
    rows: [(Int, String)], kept: Int
  ) throws {
    let patient = try Patient(rows: 5) { $0.history = true }
    let names = "SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT > 15999 ORDER BY 1"
    let before = try patient.read(names)
    for (number, name) in rows {
      try patient.sql("INSERT INTO Z_PRIMARYKEY VALUES (\(number), '\(name)', 0, 7)")
    }
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty, "\(report.lost)")
    let after = try patient.read(names, of: patient.output)
    #expect(after.starts(with: before), "Core Data's own keep their numbers")
    #expect(after.count == before.count + kept)
  }

  @Test(
    arguments: [500, 1 << 61, 1 << 62, .max] as [Int64],
    // Core Data leaves the name that an entity had before it was renamed in place.
    ["X", "Former"])
  func `keeps the highest key that was given out`(highest: Int64, name: String) throws {
    let model = ManagedObjectModel(entities: [
      EntityDescription(name: "X", renamingIdentifier: "Former")
    ])
    let patient = try Patient(of: model, rows: 5) { _ in }
    try patient.sql("UPDATE Z_PRIMARYKEY SET Z_NAME = '\(name)', Z_MAX = \(highest)")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty && report.rebuilt.isEmpty, "\(report.lost) \(report.rebuilt)")
    #expect(
      try patient.read("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY", of: patient.output)
        == [[.text("X"), .integer(highest)]])
  }
}

/// Where a `_` decides the order of entities, a sound store may have other numbers than the output.
@Suite struct `A sound store with entity numbers of its own` {
  /// - Parameter swaps: Whether the first two entities have each other's number.
  private static func patient(swaps: Bool) throws -> Patient {
    let pages = RelationshipDescription(
      traits: PropertyTraits(name: "pages"), destinationEntity: "Page", maxCount: 0)
    let count = AttributeDescription(
      traits: PropertyTraits(name: "n"), type: .integer32, derivationExpression: "pages.@count")
    let model = ManagedObjectModel(entities: [
      EntityDescription(name: "Foo_B", properties: [.attribute(count), .relationship(pages)]),
      EntityDescription(name: "FooA"), EntityDescription(name: "Page"),
    ])
    let patient = try Patient(of: model, rows: 5) { _ in }
    guard swaps else { return patient }
    try patient.sql(
      """
      ALTER TABLE ZPAGE RENAME COLUMN Z1PAGES TO Z2PAGES;
      DROP INDEX ZPAGE_Z1PAGES_INDEX;
      CREATE INDEX ZPAGE_Z2PAGES_INDEX ON ZPAGE (Z2PAGES);
      UPDATE ZFOO_B SET Z_ENT = 2;
      UPDATE ZFOOA SET Z_ENT = 1;
      UPDATE Z_PRIMARYKEY SET Z_ENT = 93 - Z_ENT WHERE Z_ENT < 3;
      UPDATE Z_PRIMARYKEY SET Z_ENT = Z_ENT - 90 WHERE Z_ENT > 90;
      """)
    return patient
  }

  @Test(arguments: ["INTEGER", "VARCHAR", "FLOAT", "NUMERIC"])
  func `has its history and CloudKit rows tell the same entities in the output`(type: String) throws
  {
    let patient = try Self.patient(swaps: true)
    try patient.sql(
      """
      CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY, ZENTITYID \(type), ZENTITYPK INTEGER);
      CREATE UNIQUE INDEX ANSCKTHING_U ON ANSCKTHING (ZENTITYID, ZENTITYPK);
      INSERT INTO ANSCKTHING VALUES (1, 1, 7), (2, 2, 7), (3, 3, 7), (4, 16001, 7), (5, NULL, 7);
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
      INSERT INTO ACHANGE VALUES (1, 1), (2, 2), (3, 3);
      CREATE TABLE own (ZENTITY INTEGER, ZENTITYID INTEGER);
      INSERT INTO own VALUES (1, 2);
      """)
    let names = """
      SELECT t.Z_PK, Z_NAME FROM ANSCKTHING AS t LEFT JOIN Z_PRIMARYKEY ON Z_ENT = ZENTITYID
       UNION ALL
      SELECT t.Z_PK, Z_NAME FROM ACHANGE AS t LEFT JOIN Z_PRIMARYKEY ON Z_ENT = ZENTITY
       ORDER BY 1, 2
      """
    let number = "SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = 'FooA'"
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.isEmpty && report.keptForeignRows == 9, "\(report.lost)")
    #expect(try patient.read(number) == [[.integer(1)]])
    #expect(try patient.read(number, of: patient.output) == [[.integer(2)]])
    #expect(try patient.read(names, of: patient.output) == patient.read(names))
    let others = """
      SELECT ZENTITY, ZENTITYID FROM own
       UNION ALL SELECT CAST(ZENTITYID AS INTEGER), ZENTITYPK FROM ANSCKTHING WHERE Z_PK > 3
      """
    #expect(try patient.read(others, of: patient.output) == patient.read(others))
  }

  /// No row contradicts the number, and history tells of objects that were deleted.
  @Test func `keeps the true number of an entity without rows in history`() throws {
    let patient = try Self.patient(swaps: false)
    try patient.sql(
      """
      CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER, ZENTITYPK INTEGER);
      INSERT INTO ANSCKTHING VALUES (1, 1, 7), (2, 2, 7);
      CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
      INSERT INTO ACHANGE VALUES (1, 1), (2, 2), (3, 3);
      DELETE FROM ZFOOA;
      UPDATE Z_PRIMARYKEY SET Z_ENT = 77 WHERE Z_NAME = 'FooA';
      """)
    _ = try patient.repair()
    for query in ["SELECT ZENTITY FROM ACHANGE", "SELECT ZENTITYID FROM ANSCKTHING"] {
      #expect(try patient.read(query, of: patient.output) == patient.read(query), "\(query)")
    }
  }

  @Test(arguments: [false, true])
  func `loses, and names, a trigger of Core Data's that would mean something else`(swaps: Bool)
    throws
  {
    let patient = try Self.patient(swaps: swaps)
    let (name, column) = ("Z_DA_ZPAGE_Foo_B_n_PARAMETER_INSERT", swaps ? "Z2PAGES" : "Z1PAGES")
    try patient.sql(
      """
      CREATE TRIGGER \(name) AFTER INSERT ON ZPAGE FOR EACH ROW WHEN (NEW.\(column) NOT NULL)
      BEGIN UPDATE ZFOO_B SET ZN = IFNULL(ZN, 0) + 1 WHERE Z_PK = NEW.\(column); END
      """)
    let report = try patient.repair()
    #expect(report.lost.compactMap(\.names) == (swaps ? [[name]] : []), "\(report.lost)")
    let triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    #expect(
      try patient.read(triggers, of: patient.output) == (swaps ? [] : [[.text(name)]]))
  }
}
