import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// A store with rows of no entity: they could go nowhere but with a table that is carried whole.
@Suite struct `Rows of no entity` {
  @Test func `are refused, whatever damage is accepted`() throws {
    let people = [
      entity("Person", attribute("name")), entity("Pupil", attribute("grade"), parent: "Person"),
    ]
    let fixture = try MigrationFixture(
      from: people, to: people + [entity("Seat", attribute("name"))],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME)
        VALUES (1, 1, 1, 'a'), (2, 2, 1, 'b'), (3, 44, 1, 'c'), (4, NULL, 1, 'd')
        """)
    fixture.acceptsDamage = true
    #expect {
      try fixture.migrate()
    } throws: { error in
      guard case PlanError.damaged(_, let findings) = error else { return false }
      return findings.map(\.kind) == [.rows] && findings.first?.count == 2
        && findings.first?.examples.sorted() == [3, 4] && !"\(error)".contains("accept-damage")
    }
  }
}

@Suite struct `A place in an ordered relationship` {
  @Test(arguments: [("'abc'", [StoreFinding.Kind.type]), ("NULL", [.order]), ("2048", [])])
  func `is an integer`(place: String, kinds: [StoreFinding.Kind]) throws {
    let models = [
      entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
      entity("B", toOne("a", "A", inverse: "bs")),
    ]
    let fixture = try MigrationFixture(
      from: models, to: models + [entity("C")],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA, Z_FOK_A) VALUES (1, 2, 1, 1, \(place))
        """)
    fixture.acceptsDamage = true
    _ = try fixture.migrate()
    #expect(fixture.findings.map(\.kind) == kinds)
    #expect(fixture.destinationFindings.map(\.kind) == kinds)
  }
}

