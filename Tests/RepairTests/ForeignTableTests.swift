import GodwitRepair
import GodwitSQLite
import Testing

/// Tables that are not the model's are carried as they are, with what SQLite keeps of them.
@Suite struct `A store with tables of the application's own` {
  private static let counters = "SELECT name, seq FROM sqlite_sequence ORDER BY name"

  /// With two tables whose highest numbers are gone.
  private func counting() throws -> Patient {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE Log (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT);
      INSERT INTO Log VALUES (1, 'a'), (2, 'b'), (1000, 'z');
      DELETE FROM Log WHERE id = 1000;
      CREATE TABLE emptied (id INTEGER PRIMARY KEY AUTOINCREMENT, v TEXT);
      INSERT INTO emptied VALUES (500, 'z');
      DELETE FROM emptied;
      CREATE TABLE never (id INTEGER PRIMARY KEY AUTOINCREMENT);
      """)
    return patient
  }

  @Test func `goes on counting where its AUTOINCREMENT tables did`() throws {
    let patient = try counting()
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.rebuilt.isEmpty, "\(report.lost) \(report.rebuilt)")
    #expect(
      try patient.read(Self.counters, of: patient.output).filter { $0[1] != .integer(0) }
        == patient.read(Self.counters))
  }

  @Test func `names the counters that cannot be read`() throws {
    let patient = try counting()
    patient.zero(page: try patient.root(of: "sqlite_sequence"))
    let report = try patient.repair()
    for table in ["Log", "emptied", "never"] {
      let item = report.lost.first { $0.names == [table] }
      #expect(item?.isCertain == false && item?.message.contains("AUTOINCREMENT") == true)
    }
    #expect(
      try patient.read(Self.counters, of: patient.output).contains([.text("Log"), .integer(2)]))
  }

  @Test func `never counts on from below the highest row`() throws {
    let patient = try counting()
    try patient.sql("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'Log'")
    let report = try patient.repair()
    #expect(report.rebuilt.contains { $0.names == ["Log"] })
    #expect(
      try patient.read(Self.counters, of: patient.output).contains([.text("Log"), .integer(2)]))
    try patient.sql("DELETE FROM sqlite_sequence WHERE name = 'Log'")
    #expect(try patient.repair().lost.contains { $0.names == ["Log"] })
  }

  @Test func `keeps its STRICT tables`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY, i INT, r REAL, t TEXT, b BLOB, a ANY) STRICT;
      INSERT INTO own VALUES (1, 2, 3, '4', x'05', '007'), (2, NULL, 0.5, '', x'', 7),
        (9, -1, -1e300, 'x', NULL, x'07')
      """)
    let query = "SELECT *, typeof(a), typeof(r) FROM own"
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost)")
    #expect(report.keptForeignRows == 3)
    #expect(try patient.read(query, of: patient.output) == patient.read(query))
    let kind = "SELECT strict FROM pragma_table_list('own')"
    #expect(try patient.read(kind, of: patient.output) == [[.integer(1)]])
  }

  @Test func `keeps its tables with a type that is a keyword`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY, v "order", w "select", x "primary");
      INSERT INTO own VALUES (1, 2, 'a', x'01'), (2, '3', 4.5, NULL)
      """)
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.lost)")
    let query = "SELECT *, typeof(v) FROM own"
    #expect(try patient.read(query, of: patient.output) == patient.read(query))
  }

  @Test func `calls no index damaged over values of zeros`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY, v BLOB UNIQUE);
      INSERT INTO own VALUES (1, zeroblob(20000)), (2, x'01')
      """)
    let report = try patient.repair()
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report.doubtful)")
    #expect(!report.rebuilt.contains { $0.names == ["own"] }, "\(report.rebuilt)")
  }

  @Test func `names a table whose text cannot be read as it was`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      "CREATE TABLE own (id INTEGER PRIMARY KEY, first TEXT); INSERT INTO own VALUES (7, 'a')")
    let text = Array("own (id INTEGER".utf8)
    let place = try #require(patient.bytes.firstRange(of: text)).lowerBound
    patient.bytes[place + 7] = 0x8E
    let report = try patient.repair()
    #expect(report.doubtful.contains { $0.names == ["own"] }, "\(report.doubtful)")
  }

  @Test func `loses of a STRICT table the values that cannot have been there`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY, i ANYINT, b BLOB NOT NULL);
      INSERT INTO own VALUES (1, 'text', x'01'), (2, 3, x'02'), (3, 4, 'text');
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = replace(sql, 'ANYINT', '   INT') || ' STRICT'
       WHERE name = 'own'
      """)
    let report = try patient.repair()
    #expect(report.keptForeignRows == 2)
    let item = report.lost.first { $0.entity == "own" && $0.property == "i" }
    #expect(item?.primaryKeys?.contains(1) == true && item?.count == 1, "\(report.lost)")
    #expect(report.lost.contains { $0.names == ["own"] && $0.count == 1 }, "\(report.lost)")
  }
}

/// What a column that is gone, or that no text names, held.
@Suite struct `A store with other columns than its rows` {
  @Test(arguments: [
    ("ZRECIPE", "ZOVERVIEW", "overview"),
    ("ZAUTHOR", "ZRESTAURANT", "restaurant"), ("ZSTEP", "ZRECIPE", "recipe"),
  ])
  func `does not say that the values of a column that is gone are not lost`(
    table: String, column: String, property: String
  ) throws {
    let patient = try Patient(rows: 30, version: .one)
    for (index) in try patient.read(
      "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '\(table)'")
    {
      try patient.sql("DROP INDEX \(index[0].text ?? "")")
    }
    try patient.sql("ALTER TABLE \(table) DROP COLUMN \(column)")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let item = report.lost.first { $0.property == property }
    #expect(item?.isCertain == false, "\(report.lost)")
    #expect(item?.primaryKeys?.isEmpty == false)
  }

  /// A text from before the columns were added, and how many of the table's there are in it.
  @Test(arguments: ["', ZTEXT VARCHAR', ''", "', ZCODE VARCHAR, ZTEXT VARCHAR', ''"])
  func `keeps the rows that have more values than their CREATE TABLE text has columns`(
    change: String
  ) throws {
    let patient = try Patient(rows: 60, version: .one)
    let query = "SELECT * FROM ZSTEP ORDER BY Z_PK"
    let before = try patient.read(query)
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, \(change)) "
        + "WHERE name = 'ZSTEP'")
    #expect(try patient.read(query) != before)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(query, of: patient.output) == before)
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(report.doubtful.contains { $0.entity == "Step" && $0.message.contains("ZTEXT") })
    #expect(!report.rebuilt.contains { $0.message.contains("ZTEXT") })
  }

  @Test func `keeps the objects that alone have values for columns that were added`() throws {
    let patient = try Patient(rows: 300, version: .one)
    let before = try patient.read("SELECT * FROM ZSTEP ORDER BY Z_PK")
    // Somewhere in the middle, where no look at the rows need come by.
    try patient.sql(
      """
      ALTER TABLE ZSTEP ADD COLUMN OWN VARCHAR;
      UPDATE ZSTEP SET OWN = 'x' WHERE Z_PK = 150;
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = replace(sql, ', OWN VARCHAR', '') WHERE name = 'ZSTEP'
      """)
    let report = try patient.repair()
    #expect(try patient.read("SELECT * FROM ZSTEP ORDER BY Z_PK", of: patient.output) == before)
    #expect(
      report.lost.contains { $0.entity == "Step" && $0.primaryKeys?.contains(150) == true })
  }

  @Test func `is told of an empty table that is left out since its name begins with a Z`() throws {
    let patient = try Patient(rows: 5, version: .one)
    try patient.sql(
      "CREATE TABLE Zqueue (a); CREATE INDEX Zq_a ON Zqueue (a); CREATE TABLE queue (a)")
    let report = try patient.repair()
    #expect(report.lost.map(\.names) == [["Zqueue"]], "\(report.lost)")
    #expect(
      try patient.read(
        "SELECT name FROM sqlite_master WHERE name IN ('queue', 'Zqueue', 'Zq_a')",
        of: patient.output)
        == [[.text("queue")]])
  }

  @Test func `has no value that is doubtful as well as lost`() throws {
    let patient = try Patient(rows: 30, version: .one) { $0.externalFraction = 0.2 }
    try patient.sql("UPDATE ZIMAGE SET ZDATA = 'text' WHERE Z_PK IN (23, 7)")
    let report = try patient.repair()
    #expect(report.lost.contains { $0.property == "data" && $0.count == 2 }, "\(report.lost)")
    #expect(!report.doubtful.contains { $0.property == "data" }, "\(report.doubtful)")
  }
}
