import Foundation
import GodwitSQLite
import Testing

@Suite("The image of a database in memory")
struct DatabaseImageTests {
  private static let form = "PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2"

  private func make(_ file: Connection) throws {
    try file.execute(
      """
      CREATE TABLE ZA (Z_PK INTEGER PRIMARY KEY, ZNAME VARCHAR);
      CREATE INDEX ZA_ZNAME ON ZA (ZNAME);
      CREATE TABLE ZB (Z_PK INTEGER PRIMARY KEY, ZDATA BLOB)
      """)
  }

  /// Among them one that needs overflow pages.
  private func fill(_ file: Connection) throws {
    try file.execute(
      "INSERT INTO ZA VALUES (1, 'a'), (2, 'b'); INSERT INTO ZB VALUES (1, zeroblob(20000))")
  }

  @Test func `is the file that the same statements make, byte for byte`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("file.sqlite")
    let file = try Connection(path: path, mode: .create)
    try file.execute(Self.form + "; PRAGMA journal_mode = OFF; BEGIN")
    try make(file)
    try fill(file)
    try file.execute("COMMIT")
    try file.close()

    let memory = try Connection(path: ":memory:", mode: .create)
    try memory.execute(Self.form + "; BEGIN")
    try make(memory)
    try memory.execute("COMMIT")
    for _ in 0..<2 {
      try memory.execute("BEGIN")
      try fill(memory)
      let image = try memory.withImage(commits: 2) { Data($0) }
      try memory.execute("ROLLBACK")
      #expect(try image == Data(contentsOf: URL(fileURLWithPath: path)))
    }
    #expect(try memory.rows("SELECT count(*) FROM ZA") == [[.integer(0)]])
  }
}