@Suite struct `A key that is no integer` {
  @Test(
    arguments: [(false, false), (true, true), (false, true)], ["1.5", "'x'", "x'31'"])
  func `is carried as found where its damage is accepted`(
    isOrdered: (before: Bool, after: Bool), key: String
  ) throws {
    func owner(_ isOrdered: Bool) -> EntityDescription {
      entity("A", toMany("bs", "B", inverse: "a", ordered: isOrdered))
    }
    // The new attribute makes every row of the table new.
    let fixture = try MigrationFixture(
      from: [owner(isOrdered.before), entity("B", toOne("a", "A", inverse: "bs"))],
      to: [owner(isOrdered.after), entity("B", attribute("n"), toOne("a", "A", inverse: "bs"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZA) VALUES (1, 2, 1, \(key))
        """)
    fixture.acceptsDamage = true
    let store = try fixture.migrate()
    #expect(Set(fixture.findings.map(\.kind)) == [.type])
    // It leads to no list, in which it would lack a place.
    #expect(Set(fixture.destinationFindings.map(\.kind)) == [.type, .dangling])
    #expect(try store.rows("SELECT quote(ZA) FROM ZB")[0][0].text?.lowercased() == key)
  }
}

@Suite struct `A binary value without a valid storage marker` {
  private static func model(_ isExternal: Bool) -> [EntityDescription] {
    [
      EntityDescription(
        name: "E",
        properties: [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "bin"), type: .binary,
              allowsExternalBinaryDataStorage: isExternal))
        ])
    ]
  }

  /// Values of the source, and what they are where no value has a marker.
  private static let values = [
    ("01AABB", "AABB"), ("01", ""), ("89504E47", "89504E47"), ("02AABB", "02AABB"), ("", ""),
  ]

  @Test(arguments: ["", "{}", #"{ bin: "TERNARY($source.bin == nil, nil, $source.bin)" }"#])
  func `keeps its bytes where external storage ends`(attributes: String) throws {
    let rows = Self.values.enumerated().map { place, value in
      "INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZBIN) VALUES (\(place + 1), 1, 1, x'\(value.0)');"
    }
    let fixture = try MigrationFixture(
      from: Self.model(true), to: Self.model(false), rows: rows.joined())
    fixture.acceptsDamage = true
    let store = try fixture.migrate(
      attributes.isEmpty
        ? nil
        : """
        mapping-model: 1
        entity-mappings:
          - { source: E, destination: E, attributes: \(attributes) }
        """)
    #expect(
      try store.table("SELECT hex(ZBIN) FROM ZE ORDER BY Z_PK") == Self.values.map(\.1))
    #expect(fixture.findings.first { $0.kind == .external }?.count == 3)
  }
}

@Suite struct `A reference to an object of a wrong entity` {
  /// `Sub` and `Side` lie in the table of `Base`. A reference of `Sub` to `Base` or `Side` is damage.
  private static func model(
    _ isNew: Bool, next: PropertyDescription, back: PropertyDescription, hasSide: Bool = true
  ) -> [EntityDescription] {
    [
      // The new attribute makes every row of the table new, and the new entity every number.
      EntityDescription(
        name: "Base", properties: [attribute("code")] + (isNew ? [attribute("n")] : [])),
      EntityDescription(name: "Sub", superentity: "Base", properties: [next, back]),
      entity("Subsub", parent: "Sub"),
    ] + (hasSide ? [entity("Side", parent: "Base")] : []) + (isNew ? [entity("A")] : [])
  }

  private static let one = toOne("next", "Sub", inverse: "back")
  private static let oneBack = toOne("back", "Sub", inverse: "next")
  private static let manyBack = toMany("back", "Sub", inverse: "next")
  private static let many = toMany("next", "Sub", inverse: "back")

  /// `Base` is 1, `Side` 2, `Sub` 3 and `Subsub` 4; each is one higher afterwards.
  private static let rows = """
    INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 3, 1), (3, 3, 1), (4, 2, 1), (5, 4, 1);

    """

  /// The pairs (2, 1) and (3, 4), in whichever form.
  @Test(arguments: [
    (one, manyBack, one, manyBack, "SELECT Z_PK, ZNEXT FROM ZBASE WHERE ZNEXT NOT NULL"),
    (one, oneBack, one, oneBack, "SELECT Z_PK, ZNEXT FROM ZBASE WHERE ZNEXT NOT NULL"),
    (one, manyBack, one, oneBack, "SELECT Z_PK, ZNEXT FROM ZBASE WHERE ZNEXT NOT NULL"),
    (one, manyBack, many, manyBack, "SELECT * FROM Z_4NEXT"),
    (many, manyBack, many, manyBack, "SELECT * FROM Z_4NEXT"),
  ])
  func `is carried as found, in every form of the relationship`(
    next: PropertyDescription, back: PropertyDescription, newNext: PropertyDescription,
    newBack: PropertyDescription, query: String
  ) throws {
    let isMany = next.relationship?.isToMany == true
    let fixture = try MigrationFixture(
      from: Self.model(false, next: next, back: back),
      to: Self.model(true, next: newNext, back: newBack),
      rows: Self.rows
        + (isMany
          ? "INSERT INTO Z_3NEXT VALUES (2, 1), (3, 4)"
          : "UPDATE ZBASE SET ZNEXT = 3 * Z_PK - 5, Z1_NEXT = Z_PK - 1 WHERE Z_PK IN (2, 3)"))
    fixture.acceptsDamage = true
    for shardBytes in [Int64(1), 1 << 24] {
      let store = try fixture.migrate(shardBytes: shardBytes)
      let found = try store.table(query + " ORDER BY 1, 2")
      #expect(found == ["2 1", "3 4"] || found == ["1 2", "4 3"])
      #expect(try #require(fixture.latest).plan.losses == [])
      let kinds = Set(fixture.destinationFindings.map(\.kind))
      #expect(kinds.subtracting([.note]) == [.targetEntity])
    }
  }

  @Test func `is a loss where its row is dropped`() throws {
    let fixture = try MigrationFixture(
      from: Self.model(false, next: Self.one, back: Self.manyBack),
      to: Self.model(true, next: Self.one, back: Self.manyBack, hasSide: false),
      rows: Self.rows
        + "UPDATE ZBASE SET ZNEXT = 3 * Z_PK - 5, Z1_NEXT = Z_PK - 1 WHERE Z_PK IN (2, 3)")
    fixture.acceptsDamage = true
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT Z_PK, ZNEXT FROM ZBASE ORDER BY 1") == ["1 -", "2 1", "3 -", "5 -"])
    #expect(
      try #require(fixture.latest).plan.losses.map { "\($0.kind) \($0.property ?? "") \($0.count)" }
        == ["entity  1", "reference next 1"])
  }
}

@Suite struct `Pairs with objects that do not exist` {
  private static func model(ordered: Bool, _ more: PropertyDescription...) -> [EntityDescription] {
    [
      EntityDescription(
        name: "Base", properties: [toMany("tags", "Tag", inverse: "bases", ordered: ordered)]),
      EntityDescription(name: "Tag", properties: [toMany("bases", "Base", inverse: "tags")] + more),
    ]
  }

  @Test(arguments: [Int64(1), 1 << 24], [false, true])
  func `stay in a join table, computed or not, and are no members that are counted`(
    shardBytes: Int64, ordered: Bool
  ) throws {
    let count = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "n"), type: .integer16, derivationExpression: "bases.@count"))
    let fixture = try MigrationFixture(
      from: Self.model(ordered: false), to: Self.model(ordered: ordered, count),
      rows: """
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
        INSERT INTO Z_1TAGS (Z_1BASES, Z_2TAGS) VALUES (1, 1), (2, 1), (99, 1), (1, 77), (98, 76)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_1BASES, Z_2TAGS FROM Z_1TAGS ORDER BY 1, 2")
        == ["1 1", "1 77", "2 1", "98 76", "99 1"])
    #expect(try store.table("SELECT ZN FROM ZTAG") == ["2"])
    #expect(fixture.destinationFindings.map(\.kind) == [.dangling, .dangling])
    if ordered {
      let places = try store.table("SELECT Z_FOK_2TAGS FROM Z_1TAGS WHERE Z_1BASES = 1 ORDER BY 1")
      #expect(places == ["2048", "3072"])
    }
  }
}

@Suite struct `Pairs whose row ids end where numbers do` {
  @Test(
    arguments: [[0, 1], [0, 1, 2], [0, 2, 3, 40], [0, 9_223_372_036_854_775_000]] as [[Int64]])
  func `are verified in any number of shards`(distances: [Int64]) throws {
    let models = [
      entity("Base", toMany("tags", "Tag", inverse: "bases")),
      entity("Tag", toMany("bases", "Base", inverse: "tags")),
    ]
    let objects = (1...40).map { "(\($0), 1, 1)" }.joined(separator: ", ")
    let pairs = distances.enumerated().map { "(\(Int64.max - $1), \($0 + 1), 1)" }
    let fixture = try MigrationFixture(
      from: models, to: models + [entity("Z")],
      rows: """
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES \(objects);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
        INSERT INTO Z_1TAGS (rowid, Z_1BASES, Z_2TAGS) VALUES \(pairs.joined(separator: ", "))
        """)
    for shardBytes in [Int64(1), 1 << 24] {
      let store = try fixture.migrate(shardBytes: shardBytes)
      #expect(try store.rows("SELECT * FROM Z_1TAGS").count == distances.count)
    }
  }
}
