import Foundation
import StoreFixtures
import Testing

@testable import GodwitRepair

/// Whoever made a store wrote its schema: none of it is run as it stands.
@Suite struct `A store whose schema holds other statements` {
  private static let definitions = [
    ("trigger", "Z_DA_ZINGREDIENT", "ZINGREDIENT", "VACUUM INTO 'EVIL'"),
    (
      "trigger", "Z_DA_ZINGREDIENT", "ZINGREDIENT",
      "ATTACH 'VICTIM' AS x; DELETE FROM x.ZINGREDIENT"
    ),
    ("trigger", "Z_DA_ZINGREDIENT", "ZINGREDIENT", "DELETE FROM ZINGREDIENT WHERE Z_PK > 10"),
    (
      "trigger", "Z_DA_ZINGREDIENT", "ZINGREDIENT",
      "CREATE TRIGGER Z_DA_ZINGREDIENT AFTER INSERT ON ZSTEP BEGIN DELETE FROM ZINGREDIENT; END"
    ),
    ("index", "mine", "own", "VACUUM INTO 'EVIL'"),
    ("index", "mine", "own", "CREATE TABLE EVIL (a)"),
    (
      "table", "ZEVIL", "ZEVIL",
      "CREATE TABLE ZEVIL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"
    ),
  ]

  @Test func `gets a text of the model with each quotation mark in it doubled`() {
    // Swift takes the mark and the accent after it for one Character.
    #expect(Mender.text("O'\u{301}").utf8.elementsEqual("'O''\u{301}'".utf8))
  }

  @Test(arguments: definitions)
  func `is repaired without running one of them`(
    kind: String, name: String, table: String, sql: String
  ) throws {
    let patient = try Patient()
    let evil = patient.folder.appendingPathComponent("evil").path
    let victim = patient.folder.appendingPathComponent("victim.sqlite").path
    try FileManager.default.copyItem(atPath: patient.store, toPath: victim)
    let theirs = FileManager.default.contents(atPath: victim)
    let before = try patient.allKeys()
    let text = sql.replacing("EVIL", with: evil).replacing("VICTIM", with: victim)
    try patient.sql(
      """
      CREATE TABLE own (a); INSERT INTO own VALUES (1);
      PRAGMA writable_schema = ON;
      INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)
      VALUES (
        '\(kind)', '\(name)', '\(table)',
        (SELECT CASE '\(kind)' WHEN 'trigger' THEN 0 ELSE max(rootpage) END FROM sqlite_master),
        '\(text.replacing("'", with: "''"))')
      """)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(kind != "trigger" || report.lost.contains { $0.names == [name] }, "\(report.lost)")
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys, "\(table)")
    }
    #expect(!FileManager.default.fileExists(atPath: evil))
    #expect(FileManager.default.contents(atPath: victim) == theirs)
  }

  @Test func `has no constraint computed that asks for more than there is`() throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    try patient.sql(
      """
      CREATE TABLE own (a CHECK (length(zeroblob(a)) >= 0)); INSERT INTO own VALUES (1);
      PRAGMA ignore_check_constraints = ON; INSERT INTO own VALUES (900000000);
      """)
    let report = try patient.repair()
    #expect(report.lost.contains { $0.names == ["own"] })
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys, "\(table)")
    }
  }

  /// A length costs nothing to write, and a hole has nothing in it.
  @Test func `is repaired however long its file is said to be`() throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    let file = try #require(FileHandle(forUpdatingAtPath: patient.store))
    try file.truncate(atOffset: 200 << 30)
    try file.close()
    _ = try patient.repair()
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys, "\(table)")
    }
  }
}
