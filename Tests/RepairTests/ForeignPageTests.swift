import GodwitRepair
import GodwitSQLite
import Testing

/// The history's tables, and those of the application, are checked as the model's are.
@Suite struct `A store whose other tables are damaged` {
  private static let tables = ["ACHANGE", "ATRANSACTION", "NOTES"]

  private func patient(mapped: Bool = true) throws -> Patient {
    let patient = try Patient(rows: 250, seed: 5, version: .one) { $0.history = true }
    try patient.sql(
      """
      PRAGMA auto_vacuum = \(mapped ? 2 : 0);
      CREATE TABLE NOTES (id INTEGER PRIMARY KEY, a TEXT, b BLOB);
      INSERT INTO NOTES
      WITH i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 300)
      SELECT n, 'note ' || n,
        CAST(replace(hex(zeroblob(CASE WHEN n % 40 = 0 THEN 4500 ELSE 25 END)), '00', 'ef') AS BLOB)
        FROM i;
      CREATE INDEX notesA ON NOTES (a);
      CREATE INDEX notesB ON NOTES (b, a);
      VACUUM
      """)
    return patient
  }

  private func rows(_ patient: Patient, of path: String? = nil) throws -> [[[SQLiteValue]]] {
    let others = ["ZAUTHOR", "ZCOOKBOOK", "ZIMAGE", "ZINGREDIENT", "ZRECIPE", "ZSTEP"]
    return try (Self.tables + others).map {
      try patient.read("SELECT * FROM \($0) ORDER BY 1", of: path)
    }
  }

  private func names(_ items: [RepairReport.Item], _ table: String) -> Bool {
    items.contains { $0.names?.contains(table) == true || $0.entity == table }
  }

