import GodwitPlanning
import GodwitSQLite
import Testing

@Suite struct `Shards of an entity that shares its table` {
  private static let mapping = """
    mapping-model: 1
    entity-mappings:
      - { source: Note, destination: Note }
      - { source: Page, destination: Page }
    """

  /// Keys of notes are sparse, and fewer than pages.
  @Test(arguments: [
    (notes: 1, pages: 501, step: 1),  // pages above all notes
    (notes: 501, pages: 1, step: 1),  // and below them
    (notes: 1, pages: 2, step: 12),  // and between
  ])
  func `are cut by its own rows`(notes: Int, pages: Int, step: Int) throws {
    let keys = (0..<40).map { notes + 12 * $0 }
    let rows =
      keys.map { "(\($0), 2, 1, 'n')" } + (0..<80).map { "(\(pages + step * $0), 3, 1, 'p')" }
    let things = [
      entity("Item", attribute("text")), entity("Note", parent: "Item"),
      entity("Page", parent: "Item"),
    ]
    let fixture = try MigrationFixture(
      from: things, to: things + [entity("Other")],
      rows: "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZTEXT) VALUES \(rows.joined(separator: ", "))")
    // As many shards as there are rows.
    let shards = try fixture.plan(Self.mapping, shardBytes: 1).units.filter {
      $0.subject == .mapping(0)
    }
    #expect(shards.map(\.keys.lowerBound) == keys.map(Int64.init))
    #expect(shards.last?.keys.upperBound == keys.last.map(Int64.init))
    let store = try fixture.migrate(Self.mapping, shardBytes: 1)
    #expect(
      try store.table(
        "SELECT Z_ENT, count(*), sum(Z_PK) FROM ZITEM WHERE ZTEXT = 'n' GROUP BY Z_ENT")
        == ["2 40 \(keys.reduce(0, +))"])
    #expect(try store.table("SELECT count(*) FROM ZITEM") == ["120"])
  }
}
