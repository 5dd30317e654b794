import Foundation
import Testing

@testable import GodwitSQLite

/// A table of drawn rows in a file of its own.
private struct DrawnTable {
  private let folder: TemporaryFolder
  let path: String
  let root: UInt32
  var keys: [Int64] = []

  enum Keys: CaseIterable { case dense, sparse, negative, extreme }

  init(pageSize: Int, autoVacuum: Int, keys kind: Keys, rows: Int, seed: UInt64) throws {
    folder = try TemporaryFolder()
    path = folder.file("t.sqlite")
    var generator = SeededGenerator(seed: seed)
    let connection = try Connection(path: path, mode: .create)
    try connection.execute(
      """
      PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = \(autoVacuum);
      CREATE TABLE t (a, k INTEGER PRIMARY KEY, b, c); CREATE INDEX i ON t (b); BEGIN
      """)
    try Self.fill(connection, kind, rows, pageSize, &generator)
    try connection.execute(
      "COMMIT; DELETE FROM t WHERE k % 7 = 3; UPDATE t SET a = NULL WHERE k % 5 = 1")
    root = UInt32(
      try connection.rows("SELECT rootpage FROM sqlite_master WHERE name = 't'")[0][0].integer ?? 0)
    keys = try connection.rows("SELECT k FROM t ORDER BY k").compactMap { $0[0].integer }
    try connection.close()
  }

  private static func fill(
    _ connection: Connection, _ kind: Keys, _ rows: Int, _ pageSize: Int,
    _ generator: inout SeededGenerator
  ) throws {
    let insert = try connection.prepare(
      "INSERT OR REPLACE INTO t (k, a, b, c) VALUES (?1, ?2, ?3, ?4)")
    for number in 0..<Int64(rows) {
      let key: Int64 =
        switch kind {
        case .dense: number + 1
        case .sparse: .random(in: 0...(1 << 40), using: &generator)
        case .negative: number - Int64(rows / 2)
        case .extreme: boundaryIntegers.randomElement(using: &generator) ?? 0
        }
      try insert.bind(1, key)
      for place in Int32(2)...4 { try insert.bind(place, drawValue(from: &generator)) }
      if Int.random(in: 0..<12, using: &generator) == 0 {
        // On a page of its own, or on several.
        let size = Int.random(in: pageSize / 8...pageSize * 3, using: &generator)
        try insert.bind(4, .blob([UInt8](repeating: UInt8(truncatingIfNeeded: key), count: size)))
      }
      try insert.run()
    }
  }

  func stepped(_ range: ClosedRange<Int64>) throws -> [[SQLiteValue]] {
    let connection = try Connection(path: path, mode: .immutable)
    return try connection.rows(
      "SELECT k, a, b, c FROM t NOT INDEXED WHERE k BETWEEN ?1 AND ?2 ORDER BY k",
      [.integer(range.lowerBound), .integer(range.upperBound)])
  }

  /// - Throws: `TreeScan.NotUnderstood`.
  func scanned(_ range: ClosedRange<Int64>, columns: Int = 4) throws -> [[SQLiteValue]] {
    let file = try #require(FileHandle(forReadingAtPath: path))
    let scan = try #require(
      TreeScan(descriptor: file.fileDescriptor, root: root, keys: range, columns: columns))
    let places: [Int32] = [1, -1, 2, 3]
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: 4)
    defer { row.deallocate() }
    row.initialize(repeating: .null, count: 4)
    var rows: [[SQLiteValue]] = []
    while try scan.nextLeaf() {
      for cell in scan.rows { rows.append(try Self.values(cell, places, row, columns)) }
    }
    return rows
  }

  private static func values(
    _ cell: TreeScan.Cell, _ places: [Int32], _ row: UnsafeMutablePointer<RawValue>,
    _ columns: Int = 4
  ) throws -> [SQLiteValue] {
    for place in 0..<4 { row[place] = .null }
    guard
      RecordFormat.scatter(record: cell.record, into: row, places: places, count: columns)
    else { throw TreeScan.NotUnderstood() }
    row[0] = .integer(cell.key)
    return (0..<4).map { SQLiteValue(row[$0]) }
  }

  /// Each of these keys that there is a row of, looked up by itself; nil for one that SQLite must read.
  func sought(_ wanted: [Int64]) throws -> [Int64: [SQLiteValue]?] {
    let file = try #require(FileHandle(forReadingAtPath: path))
    let seek = try #require(TreeSeek(descriptor: file.fileDescriptor, root: root))
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: 4)
    defer { row.deallocate() }
    row.initialize(repeating: .null, count: 4)
    var found: [Int64: [SQLiteValue]?] = [:]
    for key in wanted {
      do {
        guard let cell = try seek.row(key) else { continue }
        found[key] = .some(try Self.values(cell, [1, -1, 2, 3], row))
      } catch is TreeScan.NotUnderstood {
        found[key] = .some(nil)
      }
    }
    return found
  }
}

