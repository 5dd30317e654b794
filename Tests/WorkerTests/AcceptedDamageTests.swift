import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// A store with rows of no entity: they could go nowhere but with a table that is carried whole.
@Suite struct `Rows of no entity` {
  @Test func `are refused, whatever damage is accepted`() throws {
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
    #expect {
      try fixture.migrate()
    } throws: { error in
      guard case PlanError.damaged(_, let findings) = error else { return false }
      return findings.map(\.kind) == [.rows] && findings.first?.count == 2
        && findings.first?.examples.sorted() == [3, 4] && !"\(error)".contains("accept-damage")
    }
  }
}
