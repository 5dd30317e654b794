import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

/// What is counted, as `kind entity.property count`.
private func text(_ losses: [Loss]) -> [String] {
  losses.map { "\($0.kind.rawValue) \($0.entity ?? "-").\($0.property ?? "-") \($0.count)" }
}

private func mapping(_ lines: String...) -> String { mapping(lines) }

private func mapping(_ lines: [String]) -> String {
  "mapping-model: 1\nentity-mappings:\n" + lines.map { "  - { \($0) }" }.joined(separator: "\n")
}

extension MigrationFixture {
  /// What the stages have counted, over all shards, as `kind entity.property count`.
  fileprivate var sumsDroppedByMapping: [String] {
    var sums: [String: Int64] = [:]
    for loss in droppedByMapping {
      sums["\(loss.kind.rawValue) \(loss.entity ?? "-").\(loss.property ?? "-")", default: 0] +=
        loss.count
    }
    return sums.map { "\($0.key) \($0.value)" }.sorted()
  }
}

@Suite struct `What a mapping model reads` {
  private static let rows = """
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNOTE, ZTITLE) VALUES (1, 1, 1, 'a', 'b'), (2, 1, 1, 'c', NULL)
    """

  /// Entity mappings beside `Item` → `Item`, rows of that one, and whether `Item.note` counts as kept.
  @Test(arguments: [
    ("", "", false), ("filter: 'note != nil', ", "", false),
    ("", "  - { source: Other, destination: Other }", false),
    ("", "  - { type: remove, source: Other, filter: 'note != nil' }", false),
    ("", "  - { type: add, destination: Fresh, attributes: { note: $source.note } }", false),
    ("attributes: { title: $entityMapping.name }, ", "", false),
    ("attributes: { passing: $source.note }, ", "", false),
    ("attributes: { small: 'lowercase($source.note)' }, ", "", false),
    ("attributes: { title: $source.note }, ", "", true),
    (
      "", "  - { source: Other, destination: Other, attributes: { note: $source.item.note } }", true
    ),
  ])
  func `is what its rows store of objects of the entity`(item: String, others: String, isKept: Bool)
    throws
  {
    func computed(_ name: String, isTransient: Bool, _ derivation: String?) -> PropertyDescription {
      .attribute(
        AttributeDescription(
          traits: PropertyTraits(name: name, isTransient: isTransient), type: .string,
          derivationExpression: derivation))
    }
    let fixture = try MigrationFixture(
      from: [
        entity("Item", attribute("note"), attribute("title")),
        entity("Other", attribute("note"), toOne("item", "Item")),
      ],
      to: [
        entity(
          "Item", attribute("title"), computed("passing", isTransient: true, nil),
          computed("small", isTransient: false, "lowercase:(title)")),
        entity("Other", attribute("note")), entity("Fresh", attribute("note")),
      ], rows: Self.rows)
    let plan = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { \(item)source: Item, destination: Item }
      \(others)
      """)
    #expect(text(plan.losses).contains("attribute Item.note 2") == !isKept)
  }

  @Test(arguments: [
    (["source: Item, destination: Item"], 2),
    (["source: Item, destination: Item", "source: Other, destination: Other"], 2),
    (["filter: 'amount > 0', source: Item, destination: Item"], 2),
    // What a wider row keeps is not lost, nor can what an expression gives be told.
    (["source: Item, destination: Item, attributes: { wide: $source.amount }"], 0),
    (["source: Item, destination: Item, attributes: { narrow: $source.amount }"], 2),
    (["source: Item, destination: Item, attributes: { text: godwit.string($source.amount) }"], 0),
  ])
  func `keeps a number in the widest of its plain rows`(lines: [String], changed: Int) throws {
    let fixture = try MigrationFixture(
      from: [entity("Item", attribute("amount", .double)), entity("Other", attribute("amount"))],
      to: [
        entity(
          "Item", attribute("amount", .integer32), attribute("wide", .double),
          attribute("narrow", .integer16), attribute("text")),
        entity("Other", attribute("amount")),
      ],
      rows: "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZAMOUNT) VALUES (1, 1, 1, 1.5), (2, 1, 1, 2.5)")
    let plan = try fixture.plan(
      "mapping-model: 1\nentity-mappings:\n" + lines.map { "  - { \($0) }" }.joined(separator: "\n")
    )
    #expect(text(plan.losses) == (changed == 0 ? [] : ["narrowing Item.amount \(changed)"]))
    #expect(plan.losses.allSatisfy { $0.message.contains("ends the migration (1610, 1620)") })
  }

  @Test(arguments: [
    (false, "", true), (true, "", false),
    // Another expression may have read the places.
    (false, ", attributes: { first: $source.bs.@count }", false),
    (false, ", relationships: { bs: default }", true),
  ])
  func `keeps places where a list stays one`(isOrdered: Bool, rows: String, isLost: Bool) throws {
    let b = entity("B", toOne("a", "A", inverse: "bs"))
    let fixture = try MigrationFixture(
      from: [entity("A", toMany("bs", "B", inverse: "a", ordered: true)), b],
      to: [
        entity(
          "A", attribute("first", .integer32),
          toMany("bs", "B", inverse: "a", ordered: isOrdered)), b,
      ],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA, Z_FOK_A) VALUES (1, 2, 1, 1, 2048), (2, 2, 1, 1, 1024)
        """)
    let plan = try fixture.plan(
      mapping("source: A, destination: A\(rows)", "source: B, destination: B"))
    #expect(text(plan.losses) == (isLost ? ["order A.bs 2"] : []))
  }
}