/// Some bytes behind the first page are others.
private func damaged(_ sound: Data, _ generator: inout SeededGenerator) -> Data {
  var bytes = sound
  for _ in 0..<Int.random(in: 1...4, using: &generator) {
    let place = Int.random(in: 512..<bytes.count, using: &generator)
    bytes[place] = UInt8.random(in: 0...255, using: &generator)
  }
  return bytes
}

@Suite struct `A scan of a b-tree` {
  private static let shapes: [(pageSize: Int, autoVacuum: Int)] = [
    (512, 0), (512, 2), (1024, 1), (4096, 0), (4096, 2), (8192, 2), (65_536, 2),
  ]

  @Test(arguments: 0..<shapes.count)
  func `gives the rows that SQLite gives, for any keys`(shape: Int) throws {
    let (pageSize, autoVacuum) = Self.shapes[shape]
    for (number, kind) in DrawnTable.Keys.allCases.enumerated() {
      for rows in [0, 1, 40, 700] {
        let table = try DrawnTable(
          pageSize: pageSize, autoVacuum: autoVacuum, keys: kind, rows: rows,
          seed: UInt64(number * 1000 + rows))
        let whole = try table.stepped(.min ... .max)
        #expect(try table.scanned(.min ... .max) == whole)
        guard let middle = table.keys.dropFirst(table.keys.count / 2).first else { continue }
        for range in [middle...Int64.max, .min...middle, middle...middle] {
          #expect(try table.scanned(range) == table.stepped(range), "\(kind), \(rows), \(range)")
        }
        if middle < .max {
          let gap = middle + 1...max(middle + 1, table.keys.last ?? 0)
          #expect(try table.scanned(gap) == table.stepped(gap))
        }
      }
    }
  }

  @Test(arguments: 0..<shapes.count, 0...4)
  func `gives the first values of rows, as many as are asked for`(shape: Int, columns: Int) throws {
    let (pageSize, autoVacuum) = Self.shapes[shape]
    let table = try DrawnTable(
      pageSize: pageSize, autoVacuum: autoVacuum, keys: .dense, rows: 200, seed: 21)
    let wanted = try table.stepped(.min ... .max).map { row in
      // `a`, the key, `b` and `c` in the record; the key is known without it.
      zip(row, [0, 1, 3, 4]).map { $1 <= columns ? $0 : .null }
    }
    #expect(try table.scanned(.min ... .max, columns: columns) == wanted)
  }

