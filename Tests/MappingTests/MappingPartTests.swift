import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A mapping model for a store of one configuration` {
  private let whole: EntityHierarchy
  private let held: EntityHierarchy

  init() throws {
    whole = try model(
      entity("Note", attribute("count", .integer64), toOne("tag", "Tag")),
      entity("Tag", attribute("name")))
    held = try model(entity("Note", attribute("count", .integer64), toOne("tag", "Tag")))
  }

  private static func tags(countOnly: String) -> String {
    "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Tag\", "
      + "\"TRUEPREDICATE\"), FUNCTION($manager, \"sourceContext\"), \(countOnly))"
  }

  private static func asks(_ selector: String, _ name: String) -> String {
    "FUNCTION($manager, \"\(selector):\", \"\(name)\", $source.tag)"
  }

  @Test(arguments: [
    (Self.tags(countOnly: "NO"), "{}"), (Self.tags(countOnly: "YES"), "0"),
    ("1 + " + Self.tags(countOnly: "YES"), "1 + 0"),
    (Self.asks("destinationInstancesForEntityMappingNamed:sourceInstances", "TagToTag"), "{}"),
    (Self.asks("sourceInstancesForEntityMappingNamed:destinationInstances", "TagToTag"), "{}"),
    (
      Self.asks("destinationInstancesForEntityMappingNamed:sourceInstances", "NoteToNote"),
      Self.asks("destinationInstancesForEntityMappingNamed:sourceInstances", "NoteToNote")
    ),
    ("$source.count", "$source.count"),
  ])
  func `asks for nothing of what the store does not hold`(asked: String, comesTo: String) throws {
    let expression = try ValueExpression(parsing: asked)
    let row = PropertyMapping(name: "count", expression: expression)
    let mappings = ["Note", "Tag"].map { name in
      EntityMapping(
        name: "\(name)To\(name)",
        type: .transform(
          source: EntityName(name), destination: EntityName(name),
          PropertyMappings(attributes: name == "Note" ? [row] : [])))
    }
    let part = MappingModel(entityMappings: mappings).part([true, false], of: whole, in: held)
    #expect(part.entityMappings.map(\.name) == ["NoteToNote"])
    let found = part.entityMappings[0].properties.attributes[0].expression
    #expect(found == (try ValueExpression(parsing: comesTo)))
  }

  @Test func `says of no other entity that nothing takes its objects`() throws {
    let mapping = EntityMapping(
      name: "NoteToNote", type: .transform(source: "Note", destination: "Note", .init()))
    let mappings = MappingModel(entityMappings: [mapping])
    func kinds(_ check: MappingCheck) -> [MappingFinding.Kind] { check.findings.map(\.kind) }
    #expect(
      kinds(MappingCheck(mappings, source: whole, destination: whole))
        == [.uncoveredDestination, .uncoveredSource])
    #expect(
      kinds(MappingCheck(mappings, source: whole, destination: whole, held: (held, held))) == [])
  }
}
