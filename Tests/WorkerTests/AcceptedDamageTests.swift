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

@Suite struct `A place in an ordered relationship` {
  @Test(arguments: [("'abc'", [StoreFinding.Kind.type]), ("NULL", [.order]), ("2048", [])])
  func `is an integer`(place: String, kinds: [StoreFinding.Kind]) throws {
    let models = [
      entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
      entity("B", toOne("a", "A", inverse: "bs")),
    ]
    let fixture = try MigrationFixture(
      from: models, to: models + [entity("C")],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA, Z_FOK_A) VALUES (1, 2, 1, 1, \(place))
        """)
    fixture.acceptsDamage = true
    _ = try fixture.migrate()
    #expect(fixture.findings.map(\.kind) == kinds)
    #expect(fixture.destinationFindings.map(\.kind) == kinds)
  }
}

@Suite struct `A key that is no integer` {
  @Test(arguments: [false, true])
  func `is carried as found where its damage is accepted`(isOrdered: Bool) throws {
    let models = [
      entity("A", toMany("bs", "B", inverse: "a", ordered: isOrdered)),
      entity("B", toOne("a", "A", inverse: "bs")),
    ]
    // The new attribute makes every row of the table new.
    let fixture = try MigrationFixture(
      from: models,
      to: [models[0], entity("B", attribute("n"), toOne("a", "A", inverse: "bs"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, 1.5)
        """)
    fixture.acceptsDamage = true
    let store = try fixture.migrate()
    #expect(Set(fixture.findings.map(\.kind)) == [.type])
    #expect(fixture.destinationFindings.first?.kind == .type)
    #expect(try store.rows("SELECT ZA FROM ZB") == [[.real(1.5)]])
  }
}
