import GodwitRepair
import GodwitSQLite
import Testing

/// Pages of an index that are another index's: they read well, and name rows of another table.
@Suite struct `A store whose index pages are other indexes'` {
  /// Every page of a table that is below its root, and the root.
  private func lose(_ table: String, _ patient: Patient) throws {
    for page in try patient.leaves(of: table) + [try patient.root(of: table)] {
      patient.zero(page: page)
    }
  }

  private func named(_ report: RepairReport, _ entity: String) -> (
    certain: KeyRanges, all: KeyRanges
  ) {
    let items = report.lost.filter { $0.subject == .object && $0.entity == entity }
    return (
      KeyRanges(union: items.filter(\.isCertain).compactMap(\.primaryKeys)),
      KeyRanges(union: items.compactMap(\.primaryKeys))
    )
  }

  @Test(arguments: ["Z_RecipeType_UNIQUE_name", "ZINGREDIENT_ZRECIPE_INDEX"])
  func `has no rows of that index's table named as lost`(other: String) throws {
    let patient = try Patient(rows: 60, seed: 9, version: .one)
    try patient.vacuum(mapped: false)
    let real = try patient.keys(of: "ZSTEP")
    let place = try patient.root(of: "ZSTEP_ZRECIPE_INDEX")
    let content = Patient.page(try patient.root(of: other), of: patient.bytes)
    try #require(content[0] == 0x0A)
    patient.put(content, at: place)
    try lose("ZSTEP", patient)
    let report = try patient.repair()
    let (certain, all) = named(report, "Step")
    #expect(
      certain.ranges.allSatisfy { range in range.allSatisfy { real.contains($0) } },
      "\(report.lost)")
    #expect(real.allSatisfy { all.contains($0) })
    #expect(try patient.failures().isEmpty)
  }

  @Test func `has no rows of that index's table named as lost where two are exchanged`() throws {
    let patient = try Patient(rows: 60, seed: 9, version: .one)
    try patient.vacuum(mapped: false)
    let real = try patient.keys(of: "ZSTEP")
    patient.exchange(
      try patient.root(of: "ZSTEP_ZRECIPE_INDEX"), try patient.root(of: "ZINGREDIENT_ZRECIPE_INDEX")
    )
    try lose("ZSTEP", patient)
    let report = try patient.repair()
    let (certain, all) = named(report, "Step")
    #expect(certain.isEmpty, "\(report.lost)")
    #expect(real.allSatisfy { all.contains($0) })
    #expect(!report.doubtful.contains { $0.entity == "Ingredient" }, "\(report.doubtful)")
  }

  @Test func `is not one of them where rows have the odd values of an index`() throws {
    let patient = try Patient(rows: 60, seed: 9, version: .one)
    try patient.sql("UPDATE ZSTEP SET ZRECIPE = 'x' || Z_PK")
    #expect(!(try patient.repair()).rebuilt.contains { $0.subject == .index })
  }

  /// Pages without entries are all alike.
  @Test func `calls no empty index damaged`() throws {
    let patient = try Patient(rows: 20, seed: 9, version: .one)
    try patient.sql("DELETE FROM ZSTEP; DELETE FROM ZINGREDIENT; DELETE FROM Z_3RECIPES")
    try patient.vacuum(mapped: false)
    let report = try patient.repair()
    #expect(report.rebuilt.isEmpty && report.lost.isEmpty && report.doubtful.isEmpty, "\(report)")
  }

  @Test func `names the rows of its own pages`() throws {
    let patient = try Patient(rows: 60, seed: 9, version: .one)
    let real = try patient.keys(of: "ZSTEP")
    try lose("ZSTEP", patient)
    #expect(named(try patient.repair(), "Step").certain == KeyRanges(real))
  }

  @Test func `gets no pairs from them`() throws {
    let patient = try Patient(rows: 60, seed: 9)
    try patient.vacuum(mapped: false)
    let query = "SELECT * FROM Z_8TAGS ORDER BY 1, 2"
    let before = Set(try patient.read(query).map { "\($0)" })
    let indexes = try patient.read(
      "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name = 'Z_8TAGS'"
    ).compactMap { $0[0].integer.map { Int($0) } }
    try #require(indexes.count == 2)
    let others = try patient.read(
      "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name IN "
        + "('Z_8PAIRSWITH', 'Z_8RELATEDTO')"
    ).compactMap { $0[0].integer.map { Int($0) } }
    try #require(others.count == 4)
    let whole = patient.bytes
    for other in others {
      patient.bytes = whole
      for page in indexes { patient.put(Patient.page(other, of: whole), at: page) }
      try lose("Z_8TAGS", patient)
      let report = try patient.repair()
      let after = Set(try patient.read(query, of: patient.output).map { "\($0)" })
      #expect(after.isSubset(of: before), "page \(other)")
      #expect(report.lost.contains { $0.subject == .pair && !$0.isCertain }, "\(report.lost)")
    }
  }
}
