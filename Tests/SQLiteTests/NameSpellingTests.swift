import Testing

@testable import GodwitSQLite

/// One name to Swift, two to SQLite.
private let composed = "Caf\u{E9}"
private let decomposed = "Cafe\u{301}"

@Suite("Names that SQLite tells apart and Swift does not")
struct NameSpellingTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func file(_ name: String, _ sql: String) throws -> Connection {
    let path = folder.file(name)
    let connection = try Connection(path: path, mode: .create)
    try connection.execute(sql)
    try connection.close()
    return try Connection(path: path, mode: .immutable)
  }

  @Test("tables of one file have their own columns, indexes and pages")
  func tablesOfOneFile() throws {
    let file = try file(
      "one.sqlite",
      """
      CREATE TABLE "\(composed)" (a, b); CREATE TABLE "\(decomposed)" (c);
      CREATE INDEX "i\(composed)" ON "\(composed)" (a, b);
      CREATE INDEX "i\(decomposed)" ON "\(decomposed)" (c);
      """)
    let (first, second) = try (file.shape(of: composed), file.shape(of: decomposed))
    #expect(first?.columns.map(\.name) == ["a", "b"])
    #expect(second?.columns.map(\.name) == ["c"])
    #expect(first?.indexes.map(\.fields.count) == [3])
    #expect(second?.indexes.map(\.fields.count) == [2])
    #expect(try file.rootPage(of: composed) != file.rootPage(of: decomposed))
    withExtendedLifetime(folder) {}
  }

  @Test("indexes of one table keep their own fields")
  func indexesOfOneTable() throws {
    let file = try file(
      "indexes.sqlite",
      """
      CREATE TABLE t (a, b);
      CREATE INDEX "\(composed)" ON t (a); CREATE INDEX "\(decomposed)" ON t (b, a);
      """)
    #expect(try file.shape(of: "t")?.indexes.map(\.fields.count) == [3, 2])
    withExtendedLifetime(folder) {}
  }

  @Test("files opened one after the other have their own tables")
  func filesInTurn() throws {
    let first = try file("1.sqlite", "CREATE TABLE t (\"\(composed)\")")
    let second = try file("2.sqlite", "CREATE TABLE t (\"\(decomposed)\")")
    #expect(try first.shape(of: "t")?.columns.first?.name.utf8.count == composed.utf8.count)
    #expect(try second.shape(of: "t")?.columns.first?.name.utf8.count == decomposed.utf8.count)
    withExtendedLifetime(folder) {}
  }

  @Test("each column gives its own values", arguments: [composed, decomposed, "CAF\u{C9}"])
  func columns(name: String) throws {
    let names = [composed, decomposed, "CAF\u{C9}"]
    let file = try file(
      "columns.sqlite",
      """
      CREATE TABLE t (\(names.map(quoted).joined(separator: ", ")));
      INSERT INTO t VALUES (1, 2, 3);
      """)
    let expected = try file.rows("SELECT \(quoted(name)) FROM t")[0][0].integer
    var found: [Int64] = []
    try file.forEachRow(of: "t", [name]) { found.append($0[0].bits) }
    #expect(found == [try #require(expected)])
    withExtendedLifetime(folder) {}
  }
}
