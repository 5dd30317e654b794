import GodwitRepair
import GodwitSQLite
import Testing

/// A value that is damaged and still reads well: an index has what it was.
@Suite struct `A store in which a table and its indexes say different things` {
  /// One of the three places that have a pair.
  enum Place: CaseIterable {
    case table, keyIndex, inverseIndex

    /// The record's header and its values; in an index, the row.
    func bytes(row: UInt8, first: UInt8, second: UInt8) -> [UInt8] {
      switch self {
      case .table: [5, row, 3, 1, 1, first, second]
      case .keyIndex: [7, 4, 1, 1, 1, first, second, row]
      case .inverseIndex: [7, 4, 1, 1, 1, second, first, row]
      }
    }
  }

  private static let pairs = "SELECT Z_8RECIPES1, Z_10TAGS FROM Z_8TAGS ORDER BY 1, 2"

  /// Makes a pair lead to another object where it is in these places.
  ///
  /// - Returns: The key of the first object.
  private func damage(_ patient: Patient, in places: [Place]) throws -> Int64 {
    let found = try patient.read(
      """
      SELECT rowid, Z_8RECIPES1, Z_10TAGS FROM Z_8TAGS AS a WHERE rowid BETWEEN 10 AND 120
         AND Z_8RECIPES1 > 1 AND Z_10TAGS BETWEEN 4 AND 60
         AND NOT EXISTS (SELECT 1 FROM Z_8TAGS WHERE Z_8RECIPES1 = a.Z_8RECIPES1
                            AND Z_10TAGS = a.Z_10TAGS + (CASE WHEN a.Z_10TAGS & 1 THEN -1 ELSE 1 END))
       LIMIT 1
      """)
    let row = try #require(found.first).compactMap(\.integer)
    let (key, first, second) = (UInt8(row[0]), UInt8(row[1]), UInt8(row[2]))
    var bytes = patient.bytes
    for place in places {
      let old = place.bytes(row: key, first: first, second: second)
      let at = bytes.indices.dropLast(old.count).filter {
        bytes[$0] == old[0] && Array(bytes[$0..<$0 + old.count]) == old
      }
      let start = try #require(at.count == 1 ? at.first : nil)
      bytes.replaceSubrange(
        start..<start + old.count, with: place.bytes(row: key, first: first, second: second ^ 1))
    }
    patient.bytes = bytes
    return row[1]
  }

  @Test(arguments: Place.allCases)
  func `gets back the pair that two of three places have`(place: Place) throws {
    let patient = try Patient()
    let before = try patient.read(Self.pairs)
    let first = try damage(patient, in: [place])
    let report = try patient.repair()
    #expect(try patient.read(Self.pairs, of: patient.output) == before)
    #expect(report.doubtful.isEmpty && report.lost.isEmpty)
    let said = report.rebuilt.filter {
      place == .table
        ? $0.subject == .pair && $0.primaryKeys?.contains(first) == true
        : $0.subject == .index && $0.names?.count == 1
    }
    #expect(said.count == 1, "\(report.rebuilt)")
  }

  @Test func `says of a pair that it may be wrong where one index alone contradicts it`() throws {
    let patient = try Patient()
    let first = try damage(patient, in: [.table])
    let root = try patient.read(
      "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_Z_8TAGS_1'")
    patient.zero(page: Int(root[0][0].integer ?? 0))
    let report = try patient.repair()
    #expect(
      report.doubtful.contains {
        $0.subject == .pair && $0.property == "tags" && $0.primaryKeys?.contains(first) == true
      })
  }

  @Test func `says of a value that it may be wrong where its index contradicts it`() throws {
    let patient = try Patient()
    let name = try #require(
      try patient.read("SELECT ZNAME FROM ZTAG WHERE Z_PK = 7")[0][0].text)
    let (text, bytes) = (Array(name.utf8), patient.bytes)
    let places = bytes.indices.dropLast(text.count).filter {
      bytes[$0] == text[0] && Array(bytes[$0..<$0 + text.count]) == text
    }
    try #require(places.count == 2, "in the table and in the index")
    for place in places {
      patient.bytes = bytes
      patient.bytes[place + text.count - 1] ^= 1
      let report = try patient.repair()
      #expect(
        report.doubtful.contains {
          $0.subject == .value && $0.entity == "Tag" && $0.property == "name"
            && $0.primaryKeys == KeyRanges([7])
        }, "\(report.doubtful)")
    }
  }

  /// A write of the table's page was lost, and those of its indexes were not.
  @Test func `says of rows that no index names that they may have been deleted`() throws {
    let patient = try Patient()
    let page = try patient.leaves(of: "ZRECIPE").first ?? patient.root(of: "ZRECIPE")
    let (before, keys) = (patient.bytes, try patient.keys(of: "ZRECIPE"))
    try patient.sql("DELETE FROM ZRECIPE WHERE Z_PK IN (2, 3)")
    patient.put(Patient.page(page, of: before), at: page)
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZRECIPE", in: patient.output) == keys)
    let doubtful = report.doubtful.filter { $0.message.contains("no index names") }
    #expect(doubtful.map(\.primaryKeys) == [KeyRanges([2, 3])], "\(report.doubtful)")
    #expect(report.rebuilt.contains { $0.subject == .index && ($0.names?.count ?? 0) > 1 })
  }
}