@Suite struct `References to what another entity mapping took` {
  private static let source = [
    entity("Doc", attribute("k", .integer32), toMany("fans", "Own", inverse: "fav")),
    entity("Own", attribute("n"), toOne("fav", "Doc", inverse: "fans")),
  ]
  private static let rows = """
    INSERT INTO ZDOC (Z_PK, Z_ENT, Z_OPT, ZK) VALUES (1, 1, 1, 0), (2, 1, 1, 1), (3, 1, 1, 2);
    INSERT INTO ZOWN (Z_PK, Z_ENT, Z_OPT, ZFAV)
    VALUES (1, 2, 1, 1), (2, 2, 1, 2), (3, 2, 1, 2), (4, 2, 1, 3), (5, 2, 1, NULL)
    """
  private static let split = [
    "source: Doc, destination: Doc, filter: k == 0",
    "source: Doc, destination: Note, filter: k == 1",
  ]

  /// Rows of `Own` → `Own` and of `Doc` → `Note`.
  @Test(
    arguments: [
      ("", "", ["reference Own.fav 2"]),
      // Another row asks the mapping, from either side.
      (", relationships: { note: { along: fav } }", "", []),
      ("", ", relationships: { people: { along: fans } }", []),
      // A value is no reference.
      (", attributes: { n: $source.fav.k.stringValue }", "", ["reference Own.fav 2"]),
      // What another expression for a relationship makes of it is not known.
      (
        #", relationships: { note: 'TERNARY($source.fav == nil, nil, FUNCTION($manager, "#
          + #""destinationInstancesForEntityMappingNamed:sourceInstances:", "DocToNote", $source.fav))' }"#,
        "", []
      ),
    ], [Int64(1), 1 << 20])
  func `are counted where nothing asks that one`(
    rows: (own: String, note: String, expected: [String]), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.source,
      to: [
        entity("Doc", attribute("k", .integer32)),
        entity("Note", attribute("k", .integer32), toMany("people", "Own")),
        entity("Own", attribute("n"), toOne("fav", "Doc"), toOne("note", "Note")),
      ], rows: Self.rows)
    _ = try fixture.migrate(
      mapping(Self.split[0], Self.split[1] + rows.note, "source: Own, destination: Own" + rows.own),
      shardBytes: shardBytes)
    #expect(fixture.sumsDroppedByMapping == rows.expected)
  }

  /// Further entity mappings for `Own` → `Own`, of which the first takes those with `n`, and what is lost.
  @Test(
    arguments: [
      // One by one: no row, a row that asks nobody, one that asks the wrong mapping.
      (["filter: n == nil, relationships: { fav: default }"], ["reference Own.fav 2"]),
      (["filter: n == nil, relationships: { fav: { along: fav } }"], []),
      (
        [
          #"filter: n == nil, relationships: { fav: 'FUNCTION($manager, "#
            + #""destinationInstancesForEntityMappingNamed:sourceInstances:", "OwnToOwn", $source.fav)' }"#
        ], ["reference Own.fav 2"]
      ),
      // What another mapping of the same object keeps is kept; what two drop is dropped once.
      (["relationships: { fav: default }"], ["reference Own.fav 2"]),
      (
        ["filter: n == nil, relationships: { fav: default }", "filter: n == nil"],
        []
      ),
      (
        [
          "filter: n == nil, relationships: { fav: default }",
          "filter: n == nil, relationships: { fav: default }",
        ], ["reference Own.fav 2"]
      ),
    ] as [([String], [String])], [Int64(1), 1 << 20])
  func `are counted of every mapping of their owners`(
    rows: (others: [String], expected: [String]), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.source,
      to: [
        entity("Doc", attribute("k", .integer64), toMany("fans", "Own", inverse: "fav")),
        entity("Own", attribute("n"), toOne("fav", "Doc", inverse: "fans")),
      ],
      rows: Self.rows + "; UPDATE ZOWN SET ZN = 'n' WHERE Z_PK IN (1, 4)")
    _ = try fixture.migrate(
      mapping(
        [
          "source: Doc, destination: Doc, relationships: { fans: default }",
          "source: Own, destination: Own, filter: n != nil",
        ] + rows.others.enumerated().map { "name: M\($0), source: Own, destination: Own, \($1)" }),
      shardBytes: shardBytes)
    #expect(fixture.sumsDroppedByMapping == rows.expected)
  }

  /// Which mapping the one with `n` asks, which the other one, and what is lost of the pair of the two.
  @Test(
    arguments: [
      ("One", "Two", ["reference E.friends 1", "reference E.twin 1"]),
      // The last word is that of the one that asks nobody.
      ("Two", "Two", ["shared-target E.friends 1", "shared-target E.twin 1"]),
      ("One", "One", []), ("Two", "One", []),
    ], [Int64(1), 1 << 20])
  func `are counted of a relationship that is its own inverse, once a pair`(
    asked: (one: String, two: String, expected: [String]), shardBytes: Int64
  ) throws {
    let twin = toOne("twin", "E", inverse: "twin")
    let friends = toMany("friends", "E", inverse: "friends")
    let fixture = try MigrationFixture(
      from: [entity("E", attribute("n"), twin, friends)],
      to: [entity("E", attribute("n"), attribute("m"), twin, friends)],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZN, ZTWIN)
        VALUES (1, 1, 1, 'a', 2), (2, 1, 1, NULL, 1), (3, 1, 1, NULL, NULL);
        INSERT INTO Z_1FRIENDS VALUES (1, 2), (2, 1)
        """)
    func line(_ name: String, _ filter: String, asks asked: String) -> String {
      let rows = ["twin", "friends"].map { row in
        "\(row): 'FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
          + "\"\(asked)\", $source.\(row))'"
      }
      return "name: \(name), source: E, destination: E, filter: \(filter), "
        + "relationships: { \(rows.joined(separator: ", ")) }"
    }
    _ = try fixture.migrate(
      mapping(
        line("One", "n != nil", asks: asked.one), line("Two", "n == nil", asks: asked.two)),
      shardBytes: shardBytes)
    #expect(fixture.sumsDroppedByMapping == asked.expected)
  }

  @Test func `are added up by their reason`() throws {
    let one = try #require(Loss(unaskedIn: "fav", of: "Own", RowTally([7])))
    let more = try #require(Loss(unaskedIn: "fav", of: "Own", RowTally([3, 9])))
    let both = try #require(one.adding(more))
    #expect(both == Loss(unaskedIn: "fav", of: "Own", RowTally([3, 7, 9])))
    let planned = Loss(
      .reference, entity: "Own", property: "fav", count: 1, message: "points nowhere")
    #expect(planned.adding(one) == nil)
  }

  @Test func `come in one order, whichever shard tells them first`() throws {
    let planned = Loss(.entity, entity: "Zoo", count: 1, message: "is dropped")
    let told = try ["fav", "boss", "fav", "peers"].enumerated().map { number, name in
      try #require(Loss(unaskedIn: name, of: "Own", RowTally([Int64(number)])))
    }
    func order(_ told: [Loss]) -> [Loss] {
      var losses = [planned]
      for loss in told { losses.add(loss) }
      return losses
    }
    #expect(order(told).map(\.property) == [nil, "boss", "fav", "peers"])
    for _ in 0..<20 { #expect(order(told.shuffled()) == order(told)) }
  }
}

@Suite struct `References that a policy's defaults have no room for` {
  /// What the one mapping has beside its row, and the other side's row, which gives the same references.
  @Test(
    arguments: [
      ("", "default"), (", policy: Plain", "default"),
      ("", "automatic"), (", policy: Plain", "automatic"),
    ], [Int64(1), 1 << 20])
  func `are counted as without a policy, and once`(
    mappings: (policy: String, other: String), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Box", toMany("parts", "Part", inverse: "boxes")),
        entity("Part", toMany("boxes", "Box", inverse: "parts")),
      ],
      to: [
        entity("Box", toOne("first", "Part", inverse: "boxes")),
        entity("Part", toMany("boxes", "Box", inverse: "first")),
      ],
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1), (3, 2, 1);
        INSERT INTO Z_1PARTS (Z_1BOXES, Z_2PARTS) VALUES (1, 1), (1, 2), (1, 3), (2, 3)
        """)
    fixture.policies = PolicyRegistry(["Plain": EntityMigrationPolicy.self])
    let store = try fixture.migrate(
      mapping(
        "source: Box, destination: Box, relationships: { first: { along: parts } }\(mappings.policy)",
        "source: Part, destination: Part, relationships: { boxes: \(mappings.other) }"),
      shardBytes: shardBytes)
    #expect(try store.table("SELECT count(*) FROM ZBOX WHERE ZFIRST IS NOT NULL") == ["2"])
    #expect(text(fixture.droppedByMapping) == ["shared-target Box.first 2"])
  }
}

