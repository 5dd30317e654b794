import Testing

@testable import GodwitObjectModel

/// A model that Core Data would not open, and what the refusal names.
struct BadModel: Sendable, CustomStringConvertible {
  let description: String
  let body: String
  let entity: EntityName
  var property: String?

  init(_ description: String, _ body: String, _ entity: EntityName, _ property: String? = nil) {
    self.description = description
    self.body = body
    self.entity = entity
    self.property = property
  }

  private static func attribute(_ name: String, _ type: String = "String") -> String {
    "<attribute name=\"\(name)\" optional=\"YES\" attributeType=\"\(type)\"/>"
  }

  private static func relationship(
    _ name: String, _ destination: String, _ inverse: String = ""
  ) -> String {
    "<relationship name=\"\(name)\" optional=\"YES\" maxCount=\"1\" "
      + "destinationEntity=\"\(destination)\" inverseName=\"\(inverse)\"/>"
  }

  private static func entity(_ name: String, _ inside: String..., parent: String = "") -> String {
    "<entity name=\"\(name)\" parentEntity=\"\(parent)\">\(inside.joined())</entity>"
  }

  private static let index = """
    <fetchIndex name="i"><fetchIndexElement property="b" type="Binary" order="ascending"/></fetchIndex>
    """
  private static let constraint = """
    <uniquenessConstraints><uniquenessConstraint><constraint value="b"/></uniquenessConstraint>
    </uniquenessConstraints>
    """
  private static let holder = "<attribute name=\"p\" attributeType=\"Composite\" elements=\"P\"/>"
  private static let inner = "<attribute name=\"r\" attributeType=\"Composite\" elements=\"R\"/>"

  private static func composite(_ name: String, _ inside: String...) -> String {
    "<composite name=\"\(name)\">\(inside.joined())</composite>"
  }

  static let all: [BadModel] = [
    BadModel("two entities of one name", entity("A") + entity("A"), "A"),
    BadModel("entities that differ in case", entity("Note") + entity("NOTE"), "Note"),
    BadModel(
      "entities that differ in normalisation", entity("caf\u{E9}") + entity("cafe\u{301}"),
      "caf\u{E9}"),
    BadModel("an unknown superentity", entity("A", parent: "B"), "A"),
    BadModel(
      "a circle of superentities",
      entity("A", parent: "B") + entity("B", parent: "C") + entity("C", parent: "B"), "B"),
    BadModel("a name that is too long", entity(String(repeating: "n", count: 4_097)), "nnn"),
    BadModel("two attributes of one name", entity("A", attribute("p"), attribute("p")), "A", "p"),
    BadModel(
      "an attribute and a relationship of one name",
      entity("A", attribute("p"), relationship("p", "A")), "A", "p"),
    BadModel(
      "an inherited property that is repeated",
      entity("A", attribute("p")) + entity("B", parent: "A")
        + entity("C", attribute("p", "Date"), parent: "B"), "C", "p"),
    BadModel(
      "attributes that differ in normalisation",
      entity("A", attribute("caf\u{E9}"), attribute("cafe\u{301}")), "A", "caf\u{E9}"),
    BadModel(
      "columns that differ in normalisation, in one table",
      entity("A", attribute("\u{E9}")) + entity("B", attribute("E\u{301}"), parent: "A"), "B",
      "E\u{301}"),
    BadModel(
      "an element and an attribute whose columns differ in normalisation",
      entity("A", attribute("e\u{301}"), holder) + composite("P", attribute("\u{E9}")), "A", "p"),
    BadModel(
      "an element that differs from an attribute of a sub-entity",
      entity("A", holder) + entity("B", attribute("E\u{301}"), parent: "A")
        + composite("P", attribute("\u{E9}")), "B", "E\u{301}"),
    BadModel(
      "elements of elements that differ in normalisation",
      entity("A", holder, "<attribute name=\"q\" attributeType=\"Composite\" elements=\"Q\"/>")
        + composite("P", attribute("\u{E9}")) + composite("Q", inner)
        + composite("R", attribute("e\u{301}")), "A", "q"),
    BadModel("no destination", entity("A", relationship("r", "")), "A", "r"),
    BadModel("an unknown destination", entity("A", relationship("r", "B")), "A", "r"),
    BadModel("an unknown inverse", entity("A", relationship("r", "A", "s")), "A", "r"),
    BadModel(
      "an inverse that is an attribute", entity("A", relationship("r", "A", "p"), attribute("p")),
      "A", "r"),
    BadModel(
      "an inverse that has none",
      entity("A", relationship("r", "B", "s")) + entity("B", relationship("s", "A")), "A", "r"),
    BadModel(
      "an inverse that leads to another entity",
      entity("A", relationship("r", "B", "s")) + entity("B", relationship("s", "B", "r"))
        + entity("C"), "A", "r"),
    BadModel("an index of an unknown property", entity("A", attribute("a"), index), "A", "b"),
    BadModel(
      "a constraint of an unknown property", entity("A", attribute("a"), constraint), "A", "b"),
    BadModel(
      "a configuration of an unknown entity",
      entity("A") + "<configuration name=\"Cloud\"><memberEntity name=\"A\"/>"
        + "<memberEntity name=\"Ghost\"/></configuration>", "Ghost"),
    BadModel("an unknown composite type", entity("A", holder), "A", "p"),
    BadModel(
      "two elements of one name",
      entity("A", holder) + composite("P", attribute("x"), attribute("x", "Float")), "A", "p"),
  ]
}

