import Foundation
import GodwitRepair
import GodwitSQLite
import Testing

/// Writes that were lost or went elsewhere: each page is sound, and stands where it should not.
@Suite struct `A store with pages of another time or place` {
  private func root(_ table: String, _ patient: Patient) throws -> Int {
    let rows = try patient.read("SELECT rootpage FROM sqlite_master WHERE name = '\(table)'")
    return Int(try #require(rows.first?[0].integer))
  }

  /// The children of a table's root page, without the last one.
  private func leaves(_ table: String, _ patient: Patient) throws -> [Int] {
    let (bytes, root) = (patient.bytes, try root(table, patient))
    let start = (root - 1) * 4096
    guard bytes[start] == 0x05 else { return [] }
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
    return (0..<number(start + 3, 2)).map { cell in
      number(start + number(start + 12 + 2 * cell, 2), 4)
    }
  }

  private func page(_ number: Int, of bytes: [UInt8]) -> [UInt8] {
    Array(bytes[(number - 1) * 4096..<number * 4096])
  }

  private func put(_ page: [UInt8], at number: Int, in patient: Patient) {
    patient.bytes.replaceSubrange((number - 1) * 4096..<number * 4096, with: page)
  }

  private func exchange(_ a: Int, _ b: Int, in patient: Patient) {
    let whole = patient.bytes
    put(page(a, of: whole), at: b, in: patient)
    put(page(b, of: whole), at: a, in: patient)
  }

  @Test(arguments: [12, 100])
  func `keeps every object when a root page is an old one`(rows: Int) throws {
    let patient = try Patient(rows: rows, seed: 5, version: .one)
    let old = patient.bytes
    let columns = try patient.read("SELECT name FROM pragma_table_info('ZRECIPE')")
      .compactMap { $0[0].text }
    let values = columns.map { column in
      switch column {
      case "Z_PK": "top + n"
      case "ZNAME": "'new ' || n"
      case "ZIDENTIFIER": "CAST(printf('%016d', n) AS BLOB)"
      default: column
      }
    }
    try patient.sql(
      """
      INSERT INTO ZRECIPE (\(columns.joined(separator: ", ")))
      WITH i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 150)
      SELECT \(values.joined(separator: ", ")) FROM i,
        (SELECT *, (SELECT max(Z_PK) FROM ZRECIPE) AS top FROM ZRECIPE LIMIT 1);
      UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM ZRECIPE) WHERE Z_NAME = 'Recipe'
      """)
    let before = try patient.keys(of: "ZRECIPE")
    let place = try root("ZRECIPE", patient)
    put(page(place, of: old), at: place, in: patient)
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZRECIPE", in: patient.output) == before)
    #expect(!report.lost.contains { $0.subject == .object || $0.subject == .file })
    #expect(report.rebuilt.contains { $0.subject == .object && $0.entity == "Recipe" })
    #expect(try patient.failures().isEmpty)
  }

  @Test func `names the objects of a leaf that is an old one`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let leaf = try #require(try leaves("ZSTEP", patient).dropFirst(2).first)
    let now = patient.bytes
    let keys = try patient.allKeys()
    // The last row of the leaf was not there yet.
    var old = page(leaf, of: now)
    let count = Int(old[3]) << 8 | Int(old[4])
    old[3] = UInt8((count - 1) >> 8)
    old[4] = UInt8((count - 1) & 0xFF)
    let start = 8 + 2 * (count - 1)
    let cell = Int(old[start]) << 8 | Int(old[start + 1])
    let next = Int(old[start - 2]) << 8 | Int(old[start - 1])
    #expect(cell == Int(old[5]) << 8 | Int(old[6]) && next > cell)
    (old[5], old[6]) = (old[start - 2], old[start - 1])
    put(old, at: leaf, in: patient)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(report.lost.contains { $0.subject == .object && $0.entity == "Step" })
  }

  @Test func `gives no object another one's key when two leaves are exchanged`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let pages = try leaves("ZAUTHOR", patient)
    try #require(pages.count > 4)
    let query = "SELECT Z_PK, Z_ENT, ZNAME FROM ZAUTHOR ORDER BY Z_PK"
    let before = try patient.read(query)
    exchange(pages[1], pages[4], in: patient)
    let report = try patient.repair()
    #expect(try patient.read(query, of: patient.output) == before)
    #expect(!report.lost.contains { $0.subject == .object && $0.isCertain })
    #expect(report.rebuilt.contains { $0.subject == .object && $0.entity == "Author" })
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: ["ZIMAGE", "ZRECIPE", "ZAUTHOR"])
  func `keeps the rest when a root page and a leaf are exchanged`(table: String) throws {
    let patient = try Patient(rows: 300, seed: 5)
    let keys = try patient.allKeys()
    let leaf = try #require(try leaves(table, patient).dropFirst().first)
    exchange(try root(table, patient), leaf, in: patient)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.keys(of: table, in: patient.output) == keys[table])
    #expect(try patient.failures().isEmpty)
  }

  @Test func `has no objects made of other tables' rows`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let keys = try patient.allKeys()
    let whole = patient.bytes
    let leaf = try #require(try leaves("ZRECIPE", patient).dropFirst(2).first)
    for other in ["ZSTEP", "ZAUTHOR", "ZINGREDIENT", "Z_8TAGS"] {
      patient.bytes = whole
      guard let foreign = try leaves(other, patient).first else { continue }
      put(page(foreign, of: whole), at: leaf, in: patient)
      let report = try patient.repair()
      #expect(try patient.unaccounted(keys, report).isEmpty, "\(other)")
      let kept = try patient.keys(of: "ZRECIPE", in: patient.output)
      #expect(Set(kept).isSubset(of: keys["ZRECIPE"] ?? []), "\(other)")
      #expect(kept.count < keys["ZRECIPE"]?.count ?? 0, "\(other)")
    }
    // The root of a table and another table's leaf.
    patient.bytes = whole
    exchange(try root("ZCOOKBOOK", patient), leaf, in: patient)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    for table in ["ZRECIPE", "ZCOOKBOOK"] {
      #expect(try patient.keys(of: table, in: patient.output) == keys[table])
    }
  }

  @Test func `does not take what lies behind the file's end for values`() throws {
    let patient = try Patient(rows: 300, seed: 5, version: .one)
    let query = "SELECT Z_PK, ZNAME, ZWEBSITE FROM ZAUTHOR ORDER BY Z_PK"
    let (whole, keys) = (patient.bytes, ["ZAUTHOR": try patient.keys(of: "ZAUTHOR")])
    let before = Dictionary(
      uniqueKeysWithValues: try patient.read(query).map { ($0[0].integer ?? 0, $0) })
    let leaf = try #require(try leaves("ZAUTHOR", patient).dropFirst().first)
    for cut in stride(from: 200, to: 4000, by: 290) {
      patient.bytes = Array(whole.prefix((leaf - 1) * 4096 + cut))
      let report = try patient.repair()
      #expect(try patient.unaccounted(keys, report).isEmpty, "\(cut)")
      #expect(!report.lost.contains { $0.primaryKeys?.contains(0) == true }, "\(cut)")
      for row in try patient.read(query, of: patient.output) {
        let key = row[0].integer ?? 0
        for (place, property) in [(1, "name"), (2, "website")]
        where row[place] != before[key]?[place] {
          let isNamed = report.lost.contains { item in
            item.property == property && item.primaryKeys?.contains(key) == true
          }
          #expect(isNamed, "\(cut): \(property) of \(key)")
        }
      }
    }
  }
}
