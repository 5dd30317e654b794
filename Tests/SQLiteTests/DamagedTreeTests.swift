import Foundation
import Testing

@testable import GodwitSQLite

@Suite struct `Keys of a damaged leaf` {
  @Test(
    arguments: [
      // As they are.
      ([1, 2, 5], nil, nil, [1, 2, 5], [.sound, .sound, .sound]),
      ([], nil, nil, [], []),
      // One that only one key can have been.
      ([1, 66, 3], nil, nil, [1, 2, 3], [.sound, .onlyPossible, .sound]),
      ([1, 2, -5], 0, 3, [1, 2, 3], [.sound, .sound, .onlyPossible]),
      ([9, 2, 3], 0, 3, [1, 2, 3], [.onlyPossible, .sound, .sound]),
      // One that may have been several.
      ([1, 66, 5], nil, nil, [1, 66, 5], [.sound, .doubtful, .sound]),
      ([1, 2, 66], nil, 9, [1, 2, 66], [.sound, .sound, .doubtful]),
      // Two that follow each other: none has two sound neighbours.
      ([1, 90, 80, 4], nil, nil, [1, 90, 80, 4], [.sound, .doubtful, .doubtful, .sound]),
      // One twice: which of the two is wrong, nobody knows.
      ([2, 1, 1, 3], nil, nil, [2, 1, 1, 3], [.doubtful, .doubtful, .sound, .sound]),
      ([.max, .min], nil, nil, [.max, .min], [.doubtful, .sound]),
      // A leaf that stands in another one's place, and a lone row, which cannot tell.
      ([40, 41, 50], 7, 10, [40, 41, 50], [.misplaced, .misplaced, .misplaced]),
      ([1, 2, 3], 7, 10, [1, 2, 3], [.misplaced, .misplaced, .misplaced]),
      ([40], 7, 8, [40], [.doubtful]),
    ] as [([Int64], Int64?, Int64?, [Int64], [KeyState])])
  func `are those of the longest ascending run, and what must lie between`(
    found: [Int64], after: Int64?, upTo: Int64?, keys: [Int64], states: [KeyState]
  ) {
    let sequence = KeySequence(found, after: after, upTo: upTo)
    #expect(sequence.keys == keys)
    #expect(sequence.states == states)
    #expect(sequence.isAscending == states.allSatisfy { $0 == .sound })
  }
}

@Suite struct `A damaged file` {
  /// A table of 2 000 rows, some of which go on in overflow pages, and its index.
  private func file(_ folder: borrowing TemporaryFolder) throws -> (path: String, root: UInt32) {
    let path = folder.file("t.sqlite")
    let connection = try Connection(path: path, mode: .create)
    try connection.execute(
      """
      PRAGMA page_size = 1024; PRAGMA auto_vacuum = 2;
      CREATE TABLE t (k INTEGER PRIMARY KEY, a TEXT, b BLOB);
      CREATE INDEX i ON t (a);
      WITH n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 2000)
      INSERT INTO t SELECT k, 'row ' || k, zeroblob(iif(k % 100 = 0, 5000, 20)) FROM n;
      """)
    let root = try connection.rows("SELECT rootpage FROM sqlite_master WHERE name = 't'")
    try connection.close()
    return (path, UInt32(root[0][0].integer ?? 0))
  }

  private func leaves(_ bytes: Data) -> [Int] {
    (3..<(bytes.count / 1024)).filter { bytes[$0 * 1024] == 0x0D }
  }

  private func blank(_ page: Int, of bytes: Data, at path: String) throws {
    var bytes = bytes
    bytes.replaceSubrange(page * 1024..<(page + 1) * 1024, with: Data(count: 1024))
    try bytes.write(to: URL(fileURLWithPath: path))
  }

  private func keys(_ path: String, root: UInt32) throws -> (keys: [Int64], gaps: [KeyGap]) {
    let file = try #require(DamagedFile(privateCopy: path))
    var reader = DamagedTreeReader(file, .table, tree: 1)
    var keys: [Int64] = []
    try reader.read(root: root) { keys.append($0.key) }
    return (keys, reader.gaps)
  }

  @Test func `gives every row of a sound tree, and no gap`() throws {
    let folder = try TemporaryFolder()
    let (path, root) = try file(folder)
    let found = try keys(path, root: root)
    #expect(found.keys == Array(1...2000))
    #expect(found.gaps.isEmpty)
  }