@Suite struct `A model that Core Data would not open` {
  @Test(arguments: BadModel.all)
  func `is refused with file, entity and property`(bad: BadModel) throws {
    let error = #expect(throws: ModelError.self) { try Samples.model(bad.body) }
    let problem = try #require(error?.problems.first)
    #expect(problem.entity?.rawValue.hasPrefix(bad.entity.rawValue) == true, "\(problem)")
    #expect(problem.property.isSameName(as: bad.property), "\(problem)")
    #expect("\(try #require(error))".hasPrefix("contents is not a valid model."))
  }

  /// Archives say the same, in their own way.
  private static func archived(_ entities: EntityDescription...) throws -> ManagedObjectModel {
    try ManagedObjectModel(
      archive: ManagedObjectModel(entities: entities).archiveBytes(), path: "mom")
  }

  private static func attribute(_ name: String, _ type: AttributeType) -> PropertyDescription {
    .attribute(AttributeDescription(traits: PropertyTraits(name: name), type: type))
  }

  @Test func `is refused as an archive, too`() throws {
    let error = #expect(throws: ModelError.self) {
      try Self.archived(
        EntityDescription(name: "A", properties: [Self.attribute("p", .string)]),
        EntityDescription(
          name: "B", superentity: "A", properties: [Self.attribute("p", .integer16)]))
    }
    #expect(error?.problems.first?.entity == "B" && error?.problems.first?.property == "p")
  }

  @Test func `lists ten problems and counts the others`() throws {
    let bodies = (0..<13).map { "<entity name=\"E\($0)\" parentEntity=\"X\"/>" }
    let error = #expect(throws: ModelError.self) { try Samples.model(bodies.joined()) }
    #expect(error?.problems.count == ModelRules.mostProblems)
    #expect("\(try #require(error))".hasSuffix("And 3 more."))
  }
}

@Suite struct `A name of a model` {
  private static let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")

  private static func model(_ name: String) throws -> EntityHierarchy {
    try EntityHierarchy(
      Samples.model(
        "<entity name=\"\(name)\"><attribute name=\"\(name)\" attributeType=\"String\"/></entity>"))
  }

  @Test func `is compared by its scalars`() throws {
    #expect(Self.composed == Self.decomposed, "Swift takes them for one")
    #expect(EntityName(Self.composed) != EntityName(Self.decomposed))
    #expect(Set([EntityName(Self.composed), EntityName(Self.decomposed)]).count == 2)
    #expect(Set([NameKey(Self.composed), NameKey(Self.decomposed)]).count == 2)
    let hierarchy = try Self.model(Self.composed)
    #expect(hierarchy.property(Self.decomposed, of: EntityName(Self.composed)) == nil)
  }

  @Test func `that changes its normalisation is another name`() throws {
    let difference = ModelDifference(
      source: try Self.model(Self.composed), destination: try Self.model(Self.decomposed))
    #expect(difference.entities.map(\.kind) == [.added, .removed])
  }
}

@Suite struct `Inheritance` {
  /// Each level adds a property, and all below have it, too.
  @Test(arguments: [(500, true), (800, false)])
  func `may be so deep that its properties can be looked at`(levels: Int, isRead: Bool) throws {
    let entities = (0..<levels).map { level in
      let parent = level == 0 ? "" : #" parentEntity="E\#(level - 1)""#
      return
        #"<entity name="E\#(level)"\#(parent)><attribute name="a\#(level)" attributeType="String"/></entity>"#
    }
    func order() throws -> [EntityName] {
      try EntityHierarchy(Samples.model(entities.joined())).order
    }
    guard !isRead else {
      #expect(try order().count == levels)
      return
    }
    #expect(
      throws: ModelError.tooLarge(
        what: "properties with inherited ones", limit: EntityHierarchy.propertyLimit)
    ) { try order() }
  }
}
