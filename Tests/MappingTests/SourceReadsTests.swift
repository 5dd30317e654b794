import GodwitObjectModel
import Testing

@testable import GodwitExpressions
@testable import GodwitMapping

@Suite struct `What an expression reads of the source` {
  private static let source: EntityHierarchy? = {
    func text(_ name: String) -> PropertyDescription {
      .attribute(AttributeDescription(traits: PropertyTraits(name: name), type: .string))
    }
    func relationship(_ name: String, _ target: EntityName, _ inverse: String, most: Int)
      -> PropertyDescription
    {
      .relationship(
        RelationshipDescription(
          traits: PropertyTraits(name: name), destinationEntity: target, inverseName: inverse,
          maxCount: most))
    }
    let place = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "place"), type: .composite,
        compositeElements: ["street", "town"].compactMap { text($0).attribute }))
    return try? EntityHierarchy(
      ManagedObjectModel(entities: [
        EntityDescription(
          name: "Note",
          properties: [
            place, text("title"), text("name"), relationship("box", "Box", "notes", most: 1),
          ]),
        EntityDescription(
          name: "Box", properties: [text("title"), relationship("notes", "Note", "box", most: 0)]),
        EntityDescription(name: "Crate", superentity: "Box", properties: [text("wood")]),
      ]))
  }()

  @Test(arguments: [
    ("$source.title", ["Note.title"]),
    ("FUNCTION($source, \"valueForKey:\", \"title\")", ["Note.title"]),
    // An object may be of a sub-entity.
    ("$source.box.title", ["Box.title", "Crate.title", "Note.box"]),
    ("FUNCTION($source, \"valueForKeyPath:\", \"box.wood\")", ["Crate.wood", "Note.box"]),
    ("$source.box.notes.@count", ["Box.notes", "Crate.notes", "Note.box"]),
    ("$source.box.notes.@min.title", ["Box.notes", "Crate.notes", "Note.box", "Note.title"]),
    (
      "SUBQUERY($source.box.notes, $each, $each.title == \"x\").@count",
      ["Box.notes", "Crate.notes", "Note.box", "Note.title"]
    ),
    ("TERNARY($source.name == nil, $source.title, \"-\")", ["Note.name", "Note.title"]),
    (
      "FUNCTION($source.title, \"stringByAppendingString:\", $source.name)",
      ["Note.name", "Note.title"]
    ),
    (
      "FETCH(FUNCTION($manager, \"fetchRequestForSourceEntityNamed:predicateString:\", \"Crate\", "
        + "\"TRUEPREDICATE\"), $manager.sourceContext, NO)[FIRST].wood", ["Crate.wood"]
    ),
    (
      "FUNCTION($manager, \"sourceInstancesForEntityMappingNamed:destinationInstances:\", \"BoxToBox\", "
        + "$destination).title", ["Box.title"]
    ),
    // Keys of helpers and of the destination are no properties of the source.
    ("$entityMapping.name", []), ("$propertyMapping.name", []), ("$destination.title", []),
    ("$manager.userInfo.title", []), ("$source.objectID", []),
    // What a policy gives may be anything.
    ("FUNCTION($entityPolicy, \"any:\", $source.title).name", ["?.name", "Note.title"]),
    ("$manager.userInfo.last.name", ["?.name"]),
  ])
  func `is told by the entities that its key paths lead to`(text: String, expected: [String]) throws
  {
    let source = try #require(Self.source)
    func mapping(_ name: EntityName) -> EntityMapping {
      EntityMapping(
        name: "\(name)To\(name)",
        type: .transform(source: name, destination: name, PropertyMappings()))
    }
    var reads = SourceReads(source: source, mappings: [mapping("Note"), mapping("Box")])
    reads.add(try ValueExpression(parsing: text), of: mapping("Note"))
    let found =
      reads.places.map { "\($0.entity).\($0.path.joined(separator: "."))" }
      + reads.names.map { "?.\($0)" }
    #expect(found.sorted() == expected)
  }

  @Test(arguments: [
    ("$source.place", ["Note.place.street"]), ("noindex($source.place)", ["Note.place.street"]),
    ("TERNARY($source.name == nil, nil, $source.place)", ["Note.name", "Note.place.street"]),
    (
      "$source.box.notes.@min.place", ["Box.notes", "Crate.notes", "Note.box", "Note.place.street"]
    ),
    ("TERNARY($source.place == nil, nil, $source.place)", ["Note.place", "Note.place.street"]),
    // Of several, one is taken, whatever says which.
    ("{$source.place}[FIRST]", ["Note.place.street"]),
    ("{$source.place}[0]", ["Note.place.street"]),
    ("FUNCTION({$source.place}, \"firstObject\")", ["Note.place.street"]),
    // Whatever a text that is computed names is read.
    ("$source.place[$source.name]", ["Note.name", "Note.place"]),
  ])
  func `is of a composite what the attribute has that takes it`(text: String, expected: [String])
    throws
  {
    let source = try #require(Self.source)
    let mapping = EntityMapping(
      name: "N", type: .transform(source: "Note", destination: "Note", PropertyMappings()))
    var reads = SourceReads(source: source, mappings: [mapping])
    reads.add(try ValueExpression(parsing: text), of: mapping, elements: [["street"]])
    let found = reads.places.map { "\($0.entity).\($0.path.joined(separator: "."))" }
    #expect(found.sorted() == expected)
  }
}