@Suite struct `Values that one of an entity's mappings keeps` {
  private static let source = [
    entity(
      "Item", attribute("n", .integer32), attribute("a"), attribute("b"),
      toOne("parent", "Item", inverse: "children"), toMany("children", "Item", inverse: "parent"))
  ]
  private static let rows = """
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZN, ZA, ZB)
    VALUES (1, 1, 1, 1, 'a', 'b'), (2, 1, 1, 2, 'a', NULL), (3, 1, 1, 3, 'a', 'b'), (4, 1, 1, 3, NULL, '')
    """
  private static let low = "filter: n == 1, source: Item, destination: Low"

  @Test(
    arguments: [
      (
        ["filter: n > 1, source: Item, destination: High"],
        ["attribute Item.a 2", "attribute Item.b 2"]
      ),
      // An expression keeps what it reads, by one word or the other.
      (
        ["filter: n > 1, source: Item, destination: High, attributes: { x: $source.a }"],
        ["attribute Item.b 2"]
      ),
      (
        [
          #"filter: n > 1, source: Item, destination: High, attributes: { x: 'uppercase:($source.a)' }"#
        ],
        ["attribute Item.b 2"]
      ),
      // What a filter reads is stored nowhere.
      (
        [
          "filter: n > 1 AND b != 'c', source: Item, destination: High, attributes: { x: $source.a }"
        ],
        ["attribute Item.b 2"]
      ),
      // Each object has all of its mappings.
      (
        [
          "filter: n > 1, source: Item, destination: High",
          "filter: n > 2, source: Item, destination: Low",
        ],
        ["attribute Item.a 1"]
      ),
      (
        [
          "filter: n > 1, source: Item, destination: High",
          "filter: n == 3, source: Item, destination: High",
        ],
        ["attribute Item.a 2", "attribute Item.b 2"]
      ),
      (["source: Item, destination: High"], ["attribute Item.a 2", "attribute Item.b 2"]),
      (["filter: n > 1, source: Item, destination: High", "source: Item, destination: Low"], []),
      // What a key path reads of other objects cannot be told apart.
      (
        [
          "filter: n > 1, source: Item, destination: High, "
            + "attributes: { x: '$source.parent.a' , y: '$source.parent.b' }"
        ], []
      ),
    ] as [([String], [String])], [Int64(1), 1 << 20])
  func `are counted of what only the others take`(
    lines: (mappings: [String], expected: [String]), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.source,
      to: [
        entity("Low", attribute("n", .integer32), attribute("a"), attribute("b")),
        entity("High", attribute("n", .integer32), attribute("x"), attribute("y")),
      ], rows: Self.rows)
    _ = try fixture.migrate(
      mapping(
        ([Self.low] + lines.mappings).enumerated().map { "name: M\($0), \($1)" }),
      shardBytes: shardBytes)
    #expect(fixture.sumsDroppedByMapping == lines.expected)
  }
}
