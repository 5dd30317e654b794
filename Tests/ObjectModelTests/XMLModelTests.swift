import Testing

@testable import GodwitObjectModel

@Suite struct `A contents file` {
  private static func recipe() throws -> EntityDescription {
    let model = try Samples.model(Samples.everything)
    return try #require(model.entities.first { $0.name == "Recipe" })
  }

  private func attribute(_ name: String) throws -> AttributeDescription {
    let recipe = try Self.recipe()
    return try #require(recipe.properties.first { $0.name == name }?.attribute)
  }

  @Test func `tells what an entity is`() throws {
    let recipe = try Self.recipe()
    #expect(recipe.managedObjectClassName == ".Recipe")
    #expect(recipe.isAbstract)
    #expect(recipe.mappingKey == "Dish")
    #expect(recipe.versionHashModifier == "2")
    #expect(recipe.userInfo == ["a": "b"])
    #expect(recipe.uniquenessConstraints == [["title", "rating"]])
    let soup = try Samples.model(Samples.everything).entities[1]
    #expect(soup.superentity == "Recipe")
  }

  @Test func `names the indexes that the compiler adds before the declared ones`() throws {
    let recipe = try Self.recipe()
    #expect(
      recipe.fetchIndexes.map(\.name) == ["isGood", "title_rating", "title", "byTitle", "mixed"])
    #expect(recipe.fetchIndexes.last?.elements.map(\.isRTree) == [false, true])
    #expect(recipe.fetchIndexes.last?.elements.map(\.isAscending) == [false, true])
  }

  @Test(arguments: [
    ("rating", StoredDefault.integer(0)),  // "NO" where a number stands
    ("isGood", .integer(1)), ("price", .real(1.25)),
    ("created", .real(-0.5)),  // the interval wins over the display text
    ("title", .text("<&\"\nü")), ("weight", .real(Double(Float(0.1)))),
    ("uuid", .blob((0...15).map { UInt8($0 * 17) })),
  ])
  func `gives defaults in their stored form`(name: String, value: StoredDefault) throws {
    #expect(try attribute(name).defaultValue == value)
  }

  @Test(arguments: [
    // What is no UUID is a default that no column holds, and not none.
    ("UUID", "nonsense", StoredDefault.text("nonsense")), ("UUID", "ABC", .text("ABC")),
    ("Integer 32", "-12abc", StoredDefault.integer(-12)),  // the leading number
    ("Integer 64", "", .integer(0)), ("Integer 16", " 7", .integer(7)),
    ("Double", "3", .real(3)), ("Double", ".5e1x", .real(5)), ("Double", "abc", .real(0)),
    ("Double", "-", .real(0)), ("Decimal", "4.0", .integer(4)), ("Boolean", "true", .integer(1)),
    ("Boolean", "2", .integer(0)), ("String", "", .text("")),
    ("Decimal", "9007199254740993", .integer(9_007_199_254_740_993)),
    // SQLite leaves −2^63 a real in such a column.
    ("Decimal", "-9223372036854775808", .real(-0x1p63)),
    ("Decimal", "-9223372036854775807", .integer(.min + 1)), ("Decimal", "-0x1p63", .integer(0)),
    ("Decimal", "-9.223372036854775808e18", .real(-0x1p63)),
    // What no number of the type holds is not the same as no default.
    ("Integer 64", "9223372036854775808", .text("9223372036854775808")),
    ("Float", "1e39", .text("1e39")), ("Double", "-1e400x", .text("-1e400")),
  ])
  func `reads odd defaults as the model compiler does`(
    type: String, text: String, value: StoredDefault
  ) throws {
    let model = try Samples.model(
      "<entity name=\"E\"><attribute name=\"a\" attributeType=\"\(type)\""
        + " defaultValueString=\"\(text)\"/></entity>")
    #expect(model.entities[0].properties[0].attribute?.defaultValue == value)
  }

  @Test(arguments: [
    ("rating", [ValidationRule.minimum(0), .maximum(5)]),
    ("title", [.minimumLength(1), .maximumLength(80), .matches("[a-z]+")]),
    ("created", [.minimum(-1_000), .maximum(2_000)]), ("isGood", []),
  ])
  func `keeps validation rules`(name: String, rules: [ValidationRule]) throws {
    #expect(try attribute(name).validation == rules)
  }

  /// No Double is this integer.
  @Test func `keeps a bound that is an integer, in every form`() throws {
    let text = "9007199254740993"
    let model = try Samples.model(
      "<entity name=\"E\"><attribute name=\"a\" attributeType=\"Integer 64\" maxValueString=\"\(text)\"/></entity>"
    )
    let rules = model.entities[0].properties[0].attribute?.validation
    #expect(rules == [.maximum(9_007_199_254_740_993)])
    #expect(rules != [.maximum(9_007_199_254_740_992)])
    #expect(try ManagedObjectModel(archive: model.archiveBytes(), path: "mom") == model)
    #expect(rules?.map { PropertyAspects.text(of: $0) } == ["≤ \(text)"])
  }

  @Test func `keeps flags, composites and derivations`() throws {
    #expect(try attribute("binary").allowsExternalBinaryDataStorage)
    #expect(try attribute("binary").preservesValueInHistoryOnDeletion)
    #expect(try attribute("count").derivationExpression == "count:(steps)")
    #expect(try attribute("secret").valueTransformerName == "T")
    #expect(try attribute("transient").type == .undefined)
    let place = try attribute("place")
    #expect(place.compositeElements?.map(\.name) == ["street", "point"])
    #expect(place.compositeElements?[1].compositeElements?.first?.defaultValue == .real(0))
  }

  @Test func `keeps relationships as they are counted`() throws {
    let recipe = try Self.recipe()
    let steps = try #require(recipe.properties.first { $0.name == "steps" }?.relationship)
    #expect((steps.minCount, steps.maxCount) == (1, 9))
    #expect(steps.isOrdered && steps.isToMany && steps.deleteRule == .cascade)
    let model = try Samples.model(
      "<entity name=\"E\"><relationship name=\"a\" toMany=\"YES\" destinationEntity=\"E\"/>"
        + "<relationship name=\"b\" destinationEntity=\"E\"/></entity>")
    let counts = model.entities[0].properties.compactMap(\.relationship?.maxCount)
    #expect(counts == [0, 1])
  }

  @Test func `refuses two configurations of one name`() throws {
    let configuration = #"<configuration name="Cloud"><memberEntity name="A"/></configuration>"#
    #expect(throws: ModelError.self) {
      try Samples.model("<entity name=\"A\"/>" + configuration + configuration)
    }
    #expect(
      try Samples.model("<entity name=\"A\"/>" + configuration).configurations == ["Cloud": ["A"]])
  }

  @Test(arguments: ["composite", "fetchRequest", "configuration"])
  func `refuses two of one name, of which one would go unseen`(kind: String) throws {
    let element = "<\(kind) name=\"N\"/>"
    _ = try Samples.model("<entity name=\"A\"/>" + element)
    #expect(throws: ModelError.self) {
      try Samples.model("<entity name=\"A\"/>" + element + element)
    }
  }

  /// As a merge of two branches may leave them.
  @Test func `keeps what stands in several lists of constraints`() throws {
    func list(_ names: String...) -> String {
      "<uniquenessConstraints>"
        + names.map {
          "<uniquenessConstraint><constraint value=\"\($0)\"/></uniquenessConstraint>"
        }.joined() + "</uniquenessConstraints>"
    }
    let model = try Samples.model(
      "<entity name=\"A\"><attribute name=\"a\" attributeType=\"String\"/>"
        + "<attribute name=\"b\" attributeType=\"String\"/>" + list("a") + list("b") + list()
        + "</entity>"
    )
    #expect(model.entities[0].uniquenessConstraints == [["a"], ["b"]])
  }

  @Test func `keeps configurations, identifiers and requests`() throws {
    let model = try Samples.model(Samples.everything)
    #expect(model.configurations == ["Cloud": ["Step", "Recipe"]])
    #expect(model.versionIdentifiers == ["1"])
    #expect(model.fetchRequestTemplates.first?.settings == ["fetchLimit": "10"])
    #expect(model.restricted(to: "Cloud")?.entities.map(\.name) == ["Recipe", "Step"])
    #expect(model.restricted(to: "None") == nil)
    #expect(model.restricted(to: ["Soup"]).entities.map(\.name) == ["Recipe", "Soup"])
  }

  private static let composite = "attributeType=\"Composite\" elements=\"C\"/>"

  // Each must be an error with a reason, and none may take long.
  private static let refused: [(what: String, text: String)] = [
    ("no XML at all", "no XML"),
    ("an empty file", ""),
    ("of another root", "<plist/>"),
    ("an entity without a name", Samples.text("<entity/>")),
    ("two entities of one name", Samples.text("<entity name='A'/><entity name='A'/>")),
    (
      "inheritance in a circle",
      Samples.text("<entity name='A' parentEntity='B'/><entity name='B' parentEntity='A'/>")
    ),
    (
      "an attribute of an unknown type",
      Samples.text("<entity name='A'><attribute name='a' attributeType='Integer16'/></entity>")
    ),
    (
      "a composite attribute without a composite type",
      Samples.text("<entity name='A'><attribute name='a' attributeType='Composite'/></entity>")
    ),
    ("an unknown superentity", Samples.text("<entity name='A' parentEntity='B'/>")),
    (
      "a count that is not a number",
      Samples.text("<entity name='A'><relationship name='r' maxCount='many'/></entity>")
    ),
    (
      "a composite that holds itself",
      Samples.text(
        """
        <entity name='A'><attribute name='a' \(composite)</entity>
        <composite name='C'><attribute name='c' \(composite)</composite>
        """)
    ),
    (
      "entities that expand without end",
      "<!DOCTYPE m [<!ENTITY a \"x\"><!ENTITY b \"&a;&a;\">]><model>&b;</model>"
    ),
    ("elements nested too deeply", String(repeating: "<model>", count: 100_000)),
    ("a mark that is missing", "<model><entity name='A'></model>"),
  ]

  @Test(arguments: refused)
  func `is refused when it is`(what: String, text: String) {
    #expect(throws: ModelError.self) {
      try ManagedObjectModel(xml: Array(text.utf8), path: "contents")
    }
  }

  @Test func `never loads what an external entity names`() throws {
    let text = "<!DOCTYPE model SYSTEM \"file:///etc/passwd\"><model><entity name=\"A\"/></model>"
    let model = try ManagedObjectModel(xml: Array(text.utf8), path: "contents")
    #expect(model.entities.map(\.name) == ["A"])
  }

  @Test func `of a composite bomb is refused`() throws {
    var body =
      "<entity name=\"A\"><attribute name=\"a\" attributeType=\"Composite\" elements=\"C0\"/></entity>"
    for level in 0..<12 {
      let parts = (0..<10).map {
        "<attribute name=\"p\($0)\" attributeType=\"Composite\" elements=\"C\(level + 1)\"/>"
      }
      body += "<composite name=\"C\(level)\">\(parts.joined())</composite>"
    }
    #expect(throws: ModelError.self) { try Samples.model(body) }
  }
}
