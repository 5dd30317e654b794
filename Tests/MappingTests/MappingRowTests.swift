import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import Testing

/// A mapping model of text between two models.
private struct Completed {
  let model: MappingModel
  let findings: [MappingFinding]

  init(_ entries: String, _ source: EntityHierarchy, _ destination: EntityHierarchy) throws {
    let document = try MappingDocument(
      bytes: Array("mapping-model: 1\nentity-mappings:\n\(entries)".utf8), name: "test")
    model = MappingModel(document, source: source, destination: destination)
    findings = MappingCheck(model, source: source, destination: destination).findings
  }

  func expression(of relationship: String) -> String? {
    model.entityMappings[0].properties.relationships.first { $0.name == relationship }?
      .expression?.description
  }
}

@Suite struct `A relationship along a key path` {
  private func completed(_ path: String, _ more: String) throws -> Completed {
    let source = try EntityHierarchy(
      ManagedObjectModel(entities: [
        entity(
          "City", toOne("country", "Country"), toOne("mayor", "Person"),
          toOne("guard", "Officer")),
        entity("Country", toOne("head", "Person"), toMany("cities", "City")),
        entity("Person", attribute("name")), entity("Officer", parent: "Person"),
      ]))
    let destination = try EntityHierarchy(
      ManagedObjectModel(entities: [
        entity(
          "City", toOne("boss", "Person"), toOne("guard", "Officer"), toOne("lost", "Ghost")),
        entity("Ghost"),
        entity("Person", attribute("name")), entity("Officer", parent: "Person"),
      ]))
    return try Completed(
      """
        - { source: City, destination: City, relationships: { \(path) } }
        - { type: remove, source: Country }
      \(more)
      """, source, destination)
  }

  private func asks(_ mapping: String, _ path: String) -> String {
    "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
      + "\"\(mapping)\", \(path))"
  }

  @Test func `asks the only mapping that makes objects of the target`() throws {
    let one = "  - { source: Person, destination: Person }"
    let found = try completed("boss: { along: country.head }", one)
    #expect(found.expression(of: "boss") == asks("PersonToPerson", "$source.country.head"))
  }

  @Test func `asks the only mapping where that makes objects of a sub-entity`() throws {
    let one = "  - { source: Officer, destination: Officer }"
    let found = try completed("boss: { along: country.head }", one)
    #expect(found.expression(of: "boss") == asks("OfficerToOfficer", "$source.country.head"))
  }

  /// The mappings that make persons, and those that are asked, in their order.
  @Test(arguments: [
    (
      """
        - { source: Officer, destination: Officer }
        - { source: Person, destination: Person }
      """, ["OfficerToOfficer", "PersonToPerson"]
    ),
    (
      """
        - { name: P1, source: Person, destination: Person, filter: name == nil }
        - { name: P2, source: Person, destination: Person, filter: name != nil }
        - { source: Officer, destination: Officer }
      """, ["P1", "P2", "OfficerToOfficer"]
    ),
    // What is made of other objects adds nothing.
    (
      """
        - { name: P1, source: Person, destination: Person }
        - { name: Cities, source: City, destination: Person }
        - { name: None, destination: Person }
        - { name: P2, source: Person, destination: Officer }
      """, ["P1", "P2"]
    ),
  ])
  func `asks every mapping that makes objects of the target`(
    more: String, names: [String]
  ) throws {
    let found = try completed("boss: { along: country.head }", more)
    let calls = names.map { asks($0, "$source.country.head") }.joined(separator: ", ")
    let expression = found.expression(of: "boss")
    #expect(expression == "{\(calls)}")
    // It is what the parser makes of it.
    let parsed = try ValueExpression(parsing: expression ?? "")
    #expect(found.model.entityMappings[0].properties.relationships[0].expression == parsed)
    #expect(found.findings.allSatisfy { $0.severity == .warning })
    #expect(!found.findings.contains { $0.kind == .yieldsNothing })
  }

  /// An entity mapping takes no objects of sub-entities, unless its expression yields them.
  @Test(arguments: [
    ("Person", "", true), ("Person", ", filter: name == nil", true), ("City", "", true),
    ("Person", ", source-expression: $source", false), ("Officer", "", false),
  ])
  func `of one key asks by its name where nothing else is made of its objects`(
    taken: String, selection: String, asksByName: Bool
  ) throws {
    let found = try completed(
      "guard: { along: guard }",
      """
        - { name: G1, source: Officer, destination: Officer, filter: name == nil }
        - { name: G2, source: Officer, destination: Officer, filter: name != nil }
        - { name: P, source: \(taken), destination: Person\(selection) }
      """)
    let byName =
      "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
      + "\"guard\", $source.guard)"
    let calls = "{\(asks("G1", "$source.guard")), \(asks("G2", "$source.guard"))}"
    #expect(found.expression(of: "guard") == (asksByName ? byName : calls))
  }

