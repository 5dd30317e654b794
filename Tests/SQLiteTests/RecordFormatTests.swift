import Foundation
import GodwitSQLite
import Testing

@Suite struct `A record` {
  static let smallest: [(value: SQLiteValue, record: [UInt8])] = [
    (.null, [2, 0]),
    (.integer(0), [2, 8]),  // no body
    (.integer(1), [2, 9]),
    (.integer(2), [2, 1, 2]),
    (.integer(-1), [2, 1, 0xFF]),
    (.integer(127), [2, 1, 0x7F]),
    (.integer(128), [2, 2, 0, 0x80]),
    (.integer(-128), [2, 1, 0x80]),
    (.integer(-129), [2, 2, 0xFF, 0x7F]),
    (.integer(8_388_607), [2, 3, 0x7F, 0xFF, 0xFF]),
    (.integer(-8_388_609), [2, 4, 0xFF, 0x7F, 0xFF, 0xFF]),
    (.integer(140_737_488_355_327), [2, 5, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
    (.integer(.min), [2, 6, 0x80, 0, 0, 0, 0, 0, 0, 0]),
    (.real(1), [2, 7, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0]),  // stays a real
    (.real(.nan), [2, 0]),  // SQLite has no NaN
    (.text(""), [2, 13]),
    (.blob([]), [2, 12]),
    (.text("é"), [2, 17, 0xC3, 0xA9]),
    (.blob([7]), [2, 14, 7]),
  ]

  @Test(arguments: smallest)
  func `is made of the smallest serial types`(value: SQLiteValue, expected: [UInt8]) {
    #expect(record(of: [value]) == expected)
  }

  // The header's size counts itself: 126 one-byte types give 127, one more needs a second byte.
  @Test(arguments: [
    (columns: 0, start: [1] as [UInt8]),
    (columns: 126, start: [0x7F]),
    (columns: 127, start: [0x81, 0x01]),
    (columns: 16_381, start: [0xFF, 0x7F]),
    (columns: 16_382, start: [0x81, 0x80, 0x01]),
  ])
  func `has a header that counts itself`(columns: Int, start: [UInt8]) {
    let record = record(of: Array(repeating: .null, count: columns))
    #expect(Array(record.prefix(start.count)) == start)
    #expect(record.count == columns + start.count)
  }

  @Test func `gives back the integers at each change of size`() {
    for integer in boundaryIntegers {
      let bytes = record(of: [.integer(integer)])
      #expect(values(of: bytes, count: 1) == [.integer(integer)])
    }
  }

  @Test(arguments: [UInt64(1), 2, 3]) func `gives back any values`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let drawn = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
        drawValue(from: &generator)
      }
      // What cannot be stored comes back as NULL.
      let expected = drawn.map { $0.number?.isNaN == true ? SQLiteValue.null : $0 }
      #expect(values(of: record(of: drawn), count: drawn.count) == expected)
    }
  }

  @Test func `carries large texts and blobs`() {
    for size in [57, 58, 8_185, 8_186, 1_048_569, 3_000_000] {
      let large: [SQLiteValue] = [
        .text(String(repeating: "x", count: size)), .blob(Array(repeating: 9, count: size)),
      ]
      #expect(values(of: record(of: large), count: 2) == large)
    }
  }

  @Test func `is NULL in columns added after it was written`() {
    let short = record(of: [.integer(5)])
    #expect(values(of: short, count: 3) == [.integer(5), .null, .null])
    #expect(values(of: record(of: [.integer(5), .text("x")]), count: 1) == [.integer(5)])
  }

  @Test(arguments: [0x7F_F8, 0xFF_F8, 0x7F_F0] as [UInt64])
  func `has NULL for a real that is no number`(start: UInt64) {
    let bits = start << 48 | 1
    let body = (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
    #expect(values(of: [2, 7] + body, count: 1) == [.null])
  }

  @Test(
    arguments: [
      [],  // no header
      [5, 1],  // a header larger than the record
      [0],  // a header smaller than its own size
      [2, 1],  // the body ends early
      [2, 10], [2, 11],  // types that no file has
      [2, 0x81],  // a varint that goes on behind the header
      [3, 14, 13],  // a blob without its byte
      [10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],  // a length of almost 2⁶³
    ] as [[UInt8]])
  func `that is malformed is refused`(record: [UInt8]) {
    #expect(values(of: record, count: 3) == nil)
  }

  /// Of a table whose text names two columns, or an index over one of them.
  @Test(
    arguments: [
      ("as SQLite writes it", [3, 1, 9, 5], true, false),
      ("a type in two bytes", [4, 0x80, 1, 9, 5], false, false),
      ("the last type in two bytes", [4, 1, 0x80, 9, 5], false, false),
      ("the header's size in two bytes", [0x80, 4, 1, 9, 5], false, false),
      ("a value too many", [4, 1, 9, 1, 5, 7], false, true),
      ("NULL too many", [4, 1, 9, 0, 5], false, true),
      ("a value too few", [2, 1, 5], false, false),
      ("a byte behind it", [3, 1, 9, 5, 0], false, false),
      ("a type that no file has", [3, 10, 9], false, false),
    ] as [(String, [UInt8], Bool, Bool)])
  func `is an entry of an index only as SQLite writes it`(
    what: String, record: [UInt8], isEntry: Bool, hasMore: Bool
  ) {
    let found = record.withUnsafeBytes { bytes in
      withUnsafeTemporaryAllocation(of: RawValue.self, capacity: 2) { values in
        values.initialize(repeating: .null)
        return (
          RecordFormat.decodeEntry(record: bytes, into: values.baseAddress!, count: 2),
          RecordFormat.isEntry(bytes, of: 2...2), RecordFormat.hasMore(bytes, than: 2)
        )
      }
    }
    #expect(found == (isEntry, isEntry, hasMore), "\(what)")
  }

  @Test(arguments: [UInt64(11), 12]) func `that is damaged is never read beyond`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<5_000 {
      var bytes = record(of: (0..<6).map { _ in drawValue(from: &generator) })
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let place = Int.random(in: 0..<min(bytes.count, 16), using: &generator)
        bytes[place] = .random(in: 0...255, using: &generator)
      }
      bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
      // The helper fails on a value that lies outside; the sanitizer on a read that does.
      _ = values(of: bytes, count: 8)
    }
  }

  @Test(arguments: [UInt64(21), 22, 23]) func `is what SQLite writes`(seed: UInt64) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("records.db")
    var generator = SeededGenerator(seed: seed)
    var rows = boundaryIntegers.map { [SQLiteValue.integer($0), .real(Double($0)), .null] }
    for _ in 0..<60 { rows.append((0..<3).map { _ in drawValue(from: &generator) }) }
    do {
      let database = try Connection(path: path, mode: .create)
      // Columns without a type have no affinity, and all rows fit into one page.
      try database.execute("PRAGMA page_size = 65536; CREATE TABLE t (a, b, c)")
      let insert = try database.prepare("INSERT INTO t VALUES (?1, ?2, ?3)")
      for row in rows {
        for (column, value) in row.enumerated() { try insert.bind(Int32(column + 1), value) }
        try insert.run()
      }
    }
    let written = try records(inLeafPage: 2, of: path)
    #expect(written.count == rows.count)
    for (row, bytes) in zip(rows, written) { #expect(record(of: row) == bytes) }
  }
}