  /// That no row is another one's or gone without a word.
  private func expectAccounted(
    _ patient: Patient, _ before: [[[SQLiteValue]]], _ report: RepairReport,
    _ comment: Comment? = nil
  ) throws {
    let after = try rows(patient, of: patient.output)
    for (number, table) in Self.tables.enumerated() {
      let (was, now) = (before[number], after[number])
      let known = Set(was.map { "\($0)" })
      #expect(now.allSatisfy { known.contains("\($0)") }, comment)
      #expect(now.count == was.count || names(report.lost, table), comment)
    }
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true]) func `is as it was when it is not`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let report = try patient.repair()
    #expect(try rows(patient, of: patient.output) == rows(patient))
    #expect(report.lost.isEmpty && report.doubtful.isEmpty && report.rebuilt.isEmpty)
  }

  @Test(arguments: ["NOTES", "ACHANGE"], [false, true])
  func `keeps the rows of a table whose root page is another table's`(
    table: String, mapped: Bool
  ) throws {
    let patient = try patient(mapped: mapped)
    let (before, whole) = (try rows(patient), patient.bytes)
    let root = try patient.root(of: table)
    for other in ["ZSTEP", "ZRECIPE"] {
      patient.bytes = whole
      let leaf = try #require(try patient.leaves(of: other).dropFirst().first)
      patient.put(Patient.page(leaf, of: whole), at: root)
      let report = try patient.repair()
      #expect(try rows(patient, of: patient.output) == before, "\(other)")
      #expect(!(report.lost + report.rebuilt + report.doubtful).isEmpty)
      #expect(mapped || names(report.doubtful, table), "\(report.doubtful)")
      #expect(try patient.failures().isEmpty)
    }
  }

  @Test(arguments: ["NOTES", "ACHANGE"], [false, true])
  func `has no rows of other tables where a leaf is theirs`(table: String, mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let (before, whole) = (try rows(patient), patient.bytes)
    let leaf = try #require(try patient.leaves(of: table).dropFirst().first)
    for other in ["ZSTEP", "ZRECIPE", table == "NOTES" ? "ACHANGE" : "NOTES"] {
      patient.bytes = whole
      let foreign = try #require(try patient.leaves(of: other).first)
      patient.put(Patient.page(foreign, of: whole), at: leaf)
      let report = try patient.repair()
      try expectAccounted(patient, before, report, "\(other)")
      #expect(names(report.lost, table), "\(other)")
      #expect(Array(try rows(patient, of: patient.output)[3...]) == Array(before[3...]))
    }
  }

  @Test(arguments: [false, true])
  func `keeps everything where leaves of different tables are exchanged`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let (before, whole) = (try rows(patient), patient.bytes)
    for (table, other) in [("ACHANGE", "ZRECIPE"), ("NOTES", "ZSTEP"), ("NOTES", "ACHANGE")] {
      patient.bytes = whole
      let a = try #require(try patient.leaves(of: table).first)
      let b = try #require(try patient.leaves(of: other).dropFirst().first)
      patient.exchange(a, b)
      let report = try patient.repair()
      #expect(try rows(patient, of: patient.output) == before, "\(table) \(other)")
      #expect(!(report.rebuilt + report.doubtful).isEmpty)
      #expect(try patient.failures().isEmpty)
    }
  }

  @Test(arguments: [false, true])
  func `keeps everything where root pages of different tables are exchanged`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let (before, whole) = (try rows(patient), patient.bytes)
    for (table, other) in [
      ("ZSTEP", "ATRANSACTION"), ("ZCOOKBOOK", "ACHANGE"), ("ZRECIPE", "NOTES"),
    ] {
      patient.bytes = whole
      patient.exchange(try patient.root(of: table), try patient.root(of: other))
      let report = try patient.repair()
      #expect(try rows(patient, of: patient.output) == before, "\(table) \(other)")
      #expect(!report.lost.contains { $0.isCertain }, "\(report.lost)")
      #expect(try patient.failures().isEmpty)
    }
  }

  @Test func `names the rows that two indexes have and an old page has not`() throws {
    let patient = try patient()
    let now = patient.bytes
    let key = try #require(
      try patient.read("SELECT id FROM NOTES WHERE id > 60 AND id % 40 <> 0 LIMIT 1").first?[0]
        .integer)
    try patient.sql(
      "PRAGMA journal_mode = DELETE; DELETE FROM NOTES WHERE id BETWEEN \(key) AND \(key + 2)")
    let old = patient.bytes
    let place = try #require(
      try patient.leaves(of: "NOTES").first {
        Patient.page($0, of: old) != Patient.page($0, of: now)
      })
    patient.bytes = now
    patient.put(Patient.page(place, of: old), at: place)
    let report = try patient.repair()
    let item = try #require(report.lost.first { $0.names == ["NOTES"] })
    #expect(item.isCertain && item.primaryKeys == KeyRanges(key...key + 2), "\(report.lost)")
    #expect(
      try patient.read("SELECT count(*) FROM NOTES", of: patient.output) == [[.integer(297)]])
  }

  @Test func `names the values whose pages are zeros or another table's`() throws {
    let patient = try patient()
    let (before, whole) = (try rows(patient), patient.bytes)
    let pages = (2...patient.pageCount).filter { page in
      whole[(page - 1) * 4096 + 4..<(page - 1) * 4096 + 204].allSatisfy {
        [UInt8(ascii: "e"), UInt8(ascii: "f")].contains($0)
      }
    }
    let leaf = try #require(try patient.leaves(of: "ZSTEP").first)
    let zeros = [UInt8](repeating: 0, count: 4096)
    for page in pages.prefix(4) {
      for content in [zeros, Patient.page(leaf, of: whole)] {
        patient.bytes = whole
        patient.put(content, at: page)
        let report = try patient.repair()
        let after = try rows(patient, of: patient.output)
        let changed = Set(after[2].map { "\($0)" }).subtracting(before[2].map { "\($0)" })
        #expect(after[2].count == 300)
        #expect(changed.count <= 1)
        #expect(names(report.lost + report.doubtful, "NOTES"), "page \(page)")
      }
    }
  }

  @Test(arguments: ["NOTES", "ACHANGE"])
  func `names a row whose record does not add up`(table: String) throws {
    let patient = try patient()
    let leaf = try #require(try patient.leaves(of: table).first)
    let before = try rows(patient)
    var bytes = patient.bytes
    let start = (leaf - 1) * 4096
    let cell = start + Int(bytes[start + 18]) << 8 + Int(bytes[start + 19])
    // Behind the length of the row, and its id.
    var place = cell
    for _ in 0..<2 {
      while bytes[place] & 0x80 != 0 { place += 1 }
      place += 1
    }
    bytes[place] += 1
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(names(report.lost + report.doubtful, table), "\(report)")
    #expect(try rows(patient, of: patient.output) != before)
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: [false, true])
  func `names tables to whose rows nothing leads any more`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    for table in ["NOTES", "ATRANSACTION"] {
      let page = try patient.root(of: table)
      try patient.sql(
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE tbl_name = '\(table)'")
      let report = try patient.repair()
      #expect(report.lost.contains { $0.subject == .file && !$0.isCertain }, "\(table) \(page)")
    }
    try patient.sql(
      "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = 'ACHANGE'")
    #expect(names(try patient.repair().lost, "ACHANGE"))
  }
}
