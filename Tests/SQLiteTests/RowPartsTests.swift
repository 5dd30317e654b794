import Testing

@testable import GodwitSQLite

@Suite struct `Rows in parts` {
  private static let ends: [Int64] = [
    .min, .min + 1, -9, -1, 0, 1, 2, 7, 8, 63, 1000, .max - 1, .max,
  ]

  @Test(arguments: [1, 2, 3, 8, 64])
  func `are cut without a gap, as many as asked for or as there are keys`(parts: Int) {
    for low in Self.ends {
      for high in Self.ends where high >= low {
        let ranges = (low...high).divided(into: parts)
        #expect(ranges.first?.lowerBound == low && ranges.last?.upperBound == high)
        let last = UInt64(bitPattern: high &- low)
        #expect(ranges.count == Int(min(UInt64(parts - 1), last)) + 1)
        let widths = ranges.map { UInt64(bitPattern: $0.upperBound &- $0.lowerBound) }
        #expect((widths.max() ?? 0) - (widths.min() ?? 0) <= 1)
        for (range, next) in zip(ranges, ranges.dropFirst()) {
          #expect(range.upperBound + 1 == next.lowerBound)
        }
      }
    }
  }

  /// Each part has the rows of its keys, in their order, whether threads read pages or SQLite does.
  @Test(arguments: [
    "k INTEGER PRIMARY KEY, a", "k INTEGER PRIMARY KEY, a DEFAULT 5",
    "k INTEGER PRIMARY KEY, a, b AS (a) STORED",
  ])
  func `are the rows of the table`(columns: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let made = try Connection(path: path, mode: .create)
    try made.execute(
      """
      CREATE TABLE t (\(columns));
      INSERT INTO t (k, a)
      WITH RECURSIVE n(i) AS (SELECT -700 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      SELECT i * i * i, hex(i) FROM n
      """)
    try made.close()
    let file = try Connection(path: path, mode: .immutable)
    let wanted = try file.rows("SELECT k FROM t ORDER BY k").compactMap { $0[0].integer }
    for parts in [1, 2, 8] {
      let found = try file.rows(of: "t", ["k", "a"], inParts: parts, into: [Int64]()) {
        $1.append($0[0].bits)
      }
      #expect(found.flatMap { $0 } == wanted)
      #expect(parts == 1 || columns.count > 30 || found.filter { !$0.isEmpty }.count > 1)
    }
  }

  @Test func `end with what a visit throws`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let made = try Connection(path: path, mode: .create)
    try made.execute(
      """
      CREATE TABLE t (k INTEGER PRIMARY KEY, a);
      INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
      SELECT i, i FROM n
      """)
    try made.close()
    let file = try Connection(path: path, mode: .immutable)
    #expect(throws: CancellationError.self) {
      _ = try file.rows(of: "t", ["k"], inParts: 4, into: 0) { row, count in
        count += 1
        if row[0].bits == 400 { throw CancellationError() }
      }
    }
  }
}
