import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// An entity with no attribute and no to-one: its table has the system's columns only.
@Suite struct `A table without columns of its own` {
  private static func entity(
    _ name: EntityName, parent: EntityName? = nil, _ properties: PropertyDescription...
  ) -> EntityDescription {
    EntityDescription(name: name, superentity: parent, properties: properties)
  }

  @Test func `loses the rows of a sub-entity that is removed`() throws {
    let fixture = try MigrationFixture(
      from: [Self.entity("B"), Self.entity("B2", parent: "B"), Self.entity("C", attribute("n"))],
      to: [Self.entity("B"), Self.entity("C", attribute("n"))],
      rows: "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1), (3, 1, 1)")
    let store = try fixture.migrate()
    #expect(try store.table("SELECT Z_PK, Z_ENT FROM ZB ORDER BY Z_PK") == ["1 1", "3 1"])
    #expect(
      fixture.latest?.plan.losses.map(\.message) == ["B2 has no successor: 1 object is dropped."])
  }

  @Test func `gives up the rows of a sub-entity that gets a table of its own`() throws {
    let fixture = try MigrationFixture(
      from: [Self.entity("A"), Self.entity("B", parent: "A")],
      to: [Self.entity("A"), Self.entity("B")],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1), (3, 2, 1)")
    let store = try fixture.migrate()
    #expect(try store.table("SELECT Z_PK, Z_ENT FROM ZA ORDER BY Z_PK") == ["1 1"])
    #expect(try store.table("SELECT Z_PK, Z_ENT FROM ZB ORDER BY Z_PK") == ["2 2", "3 2"])
    #expect(fixture.latest?.plan.losses == [])
  }
}

@Suite struct `A relationship that is its own inverse` {
  private static func entities(_ own: PropertyDescription...) -> [EntityDescription] {
    [
      EntityDescription(name: "A", properties: [attribute("n")] + own),
      EntityDescription(name: "A2", superentity: "A", properties: []),
    ]
  }

  /// Each pair stands in the store twice, once from each side; two are with an object that is dropped.
  @Test(arguments: [
    (
      toMany("f", "A", inverse: "f"),
      "INSERT INTO Z_1F VALUES (1, 2), (2, 1), (3, 4), (4, 3), (1, 3), (3, 1)"
    ),
    (
      toOne("f", "A", inverse: "f"),
      """
      UPDATE ZA SET ZF = 2, Z1_F = 2 WHERE Z_PK = 1; UPDATE ZA SET ZF = 1, Z1_F = 1 WHERE Z_PK = 2;
      UPDATE ZA SET ZF = 4, Z1_F = 2 WHERE Z_PK = 3; UPDATE ZA SET ZF = 3, Z1_F = 1 WHERE Z_PK = 4
      """
    ),
  ])
  func `loses each pair once`(relationship: PropertyDescription, pairs: String) throws {
    let fixture = try MigrationFixture(
      from: Self.entities(relationship),
      to: [EntityDescription(name: "A", properties: [attribute("n"), relationship])],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1), (3, 1, 1), (4, 2, 1);
        \(pairs)
        """)
    let losses = try fixture.plan().losses.filter { $0.kind == .reference }
    #expect(
      losses.map(\.message) == [
        "A.f points to objects of A2, which is dropped: 2 references are dropped."
      ])
    #expect(losses.first?.primaryKeys == [1, 3])
  }

  @Test func `that goes itself loses each pair once`() throws {
    let fixture = try MigrationFixture(
      from: Self.entities(toMany("f", "A", inverse: "f")), to: Self.entities(),
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1);
        INSERT INTO Z_1F VALUES (1, 2), (2, 1), (3, 3)
        """)
    #expect(
      try fixture.plan().losses.map(\.message) == [
        "A.f has no successor, nor has its inverse f: 2 references are dropped."
      ])
  }
}
