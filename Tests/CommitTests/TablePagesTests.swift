import Foundation
import GodwitPages
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

private typealias Row = (Int64, [SQLiteValue])

/// Numbers that look drawn, the same every time.
private struct Draw {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 33) ^ (state >> 11)
  }
  mutating func below(_ bound: UInt64) -> Int64 { Int64(next() % bound) }
}

@Suite struct `Pages of a table` {
  @Test(arguments: [0, 1, 2, 100, 20_000])
  func `hold any number of rows`(count: Int) throws {
    let table = try PageTable(
      columns: "A INTEGER, B VARCHAR, C FLOAT, D TIMESTAMP, E BLOB",
      indexes: [
        "INDEX T_A ON T (A)", "INDEX T_B ON T (B)", "INDEX T_C ON T (C, A)",
        "INDEX T_D ON T (D DESC)", "UNIQUE INDEX T_U ON T (B, K)",
      ])
    var draw = Draw(state: 7)
    var rows: [Row] = []
    for number in 0..<count {
      let bytes: [UInt8] = Array(repeating: UInt8(number & 0xFF), count: Int(draw.below(30)))
      let key: SQLiteValue = .integer(draw.below(UInt64(count / 4 + 1)))
      let date: SQLiteValue = .real(Double(draw.next()) / 1e9)
      let name = "row \(draw.below(1000)) of \(draw.below(5))"
      let real: Double = Double(draw.below(4000)) / 4 - 500
      let values: [SQLiteValue] = [
        draw.below(9) == 0 ? .null : key, .text(name), .real(real),
        draw.below(3) == 0 ? .integer(draw.below(50)) : date, .blob(bytes),
      ]
      rows.append((Int64(number) * 3 - 20, values))
    }
    try table.fill(rows)
    try table.expectAlike()
    try table.expectWritable()
  }

  @Test func `hold records at every threshold`() throws {
    // 4061 bytes are the most that stay on a leaf; 489 the least; 4092 fit an overflow page.
    let table = try PageTable(columns: "B BLOB")
    var sizes = Set([0, 1, 485, 489, 4086, 4092, 8184, 70_000, 200_000])
    for base in [489, 4061, 489 + 4092, 4061 + 4092, 489 + 3 * 4092, 4061 + 9 * 4092] {
      sizes.formUnion((base - 8)...(base + 4))
    }
    let rows: [Row] = sizes.sorted().enumerated().map { number, size in
      (Int64(number + 1), [.blob(Array(repeating: UInt8(number & 0xFF), count: size))])
    }
    try table.fill(rows)
    try table.expectAlike()
    try table.expectWritable()
  }

  /// More than may wait for the thread that writes, each by itself.
  @Test func `hold rows that are larger than what may wait`() throws {
    let table = try PageTable(columns: "B BLOB")
    let sizes = [1, 17 << 20, 3, 16 << 20, (16 << 20) + 1, 1 << 20, 1]
    try table.fill(
      sizes.enumerated().map { number, size in
        (Int64(number + 1), [.blob(Array(repeating: UInt8(number), count: size))])
      })
    try table.expectAlike()
  }

  @Test func `hold index entries at every threshold`() throws {
    // 1002 bytes are the most of an entry that stay on its page.
    let table = try PageTable(
      columns: "B BLOB, S VARCHAR",
      indexes: ["INDEX T_B ON T (B)", "INDEX T_S ON T (S DESC)"])
    var sizes = [0, 1, 2, 488, 489, 490, 60_000]
    for base in [1002, 489 + 4092, 1002 + 4092, 1002 + 4 * 4092] {
      sizes += (base - 12)...(base + 3)
    }
    var rows: [Row] = []
    for copy in 0..<4 {
      for size in sizes {
        let bytes: [UInt8] = Array(repeating: UInt8(size % 7), count: size) + [UInt8(copy)]
        let text = String(repeating: "å", count: size / 2) + "\(copy)"
        rows.append((Int64(rows.count + 1), [.blob(bytes), .text(text)]))
      }
    }
    try table.fill(rows)
    try table.expectAlike()
    try table.expectWritable()
  }

  @Test func `make deep trees`() throws {
    let table = try PageTable(columns: "S VARCHAR", indexes: ["INDEX T_S ON T (S)"])
    var draw = Draw(state: 3)
    let filler = String(repeating: "x", count: 980)
    var rows: [Row] = []
    for number in Int64(1)...3000 {
      rows.append((Int64.max - 3000 + number, [.text("\(draw.below(500))\(filler)")]))
    }
    try table.fill(rows)
    try table.expectAlike()
    try table.expectWritable()
  }

