import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of a mapping model` {
  private let source: EntityHierarchy
  private let destination: EntityHierarchy

  init() throws {
    source = try model(
      entity(
        "Trade", attribute("amount", .decimal), attribute("day", .date),
        attribute("size", .integer16),
        attribute("note"), toOne("book", "Book", inverse: "trades")),
      entity("Book", attribute("title"), toMany("trades", "Trade", inverse: "book")))
    destination = try model(
      entity(
        "Trade", attribute("totalCost", .decimal), attribute("day", .date),
        attribute("length", .integer32), attribute("note"),
        toOne("book", "Book", inverse: "trades")),
      entity("Book", attribute("title"), toMany("trades", "Trade", inverse: "book")))
  }

  private func findings(_ rows: String, _ relationships: String = "{}", more: String = "") throws
    -> [String]
  {
    let text = """
      mapping-model: 1
      entity-mappings:
        - source: Trade
          destination: Trade
          others: none
          attributes: \(rows)
          relationships: \(relationships)
          \(more)
        - source: Book
          destination: Book
      """
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    let model = MappingModel(document, source: source, destination: destination)
    let check = MappingCheck(
      model, source: source, destination: destination,
      registeredPolicies: ["Team.Converting": ["costOf:", "dayOf:in:"]], promisedPolicies: ["Known"]
    )
    return check.findings.map { "\($0.kind.rawValue): \($0.message)" }
  }

  @Test(arguments: [
    "$source.amount", "$source.amount * 2 + 1.5", "$source.book.trades.@sum.amount",
    "$source.#size", "$source.note.length", "$source.book.trades.@count",
    "TERNARY($source.note == nil, 0, $source.amount)", "CAST($source.day, \"NSNumber\") / 3600",
    "SUBQUERY($source.book.trades, $x, $x.amount > 3).@count",
    "FUNCTION($source, \"valueForKey:\", \"amount\")",
    "FUNCTION($source.note, \"integerValue\")", "godwit.integer($source.note)",
    "$source.book.trades[FIRST].amount", "sum($source.book.trades.amount)", "NULL",
    "$entityMapping.userInfo.factor",
    "TERNARY($source.note MATCHES[c] \"a(b|c)+\", 1, $source.amount)",
  ])
  func `finds nothing wrong with a number`(expression: String) throws {
    #expect(try findings("{ totalCost: '\(expression)' }") == [])
  }

  /// Whether the source's attribute is optional, and the destination's; what the row says.
  @Test(arguments: [
    (true, false, "", true), (true, false, "n: $source.n", true), (false, false, "", false),
    (true, true, "", false), (true, false, "n: 'TERNARY($source.n == nil, 0, $source.n)'", false),
    (true, false, "n: default", false),
  ])
  func `warns of a nil that a required attribute would get`(
    from: Bool, to: Bool, row: String, isFound: Bool
  ) throws {
    let source = try model(entity("A", attribute("n", .integer16, optional: from)))
    let destination = try model(
      entity("A", attribute("n", .integer16, optional: to, default: .integer(0))))
    let text = """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, attributes: { \(row) } }
      """
    let check = try MappingCheck(of: text, source: source, destination: destination)
    #expect(
      check.findings.map(\.kind) == (isFound ? [.requiredWithoutValue] : []) && check.isSound)
  }

  @Test(arguments: [
    (
      "{ totalCost: $source.amuont }",
      "unknown-key: the source entity Trade has no property amuont. Did you mean amount?"
    ),
    (
      "{ totlCost: $source.amount }",
      "unknown-property: Trade has no property of this name. Did you mean totalCost?"
    ),
    ("{ book: $source.amount }", "unknown-property: Trade.book is a relationship"),
    (
      "{ totalCost: 'TERNARY($source.note MATCHES[c] \"a(b\", 1, $source.amount)' }",
      "bad-predicate: \"a(b\" is no regular expression"
    ),
    (
      "{ totalCost: 'FUNCTION($source, \"valueForKey:\", \"a b.c😀\")' }",
      "unknown-key: the source entity Trade has no property a b.c😀"
    ),
    (
      "{ totalCost: 'FUNCTION($source, \"valueForKey:\", $source.note)' }",
      "unknown-key: valueForKey: needs a key that the expression spells, which says what is read"
    ),
    (
      "{ totalCost: $sorce.amount }",
      "unknown-variable: there is no variable $sorce. Did you mean $source?"
    ),
    (
      "{ totalCost: $source.note }",
      "type-mismatch: a text is not converted to a number automatically. Convert it, for instance with "
        + "godwit.integer(…) or godwit.double(…)"
    ),
    (
      "{ note: $source.amount }",
      "type-mismatch: a number is not converted to a text automatically. Convert it, for instance with "
        + "godwit.string(…) or godwit.dateString(…, format)"
    ),
    (
      "{ day: $source.day + 3600 }",
      "type-mismatch: a date does not support arithmetic. Use CAST(…, \"NSNumber\") and "
        + "CAST(…, \"NSDate\")"
    ),
    (
      "{ note: abc }",
      "unknown-key: abc needs a $source. prefix: write $source.abc, or \"abc\" for a string"
    ),
    (
      "{ note: $source.note.lenght }",
      "unknown-key: a text has no key lenght. Did you mean length?"
    ),
    (
      "{ note: 'FUNCTION($source.note, \"uppercasestring\")' }",
      "unknown-selector: there is no selector uppercasestring here (character 24). Did you mean uppercaseString?"
    ),
    (
      "{ totalCost: $source.book.trades.@cuont }",
      "unknown-key: there is no collection operator @cuont. Did you mean @count?"
    ),
    (
      "{ totalCost: $source.amount.@sum.x }",
      "type-mismatch: @sum needs a collection before it"
    ),
    (
      "{ note: 'CAST($source.day, \"NSStrin\")' }",
      "type-mismatch: there is no cast to NSStrin. Did you mean NSString?"
    ),
    (
      "{ note: 'FUNCTION($entityPolicy, \"textFor:\", $source.note)' }",
      "missing-policy-selector: $entityPolicy is asked for textFor:, which is code of a policy, "
        + "and the mapping has none"
    ),
    (
      "{ note: 'FUNCTION($source.note, \"hasPrefix:\")' }",
      "argument-count: hasPrefix: takes 1 argument(s) and is given 0"
    ),
  ])
  func `names what is wrong with a value`(rows: String, finding: String) throws {
    let found = try findings(rows)
    #expect(found.contains(finding), "\(found)")
  }

  @Test(arguments: [
    // The spelling of a common tutorial.
    (
      "FUNCTION($manager, \"destinationInstancesForEntityMappingName:sourceIbstances:\", \"BookToBook\", $source.book)",
      "unknown-selector: there is no selector destinationInstancesForEntityMappingName:"
        + "sourceIbstances: here (character 20). Did you mean "
        + "destinationInstancesForEntityMappingNamed:sourceInstances:?"
    ),
    (
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"BookToBok\", $source.book)",
      "unknown-mapping: there is no entity mapping BookToBok. Did you mean BookToBook?"
    ),
    (
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"TradeToTrade\", $source)",
      "type-mismatch: Trade is no Book, which the relationship leads to"
    ),
    (
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"BookToBook\", $source)",
      "yields-nothing: BookToBook takes objects of Book and is asked for those of Trade: this "
        + "yields nothing"
    ),
    (
      "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"bok\", $source.book)",
      "unknown-key: the source entity Trade has no relationship bok. Did you mean book?"
    ),
    (
      "$source.book",
      "type-mismatch: source objects cannot be put into the destination. Use FUNCTION($manager, "
        + "\"destinationInstancesForEntityMappingNamed:sourceInstances:\", mapping, objects)"
    ),
    ("$source.amount", "type-mismatch: a relationship takes objects, and this is a value"),
  ])
  func `names what is wrong with a relationship`(expression: String, finding: String) throws {
    #expect(try findings("{}", "{ book: '\(expression)' }").contains(finding))
  }

  @Test func `takes what Xcode writes for a relationship`() throws {
    let expression =
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
      + "\"BookToBook\", $source.book)"
    #expect(try findings("{}", "{ book: '\(expression)' }") == [])
    #expect(try findings("{}", "{ book: automatic }") == [])
  }

  @Test func `asks a filter of the source entity`() throws {
    #expect(try findings("{}", more: "filter: amount > 3 AND book.title LIKE \"a*\"") == [])
    #expect(
      try findings("{}", more: "filter: amuont > 3") == [
        "unknown-key: the source entity Trade has no property amuont. Did you mean amount?"
      ])
  }

  @Test func `knows the policies that are registered`() throws {
    #expect(try findings("{}", more: "policy: Known") == [])
    let call = "{ note: 'FUNCTION($entityPolicy, \"textFor:\", $source.note)' }"
    #expect(try findings(call, more: "policy: Known") == [])
    #expect(
      try findings(call, more: "policy: Other").map { $0.prefix(16) } == [
        "missing-policy: ", "missing-policy-s",
      ])
  }

  @Test func `knows the selectors of a registered policy`() throws {
    func call(_ selector: String) -> String {
      "{ note: 'FUNCTION($entityPolicy, \"\(selector)\", $source.note)' }"
    }
    #expect(try findings(call("costOf:"), more: "policy: Team.Converting") == [])
    #expect(
      try findings(call("costFo:"), more: "policy: Team.Converting") == [
        "unknown-selector: the policy Team.Converting has no selector costFo:. "
          + "Did you mean costOf:?"
      ])
    #expect(
      try findings(call("unheardOf:"), more: "policy: Team.Converting") == [
        "unknown-selector: the policy Team.Converting has no selector unheardOf:. "
          + "Name it in the class's selectors"
      ])
  }

  @Test func `names entities that are missing, uncovered or of another version`() throws {
    let text = """
      mapping-model: 1
      entity-mappings:
        - { source: Trde, destination: Trade }
        - { name: X, source: Book, destination: Book, source-hash: \(
          String(repeating: "A", count: 43))= }
        - { name: X }
      """
    let check = try MappingCheck(of: text, source: source, destination: destination)
    #expect(!check.isSound)
    #expect(
      check.findings.map { "\($0.kind.rawValue) \($0.mapping ?? "-")" } == [
        "duplicate-name X", "hash-mismatch X", "unknown-entity TrdeToTrade", "empty-mapping X",
        "uncovered-source -",
      ])
  }

  /// An entry that drops the objects of Trade, and whether that is taken for unfinished.
  @Test(arguments: [
    ("{ source: Trade }", true), ("{ source: Trade, type: remove }", false),
    ("{ source: Trade, policy: P }", false),
    ("{ source: Trade }, { name: X, source: Trade, destination: Book }", false),
  ])
  func `warns of a source entity without a destination unless its type says so`(
    entries: String, warns: Bool
  ) throws {
    let text = "mapping-model: 1\nentity-mappings: [\(entries)]"
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    let found = document.findings(promisedPolicies: ["P"])
    #expect(found.map(\.kind) == (warns ? [.uncoveredSource] : []))
    #expect(found.allSatisfy { $0.severity == .warning })
  }
}

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
        Self.fetched, toOne("bird", "Bird")), bird)
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

@Suite struct `A choice among mapping models` {
  private func document(_ text: String) throws -> MappingDocument {
    try MappingDocument(bytes: Array(text.utf8), name: "test")
  }

  /// A file that does not match, and whether the names of its models say that it is for others.
  @Test(arguments: [
    ("", false), ("source-model: Shop.xcdatamodeld/Old.xcdatamodel\n", false),
    ("source-model: Other.xcdatamodel\n", true),
    ("source-model: Old\ndestination-model: New 2.xcdatamodel\n", true),
  ])
  func `tells a misspelt file from one for other models`(head: String, isOther: Bool) throws {
    let models = try model(entity("A", attribute("x")))
    let text = "mapping-model: 1\n" + head + "entity-mappings: [{ source: B, destination: A }]"
    let choice = MappingChoice(
      among: [("file", try document(text))], source: models, destination: models,
      names: (["Old"], ["New"]))
    #expect(choice.mismatches.map(\.namesOtherModels) == [isOther])
  }

  @Test func `leaves out the rows of a mapping without a source`() throws {
    let models = try model(entity("A", attribute("x", .binary)))
    let added = try document(
      "mapping-model: 1\nentity-mappings: [{ destination: A, attributes: { x: stable, y: 0 } }]")
    let choice = MappingChoice(
      among: [("file", added)], source: models, destination: models)
    #expect(choice.mismatches == [])
    let check = MappingCheck(
      MappingModel(added, source: models, destination: models), source: models,
      destination: models)
    #expect(check.isSound && check.findings.count >= 2)
  }

  @Test func `names the entity that differs`() throws {
    let old = try model(entity("A", attribute("x")))
    let new = try model(entity("A", attribute("x"), attribute("y")))
    let other = try model(entity("A", attribute("z")), entity("B"))
    let right = MappingDocument(defaultFor: old, to: new)
    let wrong = MappingDocument(defaultFor: other, to: new)
    let choice = MappingChoice(
      among: [("wrong", wrong), ("right", right)], source: old, destination: new)
    #expect(try choice.single() == 1)
    #expect(
      choice.mismatches == [
        MappingMismatch(
          file: "wrong", mapping: "AToA", side: .source, entity: "A", reason: .otherVersion,
          namesOtherModels: true)
      ])
    let both = MappingChoice(
      among: [("one", right), ("two", right)], source: old, destination: new)
    #expect(throws: MappingError.severalMatch(["one", "two"])) { try both.single() }
  }

  @Test func `compares names where a file has no hashes`() throws {
    let models = try model(entity("A", attribute("x")))
    let choice = MappingChoice(
      among: [
        ("entity", try document("mapping-model: 1\nentity-mappings: [{ destination: C }]")),
        (
          "property",
          try document(
            "mapping-model: 1\nentity-mappings: [{ source: A, destination: A, attributes: { y: 1 } }]"
          )
        ),
        (
          "right",
          try document(
            "mapping-model: 1\nentity-mappings: [{ destination: A, attributes: { x: 1 } }]")
        ),
      ], source: models, destination: models)
    #expect(try choice.single() == 2)
    #expect(choice.mismatches.map(\.reason) == [.unknownEntity, .unknownProperty("y")])
    #expect(
      choice.mismatches.map(\.description) == [
        "entity is not used: it names the destination entity C (C), which the model does not have. "
          + "Did you mean A?",
        "property is not used: it names A.y (AToA), which the destination model does not have. "
          + "Did you mean x?",
      ])
  }
}

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
    #expect(try choice.single() == 0)
    let text = try document.text()
    #expect(try MappingDocument(bytes: Array(text.utf8), name: name) == document)
  }
}

extension MappingCheck {
  /// Of a mapping model in YAML, with its two models.
  fileprivate init(of text: String, source: EntityHierarchy, destination: EntityHierarchy) throws {
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    self.init(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination)
  }
}
