import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A default mapping model` {
  @Test func `begins with what can be inferred`() throws {
    let old = try model(
      entity("Folder", attribute("title"), attribute("age", .string), toMany("notes", "Note")),
      entity("Note", attribute("text")), entity("Gone"))
    let new = try model(
      entity(
        "Box", attribute("name", id: "title"), attribute("age", .integer16),
        toMany("pages", "Note", id: "notes"), id: "Folder"),
      entity("Note", attribute("text")), entity("New"))
    let document = MappingDocument(defaultFor: old, to: new)
    let mapping = MappingModel(document, source: old, destination: new)
    #expect(
      mapping.entityMappings.map(\.name) == ["FolderToBox", "New", "NoteToNote", "Gone"])
    let box = mapping.entityMappings[0].properties
    #expect(
      box.attributes.map { "\($0.name) \($0.expression?.description ?? "-")" } == [
        "age -", "name $source.title",
      ])
    #expect(
      box.relationships.map { $0.expression?.description } == [
        "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
          + "\"NoteToNote\", $source.notes)"
      ])
    #expect(MappingCheck(mapping, source: old, destination: new).findings == [])
    #expect(
      document.gaps(source: old, destination: new) == [
        "the source entity Gone has no destination: its objects are dropped",
        "the destination entity New has no source: it gets no objects",
        "Box.age has no value: the source's property of this name is not carried over",
      ])
  }

  /// Inference refuses an identifier that two have.
  @Test func `pairs by name what shares a renaming identifier`() throws {
    let both = try model(
      entity("Author", attribute("x"), attribute("y", id: "x")),
      entity("Dose", attribute("b", id: "a"), attribute("a")),
      entity("Writer", attribute("x"), id: "Author"))
    #expect(!InferredMapping(source: both, destination: both).isPossible)
    let mapping = MappingModel(
      MappingDocument(defaultFor: both, to: both), source: both, destination: both)
    #expect(
      mapping.entityMappings.map(\.name) == ["AuthorToAuthor", "DoseToDose", "WriterToWriter"])
    #expect(
      mapping.entityMappings.map { entity in
        entity.properties.attributes.map { "\($0.name) \($0.expression?.description ?? "-")" }
      } == [
        ["x $source.x", "y $source.y"], ["a $source.a", "b $source.b"], ["x $source.x"],
      ])
  }

  /// Whether the source's relationship is optional; what the rows of `Child` and of `Parent` say.
  @Test(arguments: [
    (true, "default", "default", true), (false, "automatic", "default", false),
    (true, "automatic", "default", true), (true, "automatic", "automatic", true),
    (true, "automatic", "{ along: guests }", false), (false, "default", "automatic", false),
  ])
  func `warns of a required relationship that may be without a value`(
    from: Bool, own: String, inverse: String, isFound: Bool
  ) throws {
    func family(isOptional: Bool) throws -> EntityHierarchy {
      try model(
        entity("Child", toOne("parent", "Parent", optional: isOptional, inverse: "children")),
        entity(
          "Parent", toMany("children", "Child", inverse: "parent"), toMany("guests", "Child")))
    }
    let (source, destination) = (try family(isOptional: from), try family(isOptional: false))
    let text = """
      mapping-model: 1
      entity-mappings:
        - { source: Child, destination: Child, relationships: { parent: \(own) } }
        - { source: Parent, destination: Parent, relationships: { children: \(inverse), guests: default } }
      """
    let check = try MappingCheck(of: text, source: source, destination: destination)
    #expect(
      check.findings.map(\.kind) == (isFound ? [.requiredWithoutValue] : []) && check.isSound)
  }

  @Test func `names required properties without a value`() throws {
    let old = try model(entity("A", attribute("x")))
    let new = try model(
      entity(
        "A", attribute("x"), attribute("free"), attribute("must", optional: false),
        attribute("given", optional: false, default: .text("")), toOne("b", "A", optional: false)))
    #expect(
      MappingDocument(defaultFor: old, to: new).gaps(source: old, destination: new) == [
        "A.b is required and has no value", "A.must is required and has no value",
      ])
    #expect(MappingDocument(defaultFor: old, to: old).gaps(source: old, destination: old) == [])
  }

  @Test(.enabled(if: Corpus.isThere), arguments: Corpus.namesWithModels)
  func `is sound and chosen for its models`(name: String) throws {
    let source = try Corpus.hierarchy("source", of: name)
    let destination = try Corpus.hierarchy("destination", of: name)
    let document = MappingDocument(defaultFor: source, to: destination)
    let model = MappingModel(document, source: source, destination: destination)
    let check = MappingCheck(model, source: source, destination: destination)
    #expect(check.findings.filter { $0.severity == .error } == [])
    let choice = MappingChoice(
      among: [(name, document)], source: source, destination: destination)
    #expect(choice.matching == [0])
    let text = try document.text()
    #expect(try MappingDocument(bytes: Array(text.utf8), name: name) == document)
  }
}
