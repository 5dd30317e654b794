import Foundation
import GodwitPersistentStore
import GodwitRepair
import GodwitSQLite
import SystemPackage
import Testing

/// Damage of bytes: whatever is hit, the output is sound, and what it lacks is in the account.
@Suite struct `A store with damaged pages` {
  @Test func `is repaired whichever page is zeros`() throws {
    let patient = try Patient { $0.history = true }
    let (whole, before) = (patient.bytes, try patient.allKeys())
    #expect(patient.pageCount > 40)
    var lossless = 0
    // Every second one, and the others below: `scripts/repair` has pages of all kinds damaged.
    for page in stride(from: 2, through: patient.pageCount, by: 2) {
      patient.bytes = whole
      patient.zero(page: page)
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty, "page \(page)")
      #expect(try patient.unaccounted(before, report).isEmpty, "page \(page)")
      if report.lost.isEmpty { lossless += 1 }
    }
    // Pages of indexes, pointer maps and interior pages cost nothing.
    #expect(lossless > 5)
  }

  /// As many cells as there are places for their pointers, where a whole page has half as many.
  @Test func `is repaired whichever page says that it is full of one cell`() throws {
    let patient = try Patient(rows: 30, seed: 3)
    let (whole, before) = (patient.bytes, try patient.allKeys())
    let size = whole.count / patient.pageCount
    for page in stride(from: 3, through: patient.pageCount, by: 2) {
      let (start, end) = ((page - 1) * size, page * size)
      var bytes = whole
      bytes.replaceSubrange(start + 3..<start + 5, with: [0xFF, 0xFF])
      for place in stride(from: start + 8, to: end - 100, by: 2) {
        bytes[place] = UInt8((size - 60) >> 8)
        bytes[place + 1] = UInt8((size - 60) & 255)
      }
      patient.bytes = bytes
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty, "page \(page)")
      #expect(try patient.unaccounted(before, report).isEmpty, "page \(page)")
    }
  }

  /// What SQLite never leaves below a root: it reads as sound, and its rows are gone.
  @Test(arguments: [UInt8(13), 10])
  func `is repaired whichever page below a root is a leaf without cells`(type: UInt8) throws {
    let patient = try Patient(rows: 80, seed: 3)
    let (whole, before) = (patient.bytes, try patient.allKeys())
    let roots = try patient.read("SELECT rootpage FROM sqlite_master").map { $0[0].integer ?? 0 }
    for page in 2...patient.pageCount where !roots.contains(Int64(page)) {
      patient.bytes = whole
      patient.zero(page: page)
      let start = (page - 1) * 4096
      (patient.bytes[start], patient.bytes[start + 5]) = (type, 16)
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty, "page \(page)")
      #expect(try patient.unaccounted(before, report).isEmpty, "page \(page)")
    }
  }

  @Test(arguments: 1...30)
  func `is repaired with bits flipped anywhere`(seed: UInt64) throws {
    let patient = try Patient(rows: 30, seed: 3)
    let before = try patient.allKeys()
    var random = SeededBits(seed: seed)
    var bytes = patient.bytes
    for _ in 0..<12 {
      bytes[100 + random.below(bytes.count - 100)] ^= UInt8(1 << random.below(8))
    }
    patient.bytes = bytes
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.unaccounted(before, report).isEmpty)
    #expect(patient.bytes == bytes)
  }

  @Test func `is repaired when its end is missing`() throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    patient.bytes.removeLast(patient.bytes.count * 5 / 100 - 7)
    let report = try patient.repair()
    #expect(report.keptObjects > 0)
    #expect(!report.lost.isEmpty)
    #expect(try patient.failures().isEmpty)
    #expect(try patient.unaccounted(before, report).isEmpty)
  }

  @Test(arguments: [60, 25])
  func `is repaired as far as it goes, or not at all, when most of it is missing`(percent: Int)
    throws
  {
    let patient = try Patient()
    let before = try patient.allKeys()
    patient.bytes.removeLast(patient.bytes.count * (100 - percent) / 100 - 7)
    let damaged = patient.bytes
    do {
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty)
      #expect(try patient.unaccounted(before, report).isEmpty)
    } catch is RepairError {
      #expect(!FileManager.default.fileExists(atPath: patient.output))
    }
    #expect(patient.bytes == damaged)
  }

  @Test(arguments: [
    (0, 0x54),  // the magic
    (16, 0x20),  // pages of 8192 bytes
    (16, 0x03),  // of 768
    (20, 200),  // bytes reserved on every page
    (18, 9), (47, 9),  // formats of the future
    (33, 1),  // the list of free pages begins far away
    (55, 0), (59, 3),  // no auto-vacuum; UTF-16
  ])
  func `keeps everything when only its header is damaged`(place: Int, value: UInt8) throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    patient.bytes[place] = value
    let report = try patient.repair()
    #expect(report.lost.isEmpty)
    for (table, keys) in before { #expect(try patient.keys(of: table, in: patient.output) == keys) }
  }

  @Test func `is refused as it is when its texts are UTF-16`() throws {
    let patient = try Patient()
    try FileManager.default.removeItem(atPath: patient.store)
    let connection = try Connection(path: patient.store, mode: .create)
    try connection.execute(
      "PRAGMA encoding = 'UTF-16le'; CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY)")
    try connection.close()
    #expect(throws: StoreError.utf16(FilePath(patient.store))) { try patient.repair() }
  }

  @Test func `does not bring deleted objects back`() throws {
    let patient = try Patient(rows: 200)
    try patient.sql("DELETE FROM ZSTEP WHERE Z_PK % 2 = 0 OR Z_PK > 100")
    let root = try patient.read("SELECT rootpage FROM sqlite_master WHERE name = 'ZSTEP'")
    let before = try patient.keys(of: "ZSTEP")
    patient.zero(page: Int(try #require(root.first?[0].integer)))
    let report = try patient.repair()
    let kept = try patient.keys(of: "ZSTEP", in: patient.output)
    #expect(Set(kept).isSubset(of: before))
    #expect(report.lost.contains { $0.subject == .object && $0.entity == "Step" } || kept == before)
  }

  @Test func `gives back what hangs below a lost interior page`() throws {
    let patient = try Patient(rows: 400)
    let before = try patient.keys(of: "ZRECIPE")
    let root = try patient.read("SELECT rootpage FROM sqlite_master WHERE name = 'ZRECIPE'")
    let page = Int(try #require(root.first?[0].integer))
    #expect(patient.bytes[(page - 1) * 4096] == 0x05)
    patient.zero(page: page)
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZRECIPE", in: patient.output) == before)
    #expect(!report.lost.contains { $0.subject == .object })
  }

  /// SQLite takes such a pointer from the beginning of the page again, and reads every row.
  @Test(arguments: [UInt8(0x10), 0x20, 0x40, 0x80])
  func `keeps a row whose cell pointer leads past the page`(bit: UInt8) throws {
    let patient = try Patient(rows: 200)
    let before = try patient.read("SELECT * FROM ZRECIPE ORDER BY Z_PK")
    let leaf = try #require(try patient.leaves(of: "ZRECIPE").first)
    patient.bytes[(leaf - 1) * 4096 + 8] ^= bit
    _ = try patient.repair()
    #expect(try patient.read("SELECT * FROM ZRECIPE ORDER BY Z_PK", of: patient.output) == before)
  }

  @Test func `is refused when nothing of it is left`() throws {
    let patient = try Patient()
    for bytes in [[], Array("bplist00".utf8), Array(repeating: 0x5A, count: 20_000)] {
      patient.bytes = bytes
      #expect(throws: RepairError.self) { try patient.repair() }
      #expect(!FileManager.default.fileExists(atPath: patient.output))
    }
    let left = try FileManager.default.contentsOfDirectory(atPath: patient.folder.path)
    #expect(!left.contains { $0.contains("repair") })
  }
}

/// Numbers that follow from a seed.
struct SeededBits {
  private var state: UInt64
  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

  mutating func below(_ bound: Int) -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int((state >> 33) % UInt64(bound))
  }
}