  /// 1 MiB of them is given at a time.
  @Test func `gives large rows of one leaf in parts`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let connection = try Connection(path: path, mode: .create)
    try connection.execute(
      """
      CREATE TABLE t (k INTEGER PRIMARY KEY, a);
      INSERT INTO t VALUES
        (1, zeroblob(700000)), (2, 'x'), (3, zeroblob(700000)), (4, zeroblob(3000000)), (5, 'y'),
        (6, zeroblob(700000))
      """)
    let root = UInt32(
      try connection.rows("SELECT rootpage FROM sqlite_master")[0][0].integer ?? 0)
    try connection.close()
    let file = try #require(FileHandle(forReadingAtPath: path))
    let cases: [(ClosedRange<Int64>, [[Int64]])] = [
      (.min ... .max, [[1, 2, 3], [4], [5, 6]]), (2...4, [[2, 3, 4]]), (4...5, [[4], [5]]),
    ]
    for (keys, parts) in cases {
      let scan = try #require(TreeScan(descriptor: file.fileDescriptor, root: root, keys: keys))
      var found: [[Int64]] = []
      while try scan.nextLeaf() { found.append(scan.rows.map(\.key)) }
      #expect(found == parts)
    }
    let keys = try #require(TreeScan(descriptor: file.fileDescriptor, root: root, columns: 1))
    #expect(try keys.nextLeaf())
    #expect(keys.rows.map(\.key) == Array(1...6), "Nothing large is asked for.")
  }

  /// The rest is not looked at: SQLite does not, either.
  @Test(arguments: [
    (1, 146 + 508),  // the page of its own on which its types end
    (40, 402 + 40 * 40),
  ])
  func `reads a record's pages as far as it is asked for`(columns: Int, size: Int) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let connection = try Connection(path: path, mode: .create)
    // So many columns that the types of their values go on beyond the leaf.
    let names = (0..<400).map { "c\($0)" }.joined(separator: ", ")
    let values = (0..<400).map { "printf('%040d', \($0))" }.joined(separator: ", ")
    try connection.execute(
      "PRAGMA page_size = 512; CREATE TABLE t (\(names)); INSERT INTO t VALUES (\(values))")
    let root = UInt32(
      try connection.rows("SELECT rootpage FROM sqlite_master")[0][0].integer ?? 0)
    try connection.close()
    var bytes = try Data(contentsOf: URL(filePath: path))
    // The chain breaks off near its end, of which only a scan of all learns.
    bytes.replaceSubrange((bytes.count - 512 * 4)..<bytes.count, with: Data(count: 512 * 4))
    try bytes.write(to: URL(filePath: path))
    let file = try #require(FileHandle(forReadingAtPath: path))
    let scan = try #require(
      TreeScan(descriptor: file.fileDescriptor, root: root, columns: columns))
    #expect(try scan.nextLeaf())
    let record = scan.rows[0].record
    #expect(record.count == size)
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: columns) { row in
      row.initialize(repeating: .null)
      let start = try #require(row.baseAddress)
      #expect(RecordFormat.decode(record: record, into: start, count: columns))
      for place in 0..<columns {
        let digits = "\(place)"
        let text = String(repeating: "0", count: 40 - digits.count) + digits
        #expect(SQLiteValue(row[place]) == .text(text))
      }
    }
    let whole = try #require(TreeScan(descriptor: file.fileDescriptor, root: root))
    #expect(throws: TreeScan.NotUnderstood.self) { while try whole.nextLeaf() {} }
  }

  @Test(arguments: 0..<shapes.count)
  func `finds each row that SQLite finds, and no other`(shape: Int) throws {
    let (pageSize, autoVacuum) = Self.shapes[shape]
    for (number, kind) in DrawnTable.Keys.allCases.enumerated() {
      let table = try DrawnTable(
        pageSize: pageSize, autoVacuum: autoVacuum, keys: kind, rows: 900,
        seed: UInt64(number + 50))
      let rows = Dictionary(
        uniqueKeysWithValues: try table.stepped(.min ... .max).map { ($0[0].integer ?? 0, $0) })
      let near = table.keys.flatMap { [$0, $0 &- 1, $0 &+ 1] }
      let found = try table.sought((near + [0, .min, .max]).shuffled())
      #expect(Set(found.keys) == Set(rows.keys))
      var read = 0
      for case let (key, values?) in found {
        #expect(values == rows[key])
        read += 1
      }
      // Rows with pages of their own are for SQLite.
      #expect(read > rows.count / 2)
    }
  }

  /// Where keys do not ascend, every search finds what its own steps lead to.
  @Test func `finds rows of a file as SQLite does where a scan understands all of it`() throws {
    var generator = SeededGenerator(seed: 8)
    let table = try DrawnTable(pageSize: 512, autoVacuum: 2, keys: .sparse, rows: 120, seed: 3)
    let sound = try Data(contentsOf: URL(filePath: table.path))
    var (equal, left) = (0, 0)
    for _ in 0..<600 {
      try damaged(sound, &generator).write(to: URL(filePath: table.path))
      let found = try table.sought(table.keys)
      guard (try? table.scanned(.min ... .max)) != nil else { continue }
      for key in table.keys {
        guard let values = found[key] ?? .some([]) else {
          left += 1
          continue
        }
        guard let stepped = try? table.stepped(key...key) else { continue }
        #expect(values == stepped.first ?? [])
        equal += 1
      }
    }
    #expect(equal > 5_000 && left > 100)
  }

  @Test func `gives the rows that SQLite gives or none, whatever a file says`() throws {
    var generator = SeededGenerator(seed: 7)
    var (equal, refused) = (0, 0)
    let table = try DrawnTable(pageSize: 512, autoVacuum: 2, keys: .sparse, rows: 120, seed: 3)
    let sound = try Data(contentsOf: URL(filePath: table.path))
    for _ in 0..<1500 {
      try damaged(sound, &generator).write(to: URL(filePath: table.path))
      let scanned: [[SQLiteValue]]
      do {
        scanned = try table.scanned(.min ... .max)
      } catch is TreeScan.NotUnderstood {
        refused += 1
        continue
      }
      // What SQLite refuses is damage that its own check of the pages finds too.
      guard let stepped = try? table.stepped(.min ... .max) else { continue }
      #expect(scanned == stepped)
      equal += 1
    }
    #expect(equal > 100 && refused > 100)
  }

  @Test(arguments: [
    ("claims more than the file has", 4, [0x84, 0x80, 0x80, 0x80, 0x00]),
    ("goes round in its overflow pages", 0, []),
  ])
  func `takes no memory for a record that`(what: String, claimed: Int, size: [UInt8]) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let connection = try Connection(path: path, mode: .create)
    // A row of one leaf page whose record goes on in pages 3 to 42.
    try connection.execute(
      """
      PRAGMA page_size = 512; PRAGMA auto_vacuum = 0;
      CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(20000))
      """)
    try connection.close()
    var bytes = try Data(contentsOf: URL(filePath: path))
    if claimed > 0 {
      // In front of the record: its size in three bytes, and the row's key.
      let cell = 512 + (Int(bytes[512 + 8]) << 8 | Int(bytes[512 + 9]))
      try #require(bytes[cell] >= 0x80)
      bytes.replaceSubrange(cell..<cell + size.count, with: size)
    } else {
      // Each overflow page begins with the number of the next.
      try #require(bytes[2 * 512 + 3] == 4)
      bytes[2 * 512 + 3] = 3
    }
    try bytes.write(to: URL(filePath: path))
    let file = try #require(FileHandle(forReadingAtPath: path))
    let scan = try #require(TreeScan(descriptor: file.fileDescriptor, root: 2))
    #expect(throws: TreeScan.NotUnderstood.self, "\(what)") { while try scan.nextLeaf() {} }
  }

  @Test func `leaves files to SQLite that are not in UTF-8, and those of other kinds`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("t.sqlite")
    let connection = try Connection(path: path, mode: .create)
    try connection.execute("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (k INTEGER PRIMARY KEY)")
    try connection.close()
    let file = try #require(FileHandle(forReadingAtPath: path))
    #expect(TreeScan(descriptor: file.fileDescriptor, root: 2, keys: 0...1) == nil)
    try Data(repeating: 1, count: 4096).write(to: URL(filePath: folder.file("other")))
    let other = try #require(FileHandle(forReadingAtPath: folder.file("other")))
    #expect(TreeScan(descriptor: other.fileDescriptor, root: 2, keys: 0...1) == nil)
  }
}
