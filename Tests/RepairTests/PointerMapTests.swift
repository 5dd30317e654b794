import GodwitRepair
import GodwitSQLite
import Testing

/// A pointer map is a hint: what reads well without it is not given up for it.
@Suite struct `A store with a damaged pointer map` {
  private static let size = 512

  private func values(_ patient: Patient, of path: String? = nil) throws -> [[[SQLiteValue]]] {
    try Patient.entityTables.map { try patient.read("SELECT * FROM \($0) ORDER BY 1", of: path) }
  }

  private func maps(_ patient: Patient) -> [Int] {
    Array(stride(from: 2, through: patient.bytes.count / Self.size, by: Self.size / 5 + 1))
  }

  @Test func `keeps every value where a map stands in another one's place`() throws {
    let patient = try Patient(rows: 150, seed: 5)
    try patient.vacuum(mapped: true, pageSize: Self.size)
    let (whole, before, maps) = (patient.bytes, try values(patient), maps(patient))
    try #require(maps.count > 3)
    for (place, map) in maps.enumerated() {
      let other = maps[(place + 1) % (maps.count - 1)]
      let content = whole[(other - 1) * Self.size..<other * Self.size]
      for page in [Array(content), [UInt8](repeating: 0, count: Self.size)] {
        patient.bytes = whole
        patient.bytes.replaceSubrange((map - 1) * Self.size..<map * Self.size, with: page)
        let report = try patient.repair(models: [])
        #expect(try values(patient, of: patient.output) == before, "map \(map)")
        #expect(report.lost.isEmpty && report.doubtful.isEmpty, "map \(map): \(report)")
      }
    }
  }

  @Test func `keeps every value whatever single entries say`() throws {
    let patient = try Patient(rows: 60, seed: 5)
    try patient.vacuum(mapped: true, pageSize: Self.size)
    let (whole, before) = (patient.bytes, try values(patient))
    // Each page of the first map is said to be of another kind.
    for kind in [UInt8(1), 2, 3, 4, 5] {
      patient.bytes = whole
      for entry in stride(from: Self.size + 5 * Int(kind), to: 2 * Self.size - 5, by: 25) {
        patient.bytes[entry] = kind
      }
      let report = try patient.repair(models: [])
      #expect(try values(patient, of: patient.output) == before, "kind \(kind)")
      #expect(report.lost.isEmpty, "kind \(kind): \(report.lost)")
    }
  }

  @Test func `keeps every object where the header says that there are maps, and there are none`()
    throws
  {
    let patient = try Patient(rows: 60, seed: 5)
    try patient.vacuum(mapped: false)
    let before = try values(patient)
    patient.bytes[55] = 9
    let report = try patient.repair()
    #expect(try values(patient, of: patient.output) == before)
    #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(report)")
  }
}
