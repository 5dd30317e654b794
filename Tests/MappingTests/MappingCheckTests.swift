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

  @Test(arguments: [
    (true, "", MappingFinding.Kind.yieldsNothing), (false, "", .requiredWithoutValue),
    (true, "n: $source.m", nil),
  ])
  func `warns of a default value that only the application can store`(
    isOptional: Bool, row: String, kind: MappingFinding.Kind?
  ) throws {
    let source = try model(entity("A", attribute("m", .transformable)))
    var new = AttributeDescription(
      traits: PropertyTraits(name: "n", isOptional: isOptional), type: .transformable)
    new.archived[.defaultValue] = [1]
    let text = """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, attributes: { \(row) } }
      """
    let check = try MappingCheck(
      of: text, source: source, destination: try model(entity("A", .attribute(new))))
    let found = check.findings.filter { $0.kind == kind }
    #expect(found.count == (kind == nil ? 0 : 1))
    #expect(found.allSatisfy { $0.message.contains("only the application can store") })
  }

  /// Whether the source's attribute is optional, and the destination's; what the row says.
  @Test(
    arguments: [
      (true, nil, false, "", true), (true, nil, false, "n: $source.n", true),
      (false, nil, false, "", false), (true, nil, true, "", false),
      (true, nil, false, "n: 'TERNARY($source.n == nil, 0, $source.n)'", false),
      (true, nil, false, "n: default", false),
      // Core Data fills a derived one when the object is saved, not before.
      (false, "b.n", false, "", true), (false, "b.n", true, "", false),
    ] as [(Bool, String?, Bool, String, Bool)])
  func `warns of a nil that a required attribute would get`(
    from: Bool, derived: String?, to: Bool, row: String, isFound: Bool
  ) throws {
    let source = try model(
      entity("A", attribute("n", .integer16, optional: from, derived: derived)))
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
      "bad-predicate: \"a(b\" is not a regular expression"
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
      "type-mismatch: Trade is not the relationship's destination, Book"
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

  /// Without a source entity there are no objects to select. Of an addition a filter leaves nothing out, either.
  @Test(
    arguments: [
      ("", nil), ("filter: TRUEPREDICATE", nil), ("filter: title != nil", "warning filter"),
      ("policy: P, filter: title != nil", "error filter"),
      ("source-expression: $manager", "error source expression"),
      ("policy: P, source-expression: $manager", "error source expression"),
      ("source: Book, source-expression: $manager", nil),
    ] as [(String, String?)])
  func `refuses to select the objects of a mapping that has none`(keys: String, finding: String?)
    throws
  {
    let text = """
      mapping-model: 1
      entity-mappings:
        - { destination: Book\(keys.isEmpty ? "" : ", " + keys) }
      """
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    let check = MappingCheck(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination)
    for found in [check.findings, document.findings()] {
      let unused = found.filter { $0.kind == .unusedExpression }
      #expect(unused.count == (finding == nil ? 0 : 1))
      for found in unused {
        let what = try #require(finding?.split(separator: " ", maxSplits: 1).last)
        #expect(finding == "\(found.severity.rawValue) \(what)")
        #expect(
          found.message.hasSuffix(
            "its \(what) is never evaluated. Name the source entity, or remove the \(what)"))
      }
    }
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

extension MappingCheck {
  /// Of a mapping model in YAML, with its two models.
  init(of text: String, source: EntityHierarchy, destination: EntityHierarchy) throws {
    let document = try MappingDocument(bytes: Array(text.utf8), name: "test")
    self.init(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination)
  }
}
