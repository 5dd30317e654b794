import Foundation
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `A rollback journal` {
  private let folder: TemporaryFolder
  private let store: StoreFiles
  /// The journal of a transaction that a process did not end, in several segments.
  private let journal: [UInt8]
  /// Where each segment's header begins, and how many records it counts.
  private let headers: [(offset: Int, count: Int)]

  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  private static let sector = 512
  private static let record = 4096 + 8

  init() throws {
    folder = try TemporaryFolder()
    (store, journal) = try Self.killedProcess(in: folder.path, "PRAGMA synchronous = FULL")
    var (headers, offset): ([(Int, Int)], Int) = ([], 0)
    while offset + 28 <= journal.count, journal[offset..<offset + 8].elementsEqual(Self.magic) {
      let count = journal[offset + 8..<offset + 12].reduce(0) { $0 << 8 | Int($1) }
      headers.append((offset, count))
      let end = offset + Self.sector + count * Self.record
      offset = (end + Self.sector - 1) / Self.sector * Self.sector
    }
    self.headers = headers
  }

  /// The files of a process that was killed while it changed every word.
  private static func killedProcess(
    in folder: FilePath, _ settings: String
  ) throws -> (StoreFiles, [UInt8]) {
    // Swift joins the last letter with the dash before `journal`.
    let store = try SmallStore(
      SmallStore.library(), at: folder.appending("library\u{6DD}"), rows: SmallStore.libraryRows)
    try store.execute(
      """
      CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120)
      INSERT INTO word SELECT i, printf('%3000d', i) FROM n;
      """)
    let connection = try Connection(path: store.path.string, mode: .readWrite)
    try connection.execute(
      "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 10; PRAGMA cache_spill = 1; \(settings); BEGIN; "
        + "UPDATE word SET text = printf('%3000d', 0)")
    let copy = StoreFiles(folder.appending("killed.sqlite"))
    try FileManager.default.copyItem(atPath: store.path.string, toPath: copy.store.string)
    let journal = try Data(contentsOf: URL(filePath: store.path.string + "-journal"))
    try connection.execute("ROLLBACK")
    try connection.close()
    return (copy, [UInt8](journal))
  }

  /// Words of the transaction that was not committed; nil where the journal is called damaged.
  private func uncommitted(with bytes: [UInt8]) throws -> Int64? {
    try Data(bytes).write(to: URL(filePath: store.journal.string))
    do {
      let snapshots = folder.path.appending("snapshots-\(UUID())")
      let opened = try SourceStore(path: store.store, snapshotFolder: snapshots)
      return try opened.connection.rows("SELECT count(*) FROM word WHERE trim(text) = '0'")
        .first?.first?.integer
    } catch StoreError.journal(let path, let reason) {
      #expect(path == store.store && !reason.isEmpty)
      return nil
    }
  }

  private func changed(_ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
    var journal = journal
    journal.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return journal
  }

  @Test func `is played back where it is whole`() throws {
    #expect(headers.count > 2 && headers[0].count > 2)
    #expect(try uncommitted(with: journal) == 0)
    // As of frameworks of long ago.
    #expect(try uncommitted(with: changed(24, [0, 0, 0, 0])) == 0)
  }

  @Test func `is damaged where something that it counts is missing or wrong`() throws {
    let (first, middle) = (headers[0], headers[headers.count / 2])
    let records = middle.offset + Self.sector
    let zeros = [UInt8](repeating: 0, count: Self.sector)
    var sizeless = changed(records + 4 + 4096 - 200, [0x55])
    sizeless.replaceSubrange(24..<28, with: zeros.prefix(4))
    let cases: [(String, [UInt8])] = [
      ("cut off in a record", Array(journal.prefix(records + 2000))),
      ("cut off before the records", Array(journal.prefix(records))),
      ("cut off in a header", Array(journal.prefix(middle.offset + 20))),
      ("cut off in the first header", Array(journal.prefix(20))),
      ("cut off in the first magic number", Array(journal.prefix(5))),
      ("a page", changed(records + 4 + 4096 - 200, [0x55])),
      ("a checksum", changed(records + 4 + 4096, [1, 2, 3, 4])),
      ("a page number of 0", changed(records, [0, 0, 0, 0])),
      ("a page number beyond the database", changed(records, [0, 1, 0, 0])),
      ("a nonce", changed(middle.offset + 12, [1, 2, 3, 4])),
      ("too high a count", changed(headers[headers.count - 1].offset + 8, [0, 1, 0, 0])),
      ("a first count of nothing", changed(first.offset + 8, [0, 0, 0, 0])),
      ("a first count that is too low", changed(first.offset + 11, [UInt8(first.count - 1)])),
      ("no first count", changed(first.offset + 8, [0xFF, 0xFF, 0xFF, 0xFF])),
      ("another count of nothing", changed(middle.offset + 8, [0, 0, 0, 0])),
      ("another count that is too low", changed(middle.offset + 11, [UInt8(middle.count - 1)])),
      ("no other count", changed(middle.offset + 8, [0xFF, 0xFF, 0xFF, 0xFF])),
      ("a bit of the first magic number", changed(first.offset + 1, [0xD4])),
      ("a bit of another magic number", changed(middle.offset, [0xD8])),
      ("two bytes of another magic number", changed(middle.offset, [0, 0])),
      ("three bytes of another magic number", changed(middle.offset, [1, 2, 3])),
      ("another magic number", changed(middle.offset, Array(zeros.prefix(8)))),
      ("another magic number and count", changed(middle.offset, Array(zeros.prefix(12)))),
      ("another header", changed(middle.offset, zeros)),
      ("the last header", changed(headers[headers.count - 1].offset, zeros)),
      ("a page where no header has its size", sizeless),
      ("more pages than there are", changed(first.offset + 16, [0xFF, 0xFF, 0xFF, 0xFF])),
      ("a sector size", changed(first.offset + 20, [0, 0, 2, 1])),
      ("a page size", changed(first.offset + 24, [0, 0, 0x11, 0])),
    ]
    for (name, bytes) in cases {
      #expect(try uncommitted(with: bytes) == nil, "\(name)")
    }
  }

  /// A header counts records once they are on the disk, and before that a page of the database is written.
  @Test func `may end with what is not counted yet`() throws {
    let last = headers[headers.count - 1]
    let end = last.offset + Self.sector + last.count * Self.record
    let next = (end + Self.sector - 1) / Self.sector * Self.sector
    let noise = [UInt8](repeating: 7, count: 3 * Self.record)
    let begun = [UInt8](repeating: 0, count: Self.sector)
    let uncounted = Self.magic + [UInt8](repeating: 0, count: Self.sector - 8)
    let cases: [(String, [UInt8])] = [
      ("nothing", []), ("a header without a magic number", begun + noise),
      ("a part of a header", [UInt8](repeating: 0, count: 9)),
      ("a header that counts nothing", uncounted + noise),
      // An earlier, longer transaction's in a journal that is kept.
      (
        "a header that SQLite has given up",
        [0] + Self.magic.dropFirst() + uncounted.dropFirst(8) + noise
      ),
      ("what an earlier transaction left", noise),
    ]
    var whole = Array(journal.prefix(end))
    #expect(try uncommitted(with: whole) == 0)
    whole += [UInt8](repeating: 0, count: next - end)
    for (name, bytes) in cases {
      #expect(try uncommitted(with: whole + bytes) == 0, "\(name)")
    }
  }

  @Test func `that is not synced goes on to its end, or to another transaction's records`() throws {
    let other = try TemporaryFolder()
    let (files, bytes) = try Self.killedProcess(in: other.path, "PRAGMA synchronous = OFF")
    #expect(bytes[8..<12].allSatisfy { $0 == 0xFF })
    try FileManager.default.removeItem(atPath: store.store.string)
    try FileManager.default.copyItem(atPath: files.store.string, toPath: store.store.string)
    #expect(try uncommitted(with: bytes) == 0)
    #expect(try uncommitted(with: bytes + bytes.prefix(1000)) == 0)
    let noise = [UInt8](repeating: 7, count: 5 * Self.record)
    #expect(try uncommitted(with: bytes + noise) == 0)
    var damaged = bytes
    damaged[Self.sector + 10 * Self.record + 4 + 4096 - 200] ^= 1
    #expect(try uncommitted(with: damaged) == nil)
  }
}