  @Test func `order all values as SQLite does`() throws {
    let edges: [Int64] = [
      0, 1, -1, 127, 128, -129, 32_768, 8_388_608, 1 << 31, 1 << 47, 1 << 50, (1 << 50) + 1,
      (1 << 53) + 1, (1 << 53) + 2, -(1 << 53) - 1, .max, .max - 1, .max - 511, .max - 1024, .min,
      .min + 1, .min + 513,
    ]
    var values: [SQLiteValue] = [.null]
    values += edges.map { SQLiteValue.integer($0) }
    for edge in edges {
      values.append(.real(Double(edge)))
      values.append(.real(Double(edge).nextUp))
    }
    let reals: [Double] = [
      0.1, -0.1, -0.0, 1e300, -1e300, .infinity, -.infinity, .leastNonzeroMagnitude,
    ]
    values += reals.map { SQLiteValue.real($0) }
    let words = [
      "", "a", "A", "ab", "a\0", "abcdefg", "abcdefgh", "abcdefg\0", "abcdefghijklmnopqrstuvwxyz",
      "abcdefghijklmnopqrstuvwxy", "é", "ÿ", "😀", "12", "1e3", " 7 ",
      "0x10", "-", "9223372036854775808",
    ]
    values += words.map { SQLiteValue.text($0) }
    values += words.map { SQLiteValue.blob(Array($0.utf8)) }
    values += [.blob([0x80, 0xFF]), .blob([0xFF]), .blob(Array(repeating: 0xFF, count: 9))]
    var draw = Draw(state: 11)
    for affinity in ["BLOB", "INTEGER", "FLOAT", "VARCHAR", "DECIMAL", "TIMESTAMP"] {
      let table = try PageTable(
        columns: "A \(affinity), B \(affinity)",
        indexes: [
          "INDEX T_A ON T (A)", "INDEX T_D ON T (A DESC)", "INDEX T_AB ON T (A, B DESC)",
          "INDEX T_BA ON T (B DESC, A)", "INDEX T_BKA ON T (B, K, A)",
        ])
      var rows: [Row] = []
      for number in Int64(1)...4000 {
        let one = values[Int(draw.below(UInt64(values.count)))]
        let other = values[Int(draw.below(UInt64(values.count)))]
        rows.append((number, [one, other]))
      }
      try table.fill(rows)
      try table.expectAlike("\(affinity)")
      try table.expectWritable()
    }
  }

  @Test func `sort what does not fit in memory in runs`() throws {
    let table = try PageTable(
      columns: "A INTEGER, S VARCHAR",
      indexes: [
        "INDEX T_A ON T (A)", "INDEX T_S ON T (S DESC, A)", "UNIQUE INDEX T_U ON T (K, A)",
      ])
    var draw = Draw(state: 5)
    var rows: [Row] = []
    for number in Int64(1)...20_000 {
      let tail = number == 700 ? String(repeating: "y", count: 300_000) : ""
      let key: SQLiteValue = draw.below(5) == 0 ? .null : .integer(draw.below(300) - 100)
      rows.append((number, [key, .text("common beginning \(draw.below(4000))\(tail)")]))
    }
    try table.fill(rows, budget: 100_000)
    try table.expectAlike()
    try table.expectWritable()
    #expect(files(below: table.scratch.path).allSatisfy { !$0.contains("partial") })
  }

  @Test(arguments: [1 << 20, 3000])
  func `refuse equal entries of a unique index`(budget: Int) throws {
    func refused(_ rows: [Row]) throws -> [Int64] {
      let table = try PageTable(
        columns: "A, B", indexes: ["UNIQUE INDEX T_U ON T (A, B DESC)"])
      do {
        try table.fillPages(rows, budget: budget)
        return []
      } catch CommitError.uniqueness(nil, "T_U", let repeated) {
        #expect(repeated.count == repeated.primaryKeys.count)
        return repeated.primaryKeys
      }
    }
    var plain: [Row] = []
    for key in Int64(1)...3000 { plain.append((key, [.integer(key * 7 % 3001), .text("x")])) }
    #expect(try refused(plain) == [])
    #expect(try refused(plain + [(4000, [.integer(21), .text("x")])]) == [3, 4000])
    #expect(try refused(plain + [(4000, [.real(21), .text("x")])]) == [3, 4000])
    #expect(try refused(plain + [(4000, [.text("21"), .text("x")])]) == [])
    let nulls: [Row] = [(4000, [.integer(21), .null]), (4001, [.integer(21), .null])]
    #expect(try refused(plain + nulls) == [])
  }

