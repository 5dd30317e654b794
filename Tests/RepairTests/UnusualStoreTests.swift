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
}
