import GodwitMapping
import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

@Suite struct `An inferred mapping model, written to a file and run,` {
  /// `B` and its sub-entities, of which `Bs` is none in the destination.
  private static func model(
    _ word: String, _ link: PropertyDescription, _ inverse: PropertyDescription?, isRoot: Bool
  ) -> [EntityDescription] {
    [
      EntityDescription(name: "A", properties: [attribute(word), link]),
      EntityDescription(name: "B", properties: [attribute("n")] + [inverse].compactMap(\.self)),
      isRoot ? entity("Bs", attribute("n")) : entity("Bs", parent: "B"),
      entity("Bt", parent: "B"),
    ]
  }

  private static let rows = """
    INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1);
    INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1), (3, 4, 1), (4, 3, 1);
    """

  @Test(
    arguments: [
      (
        toOne("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"),
        "UPDATE ZA SET ZR = Z_PK, Z2_R = CASE Z_PK WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 3 END",
        "SELECT Z_PK, ZR FROM ZA WHERE ZR NOTNULL ORDER BY 1", ["1 1", "3 3"]
      ),
      (
        toMany("r", "B", inverse: "i"), toMany("i", "A", inverse: "r"),
        "INSERT INTO Z_1R (Z_1I, Z_2R) VALUES (1, 1), (1, 2), (1, 3), (2, 2), (2, 3)",
        "SELECT Z_1I, Z_2R FROM Z_1R ORDER BY 1, 2", ["1 1", "1 3", "2 3"]
      ),
      (
        toOne("r", "B"), nil,
        "UPDATE ZA SET ZR = Z_PK, Z2_R = CASE Z_PK WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 3 END",
        "SELECT Z_PK, ZR FROM ZA WHERE ZR NOTNULL ORDER BY 1", ["1 1", "3 3"]
      ),
    ] as [(PropertyDescription, PropertyDescription?, String, String, [String])])
  func `drops and counts the references that inference drops`(
    link: PropertyDescription, inverse: PropertyDescription?, rows: String, query: String,
    kept: [String]
  ) throws {
    let (old, new) = (
      Self.model("old", link, inverse, isRoot: false),
      Self.model("new", link, inverse, isRoot: true)
    )
    let fixture = try MigrationFixture(from: old, to: new, rows: Self.rows + rows)
    let inference = InferredMapping(
      source: try EntityHierarchy(ManagedObjectModel(entities: old)),
      destination: try EntityHierarchy(ManagedObjectModel(entities: new)))
    #expect(try fixture.migrate().table(query) == kept)
    let dropped = try #require(fixture.latest).plan.losses.filter { $0.kind == .reference }
    let text = try MappingDocument(inference.mappingModel).text()
    for shardBytes in [Int64(1), 1 << 24] {
      #expect(try fixture.migrate(text, shardBytes: shardBytes).table(query) == kept)
      let counted = fixture.droppedByMapping
      #expect(Set(counted.map(\.kind)) == [.reference])
      #expect(counted.map(\.count).reduce(0, +) == dropped.map(\.count).reduce(0, +))
      #expect(counted.map(\.count).reduce(0, +) == 2)
    }
  }
}