  @Test func `asks for what mappings make of the object itself`() throws {
    let found = try completed(
      "boss: { along: $source }",
      """
        - { name: P1, source: City, destination: Person }
        - { name: P2, source: City, destination: Officer }
        - { name: P3, source: Person, destination: Person }
      """)
    #expect(
      found.expression(of: "boss") == "{\(asks("P1", "$source")), \(asks("P2", "$source"))}")
  }

  @Test(arguments: ["lost: { along: country.head }", "lost: { along: mayor }"])
  func `is warned of where nobody makes objects of the target`(row: String) throws {
    let found = try completed(row, "  - { source: Person, destination: Person }")
    #expect(found.expression(of: "lost") == nil)
    let warnings = found.findings.filter { $0.kind == .unusedExpression }
    #expect(warnings.map(\.property) == ["lost"])
    #expect(
      warnings.map(\.message) == [
        "the expression is not used: no entity mapping makes objects of Ghost, which the "
          + "relationship leads to"
      ])
  }
}

@Suite struct `The rows of a mapping that makes no objects` {
  /// The mapping's keys, and whether it has rows that are never run.
  @Test(arguments: [
    ("type: remove", false), ("type: remove, others: none", false),
    ("type: remove, attributes: {}", false),
    ("type: remove, attributes: { nosuch: default }", true),
    ("type: remove, attributes: { nosuch: $source.bogus }", true),
    (
      "type: remove, attributes: { a: $source.a, b: $source.b }, relationships: { c: { along: d.e } }",
      true
    ),
    ("relationships: { nosuch: { along: foo.bar } }", true),
    (#"attributes: { a: 'FUNCTION($entityPolicy, "ask")' }"#, true),
    // A policy may ask what the rows are.
    ("policy: P, attributes: { nosuch: $source.bogus }", false),
    ("type: remove, policy: P, attributes: { nosuch: $source.bogus }", false),
  ])
  func `are named in one warning, and no other finding is of them`(keys: String, warns: Bool) throws
  {
    let source = try model(entity("A"), entity("Z"))
    let destination = try model(entity("A"))
    let text = """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A }
        - { source: Z, \(keys) }
      """
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    let check = MappingCheck(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination, promisedPolicies: ["P"])
    for findings in [check.findings, document.findings(promisedPolicies: ["P"])] {
      // That an unfinished mapping drops objects is another matter.
      let found = findings.filter { $0.kind != .uncoveredSource }
      #expect(found.map(\.kind) == (warns ? [.unusedExpression] : []))
      #expect(found.allSatisfy { $0.severity == .warning && $0.mapping == "Z" })
      #expect(found.allSatisfy { $0.message.hasPrefix("its attributes, relationships and others") })
    }
  }
}

@Suite struct `The rows of a text form` {
  private func completed(_ rows: String) throws -> Completed {
    let source = try model(
      entity(
        "A", attribute("a"), attribute("name"), attribute("z"), toOne("up", "A", inverse: "below"),
        toMany("below", "A", inverse: "up")))
    let destination = try model(
      entity(
        "A", attribute("a"), attribute("i", .integer64), attribute("s"), attribute("z"),
        toOne("up", "A", inverse: "below"), toMany("below", "A", inverse: "up")))
    return try Completed("  - { source: A, destination: A, \(rows) }", source, destination)
  }

  /// Rows, the order that they are set in, and the one that is warned of, if any.
  @Test(arguments: [
    (
      "attributes: { s: $source.name, i: length($destination.s) }", ["a", "z", "s", "i"],
      ""
    ),
    ("attributes: { i: length($destination.s), s: $source.name }", ["a", "z", "i", "s"], "i"),
    (
      "attributes: { i: 'length(FUNCTION($destination, \"valueForKey:\", \"s\"))', "
        + "s: $source.name }", ["a", "z", "i", "s"], "i"
    ),
    ("attributes: { i: length($destination.z), s: $source.name }", ["a", "z", "i", "s"], ""),
    // The default value stays: there is nothing to wait for.
    ("attributes: { i: length($destination.s), s: default }", ["a", "z", "i", "s"], ""),
    ("attributes: { i: $destination.i }", ["a", "s", "z", "i"], ""),
    // No order shows.
    ("attributes: { s: $source.name, i: length($source.name) }", ["a", "i", "s", "z"], ""),
    (
      "others: none, attributes: { s: $source.name, i: length($destination.s) }", ["s", "i"], ""
    ),
  ])
  func `come after those that are added where one reads another`(
    rows: String, order: [String], warned: String
  ) throws {
    let found = try completed(rows)
    #expect(found.model.entityMappings[0].properties.attributes.map(\.name) == order)
    let warnings = found.findings.filter { $0.kind == .yieldsNothing }
    #expect(warnings.map(\.property) == (warned.isEmpty ? [] : [warned]))
    #expect(
      warnings.allSatisfy {
        $0.severity == .warning
          && $0.message == "$destination.s is read before it is set. Write the row of s first"
      })
  }

  @Test(arguments: [
    ("{ up: nil, below: automatic }", ["up", "below"]),
    ("{ below: automatic, up: nil }", ["below", "up"]),
    ("{ up: nil, below: default }", ["below", "up"]), ("{ up: nil }", ["below", "up"]),
  ])
  func `keep their order where two set the two sides of a relationship`(
    rows: String, order: [String]
  ) throws {
    let found = try completed("relationships: \(rows)")
    #expect(found.model.entityMappings[0].properties.relationships.map(\.name) == order)
  }
}
