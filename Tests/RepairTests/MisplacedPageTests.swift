import Foundation
import GodwitRepair
import GodwitSQLite
import Testing

/// Writes that were lost or went elsewhere: each page is sound, and stands where it should not.
@Suite struct `A store with pages of another time or place` {
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
    let place = try patient.root(of: "ZRECIPE")
    patient.put(Patient.page(place, of: old), at: place)
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZRECIPE", in: patient.output) == before)
    #expect(!report.lost.contains { $0.subject == .object || $0.subject == .file })
    #expect(report.rebuilt.contains { $0.subject == .object && $0.entity == "Recipe" })
    #expect(try patient.failures().isEmpty)
  }

  @Test func `names the objects of a leaf that is an old one`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let leaf = try #require(try patient.leaves(of: "ZSTEP").dropFirst(2).first)
    let now = patient.bytes
    let keys = try patient.allKeys()
    // The last row of the leaf was not there yet.
    var old = Patient.page(leaf, of: now)
    let count = Int(old[3]) << 8 | Int(old[4])
    old[3] = UInt8((count - 1) >> 8)
    old[4] = UInt8((count - 1) & 0xFF)
    let start = 8 + 2 * (count - 1)
    let cell = Int(old[start]) << 8 | Int(old[start + 1])
    let next = Int(old[start - 2]) << 8 | Int(old[start - 1])
    #expect(cell == Int(old[5]) << 8 | Int(old[6]) && next > cell)
    (old[5], old[6]) = (old[start - 2], old[start - 1])
    patient.put(old, at: leaf)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(report.lost.contains { $0.subject == .object && $0.entity == "Step" })
  }

  @Test func `gives no object another one's key when two leaves are exchanged`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let pages = try patient.leaves(of: "ZAUTHOR")
    try #require(pages.count > 4)
    let query = "SELECT Z_PK, Z_ENT, ZNAME FROM ZAUTHOR ORDER BY Z_PK"
    let before = try patient.read(query)
    patient.exchange(pages[1], pages[4])
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
    let leaf = try #require(try patient.leaves(of: table).dropFirst().first)
    patient.exchange(try patient.root(of: table), leaf)
    let report = try patient.repair()
    #expect(try patient.unaccounted(keys, report).isEmpty)
    #expect(try patient.keys(of: table, in: patient.output) == keys[table])
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: ["ZIMAGE", "ZRECIPE", "ZAUTHOR"], [false, true])
  func `keeps everything where a root page is one of the table's leaves`(
    table: String, isExchanged: Bool
  ) throws {
    let patient = try Patient(rows: 300, seed: 5)
    try patient.sql("PRAGMA auto_vacuum = 0; VACUUM")
    let keys = try patient.keys(of: table)
    let (root, leaf) = (
      try patient.root(of: table), try #require(try patient.leaves(of: table).dropFirst().first)
    )
    if isExchanged {
      patient.exchange(root, leaf)
    } else {
      patient.put(Patient.page(leaf, of: patient.bytes), at: root)
    }
    _ = try patient.repair()
    #expect(try patient.keys(of: table, in: patient.output) == keys)
    #expect(try patient.failures().isEmpty)
  }

  /// As in a file that has lost a page in its middle, and a page or two at its end.
  @Test func `keeps every object where the metadata stand in the place of the entities' numbers`()
    throws
  {
    let patient = try Patient()
    let (keys, uuid) = (
      try patient.allKeys(), try patient.read("SELECT Z_UUID FROM Z_METADATA")
    )
    let (numbers, metadata, cache) = (
      try patient.root(of: "Z_PRIMARYKEY"), try patient.root(of: "Z_METADATA"),
      try patient.root(of: "Z_MODELCACHE")
    )
    patient.put(Patient.page(metadata, of: patient.bytes), at: numbers)
    patient.zero(page: metadata)
    patient.zero(page: cache)
    let report = try patient.repair()
    #expect(!report.lost.contains { $0.subject == .object }, "\(report.lost)")
    for (table, keys) in keys {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
    #expect(try patient.read("SELECT Z_UUID FROM Z_METADATA", of: patient.output) == uuid)
    #expect(report.rebuilt.contains { $0.message.contains("Z_METADATA were found") })
    #expect(try patient.failures().isEmpty)
  }

  @Test(arguments: ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"])
  func `keeps every object where a leaf and the page of a control table are exchanged`(
    table: String
  ) throws {
    let patient = try Patient(rows: 300, seed: 5)
    let keys = try patient.allKeys()
    let leaf = try #require(try patient.leaves(of: "ZSTEP").dropFirst(2).first)
    patient.exchange(try patient.root(of: table), leaf)
    let report = try patient.repair()
    #expect(!report.lost.contains { $0.subject == .object && $0.isCertain }, "\(report.lost)")
    #expect(try patient.keys(of: "ZSTEP", in: patient.output) == keys["ZSTEP"])
    #expect(try patient.failures().isEmpty)
  }

  /// Entries of an index read as rows that do not add up, some of them with small keys.
  @Test func `keeps the values of sound rows where a root page is an index's`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    try patient.sql("PRAGMA auto_vacuum = 0; VACUUM")
    let query = "SELECT * FROM ZRECIPE ORDER BY Z_PK"
    let (before, whole) = (try patient.read(query), patient.bytes)
    let root = try patient.root(of: "ZRECIPE")
    let indexes = try patient.read(
      "SELECT rootpage FROM sqlite_master WHERE type = 'index' AND rootpage > 0")
    for index in indexes.compactMap({ $0[0].integer }) {
      patient.bytes = whole
      patient.put(Patient.page(Int(index), of: whole), at: root)
      _ = try patient.repair()
      #expect(try patient.read(query, of: patient.output) == before, "index \(index)")
    }
  }

  @Test func `has no objects made of other tables' rows`() throws {
    let patient = try Patient(rows: 300, seed: 5)
    let keys = try patient.allKeys()
    let whole = patient.bytes
    let leaf = try #require(try patient.leaves(of: "ZRECIPE").dropFirst(2).first)
    for other in ["ZSTEP", "ZAUTHOR", "ZINGREDIENT", "Z_8TAGS"] {
      patient.bytes = whole
      guard let foreign = try patient.leaves(of: other).first else { continue }
      patient.put(Patient.page(foreign, of: whole), at: leaf)
      let report = try patient.repair()
      #expect(try patient.unaccounted(keys, report).isEmpty, "\(other)")
      let kept = try patient.keys(of: "ZRECIPE", in: patient.output)
      #expect(Set(kept).isSubset(of: keys["ZRECIPE"] ?? []), "\(other)")
      #expect(kept.count < keys["ZRECIPE"]?.count ?? 0, "\(other)")
    }
    // The root of a table and another table's leaf.
    patient.bytes = whole
    patient.exchange(try patient.root(of: "ZCOOKBOOK"), leaf)
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
    let leaf = try #require(try patient.leaves(of: "ZAUTHOR").dropFirst().first)
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
