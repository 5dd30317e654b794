import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import Testing

/// An application's tables with rows like those of the model's: copies, and what an earlier version left.
@Suite struct `A store with a table that looks like one of the model's` {
  /// With a copy of `ZSTEP` as of an earlier day.
  private func patient(rows: Int = 300, mapped: Bool = true) throws -> Patient {
    let patient = try Patient(rows: rows, seed: 5, version: .one)
    let text = try #require(
      try patient.read("SELECT sql FROM sqlite_master WHERE name = 'ZSTEP'").first?[0].text)
    try patient.vacuum(
      mapped: mapped,
      """
      \(text.replacing("CREATE TABLE ZSTEP", with: "CREATE TABLE COPY"));
      INSERT INTO COPY SELECT * FROM ZSTEP;
      UPDATE COPY SET Z_OPT = 77
      """)
    return patient
  }

  private func rows(_ patient: Patient, of path: String? = nil) throws -> [[[SQLiteValue]]] {
    try ["COPY", "ZSTEP", "ZRECIPE"].map {
      try patient.read("SELECT * FROM \($0) ORDER BY Z_PK", of: path)
    }
  }

  @Test(
    arguments: [
      // No column of it is the row id.
      "CREATE TABLE own AS SELECT * FROM ZSTEP",
      // Fewer columns.
      "CREATE TABLE own AS SELECT Z_PK, Z_ENT, Z_OPT FROM ZRECIPE",
      // The number of an entity, and of one of the history's.
      "CREATE TABLE own (Z_ENT INTEGER); INSERT INTO own VALUES (1), (2), (3), (3), (16001), (16002)",
      // Rows like those of an entity, with values of other storage classes.
      """
      CREATE TABLE own (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT VARCHAR, a INTEGER);
      INSERT INTO own SELECT Z_PK, Z_ENT, CAST('x' AS BLOB), 0.5 FROM ZSTEP
      """,
      // Rows that are shorter than the table: a key that is the row id, and a number that an entity has.
      """
      CREATE TABLE own (id INTEGER PRIMARY KEY, n INTEGER);
      INSERT INTO own SELECT Z_PK, Z_ENT FROM ZSTEP;
      ALTER TABLE own ADD COLUMN a TEXT DEFAULT 'x'
      """,
    ], [false, true])
  func `keeps its rows`(sql: String, mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    try patient.sql(sql)
    let report = try patient.repair()
    #expect(
      report.lost.isEmpty && report.doubtful.isEmpty && report.rebuilt.isEmpty,
      "\(report.lost) \(report.doubtful) \(report.rebuilt)")
    let query = "SELECT rowid, * FROM own ORDER BY 1"
    let before = try patient.read(query)
    #expect(before.count > 4)
    #expect(try patient.read(query, of: patient.output) == before)
  }

  @Test(arguments: [1, 300], [false, true])
  func `has none of its rows made objects where the model's table is lost`(
    rows: Int, mapped: Bool
  ) throws {
    let patient = try patient(rows: rows, mapped: mapped)
    let before = try self.rows(patient)
    let keys = ["ZSTEP": try patient.keys(of: "ZSTEP")]
    for page in try patient.leaves(of: "ZSTEP") + [try patient.root(of: "ZSTEP")] {
      patient.zero(page: page)
    }
    let report = try patient.repair()
    let after = try self.rows(patient, of: patient.output)
    #expect(after[0] == before[0])
    #expect(after[1].allSatisfy { before[1].contains($0) })
    #expect(!report.lost.contains { $0.names?.contains("COPY") == true }, "\(report.lost)")
    #expect(!report.doubtful.contains { $0.names?.contains("COPY") == true })
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true])
  func `keeps what is left of it where pages of both tables are lost`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let before = try rows(patient)
    for table in ["ZSTEP", "COPY"] {
      patient.zero(page: try #require(try patient.leaves(of: table).dropFirst().first))
    }
    let report = try patient.repair()
    let after = try rows(patient, of: patient.output)
    for (before, after) in zip(before, after) {
      #expect(after.allSatisfy { before.contains($0) })
      #expect(after.count > before.count / 2)
    }
    #expect(report.lost.contains { $0.names == ["COPY"] })
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true])
  func `keeps its rows where its own root page is lost`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let before = try rows(patient)
    patient.zero(page: try patient.root(of: "COPY"))
    _ = try patient.repair()
    #expect(try rows(patient, of: patient.output) == before)
  }

  /// Without pointer maps nothing tells the leaves of the two apart.
  @Test(arguments: [false, true])
  func `has objects named as doubtful where the root pages of both tables are lost`(
    mapped: Bool
  ) throws {
    let patient = try patient(mapped: mapped)
    let before = try rows(patient)
    for table in ["ZSTEP", "COPY"] { patient.zero(page: try patient.root(of: table)) }
    let report = try patient.repair()
    let after = try rows(patient, of: patient.output)
    if mapped {
      #expect(after == before)
    } else {
      let kept = KeyRanges(after[1].compactMap { $0[0].integer })
      let item = report.doubtful.first {
        $0.entity == "Step" && $0.message.contains("not the model's")
      }
      #expect(!kept.isEmpty && item?.primaryKeys == kept, "\(report.doubtful)")
    }
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true])
  func `keeps everything where its root page and one of the model's are exchanged`(
    mapped: Bool
  ) throws {
    let patient = try patient(mapped: mapped)
    // Of an entity that the model has no more.
    try patient.sql("UPDATE COPY SET Z_ENT = 99")
    let before = try rows(patient)
    patient.exchange(try patient.root(of: "COPY"), try patient.root(of: "ZSTEP"))
    let report = try patient.repair()
    #expect(try rows(patient, of: patient.output) == before)
    #expect(!report.lost.contains { $0.isCertain }, "\(report.lost)")
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true])
  func `has no rows of the model's where a leaf is theirs`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let before = try rows(patient)
    let leaves = try patient.leaves(of: "COPY")
    try #require(leaves.count > 3)
    let foreign = try #require(try patient.leaves(of: "ZSTEP").first)
    patient.put(Patient.page(foreign, of: patient.bytes), at: leaves[2])
    let report = try patient.repair()
    let after = try rows(patient, of: patient.output)
    #expect(after[0].allSatisfy { before[0].contains($0) })
    #expect(Array(after[1...]) == Array(before[1...]))
    #expect(report.lost.contains { $0.names == ["COPY"] }, "\(report.lost)")
  }

  /// A page that was written to two places reads well in both, and a table without further pages has nothing to
  /// compare it with.
  @Test(arguments: [false, true])
  func `has it named as doubtful where its only page is one of the model's`(mapped: Bool) throws {
    let patient = try patient(rows: 5, mapped: mapped)
    let before = try rows(patient)
    let root = try patient.root(of: "COPY")
    patient.put(Patient.page(try patient.root(of: "ZSTEP"), of: patient.bytes), at: root)
    let report = try patient.repair()
    #expect(report.doubtful.contains { $0.names == ["COPY"] }, "\(report.doubtful)")
    #expect(Array(try rows(patient, of: patient.output)[1...]) == Array(before[1...]))
  }

  /// Pointer maps say that the page led to others.
  @Test func `has no rows of the model's where its root page is a leaf of theirs`() throws {
    let patient = try patient()
    let before = try rows(patient)
    let leaf = try #require(try patient.leaves(of: "ZSTEP").first)
    let root = try patient.root(of: "COPY")
    patient.put(Patient.page(leaf, of: patient.bytes), at: root)
    let report = try patient.repair()
    #expect(try rows(patient, of: patient.output) == before)
    #expect(report.lost.contains { $0.names == ["COPY"] }, "\(report.lost)")
  }

  @Test func `is repaired for the sake of its rows where no object is left`() throws {
    let patient = try Patient.ofOneEntity()
    try patient.sql("CREATE TABLE COPY AS SELECT * FROM ZX")
    let before = try patient.read("SELECT * FROM COPY ORDER BY Z_PK")
    #expect(before.count == 30)
    patient.zero(page: try patient.root(of: "ZX"))
    let report = try patient.repair()
    #expect(report.kept.isEmpty && report.keptForeignRows == 30)
    #expect(try patient.read("SELECT * FROM COPY ORDER BY Z_PK", of: patient.output) == before)
    #expect(try patient.failures().isEmpty)
    try patient.sql("DELETE FROM COPY")
    #expect(throws: RepairError.self) { _ = try patient.repair() }
  }
}
