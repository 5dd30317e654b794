import GodwitRepair
import GodwitSQLite
import Testing

/// A number of a page that is wrong leads to another row's value.
@Suite struct `A store two of whose rows lead to one overflow chain` {
  /// Images whose thumbnails are as long as given, and as no other; the other images have none.
  private func patient(mapped: Bool, _ lengths: (Int, Int)) throws -> (
    Patient, first: Int64, second: Int64
  ) {
    let patient = try Patient(rows: 60, seed: 11)
    let keys = try patient.keys(of: "ZIMAGE")
    let (first, second) = (keys[10], keys[40])
    func value(_ letters: String, _ count: Int) -> String {
      "CAST(replace(hex(zeroblob(\(count))), '00', '\(letters)') AS BLOB)"
    }
    try patient.vacuum(
      mapped: mapped,
      """
      UPDATE ZIMAGE SET ZTHUMBNAIL = NULL, ZDATA = NULL;
      UPDATE ZIMAGE SET ZTHUMBNAIL = \(value("ab", lengths.0)) WHERE Z_PK = \(first);
      UPDATE ZIMAGE SET ZTHUMBNAIL = \(value("cd", lengths.1)) WHERE Z_PK = \(second)
      """)
    return (patient, first, second)
  }

  private func thumbnails(_ patient: Patient, of path: String? = nil) throws -> [Int64: SQLiteValue]
  {
    Dictionary(
      uniqueKeysWithValues: try patient.read(
        "SELECT Z_PK, ZTHUMBNAIL FROM ZIMAGE WHERE ZTHUMBNAIL IS NOT NULL", of: path
      ).compactMap { row in row[0].integer.map { ($0, row[1]) } })
  }

  private func named(_ items: [RepairReport.Item]) -> KeyRanges {
    KeyRanges(
      union: items.filter { $0.subject == .value && $0.property == "thumbnail" }
        .compactMap(\.primaryKeys))
  }

  @Test func `keeps the value for both, as doubtful, where nothing tells whose it is`() throws {
    let (patient, first, second) = try patient(mapped: false, (6000, 6000))
    let before = try thumbnails(patient)
    let chains = try patient.chains(of: "ZIMAGE")
    for (wrong, right) in [(first, second), (second, first)] {
      let whole = patient.bytes
      patient.put(
        number: patient.number(at: try #require(chains[right])), at: try #require(chains[wrong]))
      let report = try patient.repair()
      let after = try thumbnails(patient, of: patient.output)
      #expect(after[right] == before[right])
      #expect(after[wrong] != before[wrong])
      #expect(named(report.doubtful) == KeyRanges([first, second]), "\(report)")
      #expect(named(report.lost).isEmpty, "\(report.lost)")
      patient.bytes = whole
    }
  }

  @Test func `gives it to the row that the pointer map names`() throws {
    let (patient, first, second) = try patient(mapped: true, (6000, 6000))
    let leaves = Set(try patient.chains(of: "ZIMAGE").values.map { $0 / 4096 })
    try #require(leaves.count == 2)
    try expectGiven(patient, wrong: first, right: second)
    try expectGiven(patient, wrong: second, right: first)
  }

  @Test(arguments: [(6000, 11_000), (11_000, 6000)])
  func `gives it to the row that ends where it does`(first: Int, second: Int) throws {
    let (patient, a, b) = try patient(mapped: false, (first, second))
    try expectGiven(patient, wrong: a, right: b)
    try expectGiven(patient, wrong: b, right: a)
  }

  private func expectGiven(_ patient: Patient, wrong: Int64, right: Int64) throws {
    let (whole, before) = (patient.bytes, try thumbnails(patient))
    let chains = try patient.chains(of: "ZIMAGE")
    patient.put(
      number: patient.number(at: try #require(chains[right])), at: try #require(chains[wrong]))
    let report = try patient.repair()
    let after = try thumbnails(patient, of: patient.output)
    #expect(after[right] == before[right])
    #expect(after[wrong] == nil)
    #expect(named(report.lost) == KeyRanges([wrong]), "\(report.lost)")
    #expect(named(report.doubtful).isEmpty, "\(report.doubtful)")
    patient.bytes = whole
  }

  /// Each would be read from end to end: as many as a file can hold take long.
  @Test func `gives it to none of many, and ends soon`() throws {
    let patient = try Patient(rows: 400, seed: 11)
    try patient.vacuum(
      mapped: false,
      "UPDATE ZIMAGE SET ZTHUMBNAIL = CAST(printf('%05d', Z_PK) || hex(zeroblob(20000)) AS BLOB)")
    let chains = try patient.chains(of: "ZIMAGE")
    try #require(chains.count == 400)
    let first = patient.number(at: try #require(chains.values.min()))
    var bytes = patient.bytes
    for place in chains.values {
      bytes.replaceSubrange(
        place..<place + 4, with: [24, 16, 8, 0].map { UInt8(first >> $0 & 0xFF) })
    }
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(named(report.lost).count == 400, "\(report.lost)")
    #expect(named(report.doubtful).isEmpty)
  }

  @Test func `doubts both where they are exchanged, and a pointer map says so`() throws {
    let (patient, first, second) = try patient(mapped: true, (6000, 6000))
    let chains = try patient.chains(of: "ZIMAGE")
    let (a, b) = (try #require(chains[first]), try #require(chains[second]))
    let (own, other) = (patient.number(at: a), patient.number(at: b))
    patient.put(number: other, at: a)
    patient.put(number: own, at: b)
    let report = try patient.repair()
    #expect(named(report.doubtful) == KeyRanges([first, second]), "\(report)")
    #expect(named(report.lost).isEmpty)
    #expect(try thumbnails(patient, of: patient.output).count == 2)
  }

  @Test func `has no doubt of a leaf that was written twice`() throws {
    let (patient, first, _) = try patient(mapped: false, (6000, 6000))
    let before = try thumbnails(patient)
    let chain = try #require(try patient.chains(of: "ZIMAGE")[first])
    let leaves = try patient.leaves(of: "ZIMAGE")
    let own = chain / 4096 + 1
    let other = try #require(leaves.first { $0 != own })
    patient.put(Patient.page(own, of: patient.bytes), at: other)
    let report = try patient.repair()
    #expect(try thumbnails(patient, of: patient.output)[first] == before[first])
    #expect(named(report.doubtful + report.lost).isEmpty, "\(report)")
  }

  @Test func `doubts a value whose chain goes on behind it`() throws {
    let (patient, first, second) = try patient(mapped: false, (6000, 6000))
    let before = try thumbnails(patient)
    let chains = try patient.chains(of: "ZIMAGE")
    var page = patient.number(at: try #require(chains[first]))
    while case let next = patient.number(at: (page - 1) * 4096), next != 0 { page = next }
    // To a page that no row leads to.
    patient.bytes += [UInt8](repeating: 0, count: 4096)
    patient.put(number: patient.pageCount, at: (page - 1) * 4096)
    let report = try patient.repair()
    #expect(try thumbnails(patient, of: patient.output) == before)
    #expect(named(report.doubtful) == KeyRanges([first]), "\(report) \(second)")
    #expect(named(report.lost).isEmpty)
  }
}
