import GodwitObjectModel
import Testing

@testable import GodwitPlanning

/// What is counted, as `kind entity.property count`.
private func text(_ losses: [Loss]) -> [String] {
  losses.map { "\($0.kind.rawValue) \($0.entity ?? "-").\($0.property ?? "-") \($0.count)" }
}

@Suite struct `Losses of relationships without a place` {
  @Test func `count references whose relationship becomes transient`() throws {
    func models(isTransient: Bool) -> [EntityDescription] {
      [
        entity("A", toMany("bs", "B", inverse: "a")),
        EntityDescription(
          name: "B",
          properties: [
            .relationship(
              RelationshipDescription(
                traits: PropertyTraits(name: "a", isTransient: isTransient),
                destinationEntity: "A", inverseName: "bs"))
          ]),
      ]
    }
    let fixture = try MigrationFixture(
      from: models(isTransient: false), to: models(isTransient: true),
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, 1), (2, 2, 1, NULL), (3, 2, 1, 1)
        """)
    #expect(text(try fixture.plan().losses) == ["relationship B.a 2"])
    let mapped = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A }
        - { source: B, destination: B }
      """)
    #expect(text(mapped.losses) == ["relationship B.a 2"])
  }

  @Test func `count places whose relationship goes, or loses its inverse`() throws {
    func list(inverse: String?) -> PropertyDescription {
      .relationship(
        RelationshipDescription(
          traits: PropertyTraits(name: "bs"), destinationEntity: "B", inverseName: inverse,
          maxCount: 0, isOrdered: true))
    }
    let source = [
      EntityDescription(name: "A", properties: [list(inverse: "a")]),
      entity("B", toOne("a", "A", inverse: "bs")),
    ]
    let rows = """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA, Z_FOK_A)
      VALUES (1, 2, 1, 1, 2048), (2, 2, 1, NULL, NULL), (3, 2, 1, 1, 1024)
      """
    for destination in [
      [entity("A"), entity("B", toOne("a", "A"))],
      [EntityDescription(name: "A", properties: [list(inverse: nil)]), entity("B")],
    ] {
      let fixture = try MigrationFixture(from: source, to: destination, rows: rows)
      #expect(text(try fixture.plan().losses) == ["order A.bs 2"])
    }
  }
}
