import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A completed mapping model` {
  private func completed(
    _ entries: [MappingDocument.Entry], _ source: EntityHierarchy, _ destination: EntityHierarchy
  ) -> [EntityMapping] {
    MappingModel(
      MappingDocument(entityMappings: entries), source: source, destination: destination
    ).entityMappings
  }

  private func expression(of relationship: String, among entries: [MappingDocument.Entry]) throws
    -> String?
  {
    let both = try model(
      entity("A", toMany("plain", "B"), toMany("family", "P"), toOne("lost", "L")),
      entity("B"), entity("L"), entity("P"), entity("C", parent: "P"))
    let rows = completed(entries, both, both)[0].properties.relationships
    return rows.first { $0.name == relationship }?.expression?.description
  }

  private func pair(_ name: EntityName) -> MappingDocument.Entry {
    .init(source: name, destination: name)
  }

  @Test func `asks the one mapping that makes the target's objects`() throws {
    #expect(
      try expression(of: "plain", among: [pair("A"), pair("B")])
        == "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
        + "\"BToB\", $source.plain)")
  }

  @Test(arguments: ["plain", "family"])
  func `asks for the source relationship where several mappings may`(name: String) throws {
    var second = pair("B")
    second.name = "Again"
    #expect(
      try expression(of: name, among: [pair("A"), pair("B"), second, pair("C")])
        == "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
        + "\"\(name)\", $source.\(name))")
  }

  @Test func `leaves a relationship alone whose target nobody makes`() throws {
    #expect(try expression(of: "lost", among: [pair("A"), pair("B")]) == nil)
  }

  @Test(arguments: [
    // What is written, its name and the type that follows.
    (MappingDocument.Entry(source: "A", destination: "A"), "AToA", "copy"),
    (.init(source: "A", destination: "B"), "AToB", "transform"),  // B has an attribute that A lacks
    (
      .init(source: "A", destination: "A", attributes: [.init("x", .unset)]), "AToA", "transform"
    ),
    (
      .init(source: "A", destination: "A", selection: .filter(.constant(false))), "AToA",
      "transform"
    ),
    (.init(destination: "A"), "A", "add"),
    (.init(source: "A"), "A", "remove"),
    (.init(name: "N", source: "A", destination: "A", policy: "P"), "N", "custom"),
    (.init(destination: "A", policy: "P"), "A", "custom"),
    (.init(name: "N"), "N", "undefined"),
  ])
  func `gets its name and type from what is written`(
    entry: MappingDocument.Entry, name: String, type: String
  ) throws {
    let both = try model(entity("A", attribute("x")), entity("B", attribute("x"), attribute("y")))
    let mapping = completed([entry], both, both)[0]
    let found =
      switch mapping.type {
      case .add: "add"
      case .remove: "remove"
      case .copy: "copy"
      case .transform: "transform"
      case .custom: "custom"
      case .undefined: "undefined"
      }
    #expect(mapping.name == name)
    #expect(found == type)
  }

  @Test func `sets no value where the source has no such attribute`() throws {
    let mapping = completed(
      [.init(source: "A", destination: "A")], try model(entity("A", toOne("x", "A"))),
      try model(entity("A", attribute("x"), attribute("t", transient: true))))
    #expect(mapping[0].properties.attributes == [PropertyMapping(name: "x", expression: nil)])
  }
}
