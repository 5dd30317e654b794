import GodwitRepair
import GodwitSQLite
import Testing

/// The rows of `Z_PRIMARYKEY` for entities that are Core Data's own.
@Suite struct `Keys of history and CloudKit` {
  private let rows = "SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000 ORDER BY 1"

  @Test(arguments: [
    "UPDATE Z_PRIMARYKEY SET Z_MAX = NULL WHERE Z_ENT >= 16000",
    "UPDATE Z_PRIMARYKEY SET Z_MAX = 'many' WHERE Z_ENT >= 16000",
    "UPDATE Z_PRIMARYKEY SET Z_MAX = -5 WHERE Z_ENT >= 16000",
    "UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_ENT >= 16000",
    "DELETE FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000",
    "DROP TABLE Z_PRIMARYKEY",
  ])
  func `are those of the rows that are kept`(sql: String) throws {
    let patient = try Patient { $0.history = true }
    let before = try patient.read(rows)
    try patient.sql(sql)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty && before.count == 3)
    #expect(try patient.read(rows, of: patient.output) == before)
    for name in ["CHANGE", "TRANSACTION", "TRANSACTIONSTRING"] {
      #expect(
        report.rebuilt.contains { $0.subject == .primaryKey && $0.entity == name },
        "\(report.rebuilt)")
    }
    #expect(report.lost.isEmpty, "\(report.lost)")
  }

  @Test func `are made again where the page of Z_PRIMARYKEY is lost`() throws {
    let patient = try Patient { $0.history = true }
    let before = try patient.read(rows)
    patient.zero(page: try patient.root(of: "Z_PRIMARYKEY"))
    _ = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(rows, of: patient.output) == before)
  }

  /// Keys were given out to changes that are gone.
  @Test func `stay where they are higher than those of the rows, also without a name`() throws {
    let patient = try Patient { $0.history = true }
    try patient.sql("UPDATE Z_PRIMARYKEY SET Z_NAME = NULL, Z_MAX = 777 WHERE Z_ENT = 16001")
    _ = try patient.repair()
    #expect(
      try patient.read(rows, of: patient.output).first
        == [.integer(16_001), .text("CHANGE"), .integer(777)])
  }

  @Test func `are not given out again where rows are lost`() throws {
    let patient = try Patient(rows: 400) { $0.history = true }
    let before = try patient.read(rows)
    try patient.sql("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000")
    patient.zero(page: try #require(try patient.lastLeaf(of: "ACHANGE")))
    _ = try patient.repair()
    let kept = try patient.read("SELECT max(Z_PK) FROM ACHANGE", of: patient.output)
    #expect(kept.first?[0].integer ?? 0 < before[0][2].integer ?? 0)
    #expect(try patient.read(rows, of: patient.output) == before)
  }

  /// Nothing but the row has the number, the name and the highest key of an entity of CloudKit's.
  @Test(
    arguments: [
      ("SELECT 1", []), ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 17007", ["ANSCKEVENT"]),
      ("UPDATE Z_PRIMARYKEY SET Z_NAME = 'X' WHERE Z_ENT = 17007", []),
      ("UPDATE Z_PRIMARYKEY SET Z_ENT = 17009 WHERE Z_ENT = 17007", []),
      ("DELETE FROM Z_PRIMARYKEY", ["ANSCKEVENT", "ANSCKMETADATAENTRY"]),
    ] as [(String, [String])])
  func `are lost with a row of CloudKit's, and named`(sql: String, lost: [String]) throws {
    let patient = try Patient(rows: 5) { $0.history = true }
    try patient.sql(
      """
      CREATE TABLE ANSCKEVENT (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER);
      CREATE TABLE ANSCKMETADATAENTRY (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER);
      INSERT INTO ANSCKEVENT VALUES (1, 17007, 1), (2, 17007, 1);
      INSERT INTO Z_PRIMARYKEY VALUES
        (17007, 'NSCKEvent', 0, 2), (17010, 'NSCKMetadataEntry', 0, 0);
      \(sql);
      """)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.filter { $0.subject == .primaryKey }.flatMap { $0.names ?? [] } == lost)
  }
}
