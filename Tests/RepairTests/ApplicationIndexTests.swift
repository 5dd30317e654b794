import GodwitRepair
import GodwitSQLite
import Testing

/// Indexes and tables that SQLite cannot use without the application, or without a module.
@Suite struct `A store with what only its application can use` {
  @Test func `keeps its tables without the indexes that only it can make, and names these`() throws
  {
    let patient = try Patient.ofOneEntity()
    try patient.sql(
      """
      CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
      INSERT INTO notes VALUES (1, 'A', 'b'), (2, 'B', 'a');
      CREATE INDEX by_title ON notes (title);
      CREATE INDEX by_body ON notes (body);
      CREATE INDEX app_n ON ZX (ZN);
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET sql = replace(sql, '(title)', '(title COLLATE LOCALIZED)')
       WHERE name = 'by_title';
      UPDATE sqlite_master SET sql = replace(sql, '(ZN)', '(ZN COLLATE LOCALIZED)')
       WHERE name = 'app_n'
      """)
    let report = try patient.repair()
    #expect(report.rebuilt.isEmpty, "\(report.rebuilt)")
    #expect(report.lost.compactMap(\.names) == [["by_title", "app_n"]], "\(report.lost)")
    #expect(report.keptForeignRows == 2)
    let made = "SELECT name FROM sqlite_master WHERE tbl_name = 'notes' ORDER BY name"
    #expect(try patient.read(made, of: patient.output) == [[.text("by_body")], [.text("notes")]])
  }

  @Test func `keeps an index of a table whose name begins with Z, and says nothing of it`() throws {
    let patient = try Patient.ofOneEntity()
    try patient.sql(
      "CREATE TABLE Zones (a); INSERT INTO Zones VALUES ('x'); CREATE INDEX by_a ON Zones (a)")
    #expect(try patient.repair().lost.isEmpty)
    let made = "SELECT 1 FROM sqlite_master WHERE name = 'by_a'"
    #expect(try patient.read(made, of: patient.output).count == 1)
  }

  /// They would keep the application from making its virtual table again.
  @Test(
    arguments: [
      ("fts5 (body)", ["_config", "_content", "_data", "_docsize", "_idx"]),
      ("fts4 (body)", ["_content", "_docsize", "_segdir", "_segments", "_stat"]),
      ("rtree (id, a, b)", ["_node", "_parent", "_rowid"]),
    ])
  func `loses the tables of its virtual tables, which are named`(module: String, endings: [String])
    throws
  {
    let patient = try Patient.ofOneEntity()
    let others = ["_node", "_stat", "_idx"].filter { !endings.contains($0) }.map { "found" + $0 }
    try patient.sql(
      "CREATE VIRTUAL TABLE found USING \(module);"
        + others.map { "CREATE TABLE \($0) (a); INSERT INTO \($0) VALUES (1);" }.joined())
    let report = try patient.repair()
    let named = report.lost.filter { $0.message.contains("a table of a virtual table") }
    #expect(named.flatMap { $0.names ?? [] }.sorted() == endings.map { "found" + $0 })
    let found = "SELECT name FROM sqlite_master WHERE name LIKE 'found%' ORDER BY name"
    let kept = try patient.read(found, of: patient.output).compactMap { $0[0].text }
    #expect(kept == others.sorted())
  }
}
