import GodwitRepair
import GodwitSQLite
import Testing

/// Rows of which Core Data writes one: what of the others is not carried is said.
@Suite struct `A store that says something more than once` {
  private static let ordered = ["Z_5COOKBOOKS", "Z_8RECIPES", "Z_FOK_8RECIPES"]

  @Test(arguments: [
    (table: "Z_8TAGS", columns: ["Z_8RECIPES1", "Z_10TAGS"], more: "", isDoubtful: false),
    (table: "Z_5RECIPES", columns: ordered, more: "", isDoubtful: false),
    (table: "Z_5RECIPES", columns: ordered, more: " + 77777", isDoubtful: true),
  ])
  func `keeps one of its pairs, and accounts for the others`(
    table: String, columns: [String], more: String, isDoubtful: Bool
  ) throws {
    let patient = try Patient()
    let query = "SELECT * FROM \(table) ORDER BY 1, 2"
    let before = try patient.read(query)
    let owner = try #require(before.first?[0].integer)
    let list = columns.joined(separator: ", ")
    try patient.sql(
      """
      ALTER TABLE \(table) RENAME TO former;
      CREATE TABLE \(table) (\(columns.map { "\($0) INTEGER" }.joined(separator: ", ")));
      INSERT INTO \(table) SELECT \(list) FROM former ORDER BY 1, 2;
      INSERT INTO \(table) SELECT \(list)\(more) FROM former ORDER BY 1, 2 LIMIT 1;
      DROP TABLE former
      """)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(query, of: patient.output) == before)
    #expect(report.lost.isEmpty, "\(report.lost)")
    let said = [report.rebuilt, report.doubtful].map { items in
      items.filter { $0.message.contains("more than once") }
    }
    #expect(said.map(\.count) == (isDoubtful ? [0, 1] : [1, 0]), "\(said)")
    #expect(said.joined().allSatisfy { $0.count == 1 && $0.primaryKeys == KeyRanges([owner]) })
  }

  @Test(arguments: [
    (sql: "INSERT INTO Z_METADATA SELECT 2, Z_UUID, Z_PLIST FROM Z_METADATA", lost: 0),
    (sql: "INSERT INTO Z_METADATA SELECT 2, lower(Z_UUID), Z_PLIST FROM Z_METADATA", lost: 1),
    (
      sql: "INSERT INTO Z_METADATA SELECT 2, '11111111-1111-4111-8111-111111111111', Z_PLIST "
        + "FROM Z_METADATA", lost: 1
    ),
    (
      sql: "INSERT INTO Z_METADATA SELECT 2, Z_UUID, Z_PLIST FROM Z_METADATA; "
        + "UPDATE Z_METADATA SET Z_PLIST = x'00' WHERE Z_VERSION = 1", lost: 1
    ),
    (
      sql: "INSERT INTO Z_METADATA SELECT -1, NULL, NULL FROM Z_METADATA", lost: 1
    ),
  ])
  func `keeps the metadata with the fewest faults, and names the others`(sql: String, lost: Int)
    throws
  {
    let patient = try Patient(rows: 5)
    let uuid = "SELECT Z_UUID FROM Z_METADATA"
    let before = try patient.read(uuid)
    try patient.sql(sql)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read(uuid, of: patient.output) == before)
    #expect(report.lost.map(\.count) == (lost > 0 ? [Int64(lost)] : []), "\(report.lost)")
    #expect(report.lost.allSatisfy { $0.subject == .metadata })
    let same = report.rebuilt.filter { $0.subject == .metadata }
    #expect(same.map(\.count) == (lost > 0 ? [] : [1]), "\(report.rebuilt)")
    #expect(report.doubtful.isEmpty, "\(report.doubtful)")
  }

  /// Whichever row is damaged: keys that were given out are not given out again.
  @Test(arguments: [
    "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Stdp', Z_MAX = 777 WHERE Z_NAME = 'Step'",
    "UPDATE Z_PRIMARYKEY SET Z_NAME = NULL, Z_MAX = 777 WHERE Z_NAME = 'Step'",
    "UPDATE Z_PRIMARYKEY SET Z_ENT = 99, Z_MAX = 777 WHERE Z_NAME = 'Step'",
    "UPDATE Z_PRIMARYKEY SET Z_ENT = 20000, Z_MAX = 777 WHERE Z_NAME = 'Step'",
    "INSERT INTO Z_PRIMARYKEY VALUES (-1, 'Step', 0, 777)",
    "INSERT INTO Z_PRIMARYKEY VALUES (99, 'Step', 0, 777)",
  ])
  func `keeps the highest key that a row of an entity's name or number gives`(sql: String) throws {
    let patient = try Patient(rows: 5)
    try patient.sql(sql)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(
      try patient.read("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 9", of: patient.output)
        == [[.text("Step"), .integer(777)]])
    #expect(report.lost.isEmpty, "\(report.lost)")
  }

  @Test(arguments: ["NULL", "'many'", "-5", "1.5"])
  func `names an entity whose highest key is no number that can be one`(highest: String) throws {
    let patient = try Patient(rows: 5)
    try patient.sql("UPDATE Z_PRIMARYKEY SET Z_MAX = \(highest) WHERE Z_NAME = 'Step'")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let said = report.rebuilt.filter { $0.subject == .primaryKey && $0.entity == "Step" }
    #expect(said.count == 1 && said[0].message.contains("had no number in Z_MAX"), "\(said)")
  }
}
