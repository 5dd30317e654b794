import GodwitRepair
import GodwitSQLite
import Testing

/// One number of `sqlite_master` is wrong, and every page of the tree is whole.
@Suite struct `A store with the root page of a tree named wrongly` {
  private func lead(_ patient: Patient, _ name: String, to page: Int) throws {
    try patient.sql(
      "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = \(page) "
        + "WHERE name = '\(name)'")
  }

  private func expectWhole(
    _ patient: Patient, _ table: String, _ before: [[SQLiteValue]], _ report: RepairReport
  ) throws {
    #expect(try patient.failures().isEmpty)
    #expect(
      try patient.read("SELECT * FROM \(table) ORDER BY 1, 2", of: patient.output) == before)
    #expect(report.lost.isEmpty, "\(report.lost)")
  }

  /// The first leaf, one in the middle, and the last of those that a cell leads to.
  @Test(arguments: ["ZSTEP", "ZAUTHOR", "Z_8TAGS"], [0.0, 0.5, 1.0])
  func `keeps every row where it is one of the tree's own leaves`(
    table: String, place: Double
  ) throws {
    let patient = try Patient(rows: 600)
    let before = try patient.read("SELECT * FROM \(table) ORDER BY 1, 2")
    let (root, leaves) = (try patient.root(of: table), try patient.leaves(of: table))
    try #require(leaves.count > 2)
    try lead(patient, table, to: leaves[Int(place * Double(leaves.count - 1))])
    let report = try patient.repair()
    try expectWhole(patient, table, before, report)
    #expect(report.rebuilt.contains { $0.message.contains("page \(root)") }, "\(report.rebuilt)")
  }

  @Test(arguments: ["ZSTEP", "ZAUTHOR"])
  func `keeps every row where there are no pointer maps`(table: String) throws {
    let patient = try Patient(rows: 600)
    try patient.sql("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = 0; VACUUM")
    let before = try patient.read("SELECT * FROM \(table) ORDER BY 1, 2")
    let leaves = try patient.leaves(of: table)
    try #require(leaves.count > 2)
    try lead(patient, table, to: leaves[1])
    try expectWhole(patient, table, before, patient.repair())
  }

  @Test func `keeps every row of a table of the application's`() throws {
    let patient = try Patient(rows: 5)
    try patient.sql(
      """
      CREATE TABLE own (a TEXT);
      WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 2000)
      INSERT INTO own SELECT printf('row %d of the application''s own', n) FROM i
      """)
    let before = try patient.read("SELECT rowid, * FROM own ORDER BY 1")
    try lead(patient, "own", to: try #require(try patient.leaves(of: "own").last))
    let report = try patient.repair()
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(try patient.read("SELECT rowid, * FROM own ORDER BY 1", of: patient.output) == before)
  }

  /// The leaf is the other table's, and so are its rows.
  @Test func `loses no row of either table where it is another tree's leaf`() throws {
    let patient = try Patient(rows: 600)
    let keys = try patient.allKeys()
    let leaf = try #require(try patient.leaves(of: "ZRECIPE").dropFirst().first)
    try lead(patient, "ZSTEP", to: leaf)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.keys(of: "ZRECIPE", in: patient.output) == keys["ZRECIPE"])
    #expect(try patient.keys(of: "ZSTEP", in: patient.output) == keys["ZSTEP"])
  }

  @Test func `takes the pairs of two relationships from their indexes where both lead to one page`()
    throws
  {
    let patient = try Patient(rows: 600)
    let joins = try patient.read(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_[0-9]*' ORDER BY name"
    ).compactMap { $0[0].text }
    try #require(joins.count > 1)
    let query = joins.map { "SELECT * FROM \($0) ORDER BY 1, 2" }
    let before = try query.map { try patient.read($0) }
    try lead(patient, joins[0], to: patient.root(of: joins[1]))
    _ = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let after = try query.map { try patient.read($0, of: patient.output) }
    for (before, after) in zip(before, after) {
      #expect(after.map { $0.prefix(2) } == before.map { $0.prefix(2) })
    }
  }

  @Test(arguments: [0, 1_000_000])
  func `names a table of the application's whose rows nothing leads to`(root: Int) throws {
    let patient = try Patient(rows: 5)
    try patient.sql("CREATE TABLE own (a); INSERT INTO own VALUES (1), (2)")
    try lead(patient, "own", to: root)
    let report = try patient.repair()
    #expect(report.lost.contains { $0.names == ["own"] }, "\(report.lost)")
    #expect(try patient.read("SELECT count(*) FROM own", of: patient.output).count == 1)
  }

  /// Nothing tells what lay on the root page but the pointer maps of the pages below it.
  @Test func `keeps every row where the root page is lost as well`() throws {
    let patient = try Patient(rows: 600)
    let keys = try patient.allKeys()
    let (root, leaves) = (try patient.root(of: "ZSTEP"), try patient.leaves(of: "ZSTEP"))
    try lead(patient, "ZSTEP", to: leaves[1])
    patient.zero(page: root)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.keys(of: "ZSTEP", in: patient.output) == keys["ZSTEP"])
  }
}