  @Test func `leave tables to SQLite that are anything unusual`() throws {
    let scratch = try Scratch()
    let file = try Connection(path: scratch.path.appending("a.sqlite").string, mode: .create)
    func isCovered(_ columns: String, _ index: String? = nil, after: String = "") throws -> Bool {
      try file.execute("DROP TABLE IF EXISTS T; CREATE TABLE T (\(columns))\(after)")
      if let index { try file.execute("CREATE INDEX T_I ON T \(index)") }
      return try CoveredTable("T", key: "K", columns: ["A", "B"], in: file) != nil
    }
    let key = "K INTEGER PRIMARY KEY, "
    #expect(try isCovered(key + "A, B"))
    #expect(try isCovered("B BLOB, K integer primary key, A VARCHAR(255)", "(B, K, A DESC)"))
    #expect(try isCovered(key + "A, B UNIQUE"))
    #expect(try !isCovered(key + "A, B", "(A) WHERE B > 1"))
    #expect(try !isCovered(key + "A, B", "(A + 1)"))
    #expect(try !isCovered(key + "A, B", "(A COLLATE NOCASE)"))
    #expect(try !isCovered(key + "A COLLATE NOCASE, B"))
    #expect(try !isCovered(key + "A CHECK (A > 1), B"))
    #expect(try !isCovered(key + "A NOT NULL, B"))
    #expect(try !isCovered(key + "A, B AS (A + 1)"))
    #expect(try !isCovered(key + "A, B, C"))
    #expect(try !isCovered(key + "A"))
    #expect(try !isCovered("K INTEGER PRIMARY KEY AUTOINCREMENT, A, B"))
    #expect(try !isCovered("K INTEGER PRIMARY KEY DESC, A, B"))
    #expect(try !isCovered("K INT PRIMARY KEY, A, B"))
    #expect(try !isCovered("K INTEGER, A, B"))
    #expect(try !isCovered("K INTEGER, A INTEGER PRIMARY KEY, B"))
    #expect(try !isCovered(key + "A, B", after: " WITHOUT ROWID"))
    #expect(try !isCovered(key + "A ANY, B ANY", after: " STRICT"))
  }
}

@Suite struct `Page numbers` {
  @Test func `pass over pointer maps and the lock-byte page`() {
    let numbering = PageNumbering()
    #expect(numbering.lockBytePage == 262_145)
    #expect(numbering.successor(of: 1) == 3)
    #expect(numbering.successor(of: 821) == 823)
    #expect(numbering.successor(of: 262_144) == 262_146)
    #expect([2, 822, 1642, 262_402].allSatisfy { numbering.isMap($0) })
    #expect([1, 3, 821, 823, 262_145].allSatisfy { !numbering.isMap($0) })
  }

  @Test func `move a pointer map behind the lock-byte page`() {
    let numbering = PageNumbering(lockBytePage: 822)
    #expect(!numbering.isMap(822))
    #expect(numbering.isMap(823))
    #expect(numbering.successor(of: 821) == 824)
  }

  @Test func `leave the lock-byte page empty in a file beyond one gibibyte`() throws {
    let scratch = try Scratch()
    let path = scratch.path.appending("sparse")
    let first: UInt32 = 262_140
    let file = try FileDescriptor.open(
      path, .readWrite, options: .create, permissions: .ownerReadWrite)
    try file.resize(to: Int64(first) * 4096)
    let out = try PageFile(path)
    var numbers: [UInt32] = []
    for number in 0..<600 {
      let (page, place) = try out.append()
      place.initializeMemory(as: UInt8.self, repeating: 0xAB, count: 4096)
      try out.map(page, as: .tree, parent: UInt32(number) + 7)
      numbers.append(page)
    }
    try out.finish(isWAL: true)
    #expect(!numbers.contains(262_145) && !numbers.contains(262_402))
    #expect(numbers.first == 262_141 && numbers.last == 262_742)
    func bytes(_ page: UInt32, _ offset: Int, _ count: Int) throws -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: count)
      _ = try bytes.withUnsafeMutableBytes {
        try file.read(fromAbsoluteOffset: Int64(page - 1) * 4096 + Int64(offset), into: $0)
      }
      return bytes
    }
    #expect(try bytes(262_145, 0, 4096).allSatisfy { $0 == 0 })
    for (number, page) in numbers.enumerated() {
      #expect(try bytes(page, 0, 1) == [0xAB])
      // The maps before these pages are 261 582 and 262 402.
      let map: UInt32 = page < 262_402 ? 261_582 : 262_402
      let parent = UInt32(number) + 7
      #expect(
        try bytes(map, 5 * Int(page - map - 1), 5)
          == [5, 0, 0, UInt8(parent >> 8), UInt8(parent & 0xFF)])
    }
    #expect(try bytes(1, 28, 4) == [0, 4, 2, 86])
    #expect(try bytes(1, 18, 2) == [2, 2])
    try file.close()
  }
}
