import Foundation
import Testing

@testable import GodwitObjectModel

@Suite struct `A model difference` {
  private static let first = """
    <entity name="Recipe"><attribute name="overview" optional="YES" attributeType="String"/>
      <attribute name="rating" optional="YES" attributeType="Integer 16"/>
      <attribute name="gone" attributeType="Date"/>
      <relationship name="tags" optional="YES" toMany="YES" destinationEntity="Tag" \
    inverseName="recipes"/></entity>
    <entity name="Tag"><relationship name="recipes" optional="YES" toMany="YES" \
    destinationEntity="Recipe" inverseName="tags"/></entity>
    <entity name="Old"/>
    """
  private static let second = """
    <entity name="Dish" elementID="Recipe">
      <attribute name="summary" elementID="overview" optional="YES" attributeType="String"/>
      <attribute name="rating" attributeType="Integer 32" defaultValueString="0"/>
      <attribute name="servings" attributeType="Integer 16" defaultValueString="4"/>
      <relationship name="tags" optional="YES" toMany="YES" ordered="YES" destinationEntity="Tag" \
    inverseName="recipes"/></entity>
    <entity name="Tag"><relationship name="recipes" optional="YES" toMany="YES" \
    destinationEntity="Dish" inverseName="tags"/></entity>
    <entity name="New"/>
    """

  private static func difference(_ a: String, _ b: String) throws -> ModelDifference {
    try ModelDifference(source: Samples.model(a), destination: Samples.model(b))
  }

  @Test func `of a model and itself is empty`() throws {
    let difference = try Self.difference(Samples.everything, Samples.everything)
    #expect(difference.isEmpty)
  }

  @Test(arguments: [
    // A relationship has the name that an attribute once had.
    """
    <entity name="Author"/><entity name="Book">
      <attribute name="writer" elementID="author" optional="YES" attributeType="String"/>
      <relationship name="author" optional="YES" maxCount="1" destinationEntity="Author"/></entity>
    """,
    // Two items share an identifier.
    """
    <entity name="A" elementID="B"/>
    <entity name="B"><attribute name="p" elementID="q" attributeType="String"/>
      <attribute name="q" attributeType="String"/></entity>
    """,
  ])
  func `of a model with shared identifiers and itself is empty`(body: String) throws {
    #expect(try Self.difference(body, body).isEmpty)
  }

  @Test(arguments: [
    "versionHashModifier=\"m\"", "preserveAfterDeletion=\"YES\"", "minValueString=\"5\"",
    "transient=\"YES\"", "customClassName=\"Foo\"", "allowsCloudEncryption=\"YES\"",
  ])
  func `names what changed in an element of a composite attribute`(change: String) throws {
    func model(_ change: String) -> String {
      "<entity name=\"T\"><attribute name=\"c\" optional=\"YES\" attributeType=\"Composite\" elements=\"P\"/>"
        + "</entity><composite name=\"P\"><attribute name=\"x\" optional=\"YES\" attributeType=\"Double\" \(change)/>"
        + "</composite>"
    }
    let difference = try Self.difference(model(""), model(change))
    let changes = difference.entities.flatMap { $0.properties.flatMap(\.changes) }
    #expect(changes.map(\.aspect) == [.composite])
    #expect(changes.first?.before == "x: Double")
  }

  @Test func `matches properties of one kind only`() throws {
    let author = "<entity name=\"Author\"/>"
    let difference = try Self.difference(
      author
        + "<entity name=\"Book\"><attribute name=\"author\" attributeType=\"String\"/></entity>",
      author + "<entity name=\"Book\"><relationship name=\"author\" maxCount=\"1\" "
        + "destinationEntity=\"Author\"/></entity>")
    #expect(difference.entities.flatMap(\.properties).map(\.kind) == [.removed, .added])
  }

