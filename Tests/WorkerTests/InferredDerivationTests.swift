import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A derived attribute, inferred` {
  private static func derived(
    _ name: String, _ expression: String, _ type: AttributeType = .string
  ) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name), type: type, derivationExpression: expression))
  }

  private static func fixture(
    _ before: PropertyDescription..., to after: PropertyDescription...,
    rows: String = """
    INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZD)
    VALUES (1, 1, 1, 'Ä b', 'ÄB'), (2, 1, 1, '', NULL), (3, 1, 1, NULL, NULL)
    """
  ) throws -> MigrationFixture {
    try MigrationFixture(
      from: [EntityDescription(name: "P", properties: before)],
      to: [EntityDescription(name: "P", properties: after)], rows: rows)
  }

  @Test(arguments: [
    ("lowercase:(n)", "ä b"), ("canonical:(n)", "a b"), ("uppercase:(lowercase:(n))", "Ä B"),
    ("n", "Ä b"),
  ])
  func `is computed where its derivation is another, over a text of the object`(
    expression: String, value: String
  ) throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "uppercase:(n)"),
      to: attribute("n"), Self.derived("d", expression))
    let store = try fixture.migrate()
    #expect(try store.table("SELECT ZD FROM ZP ORDER BY Z_PK") == [value, "", "-"])
    #expect(fixture.latest?.plan.losses == [])
  }

  @Test func `is computed from what the text is in the destination`() throws {
    let fixture = try Self.fixture(
      attribute("n"), attribute("d"),
      to: attribute("n", optional: false, default: .text("It's")),
      attribute("m", default: .text("M")), Self.derived("e", "uppercase:(n)"),
      Self.derived("f", "lowercase:(m)"))
    #expect(
      try fixture.migrate().table("SELECT ZE, ZF FROM ZP ORDER BY Z_PK")
        == ["Ä B m", " m", "IT'S m"])
  }

  @Test func `that nobody can compute loses its values, and they are counted`() throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "uppercase:(n)"),
      to: attribute("n"), Self.derived("d", "p.n"), toOne("p", "P"))
    let store = try fixture.migrate()
    #expect(try store.table("SELECT DISTINCT ZD FROM ZP") == ["-"])
    #expect(
      fixture.latest?.plan.losses.map(\.message) == [
        "P.d is derived in another way: 1 value is dropped, and derived when Core Data saves an object."
      ])
  }

  @Test func `that is carried though its text is another now is named`() throws {
    func notes(_ other: PropertyDescription) throws -> [String] {
      let fixture = try Self.fixture(
        attribute("n"), Self.derived("d", "uppercase:(n)"),
        to: other, attribute("z"), Self.derived("d", "uppercase:(n)"))
      return try fixture.plan().notes.filter { $0.contains("P.d are the source's") }
    }
    #expect(try notes(attribute("n")) == [])
    #expect(try notes(attribute("n", optional: false, default: .text("none"))).count == 1)
  }
}
