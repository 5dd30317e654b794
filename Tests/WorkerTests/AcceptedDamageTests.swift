import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// A store with rows of no entity, as `--accept-damage` carries it.
@Suite struct `Rows of no entity` {
  @Test func `are carried with their table, and reported`() throws {
    let people = [
      entity("Person", attribute("name")), entity("Pupil", attribute("grade"), parent: "Person"),
    ]
    let fixture = try MigrationFixture(
      from: people, to: people + [entity("Seat", attribute("name"))],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME)
        VALUES (1, 1, 1, 'a'), (2, 2, 1, 'b'), (3, 44, 1, 'c'), (4, NULL, 1, 'd')
        """)
    fixture.acceptsDamage = true
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT Z_PK, Z_ENT FROM ZPERSON ORDER BY Z_PK")
        == ["1 1", "2 2", "3 44", "4 -"])
    #expect(fixture.findings.map(\.kind) == [.rows])
    #expect(fixture.findings.first?.count == 2)
    #expect(fixture.findings.first?.examples == [3, 4])
  }
}
