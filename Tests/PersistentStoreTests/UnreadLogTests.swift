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
    let (second, last) = (32 + Self.frame, log.count - Self.frame)
    var doubled = log
    doubled[10] = 0x20
    let header = "header of the WAL is damaged"
    let cases: [(String, [UInt8], String?)] = [
      ("as it is", log, nil),
      ("noise behind it", log + [UInt8](repeating: 7, count: 2 * Self.frame), nil),
      ("the last frame cut off", Array(log.dropLast()), nil),
      ("a page of the first", changed(32 + 24 + 100), "has 5 transactions"),
      ("a page of the second", changed(second + 24 + 100), "has 4 transactions"),
      ("a salt of the second", changed(second + 11), "has 4 transactions"),
      ("the other salt of the second", changed(second + 15), "has 4 transactions"),
      ("a salt of the last", changed(last + 11), "has a transaction"),
      ("the other salt of the last", changed(last + 15), "has a transaction"),
      ("a page of the last", changed(log.count - 1), "has a transaction"),
      ("a magic number", changed(0), header), ("no page size", changed(10), header),
      ("another page size", doubled, header), ("a number of checkpoints", changed(15), header),
      ("a salt of the header", changed(16), header),
      ("the other salt of the header", changed(23), header),
      ("a checksum of the header", changed(24), header),
      ("a magic number with nothing behind it", Array(changed(0).prefix(32)), nil),
      ("a cut header", Array(log.prefix(31)), nil),
    ]
    for (name, bytes, words) in cases {
      let note = try note(bytes)
      #expect((note != nil) == (words != nil), "\(name)")
      if let words { #expect(note?.contains(words) == true, "\(name): \(note ?? "")") }
    }
  }

  /// The log as it is with another format version in its header, which is whole again.
  private func log(version: UInt32) -> [UInt8] {
    var log = log
    func words(_ bytes: ArraySlice<UInt8>) -> [UInt32] {
      stride(from: bytes.startIndex, to: bytes.endIndex, by: 4).map { place in
        bytes[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) }
      }
    }
    func put(_ word: UInt32, at place: Int) {
      for byte in 0..<4 { log[place + byte] = UInt8(truncatingIfNeeded: word >> (24 - 8 * byte)) }
    }
    put(version, at: 4)
    let isBigEndian = log[3] & 1 == 1
    var sums: (UInt32, UInt32) = (0, 0)
    let head = words(log[..<24]).map { isBigEndian ? $0 : $0.byteSwapped }
    for place in stride(from: 0, to: head.count, by: 2) {
      sums.0 = sums.0 &+ head[place] &+ sums.1
      sums.1 = sums.1 &+ head[place + 1] &+ sums.0
    }
    put(sums.0, at: 24)
    put(sums.1, at: 28)
    return log
  }

  /// SQLite opens no store with such a WAL, unless nothing is behind the header or its checksum is wrong.
  @Test func `are refused where the WAL is of a version that SQLite does not read`() throws {
    var damaged = log(version: 3_008_000)
    damaged[31] ^= 1
    let cases: [(String, [UInt8], isRefused: Bool)] = [
      ("as it was", log(version: 3_007_000), false),
      ("a later version", log(version: 3_007_001), true),
      ("another", log(version: 3_008_000), true),
      ("the header and one byte", Array(log(version: 3_008_000).prefix(33)), true),
      ("the header alone", Array(log(version: 3_008_000).prefix(32)), false),
      ("a wrong checksum", damaged, false),
    ]
    for (name, bytes, isRefused) in cases {
      try Data(bytes).write(to: URL(filePath: files.wal.string))
      let judge = folder.path.appending("judge.sqlite").string
      for suffix in ["", "-wal", "-shm"] {
        try? FileManager.default.removeItem(atPath: judge + suffix)
      }
      for suffix in ["", "-wal"] {
        try FileManager.default.copyItem(
          atPath: files.store.string + suffix, toPath: judge + suffix)
      }
      let isOpened =
        (try? Connection(path: judge, mode: .readWrite).rows("SELECT * FROM ZWORK")) != nil
      #expect(isOpened != isRefused, "\(name)")
      do {
        _ = try files.identity()
        #expect(!isRefused, "\(name)")
      } catch let error as StoreError {
        guard case .unknownLog(files.store, _) = error else { throw error }
        #expect(isRefused && "\(error)".contains("300"), "\(name): \(error)")
      }
      let image = folder.path.appending("image")
      try FileManager.default.createDirectory(
        atPath: image.string, withIntermediateDirectories: true)
      #expect(
        try (StoreImage(of: files, in: image).unknownLogVersion != nil) == isRefused, "\(name)")
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
