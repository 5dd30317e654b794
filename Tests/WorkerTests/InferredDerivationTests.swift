import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A derived attribute, inferred` {
  private static func derived(
    _ name: String, _ expression: String, _ type: AttributeType = .string
  ) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name), type: type, derivationExpression: expression))
  }

  private static func fixture(
    _ before: PropertyDescription..., to after: PropertyDescription...,
    rows: String = """
    INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZD)
    VALUES (1, 1, 1, 'Ä b', 'ÄB'), (2, 1, 1, '', NULL), (3, 1, 1, NULL, NULL)
    """
  ) throws -> MigrationFixture {
    try MigrationFixture(
      from: [EntityDescription(name: "P", properties: before)],
      to: [EntityDescription(name: "P", properties: after)], rows: rows)
  }

  @Test(arguments: [
    ("lowercase:(n)", "ä b"), ("canonical:(n)", "a b"), ("uppercase:(lowercase:(n))", "Ä B"),
    ("n", "Ä b"),
  ])
  func `is computed where its derivation is another, over a text of the object`(
    expression: String, value: String
  ) throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "uppercase:(n)"),
      to: attribute("n"), Self.derived("d", expression))
    let store = try fixture.migrate()
    #expect(try store.table("SELECT ZD FROM ZP ORDER BY Z_PK") == [value, "", "-"])
    #expect(fixture.latest?.plan.losses == [])
  }

  /// A result of SQLite has no more columns than a table may have.
  @Test func `is computed beside as many columns as a table may have`() throws {
    let most = LayoutProblem.mostColumns - EntityTable.systemColumns.count
    let kept = (2..<most).map { attribute("a\($0)", .integer16) }
    let n = attribute("n")
    let fixture = try MigrationFixture(
      from: [EntityDescription(name: "P", properties: [n, attribute("gone")] + kept)],
      to: [
        EntityDescription(name: "P", properties: [n, Self.derived("d", "uppercase:(n)")] + kept)
      ],
      rows: """
        INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZA2, ZA\(most - 1))
        VALUES (1, 1, 1, 'Ä b', 2, 3), (2, 1, 1, NULL, 4, 5), (3, 1, 1, 'c', 6, 7)
        """)
    #expect(
      try fixture.migrate().table("SELECT ZN, ZD, ZA2, ZA\(most - 1) FROM ZP ORDER BY Z_PK")
        == ["Ä b Ä B 2 3", "- - 4 5", "c C 6 7"])
  }

  @Test func `is computed from what the text is in the destination`() throws {
    let fixture = try Self.fixture(
      attribute("n"), attribute("d"),
      to: attribute("n", optional: false, default: .text("It's")),
      attribute("m", default: .text("M")), Self.derived("e", "uppercase:(n)"),
      Self.derived("f", "lowercase:(m)"))
    #expect(
      try fixture.migrate().table("SELECT ZE, ZF FROM ZP ORDER BY Z_PK")
        == ["Ä B m", " m", "IT'S m"])
  }

  @Test(
    arguments: [nil, "mapping-model: 1\nentity-mappings: [{ source: P, destination: P }]"]
      as [String?])
  func `is computed over another derived text, carried or new, as under a mapping model`(
    mapping: String?
  ) throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "lowercase:(n)"),
      to: attribute("n"), Self.derived("d", "lowercase:(n)"), Self.derived("c", "canonical:(e)"),
      Self.derived("e", "uppercase:(d)"), Self.derived("f", "e"),
      rows: """
        INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZD) VALUES (1, 1, 1, 'Ä b', 'ä b'), (2, 1, 1, NULL, NULL)
        """)
    let store = try fixture.migrate(mapping)
    #expect(
      try store.table("SELECT ZD, ZE, ZC, ZF FROM ZP ORDER BY Z_PK")
        == ["ä b Ä B a b Ä B", "- - - -"])
  }

  /// An attribute counts as a level like a function, and there are 16.
  @Test(arguments: [(8, "B"), (9, "-")])
  func `is computed over as many others as SQLite can follow in a statement`(
    length: Int, value: String
  )
    throws
  {
    let names = ["n"] + (1...length).map { "d\($0)" }
    let chain = zip(names, names.dropFirst()).map { Self.derived($1, "uppercase:(\($0))") }
    for mapping in [nil, "mapping-model: 1\nentity-mappings: [{ source: P, destination: P }]"] {
      let fixture = try MigrationFixture(
        from: [EntityDescription(name: "P", properties: [attribute("n")])],
        to: [EntityDescription(name: "P", properties: [attribute("n")] + chain)],
        rows: "INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 'b')")
      let store = try fixture.migrate(mapping)
      #expect(try store.table("SELECT ZD1, ZD\(length) FROM ZP") == ["B \(value)"])
    }
  }

  @Test func `that nobody can compute loses its values, and they are counted`() throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "uppercase:(n)"),
      to: attribute("n"), Self.derived("d", "p.n"), toOne("p", "P"))
    let store = try fixture.migrate()
    #expect(try store.table("SELECT DISTINCT ZD FROM ZP") == ["-"])
    #expect(
      fixture.latest?.plan.losses.map(\.message) == [
        "P.d is derived in another way: 1 value is dropped, and derived when Core Data saves an object."
      ])
  }

  @Test(
    arguments: [
      ("lowercase:(n)", [], true), ("lowercase:(n)", [["d"]], false),
      ("lowercase:(year)", [], false), ("lowercase:(link)", [], false),
      ("lowercase:(passing)", [], false), ("lowercase:(low)", [], true),
      ("lowercase:(far)", [], false), ("lowercase:(d)", [], false), ("lowercase:(ring)", [], false),
    ] as [(String, [[String]], Bool)])
  func `loses its values wherever nobody computes it, and they are counted`(
    expression: String, constraints: [[String]], isComputed: Bool
  ) throws {
    func model(_ d: PropertyDescription, _ constraints: [[String]] = []) -> [EntityDescription] {
      let passing = AttributeDescription(
        traits: PropertyTraits(name: "passing", isTransient: true), type: .string)
      return [
        EntityDescription(
          name: "P",
          properties: [
            attribute("n"), attribute("year", .integer16), attribute("link", .uri),
            .attribute(passing), Self.derived("low", "uppercase:(n)"), d,
            Self.derived("far", "p.n"), Self.derived("ring", "uppercase:(d)"), toOne("p", "P"),
          ], uniquenessConstraints: constraints)
      ]
    }
    for (before, wasDerived) in [(Self.derived("d", "n"), true), (attribute("d"), false)] {
      let fixture = try MigrationFixture(
        from: model(before), to: model(Self.derived("d", expression), constraints),
        rows: """
          INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZN, ZYEAR, ZLINK, ZLOW, ZD)
          VALUES (1, 1, 1, 'N', 5, 'u:', 'N', 'N')
          """)
      let store = try fixture.migrate()
      #expect(try store.table("SELECT ZD FROM ZP") == [isComputed ? "n" : "-"])
      let losses = fixture.latest?.plan.losses.map(\.message) ?? []
      #expect(losses.count == (wasDerived && isComputed ? 0 : 1))
      #expect(losses.allSatisfy { $0.contains("dropped") != isComputed })
    }
  }

  @Test func `that counts a relationship which is not there loses its values`() throws {
    let fixture = try Self.fixture(
      attribute("n"), Self.derived("d", "n.length", .integer32),
      to: attribute("n"), Self.derived("d", "nosuch.@count", .integer32),
      rows: "INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZD) VALUES (1, 1, 1, 7)")
    #expect(try fixture.migrate().table("SELECT ZD FROM ZP") == ["-"])
    #expect(fixture.latest?.plan.losses.map(\.property) == ["d"])
  }

  @Test func `that a migration left without a value gets one where it becomes an ordinary one`()
    throws
  {
    let fixture = try MigrationFixture(
      from: [
        EntityDescription(
          name: "P",
          properties: [
            attribute("n"),
            .attribute(
              AttributeDescription(
                traits: PropertyTraits(name: "d", isOptional: false), type: .string,
                derivationExpression: "p.n")), toOne("p", "P"),
          ])
      ],
      to: [
        entity(
          "P", attribute("n"), attribute("d", optional: false, default: .text("none")),
          toOne("p", "P"), Self.derived("e", "uppercase:(d)"))
      ],
      rows: "INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZD) VALUES (1, 1, 1, NULL), (2, 1, 1, 'a')")
    let store = try fixture.migrate()
    #expect(try store.table("SELECT ZD, ZE FROM ZP ORDER BY Z_PK") == ["none NONE", "a A"])
    #expect(fixture.findings == [] && fixture.destinationFindings == [])
  }

  @Test func `that is carried though its text is another now is named`() throws {
    func notes(_ other: PropertyDescription) throws -> [String] {
      let fixture = try Self.fixture(
        attribute("n"), Self.derived("d", "uppercase:(n)"),
        to: other, attribute("z"), Self.derived("d", "uppercase:(n)"))
      return try fixture.plan().notes.filter { $0.contains("P.d are the source's") }
    }
    #expect(try notes(attribute("n")) == [])
    #expect(try notes(attribute("n", optional: false, default: .text("none"))).count == 1)
    #expect(try notes(Self.derived("n", "lowercase:(z)")).count == 1)
  }
}
