import GodwitPersistentStore
import GodwitRepair
import GodwitSQLite
import StoreFixtures
import Testing

/// `sqlite_master` is lost, and the tables are there.
@Suite struct `A store whose list of tables is lost` {
  private func values(_ patient: Patient, of path: String? = nil) throws -> [[[SQLiteValue]]] {
    try Patient.entityTables.map { try patient.read("SELECT * FROM \($0) ORDER BY 1", of: path) }
  }

  /// The pages of `sqlite_master` become zeros.
  private func loseList(_ patient: Patient, withFirstPage: Bool = true) throws {
    let bytes = patient.bytes
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
    try #require(bytes[100] == 0x05)
    let leaves = (0..<number(103, 2)).map { number(number(112 + 2 * $0, 2), 4) } + [number(108, 4)]
    for page in leaves + (withFirstPage ? [1] : []) { patient.zero(page: page) }
  }

  @Test(arguments: [true, false], [true, false])
  func `keeps every object by the model that is given, or its own, as doubtful`(
    mapped: Bool, withFirstPage: Bool
  ) throws {
    let patient = try Patient(rows: 120, seed: 5)
    try patient.vacuum(mapped: mapped)
    let before = try values(patient)
    let keys = try patient.allKeys()
    try loseList(patient, withFirstPage: withFirstPage)
    for models in [[patient.model], []] {
      let report = try patient.repair(models: models)
      #expect(try values(patient, of: patient.output) == before)
      let doubtful = Set(
        report.doubtful.filter { $0.subject == .object }.compactMap(\.entity))
      #expect(doubtful.count == keys.count, "\(doubtful)")
      for item in report.doubtful where item.subject == .object {
        let kept = report.kept.filter { $0.entity == item.entity }.map(\.primaryKeys)
        #expect(
          kept.allSatisfy { range in
            range.ranges.allSatisfy { item.primaryKeys?.contains($0.lowerBound) == true }
          })
      }
      #expect(!report.lost.contains { $0.subject == .object && $0.isCertain }, "\(report.lost)")
      #expect(try patient.failures().isEmpty)
    }
  }

  @Test func `names what a page of it lost`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    try patient.vacuum(mapped: false)
    let keys = try patient.allKeys()
    let leaf = try #require(try patient.leaves(of: "ZSTEP").dropFirst(2).first)
    try loseList(patient)
    patient.zero(page: leaf)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    // The pages above bound the keys: not every key of the table may be lost.
    let item = try #require(report.lost.first { $0.subject == .object && $0.entity == "Step" })
    #expect(item.primaryKeys?.count ?? .max < 150, "\(item)")
  }

  @Test func `makes no objects of an application's rows`() throws {
    let patient = try Patient(rows: 60, seed: 5) { $0.history = true }
    try patient.vacuum(
      mapped: true,
      """
      CREATE TABLE NOTES (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c TEXT);
      INSERT INTO NOTES
      WITH i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 300) SELECT n, 3, 1, 'note' FROM i
      """)
    let keys = try patient.allKeys()
    try loseList(patient)
    let report = try patient.repair()
    for (table, before) in keys {
      #expect(try patient.keys(of: table, in: patient.output) == before, "\(table)")
    }
    // Whose the others are nobody knows.
    #expect(report.lost.contains { $0.subject == .file && !$0.isCertain }, "\(report.lost)")
  }

  @Test func `does not bring deleted objects back for certain`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    try patient.vacuum(mapped: false)
    try patient.sql("DELETE FROM ZSTEP WHERE Z_PK > 200")
    let before = try patient.keys(of: "ZSTEP")
    try loseList(patient)
    let report = try patient.repair()
    let kept = try patient.keys(of: "ZSTEP", in: patient.output)
    #expect(Set(before).isSubset(of: kept))
    let doubtful = KeyRanges(
      union: report.doubtful.filter { $0.subject == .object && $0.entity == "Step" }
        .compactMap(\.primaryKeys))
    #expect(kept.allSatisfy { doubtful.contains($0) })
  }

  @Test func `has the model whose entities it names where hashes and cache are lost`() throws {
    let patient = try Patient(rows: 60, seed: 5)
    let before = try values(patient)
    try patient.sql("UPDATE Z_METADATA SET Z_PLIST = NULL; DELETE FROM Z_MODELCACHE")
    try loseList(patient)
    #expect(throws: RepairError.self) { try patient.repair(models: []) }
    let other = try FixtureModels.Recipes.one.model()
    let report = try patient.repair(models: [other, patient.model])
    #expect(try values(patient, of: patient.output) == before)
    #expect(report.doubtful.contains { $0.subject == .metadata }, "\(report.doubtful)")
    // Two of the same entities nothing tells apart.
    var twin = patient.model
    twin.entities[0].versionHashModifier = "another"
    #expect(throws: RepairError.self) { try patient.repair(models: [twin, patient.model]) }
  }
}
