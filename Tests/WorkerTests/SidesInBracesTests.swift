import GodwitObjectModel
import Testing

@testable import GodwitPlanning

/// Cats and dogs become pets: of their owner, or of the one who keeps them for a while.
@Suite struct `A relationship that two relationships of the source become` {
  private static let source = [
    entity(
      "Cat", attribute("n", .integer16), toOne("own", "Own", inverse: "cats"),
      toOne("host", "Own", inverse: "guests")),
    entity("Dog", attribute("n", .integer16), toOne("own", "Own", inverse: "dogs")),
    entity(
      "Own", attribute("n", .integer16), toMany("cats", "Cat", inverse: "own"),
      toMany("dogs", "Dog", inverse: "own"), toMany("guests", "Cat", inverse: "host")),
  ]

  private static let rows = """
    INSERT INTO ZOWN (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 3, 1, 1), (2, 3, 1, 2), (3, 3, 1, 3);
    INSERT INTO ZCAT (Z_PK, Z_ENT, Z_OPT, ZN, ZOWN, ZHOST)
    VALUES (1, 1, 1, 1, 1, 2), (2, 1, 1, 2, 2, NULL), (3, 1, 1, 3, NULL, 1);
    INSERT INTO ZDOG (Z_PK, Z_ENT, Z_OPT, ZN, ZOWN) VALUES (1, 2, 1, 11, 1), (2, 2, 1, 12, 2);
    """

  /// What the mappings C and D make of the objects of two relationships, and so on.
  private static func braces(_ calls: String...) -> String {
    let texts = calls.map { call in
      let words = call.split(separator: " ")
      return #"FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "#
        + "\"\(words[0])\", $source.\(words[1]))"
    }
    return "'{ \(texts.joined(separator: ", ")) }'"
  }

  private static func mapping(ofCats: String, ofDogs: String, ofOwners: String) -> String {
    """
    mapping-model: 1
    entity-mappings:
      - { name: C, source: Cat, destination: Pet, relationships: { own: \(ofCats) } }
      - { name: D, source: Dog, destination: Pet, relationships: { own: \(ofDogs) } }
      - { name: O, source: Own, destination: Own, relationships: { pets: \(ofOwners) } }
    """
  }

  private static func fixture(isOrdered: Bool = false) throws -> MigrationFixture {
    try MigrationFixture(
      from: source,
      to: [
        entity(
          "Own", attribute("n", .integer16),
          toMany("pets", "Pet", inverse: "own", ordered: isOrdered)),
        entity("Pet", attribute("n", .integer16), toOne("own", "Own", inverse: "pets")),
      ], rows: rows)
  }

  /// Each part of the braces is what one of the to-one sides says, too.
  @Test(arguments: ["automatic", "default"], ["automatic", "default"])
  func `has the same pairs by either side and by both`(ofCats: String, ofDogs: String) throws {
    for isOrdered in [false, true] {
      let fixture = try Self.fixture(isOrdered: isOrdered)
      let mapping = Self.mapping(
        ofCats: ofCats, ofDogs: ofDogs, ofOwners: Self.braces("D dogs", "C cats"))
      for (renumbers, shardBytes) in [(false, 1 << 24), (true, 1)] as [(Bool, Int64)] {
        let store = try fixture.migrate(mapping, renumbers: renumbers, shardBytes: shardBytes)
        let pairs = try store.table(
          """
          SELECT x.ZN, y.ZN FROM ZPET AS x JOIN ZOWN AS y ON y.Z_PK = x.ZOWN
           ORDER BY y.ZN, \(isOrdered ? "x.Z_FOK_OWN" : "-x.ZN")
          """)
        #expect(pairs == ["11 1", "1 1", "12 2", "2 2"])
        #expect(fixture.droppedByMapping.filter { $0.kind == .sharedTarget }.isEmpty)
      }
      let plan = try #require(fixture.latest?.plan)
      #expect(plan.notes.filter { $0.contains("two sides") } == [])
      #expect(plan.mapped?.groups.contains { $0.isSequential == true } == false)
    }
  }

  @Test(
    arguments: [
      ("automatic", "'nil'", braces("D dogs", "C cats"), "different things"),
      ("{ along: host }", "automatic", braces("D dogs", "C cats"), "different things"),
      ("automatic", "automatic", braces("C cats", "C guests"), "different things"),
      ("automatic", "automatic", braces("D dogs", "C cats", "C guests"), "different things"),
      ("automatic", "default", braces("D dogs"), "different things"),
      (braces("O own", "O host"), "automatic", braces("D dogs", "C cats"), "different things"),
      (
        braces("O own", "O host"), "automatic", braces("D dogs", "C cats", "C guests"),
        "has room for one"
      ),
    ])
  func `is set in order, with a note, where the sides differ`(
    ofCats: String, ofDogs: String, ofOwners: String, why: String
  ) throws {
    let plan = try Self.fixture().plan(
      Self.mapping(ofCats: ofCats, ofDogs: ofDogs, ofOwners: ofOwners))
    #expect(
      plan.notes.filter { $0.contains("Pet.own and Own.pets") && $0.contains(why) }.count == 1)
    #expect(plan.mapped?.groups.contains { $0.isSequential == true } == true)
  }

  /// A to-many without inverse is set both ways where it alone becomes its own inverse.
  @Test func `is set object by object where it becomes its own inverse`() throws {
    let fixture = try MigrationFixture(
      from: [entity("P", toMany("fans", "P"), toOne("mate", "P", inverse: "mate"))],
      to: [entity("P", toMany("up", "P", inverse: "up"))],
      rows: """
        INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZMATE) VALUES (1, 1, 1, NULL), (2, 1, 1, 3), (3, 1, 1, 2)
        """)
    let plan = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { name: P, source: P, destination: P, relationships: { up: \(Self.braces("P fans", "P mate")) } }
      """)
    #expect(plan.notes.contains { $0.contains("P.up") && $0.contains("its own inverse") })
    #expect(plan.mapped?.groups.contains { $0.isSequential == true } == true)
  }
}
