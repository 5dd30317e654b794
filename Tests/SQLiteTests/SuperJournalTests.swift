import Foundation
import GodwitSQLite
import Testing

@Suite struct `A journal that names another file` {
  private static let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

  /// A journal with a name at its end, as SQLite writes one for several databases.
  private func journal(naming name: String, sum: UInt32? = nil, length: UInt32? = nil) -> [UInt8] {
    let bytes = Array(name.utf8)
    func number(_ value: UInt32) -> [UInt8] {
      (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }
    let total = sum ?? bytes.reduce(0) { $0 + UInt32($1) }
    return Self.magic + [UInt8](repeating: 0, count: 504) + number(262_145) + bytes
      + number(length ?? UInt32(bytes.count)) + number(total) + Self.magic
  }

  // A wrong sum, or a length beyond the file, is not a name for SQLite today.
  @Test(arguments: [nil, 1] as [UInt32?], [nil, 9_999] as [UInt32?])
  func `is never given to SQLite`(sum: UInt32?, length: UInt32?) throws {
    let folder = try TemporaryFolder()
    let (path, victim) = (folder.file("a.db"), folder.file("victim"))
    try Connection(path: path, mode: .create).execute("CREATE TABLE t (a)")
    #expect(FileManager.default.createFile(atPath: victim, contents: Data("x".utf8)))
    let bytes = journal(naming: victim, sum: sum, length: length)
    #expect(FileManager.default.createFile(atPath: path + "-journal", contents: Data(bytes)))
    #expect(try SuperJournal.isNamed(besideDatabase: path))
    for mode in [Connection.Mode.readOnly, .readWrite, .create] {
      #expect(throws: SQLiteError.self) {
        _ = try Connection(path: path, mode: mode).rows("SELECT * FROM t")
      }
    }
    #expect(FileManager.default.fileExists(atPath: victim))
    #expect(try Connection(path: path, mode: .immutable).rows("SELECT * FROM t").isEmpty)
  }

  @Test(arguments: [0, 15, 16, 512])
  func `is told from one that names none`(size: Int) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a.db")
    try Connection(path: path, mode: .create).execute("CREATE TABLE t (a)")
    #expect(try !SuperJournal.isNamed(besideDatabase: path))
    let bytes = Self.magic + [UInt8](repeating: 0, count: 504)
    let data = Data(bytes.prefix(size))
    #expect(FileManager.default.createFile(atPath: path + "-journal", contents: data))
    #expect(try !SuperJournal.isNamed(besideDatabase: path))
  }

  @Test func `and a database behind a symbolic link are refused`() throws {
    let folder = try TemporaryFolder()
    let (path, link) = (folder.file("a.db"), folder.file("link.db"))
    try Connection(path: path, mode: .create).execute("CREATE TABLE t (a)")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    let error = #expect(throws: SQLiteError.self) {
      _ = try Connection(path: link, mode: .immutable).rows("SELECT * FROM t")
    }
    #expect(error?.codeName == "SQLITE_CANTOPEN_SYMLINK")
  }
}