  @Test func `tells each item that changed`() throws {
    #expect(
      try Self.difference(Self.first, Self.second).description == """
        ~ Dish (was Recipe)
            - gone: Date, required
            ~ rating: optional: yes → no; type: Integer 16 → Integer 32; defaultValue: none → 0
            + servings: Integer 16, required, default 4
            ~ summary (was overview)
            ~ tags: ordered: no → yes
        + New
        - Old
        ~ Tag
        """)
  }

  @Test func `says nothing of a renamed entity at what leads to it`() throws {
    let difference = try Self.difference(Self.first, Self.second)
    let tag = difference.entities.last
    #expect(tag?.destination == "Tag" && tag?.properties == [] && tag?.hashChanged == true)
  }

  @Test func `knows what asks for no migration`() throws {
    let difference = try Self.difference(
      "<entity name=\"A\"/>", "<entity name=\"A\" representedClassName=\"A\"/>")
    #expect(difference.entities.map(\.hashChanged) == [false])
  }

  @Test func `follows a property up to the superentity`() throws {
    let difference = try Self.difference(
      "<entity name=\"A\"/><entity name=\"B\" parentEntity=\"A\">"
        + "<attribute name=\"x\" attributeType=\"String\"/></entity>",
      "<entity name=\"A\"><attribute name=\"x\" attributeType=\"String\"/></entity>"
        + "<entity name=\"B\" parentEntity=\"A\"/>")
    #expect(
      difference.description == """
        ~ A
            + x: String, required
        ~ B
            ~ x: declaringEntity: B → A
        """)
  }

  @Test func `takes an attribute and a relationship of one name for two items`() throws {
    let difference = try Self.difference(
      "<entity name=\"A\"><attribute name=\"x\" attributeType=\"String\"/></entity>",
      "<entity name=\"A\"><relationship name=\"x\" destinationEntity=\"A\"/></entity>")
    #expect(difference.entities.first?.properties.map(\.kind) == [.removed, .added])
  }

  @Test func `survives JSON`() throws {
    let difference = try Self.difference(Self.first, Self.second)
    let data = try JSONEncoder().encode(difference)
    #expect(try JSONDecoder().decode(ModelDifference.self, from: data) == difference)
  }
}

@Suite struct `The lint of renaming identifiers` {
  private static func versions(_ identifiers: [(name: String, id: String?)]) throws -> [(
    name: String, model: ManagedObjectModel
  )] {
    try identifiers.enumerated().map { number, item in
      let id = item.id.map { " elementID=\"\($0)\"" } ?? ""
      return (
        "v\(number + 1)",
        try Samples.model(
          "<entity name=\"Car\"><attribute name=\"\(item.name)\"\(id) attributeType=\"String\"/>"
            + "</entity>")
      )
    }
  }

  @Test func `finds an identifier that names an intermediate name`() throws {
    let findings = RenamingLint.findings(
      in: try Self.versions([("color", nil), ("paintColor", "color"), ("primary", "paintColor")]))
    #expect(findings.map(\.expected) == ["color"])
    #expect(findings.first?.version == "v3" && findings.first?.property == "primary")
  }

  @Test func `accepts the first name all along`() throws {
    let findings = RenamingLint.findings(
      in: try Self.versions([("color", nil), ("paintColor", "color"), ("primary", "color")]))
    #expect(findings == [])
  }

  @Test func `finds it for entities and looks into them all the same`() throws {
    let models = try [
      "<entity name=\"A\"><attribute name=\"x\"/></entity>",
      "<entity name=\"B\" elementID=\"A\"><attribute name=\"y\" elementID=\"x\"/></entity>",
      "<entity name=\"C\" elementID=\"B\"><attribute name=\"z\" elementID=\"y\"/></entity>",
    ].enumerated().map { (name: "v\($0 + 1)", model: try Samples.model($1)) }
    let findings = RenamingLint.findings(in: models)
    #expect(findings.map(\.expected) == ["A", "x"])
  }
}
