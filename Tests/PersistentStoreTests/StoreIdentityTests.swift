import Foundation
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `The identity of a store` {
  private let folder: TemporaryFolder
  private let path: FilePath

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path.appending("words.sqlite")
  }

  private var files: StoreFiles { StoreFiles(path) }

  private func make(_ mode: String) throws -> Connection {
    let connection = try Connection(path: path.string, mode: .create)
    try connection.execute(
      """
      PRAGMA journal_mode = \(mode);
      PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT);
      INSERT INTO word VALUES (1, 'first');
      """)
    return connection
  }

  /// Files as they are for a process that has just been killed.
  private func copy(_ name: String) throws -> StoreFiles {
    let target = folder.path.appending(name)
    for suffix in ["", "-wal", "-journal"] {
      let (from, to) = (path.string + suffix, target.string + suffix)
      try? FileManager.default.removeItem(atPath: to)
      if FileManager.default.fileExists(atPath: from) {
        try FileManager.default.copyItem(atPath: from, toPath: to)
      }
    }
    return StoreFiles(target)
  }

  @Test(arguments: ["DELETE", "TRUNCATE", "PERSIST", "WAL"])
  func `changes with every commit`(mode: String) throws {
    let connection = try make(mode)
    var names = Set([try files.identity().name])
    for number in 2...5 {
      try connection.execute("UPDATE word SET text = 'number \(number)'")
      names.insert(try files.identity().name)
    }
    #expect(names.count == 5)
    #expect(try files.identity() == files.identity())
  }

  /// The WAL keeps its size and its header, and nothing else is written.
  @Test func `changes when a WAL is written anew in place`() throws {
    let connection = try make("WAL")
    for number in 0..<20 { try connection.execute("UPDATE word SET text = 'long \(number)'") }
    _ = try connection.rows("PRAGMA wal_checkpoint(RESTART)")
    try connection.execute("UPDATE word SET text = 'before'")
    let before = try files.identity()
    func header() throws -> Data {
      try Data(contentsOf: URL(filePath: files.wal.string)).prefix(32)
    }
    let (head, size) = (try header(), try Data(contentsOf: URL(filePath: files.wal.string)).count)
    try connection.execute("UPDATE word SET text = 'during'")
    #expect(try header() == head)
    #expect(try Data(contentsOf: URL(filePath: files.wal.string)).count == size)
    let after = try files.identity()
    #expect(before != after)
    #expect((before.size, before.modificationSeconds) == (after.size, after.modificationSeconds))
    #expect(after.walSize > before.walSize && after.walSize < Int64(size))
  }

  @Test func `counts what is committed in a WAL, and nothing behind it`() throws {
    let connection = try make("WAL")
    try connection.execute("UPDATE word SET text = 'second'")
    let log = [UInt8](try Data(contentsOf: URL(filePath: files.wal.string)))
    let whole = try copy("whole.sqlite").identity()
    #expect(whole.walSize == Int64(log.count))
    let frame = 4096 + 24
    let cases: [(String, [UInt8], Int64)] = [
      ("as it is", log, Int64(log.count)),
      ("noise behind the last frame", log + Array(repeating: 7, count: 9_000), Int64(log.count)),
      ("the last frame cut short", Array(log.dropLast()), Int64(log.count - frame)),
      ("a flipped bit in the last page", flipped(log, at: log.count - 1), Int64(log.count - frame)),
      ("a flipped bit in the first page", flipped(log, at: 32 + 24), 0),
      ("other salts in the header", flipped(log, at: 17), 0),
      ("another magic", flipped(log, at: 0), 0),
      ("a header cut short", Array(log.prefix(31)), 0),
      ("nothing", [], 0),
    ]
    for (name, bytes, size) in cases {
      let odd = try copy("odd.sqlite")
      try Data(bytes).write(to: URL(filePath: odd.wal.string))
      let identity = try odd.identity()
      #expect(identity.walSize == size, "\(name)")
      #expect(identity.hasPendingChanges == (size > 0), "\(name)")
      // What SQLite reads is what was counted.
      let reader = try Connection(path: odd.store.string, mode: .readWrite)
      let isThere = try reader.rows("SELECT 1 FROM sqlite_master").isEmpty == false
      #expect(isThere == (size > 0), "\(name)")
      try reader.close()
    }
  }

  private func flipped(_ bytes: [UInt8], at place: Int) -> [UInt8] {
    var bytes = bytes
    bytes[place] ^= 1
    return bytes
  }

  @Test func `leaves out the journal of a transaction that is going on`() throws {
    let connection = try make("DELETE")
    // Without a sync the journal is valid from its first byte on.
    try connection.execute(
      "PRAGMA synchronous = OFF; BEGIN IMMEDIATE; UPDATE word SET text = 'not yet'")
    #expect(FileManager.default.fileExists(atPath: files.journal.string))
    // The process that has the transaction is alive: the main file is as it was before.
    #expect(try files.identity().hasPendingChanges == false)
    // The same files without it are those of one that was killed.
    #expect(try copy("killed.sqlite").identity().hasPendingChanges)
  }
}
