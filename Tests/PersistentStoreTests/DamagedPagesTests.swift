import Foundation
import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitPersistentStore

@Suite struct `A damaged page of a table` {
  private let folder: TemporaryFolder
  private let store: SmallStore

  init() throws {
    folder = try TemporaryFolder()
    store = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"),
      rows: """
        INSERT INTO ZREADER (Z_PK, Z_ENT, Z_OPT, ZNAME)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        SELECT i, 3, 1, 'reader ' || i FROM n
        """)
  }

  /// The leaves of a table with the keys that they hold, in order.
  private func leaves(of table: String) throws -> [(page: Int64, keys: ClosedRange<Int64>)] {
    let connection = try Connection(path: store.path.string, mode: .immutable)
    let root = try #require(
      try connection.rows(
        "SELECT rootpage FROM sqlite_master WHERE name = ?1", [.text(table)]
      ).first?.first?.integer)
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: store.path.string)))
    func number(_ page: Int64, _ offset: Int, _ count: Int) -> Int {
      let start = Int(page - 1) * 4096 + offset
      return bytes[start..<(start + count)].reduce(0) { $0 << 8 | Int($1) }
    }
    // A root that is an interior page over leaves: 3000 rows need no more.
    try #require(number(root, 0, 1) == 5)
    let cells = number(root, 3, 2)
    let children =
      (0..<cells).map { Int64(number(root, number(root, 12 + 2 * $0, 2), 4)) }
      + [Int64(number(root, 8, 4))]
    var low: Int64 = 1
    return try children.map { page in
      let count = Int64(number(page, 3, 2))
      try #require(number(page, 0, 1) == 13)
      defer { low += count }
      return (page, low...(low + count - 1))
    }
  }

  private func destroy(_ page: Int64) throws {
    let file = try #require(FileHandle(forUpdatingAtPath: store.path.string))
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
    try file.close()
  }

  private func found() throws -> [DamagedPages.Page] {
    DamagedPages.search(try Connection(path: store.path.string, mode: .immutable))
  }

  @Test func `is none in a sound store`() throws {
    #expect(try found() == [])
  }

  @Test func `is named with its table and the keys between its neighbours`() throws {
    let leaves = try leaves(of: "ZREADER")
    try #require(leaves.count > 4)
    let (first, middle, last) = (leaves[0], leaves[2], leaves[leaves.count - 1])
    for leaf in [first, middle, last] { try destroy(leaf.page) }
    func page(_ leaf: (page: Int64, keys: ClosedRange<Int64>), _ after: Int64?, _ upTo: Int64?)
      -> DamagedPages.Page
    {
      DamagedPages.Page(
        table: "ZREADER", number: UInt32(leaf.page), after: after, upTo: upTo)
    }
    #expect(
      try found() == [
        page(first, nil, first.keys.upperBound),
        page(middle, middle.keys.lowerBound - 1, middle.keys.upperBound),
        page(last, last.keys.lowerBound - 1, nil),
      ])
    let finding = try #require(try StoreSoundness.file(of: store.open()).first)
    #expect(
      finding.message.contains(
        "Table ZREADER, page \(middle.page): rows with Z_PK \(middle.keys.lowerBound) to "
          + "\(middle.keys.upperBound) are unreadable"))
    let error = DamageProbe.explained(
      .failed(code: 11, message: "malformed", statement: "SELECT"), path: store.path.string)
    #expect("\(error)".contains("page \(middle.page)"))
  }

  @Test func `is out of order where its keys alone are wrong`() throws {
    let leaves = try leaves(of: "ZREADER")
    // A key of two bytes, the second of which can be lowered.
    let place = try #require(
      leaves.indices.dropFirst().dropLast().first {
        leaves[$0].keys.upperBound > 127 && leaves[$0].keys.upperBound % 128 > 0
      })
    let leaf = leaves[place]
    var bytes = try Data(contentsOf: URL(filePath: store.path.string))
    // The root's dividers are the highest keys of its children, each behind a child's number of four bytes.
    let root = try #require(
      try Connection(path: store.path.string, mode: .immutable)
        .rows("SELECT rootpage FROM sqlite_master WHERE name = 'ZREADER'").first?.first?.integer)
    let start = Int(root - 1) * 4096
    let pointer = start + 12 + 2 * place
    let cell = start + Int(bytes[pointer]) << 8 + Int(bytes[pointer + 1])
    bytes[cell + 5] -= 1
    try bytes.write(to: URL(filePath: store.path.string))
    let upTo = leaf.keys.upperBound - 1
    #expect(
      try found() == [
        DamagedPages.Page(
          table: "ZREADER", number: UInt32(leaf.page), after: leaf.keys.lowerBound - 1, upTo: upTo,
          isOutOfOrder: true)
      ])
    let message = try #require(try StoreSoundness.file(of: store.open()).first).message
    #expect(message.contains("Z_PK \(leaf.keys.lowerBound) to \(upTo) are out of order"))
    #expect(!message.contains("unreadable"))
  }

  @Test func `may lie in another's place, and its rows are counted all the same`() throws {
    let leaves = try leaves(of: "ZREADER")
    try #require(leaves.count > 4)
    var bytes = try Data(contentsOf: URL(filePath: store.path.string))
    func range(_ page: Int64) -> Range<Int> { Int(page - 1) * 4096..<Int(page) * 4096 }
    let (one, other) = (range(leaves[1].page), range(leaves[3].page))
    let first = bytes.subdata(in: one)
    bytes.replaceSubrange(one, with: bytes.subdata(in: other))
    bytes.replaceSubrange(other, with: first)
    try bytes.write(to: URL(filePath: store.path.string))
    let census = try StoreCensus(StoreBinding(try store.open(), try SmallStore.library()))
    #expect(census.entities["Reader"]?.count == 3000)
    #expect(census.entities["Reader"]?.keys == 1...3000)
  }
}
