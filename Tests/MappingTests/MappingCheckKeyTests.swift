import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of keys` {
  private func findings(_ rows: String) throws -> [String] {
    let source = try model(
      entity("Owner", attribute("name"), toMany("pets", "Pet"), toOne("pet", "Pet")),
      entity("Pet", attribute("weight", .integer64)),
      entity(
        "Cat", attribute("age", .integer16), attribute("tag"), toOne("toy", "Cat"), parent: "Pet"),
      entity(
        "Dog", attribute("age", .integer64), attribute("tag", .date), toOne("toy", "Dog"),
        parent: "Pet"))
    let destination = try model(
      entity("Owner", attribute("name"), attribute("number", .integer64)))
    let document = try MappingDocument(
      bytes: Array(
        """
        mapping-model: 1
        entity-mappings:
          - { source: Owner, destination: Owner, others: none, \(rows) }
          - { type: remove, source: Pet }
          - { type: remove, source: Cat }
          - { type: remove, source: Dog }
        """.utf8), name: "test")
    return MappingCheck(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination
    ).findings.map { "\($0.severity) \($0.kind.rawValue): \($0.message)" }
  }

  @Test(arguments: [
    // Every value and collection has the key self.
    "attributes: { number: '{1, 2, 3}.@max.self' }", "attributes: { name: $source.name.self }",
    "attributes: { name: 'FUNCTION($source.name, \"self\")' }", "filter: 'name.self == \"th\"'",
    "attributes: { number: '{1, 2}.self.@count' }",
    "attributes: { number: 'FUNCTION(FUNCTION({1, 2}, \"self\"), \"count\")' }",
    "attributes: { number: 'FUNCTION($source, \"self\").pets.@count' }",
    "attributes: { number: $source.pets.@max.weight.self }",
    // Sub-entities that agree, and that do not: then only a row tells.
    "attributes: { number: $source.pet.age }", "attributes: { name: $source.pet.tag }",
    "attributes: { number: $source.pet.tag }", "attributes: { number: $source.pet.toy.anything }",
    // The keys of helpers.
    "attributes: { name: $entityMapping.name }",
    "attributes: { name: $entityMapping.sourceEntityName }",
    "attributes: { name: $entityMapping.destinationEntityName }",
    "attributes: { number: $entityMapping.userInfo.factor }",
    "attributes: { name: $propertyMapping.name }",
    "attributes: { name: { value: $propertyMapping.userInfo.why, user-info: { why: x } } }",
    "attributes: { name: 'FUNCTION($entityMapping, \"valueForKey:\", \"name\")' }",
  ])
  func `finds nothing wrong`(rows: String) throws { #expect(try findings(rows) == []) }

  @Test(arguments: [
    (
      "attributes: { number: $source.name.self }",
      "error type-mismatch: a text is not converted to a number automatically. Convert it, for "
        + "instance with godwit.integer(…) or godwit.double(…)"
    ),
    (
      "attributes: { name: $source.pet.age }",
      "error type-mismatch: a number is not converted to a text automatically. Convert it, for "
        + "instance with godwit.string(…) or godwit.dateString(…, format)"
    ),
    (
      "attributes: { name: $entityMapping.nam }",
      "error unknown-key: $entityMapping has no key nam. Did you mean name?"
    ),
    (
      "attributes: { name: $entityMapping.sourceEntityNam }",
      "error unknown-key: $entityMapping has no key sourceEntityNam. "
        + "Did you mean sourceEntityName?"
    ),
    (
      "attributes: { name: $propertyMapping.userinfo.why }",
      "error unknown-key: $propertyMapping has no key userinfo. Did you mean userInfo?"
    ),
    (
      "attributes: { name: $propertyMapping.valueExpression }",
      "error unknown-key: $propertyMapping has no key valueExpression"
    ),
    (
      "attributes: { name: 'FUNCTION($propertyMapping, \"valueForKey:\", \"nam\")' }",
      "error unknown-key: $propertyMapping has no key nam. Did you mean name?"
    ),
  ])
  func `names what is wrong`(rows: String, finding: String) throws {
    #expect(try findings(rows) == [finding])
  }
}

@Suite struct `The keys of a mapping and of its rows` {
  /// An expression, and what is left for those who evaluate it.
  @Test(arguments: [
    ("$entityMapping.sourceEntityName", "\"Old\""),
    ("$entityMapping.destinationEntityName", "\"New\""),
    ("$entityMapping.sourceEntityName.length", "\"Old\".length"),
    ("$propertyMapping.userInfo.why", "\"because\""), ("$propertyMapping.userInfo.no", "NULL"),
    ("FUNCTION($propertyMapping, \"valueForKeyPath:\", \"userInfo.why\")", "\"because\""),
    ("FUNCTION($propertyMapping.userInfo, \"objectForKey:\", \"why\")", "\"because\""),
    ("$propertyMapping.userInfo[\"why\"]", "\"because\""),
    (
      "TERNARY($source.a == $entityMapping.sourceEntityName, $propertyMapping.userInfo.why, NULL)",
      "TERNARY($source.a == \"Old\", \"because\", NULL)"
    ),
    // These are answered when the expression is evaluated.
    ("$entityMapping.name", "$entityMapping.name"),
    ("$entityMapping.userInfo.why", "$entityMapping.userInfo.why"),
    ("$propertyMapping.name", "$propertyMapping.name"),
    ("$source.userInfo.why", "$source.userInfo.why"),
  ])
  func `are constants once it is planned`(expression: String, left: String) throws {
    let rows = [
      PropertyMapping(
        name: "x", expression: try ValueExpression(parsing: expression),
        userInfo: ["why": "because"])
    ]
    let mapping = EntityMapping(
      name: "M",
      type: .transform(
        source: "Old", destination: "New", PropertyMappings(attributes: rows, relationships: rows)))
    let properties = mapping.withHelperConstants.properties
    for row in properties.attributes + properties.relationships {
      #expect(row.expression?.description == left)
      #expect(row.userInfo == ["why": "because"])
    }
  }

  @Test func `are constants in a filter and in a source expression`() throws {
    var mapping = EntityMapping(
      name: "M", type: .custom(source: "Old", destination: nil, policy: "P", PropertyMappings()))
    mapping.sourceSelection = .filter(
      try PredicateExpression(parsing: "NOT a == $entityMapping.sourceEntityName"))
    #expect(
      mapping.withHelperConstants.sourceSelection
        == .filter(try PredicateExpression(parsing: "NOT a == \"Old\"")))
    mapping.sourceSelection = .expression(
      try ValueExpression(parsing: "{$entityMapping.destinationEntityName}"))
    #expect(
      mapping.withHelperConstants.sourceSelection == .expression(.aggregate([.constant(.null)])))
  }
}

@Suite struct `A mapping model that maps nothing` {
  @Test(arguments: [
    ("", true), ("entity-mappings: []", true), ("entity-mappings: [{ name: X }]", true),
    ("entity-mappings: [{ name: X }, { type: remove, source: A }]", false),
    ("entity-mappings: [{ destination: A }]", false),
    ("entity-mappings: [{ policy: P }]", false),
  ])
  func `is not sound, with its models and without`(entries: String, isEmpty: Bool) throws {
    let document = try MappingDocument(
      bytes: Array("mapping-model: 1\n\(entries)".utf8), name: "test")
    let both = try model(entity("A", attribute("x")))
    let check = MappingCheck(
      MappingModel(document, source: both, destination: both), source: both, destination: both,
      promisedPolicies: ["P"])
    for findings in [check.findings, document.findings(promisedPolicies: ["P"])] {
      let errors = findings.filter { $0.severity == .error }
      #expect(errors.map(\.kind) == (isEmpty ? [.emptyMapping] : []))
      #expect(errors.allSatisfy { $0.mapping == nil && $0.message.contains("mapping new") })
    }
    #expect(check.isSound == !isEmpty)
  }
}