/// The records in the cells of a table leaf page of 64 KiB, in the order of their keys.
///
/// Source: https://sqlite.org/fileformat2.html §1.6: the page's type in byte 0, the number of cells
/// in 3…4, cell offsets from 8 on; a cell is the record's size, the rowid, and the record.
private func records(inLeafPage number: Int, of path: String) throws -> [[UInt8]] {
  let file = try Data(contentsOf: URL(fileURLWithPath: path))
  let page = [UInt8](file.dropFirst((number - 1) * 65_536).prefix(65_536))
  try #require(page[0] == 13)
  func word(at offset: Int) -> Int { Int(page[offset]) << 8 | Int(page[offset + 1]) }
  func varint(at offset: inout Int) -> Int {
    var value = 0
    while true {
      let byte = page[offset]
      offset += 1
      value = value << 7 | Int(byte & 0x7F)
      if byte < 0x80 { return value }
    }
  }
  var records: [[UInt8]] = []
  for cell in 0..<word(at: 3) {
    var offset = word(at: 8 + 2 * cell)
    let size = varint(at: &offset)
    _ = varint(at: &offset)
    records.append(Array(page[offset..<offset + size]))
  }
  return records
}

@Suite struct `A varint` {
  static let sizes: [(value: UInt64, bytes: [UInt8])] = [
    (0, [0]),
    (0x7F, [0x7F]),
    (0x80, [0x81, 0x00]),
    (0x3FFF, [0xFF, 0x7F]),
    (0x4000, [0x81, 0x80, 0x00]),
    ((1 << 56) - 1, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
    (1 << 56, [0x80, 0xC0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),  // eight bits in the ninth
    (.max, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
  ]

  @Test(arguments: sizes)
  func `takes one to nine bytes`(value: UInt64, bytes: [UInt8]) {
    var buffer = RawBuffer(capacity: 1)
    buffer.appendVarint(value)
    #expect(Array(buffer.bytes) == bytes)
    #expect(Varint.size(of: value) == bytes.count)
    #expect(read(bytes) == value)
    #expect(read(bytes.dropLast()) == nil)
  }

  private func read(_ bytes: [UInt8]) -> UInt64? {
    bytes.withUnsafeBytes { bytes in
      guard var place = bytes.baseAddress else { return nil }
      return Varint.read(&place, end: place + bytes.count)
    }
  }
}
