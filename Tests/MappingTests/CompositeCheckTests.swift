import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of what no column or several columns hold` {
  private static func composite(_ name: String, _ elements: PropertyDescription...)
    -> PropertyDescription
  {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name), type: .composite,
        compositeElements: elements.compactMap(\.attribute)))
  }

  private static let fetched = PropertyDescription.fetchedProperty(
    FetchedPropertyDescription(traits: PropertyTraits(name: "recent")))

  /// Findings of one mapping between visits, by severity.
  private func findings(_ rows: String) throws -> [String] {
    let bird = entity("Bird", attribute("name"), Self.fetched)
    let source = try model(
      entity(
        "Visit", Self.composite("place", attribute("street"), attribute("number", .integer64)),
        Self.composite("other", attribute("street", .date)), attribute("mood", transient: true),
        attribute("archive", .transformable), attribute("text"), attribute("count", .integer64),
        attribute("bucket", .binary), Self.fetched, toOne("bird", "Bird")), bird)
    let destination = try model(
      entity(
        "Visit", Self.composite("spot", attribute("street"), attribute("number", .integer16)),
        attribute("mood", transient: true), attribute("feeling"), attribute("text"),
        attribute("archive", .transformable), attribute("count", .integer64)), bird)
    let document = try MappingDocument(
      bytes: Array(
        """
        mapping-model: 1
        entity-mappings:
          - { source: Bird, destination: Bird }
          - { source: Visit, destination: Visit, others: none, \(rows) }
        """.utf8), name: "test")
    let check = MappingCheck(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination)
    return check.findings.map { "\($0.severity) \($0.kind.rawValue): \($0.message)" }
  }

  @Test(arguments: [
    "attributes: { spot: $source.place }", "attributes: { text: $source.place.street }",
    "attributes: { spot: 'TERNARY($source.place == nil, nil, $source.place)' }",
    "attributes: { spot: 'TERNARY(godwit.bucket($source.bucket, \"a\") == nil, nil, $source.place)' }",
    "filter: place.number > 3 AND place != nil", "attributes: { mood: $source.mood }",
  ])
  func `finds nothing wrong`(rows: String) throws { #expect(try findings(rows) == []) }

  @Test(arguments: [
    (
      "attributes: { count: count($source.recent) }",
      "error not-stored: Visit.recent is a fetched property: no store holds it. Use FETCH(…) with its predicate"
    ),
    (
      "filter: recent.@count > 0",
      "error not-stored: Visit.recent is a fetched property: no store holds it. Use FETCH(…) with its predicate"
    ),
    (
      "attributes: { count: $source.bird.recent.@count }",
      "error not-stored: Bird.recent is a fetched property: no store holds it. Use FETCH(…) with its predicate"
    ),
    (
      "attributes: { feeling: $source.mood }",
      "warning not-stored: Visit.mood is transient: no store holds it, and its value is nil"
    ),
    (
      "filter: mood != nil",
      "warning not-stored: Visit.mood is transient: no store holds it, and its value is nil"
    ),
    (
      "attributes: { text: $source.place.strete }",
      "error unknown-key: a composite has no key strete. Did you mean street?"
    ),
    (
      "attributes: { text: $source.place.description }",
      "error unknown-key: a composite has no key description"
    ),
    (
      "attributes: { spot: $source.other }",
      "error type-mismatch: the element street is a date and is not converted to a text. "
        + "Set the elements in a policy"
    ),
    (
      "attributes: { text: $source.place }",
      "error type-mismatch: a composite is not converted to a text automatically. "
        + "Take one of its elements, as in $source.place.street"
    ),
    (
      "attributes: { spot: $source.text }",
      "error type-mismatch: a text is not converted to a composite automatically. "
        + "Give it another composite as a whole, or set its elements in a policy"
    ),
    (
      "attributes: { spot: 'godwit.bucket($source.bucket, \"place\")' }",
      "error type-mismatch: what a bucket gives may have keys that are not elements of the composite. "
        + "Set its elements in a policy"
    ),
    (
      "attributes: { archive: $source.text }",
      "error type-mismatch: a text is not converted to a transformable value automatically. "
        + "Give it the bytes that its transformer reads, with godwit.data(…, encoding) or from a policy"
    ),
    (
      "attributes: { archive: $source.count }",
      "error type-mismatch: a number is not converted to a transformable value automatically. "
        + "Give it the bytes that its transformer reads, from a policy"
    ),
    (
      "attributes: { text: godwit.string($source.place) }",
      "error type-mismatch: godwit.string takes no composite. Give it one of its elements"
    ),
    (
      "filter: place == \"Quay\"",
      "error type-mismatch: a composite is never equal to a text. Compare one of its elements"
    ),
  ])
  func `names what is wrong`(rows: String, finding: String) throws {
    #expect(try findings(rows) == [finding])
  }
}
