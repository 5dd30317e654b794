import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import Testing

/// Values that go on on pages of their own: nothing else that lies in the file becomes one of them.
@Suite struct `A store whose long values are damaged` {
  private static let query = "SELECT Z_PK, ZINSTRUCTIONS FROM ZRECIPE ORDER BY Z_PK"

  /// With two long texts and two long blobs.
  private func patient(mapped: Bool = true) throws -> Patient {
    let patient = try Patient()
    try patient.sql(
      """
      PRAGMA auto_vacuum = \(mapped ? 2 : 0);
      UPDATE ZRECIPE SET ZINSTRUCTIONS =
        CASE Z_PK WHEN 3 THEN replace(hex(zeroblob(5000)), '00', 'ab')
                  WHEN 9 THEN replace(hex(zeroblob(5000)), '00', 'cd') ELSE 'short' END;
      UPDATE ZIMAGE SET ZTHUMBNAIL =
        CASE Z_PK WHEN 2 THEN zeroblob(9000)
                  WHEN 5 THEN CAST(replace(hex(zeroblob(5000)), '00', 'ef') AS BLOB) END;
      VACUUM;
      """)
    return patient
  }

  /// Pages that hold nothing but such a text, the last one of a value included.
  private func pages(of text: String, _ patient: Patient) -> [Int] {
    let (bytes, unit) = (patient.bytes, Array(text.utf8))
    return (2...patient.pageCount).filter { page in
      let start = (page - 1) * 4096
      return (0..<200).allSatisfy { unit.contains(bytes[start + 4 + $0]) }
    }
  }

  @Test(arguments: [false, true])
  func `loses a text part of which is zeros, and keeps blobs that may be`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let (whole, before) = (patient.bytes, try patient.read(Self.query))
    let untouched = try patient.repair()
    #expect(untouched.lost.isEmpty && untouched.doubtful.isEmpty)
    let texts = pages(of: "ab", patient)
    #expect(texts.count == 2)
    for page in texts {
      patient.bytes = whole
      patient.zero(page: page)
      let report = try patient.repair()
      let lost = report.lost.filter { $0.property == "instructions" }
      #expect(lost.count == 1 && lost[0].primaryKeys?.contains(3) == true, "page \(page)")
      let after = try patient.read(Self.query, of: patient.output)
      #expect(zip(before, after).allSatisfy { $0 == $1 || $0[0] == .integer(3) })
      #expect(after[2][1] == .null)
    }
    for page in pages(of: "ef", patient) {
      patient.bytes = whole
      patient.zero(page: page)
      let report = try patient.repair()
      let said = report.lost + report.doubtful
      #expect(said.contains { $0.entity == "Image" && $0.primaryKeys?.contains(5) == true })
      #expect(try patient.keys(of: "ZIMAGE", in: patient.output).contains(5))
    }
  }

  /// Points the first page of a text elsewhere.
  private func lead(_ patient: Patient, from page: Int, to other: Int) throws {
    let wanted = [UInt8](be32: page)
    let bytes = patient.bytes
    let places = bytes.indices.dropFirst().dropLast(4).filter { place in
      bytes[place + 3] == wanted[3] && Array(bytes[place..<place + 4]) == wanted
        && bytes[place - 1] == UInt8(ascii: "b")
    }
    let place = try #require(places.count == 1 ? places.first : nil)
    patient.bytes.replaceSubrange(place..<place + 4, with: [UInt8](be32: other))
  }

  @Test(arguments: [false, true])
  func `takes no other table's page for the rest of a text`(mapped: Bool) throws {
    let patient = try patient(mapped: mapped)
    let keys = try patient.allKeys()
    let roots = try patient.read(
      "SELECT name, rootpage FROM sqlite_master WHERE name IN ('ZSTEP', 'ZTAG', 'ZINGREDIENT')")
    let (whole, first) = (patient.bytes, try #require(pages(of: "ab", patient).first))
    for root in roots {
      patient.bytes = whole
      try lead(patient, from: first, to: Int(root[1].integer ?? 0))
      let report = try patient.repair()
      #expect(try patient.unaccounted(keys, report).isEmpty, "\(root)")
      for (table, keys) in keys {
        #expect(try patient.keys(of: table, in: patient.output) == keys, "\(root) \(table)")
      }
      #expect(report.lost.contains { $0.property == "instructions" }, "\(root)")
    }
  }

  @Test func `takes no other value's page for the rest of a text where maps tell`() throws {
    let patient = try patient()
    let pages = (
      try #require(pages(of: "ab", patient).first),
      try #require(self.pages(of: "cd", patient).first)
    )
    try lead(patient, from: pages.0, to: pages.1)
    let report = try patient.repair()
    let lost = report.lost.filter { $0.property == "instructions" }
    #expect(lost.count == 1 && lost[0].primaryKeys?.contains(3) == true)
    let after = try patient.read(Self.query, of: patient.output)
    #expect(after[2][1] == .null && after[8][1].text?.count == 10_000)
  }
}

/// What page 1 has besides the header is where everything else lies.
@Suite struct `A store whose list of tables is damaged` {
  /// How the page's cells go.
  enum Damage: CaseIterable {
    case noCount, noPointers, noHeader, noPage
  }

  /// Of a model so small that page 1 has all of them.
  @Test(arguments: [Damage.noCount, .noPointers, .noHeader], [false, true])
  func `has its tables found where they are on page 1 alone`(damage: Damage, mapped: Bool) throws {
    let attribute = AttributeDescription(traits: PropertyTraits(name: "a"), type: .string)
    let entity = EntityDescription(name: "P", properties: [.attribute(attribute)])
    let patient = try Patient(of: ManagedObjectModel(entities: [entity]), rows: 50) { _ in }
    try patient.sql(
      "CREATE TABLE gone (a); DROP TABLE gone; PRAGMA auto_vacuum = \(mapped ? 2 : 0); VACUUM")
    var bytes = patient.bytes
    #expect(bytes[100] == 13)
    let count = 2 * Int(bytes[104])
    let hurt =
      switch damage {
      case .noCount: 103..<105
      case .noHeader: 100..<108
      default: 108..<108 + count
      }
    bytes.replaceSubrange(hurt, with: repeatElement(0, count: hurt.count))
    let before = try patient.read("SELECT * FROM ZP ORDER BY 1")
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(try patient.read("SELECT * FROM ZP ORDER BY 1", of: patient.output) == before)
  }

  @Test(arguments: Damage.allCases, [false, true])
  func `has its tables found by what lies there`(damage: Damage, mapped: Bool) throws {
    let patient = try Patient(rows: 60)
    try patient.sql("PRAGMA auto_vacuum = \(mapped ? 2 : 0); VACUUM")
    let before = try patient.allKeys()
    var bytes = patient.bytes
    let isInterior = bytes[100] == 5
    switch damage {
    case .noCount: bytes.replaceSubrange(103..<105, with: [0, 0])
    case .noPointers:
      let first = isInterior ? 112 : 108
      bytes.replaceSubrange(
        first..<first + 2 * Int(bytes[104]), with: repeatElement(0, count: 2 * Int(bytes[104])))
    case .noHeader: bytes.replaceSubrange(100..<112, with: repeatElement(0, count: 12))
    case .noPage: bytes.replaceSubrange(0..<4096, with: repeatElement(0, count: 4096))
    }
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(try patient.unaccounted(before, report).isEmpty)
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys, "\(table)")
    }
  }
}

extension [UInt8] {
  fileprivate init(be32 number: Int) {
    self = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }
}