  /// Where an error comes from is asked of the journal, too, of whatever kind it is.
  @Test(arguments: ["DELETE", "TRUNCATE", "PERSIST", "MEMORY", "WAL", "OFF"])
  func `is an error of a statement that writes what it reads there`(journal: String) throws {
    let folder = try TemporaryFolder()
    let (path, _) = try file(folder)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    try blank(#require(leaves(bytes).last), of: bytes, at: path)
    let copy = try Connection(path: folder.file("copy.sqlite"), mode: .create)
    try copy.execute("PRAGMA journal_mode = \(journal); CREATE TABLE t (k, a, b); BEGIN")
    try copy.attachImmutable(path, as: "damaged")
    #expect { try copy.execute("INSERT INTO main.t SELECT * FROM damaged.t") } throws: {
      ($0 as? SQLiteError)?.isCorruption == true
    }
  }

  @Test func `names the keys of each leaf that is lost`() throws {
    let folder = try TemporaryFolder()
    let (path, root) = try file(folder)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let pages = leaves(whole).prefix(20)
    #expect(pages.count == 20)
    for page in pages {
      try blank(page, of: whole, at: path)
      let found = try keys(path, root: root)
      let lost = Set(1...2000).subtracting(found.keys)
      #expect(!lost.isEmpty)
      #expect(found.gaps.count == 1)
      #expect(lost.allSatisfy { key in found.gaps.contains { $0.contains(key) } })
    }
  }

  @Test func `gives of a row across its end what there is, and nothing else`() throws {
    let folder = try TemporaryFolder()
    let (path, root) = try file(folder)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    let leaf = try #require(leaves(whole).dropFirst(3).first)
    try whole.prefix(leaf * 1024 + 1000).write(to: URL(fileURLWithPath: path))
    let file = try #require(DamagedFile(privateCopy: path))
    var reader = DamagedTreeReader(file, .table, tree: 1)
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: 3)
    defer { values.deallocate() }
    var (lost, cut): ([Int], Int) = ([], 0)
    try reader.read(root: root) { cell in
      #expect(cell.key > 0)
      let found = try #require(cell.record.decode(into: values, count: 3, lost: &lost))
      if found.condition == .cut, cell.key % 100 != 0 { cut += 1 }
      let text = SQLiteValue(values[1]).text
      #expect(lost.contains(1) || text == "row \(cell.key)")
    }
    #expect(cut == 1)
    #expect(!reader.gaps.isEmpty)
  }

  @Test(arguments: 1...40)
  func `is read to its end whatever its bytes say`(seed: UInt64) throws {
    let folder = try TemporaryFolder()
    let (path, root) = try file(folder)
    var generator = SeededGenerator(seed: seed)
    var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    for _ in 0..<400 {
      bytes[Int.random(in: 0..<bytes.count, using: &generator)] =
        UInt8.random(in: 0...255, using: &generator)
    }
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    guard let file = DamagedFile(privateCopy: path) else { return }
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: 8)
    defer { values.deallocate() }
    var lost: [Int] = []
    for kind in [TreeScan.Kind.table, .index] {
      for page in [1, root, root + 1] {
        var reader = DamagedTreeReader(file, kind, tree: 1)
        var count = 0
        try reader.read(root: page) { cell in
          count += cell.record.decode(into: values, count: 8, lost: &lost) == nil ? 0 : 1
        }
        #expect(count <= bytes.count)
      }
    }
  }
}

@Suite struct `A damaged record` {
  private func decode(_ bytes: [UInt8], size: Int? = nil) -> (
    values: [SQLiteValue], lost: [Int], condition: DamagedRecord.Condition?
  ) {
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: 3)
    defer { values.deallocate() }
    return bytes.withUnsafeBytes { raw in
      var lost: [Int] = []
      let record = DamagedRecord(bytes: raw, size: size ?? raw.count)
      let found = record.decode(into: values, count: 3, lost: &lost)
      return ((0..<3).map { SQLiteValue(values[$0]) }, lost, found?.condition)
    }
  }

  @Test func `tells what is whole, what is cut, and what does not add up`() {
    // NULL, 7, "ab"
    let whole = decode([4, 0, 1, 17, 7, 0x61, 0x62])
    #expect(whole.condition == .whole && whole.values == [.null, .integer(7), .text("ab")])
    let cut = decode([4, 0, 1, 17, 7], size: 7)
    #expect(cut.condition == .cut && cut.lost == [2] && cut.values[1] == .integer(7))
    #expect(decode([4, 0, 1, 17, 7, 0x61, 0x62, 0]).condition == .doubtful)
    #expect(decode([4, 0, 1, 99, 7, 0x61, 0x62]).condition == .doubtful)
    #expect(decode([4, 0, 10, 17, 7, 0x61, 0x62]).condition == .doubtful)
    #expect(decode([]).condition == nil)
    #expect(decode([200, 200, 200]).condition == nil)
  }
}
