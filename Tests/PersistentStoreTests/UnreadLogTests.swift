import Foundation
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `Transactions in a WAL that SQLite does not read` {
  private let folder: TemporaryFolder
  private let files: StoreFiles
  private let log: [UInt8]

  private static let frame = 24 + 4096

  /// Five transactions of one page each.
  init() throws {
    folder = try TemporaryFolder()
    let library = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"),
      rows: SmallStore.libraryRows, isWAL: true)
    let connection = try Connection(path: library.path.string, mode: .readWrite)
    try connection.execute("PRAGMA wal_autocheckpoint = 0")
    for number in 1...5 { try connection.execute("UPDATE ZWORK SET ZPAGES = \(number)") }
    files = StoreFiles(folder.path.appending("copy.sqlite"))
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: library.path.string + suffix, toPath: files.store.string + suffix)
    }
    log = [UInt8](try Data(contentsOf: URL(filePath: files.wal.string)))
    try connection.close()
  }

  private func note(_ log: [UInt8]) throws -> String? {
    try Data(log).write(to: URL(filePath: files.wal.string))
    let store = try SourceStore(
      path: files.store, snapshotFolder: folder.path.appending("snapshots"))
    let note = try store.logNote()
    let findings = try StoreSoundness.structure(of: StoreBinding(store, SmallStore.library()))
    let notes = findings.filter { $0.kind == .note && $0.message.contains("WAL") }
    #expect(notes.map(\.message) == [note].compactMap(\.self))
    return note
  }

  private func changed(_ place: Int) -> [UInt8] {
    var log = log
    log[place] ^= 1
    return log
  }

  @Test func `are noted with their number`() throws {
    #expect(log.count == 32 + 5 * Self.frame)
    let second = 32 + Self.frame
    let cases: [(String, [UInt8], String?)] = [
      ("as it is", log, nil),
      ("noise behind it", log + [UInt8](repeating: 7, count: 2 * Self.frame), nil),
      ("the last frame cut off", Array(log.dropLast()), nil),
      ("a page of the first", changed(32 + 24 + 100), "has 5 transactions"),
      ("a page of the second", changed(second + 24 + 100), "has 4 transactions"),
      ("a salt of the second", changed(second + 8), "has 3 transactions"),
      ("a page of the last", changed(log.count - 1), "has a transaction"),
      ("a checksum of the header", changed(24), "has 5 transactions"),
    ]
    for (name, bytes, words) in cases {
      let note = try note(bytes)
      #expect((note != nil) == (words != nil), "\(name)")
      if let words { #expect(note?.contains(words) == true, "\(name): \(note ?? "")") }
    }
  }

  @Test func `are none before a WAL was begun anew, or where none was committed`() throws {
    let connection = try Connection(path: files.store.string, mode: .readWrite)
    _ = try connection.rows("PRAGMA wal_checkpoint(RESTART)")
    try connection.execute("PRAGMA wal_autocheckpoint = 0; UPDATE ZWORK SET ZPAGES = 6")
    let log = [UInt8](try Data(contentsOf: URL(filePath: files.wal.string)))
    #expect(log.count == self.log.count)
    let store = try SourceStore(
      path: files.store, snapshotFolder: folder.path.appending("snapshots"))
    #expect(try store.logNote() == nil)
    // Pages of a transaction that was given up.
    try connection.execute(
      """
      PRAGMA cache_size = 1;
      BEGIN;
      CREATE TABLE filler (a);
      INSERT INTO filler VALUES (zeroblob(100000));
      ROLLBACK;
      """)
    let other = try SourceStore(
      path: files.store, snapshotFolder: folder.path.appending("snapshots"))
    #expect(try other.logNote() == nil)
    try connection.close()
  }
}
