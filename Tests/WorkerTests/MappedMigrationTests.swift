import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A migration by a mapping model` {
  private static func measures() throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("Measure", attribute("amount", .integer32), attribute("fahrenheit", .double))],
      to: [
        entity(
          "Measure", attribute("totalCost", .integer64), attribute("celsius", .double),
          attribute("unit", default: .text("C")))
      ],
      rows: """
        INSERT INTO ZMEASURE (Z_PK, Z_ENT, Z_OPT, ZAMOUNT, ZFAHRENHEIT)
        VALUES (3, 1, 7, 10, 212.0), (5, 1, 2, NULL, 32.0), (9, 1, 1, 30, NULL)
        """)
  }

  private static let conversion = """
    mapping-model: 1
    entity-mappings:
      - source: Measure
        destination: Measure
        attributes:
          totalCost: $source.amount
          celsius: TERNARY($source.fahrenheit == nil, nil, ($source.fahrenheit - 32.0) / 1.8)
    """

  @Test func `computes attributes, keeps keys and gives defaults`() throws {
    let store = try Self.measures().migrate(Self.conversion)
    #expect(
      try store.table(
        "SELECT Z_PK, Z_OPT, ZTOTALCOST, ZCELSIUS, ZUNIT FROM ZMEASURE ORDER BY Z_PK") == [
          "3 1 10 100.0 C", "5 1 - 0.0 C", "9 1 30 - C",
        ])
    #expect(try store.table("SELECT Z_MAX FROM Z_PRIMARYKEY") == ["9"])
  }

  @Test func `gives out new keys in the order of the rows, whatever the shards`() throws {
    let fixture = try Self.measures()
    for shardBytes: Int64 in [1, 40, 1 << 24] {
      let store = try fixture.migrate(Self.conversion, renumbers: true, shardBytes: shardBytes)
      #expect(
        try store.table("SELECT Z_PK, ZTOTALCOST FROM ZMEASURE ORDER BY Z_PK") == [
          "1 10", "2 -", "3 30",
        ])
      #expect(try store.table("SELECT Z_MAX FROM Z_PRIMARYKEY") == ["3"])
    }
  }

  @Test func `is planned to the same store UUID twice, which is not the source's`() throws {
    let fixture = try Self.measures()
    let (first, second) = try (fixture.plan(Self.conversion), fixture.plan(Self.conversion))
    #expect(first == second)
    #expect(first.control.storeUUID != first.mapped?.sourceUUID)
    #expect(!first.isLightweight)
  }

  @Test func `names entity, key and property of a row that cannot be computed`() throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", .integer64))],
      to: [entity("A", attribute("y", .integer16))],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 5), (4, 1, 1, 424242)")
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - source: A
          destination: A
          attributes: { y: $source.x }
      """
    let error = #expect(throws: EvaluationError.self) { try fixture.migrate(mapping) }
    let text = "\(error.map(String.init(describing:)) ?? "")"
    #expect(text.contains("A with Z_PK 4") && text.contains("y"))
    #expect(!text.contains("424242"), "a message never holds row data")
    #expect(error?.code == 1610)
  }

  @Test(arguments: [(Int64.min, true), (Int64.min + 1, false), (0, false)])
  func `refuses the one key that stands for no object`(key: Int64, isRefused: Bool) throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", .integer64))],
      to: [entity("A", attribute("y", .integer64))],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (\(key), 1, 1, 5), (4, 1, 1, 6)")
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, attributes: { y: $source.x } }
      """
    guard isRefused else {
      let rows = try fixture.migrate(mapping).rows("SELECT Z_PK, ZY FROM ZA ORDER BY Z_PK")
      #expect(rows.map { $0.compactMap(\.integer) } == [[key, 5], [4, 6]])
      return
    }
    let error = #expect(throws: PlanError.self) { try fixture.plan(mapping) }
    #expect(
      "\(error.map(String.init(describing:)) ?? "")".contains("ZA has a row with Z_PK \(key)"))
  }

  // MARK: One source, two destinations

  private static func notes() throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("Note", attribute("title"), attribute("image"))],
      to: [
        entity("Attachment", attribute("image"), toOne("note", "Note", inverse: "attachments")),
        entity("Note", attribute("title"), toMany("attachments", "Attachment", inverse: "note")),
      ],
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZIMAGE)
        VALUES (2, 1, 1, 'a', 'p'), (3, 1, 1, 'b', NULL), (7, 1, 1, 'c', 'q')
        """)
  }

  private static let split = """
    mapping-model: 1
    entity-mappings:
      - name: NoteToAttachment
        source: Note
        destination: Attachment
        filter: image != nil
        relationships:
          note: FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "NoteToNote", $source)
      - name: NoteToNote
        source: Note
        destination: Note
    """

  @Test(arguments: [false, true])
  func `splits an entity by a filter, and links the parts`(renumbers: Bool) throws {
    let store = try Self.notes().migrate(Self.split, renumbers: renumbers, shardBytes: 1)
    #expect(
      try store.table(
        """
        SELECT a.ZIMAGE, n.ZTITLE
          FROM ZATTACHMENT AS a JOIN ZNOTE AS n ON n.Z_PK = a.ZNOTE
         ORDER BY a.Z_PK
        """) == ["p a", "q c"])
    #expect(
      try store.table("SELECT Z_PK FROM ZNOTE ORDER BY Z_PK")
        == (renumbers ? ["1", "2", "3"] : ["2", "3", "7"]))
  }

  // MARK: Relationships

  private static let shelves = """
    INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZBOX, Z_FOK_BOX)
    VALUES (1, 2, 1, 1, 3072), (2, 2, 1, 1, 2048), (3, 2, 1, 2, 2048), (4, 2, 1, NULL, NULL)
    """

  private static func boxes(_ rows: String = shelves) throws -> MigrationFixture {
    let model = { (word: String) in
      [
        entity("Box", toMany("items", "Item", inverse: "box", ordered: true), attribute(word)),
        entity("Item", toOne("box", "Box", inverse: "items")),
      ]
    }
    return try MigrationFixture(from: model("old"), to: model("new"), rows: rows)
  }

  /// Which sides have an expression, and what is in the destination all the same.
  @Test(arguments: [
    (box: "automatic", items: "automatic"),
    (box: "default", items: "automatic"),  // the to-many side alone
  ])
  func `sets a relationship from either side, in its order`(box: String, items: String) throws {
    let store = try Self.boxes().migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Box, destination: Box, relationships: { items: \(items) } }
        - { source: Item, destination: Item, relationships: { box: \(box) } }
      """, shardBytes: 1)
    #expect(
      try store.table("SELECT Z_PK, ZBOX, Z_FOK_BOX FROM ZITEM ORDER BY Z_PK") == [
        "1 1 3072", "2 1 2048", "3 2 2048", "4 - -",
      ])
  }

  @Test func `names references to objects that do not exist, and drops them`() throws {
    let model = { (word: String) in
      [
        entity("Box", toMany("items", "Item", inverse: "box"), attribute(word)),
        entity("Item", toOne("box", "Box", inverse: "items"), toMany("tags", "Tag", inverse: "of")),
        entity("Tag", toMany("of", "Item", inverse: "tags")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT, ZOLD) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b');
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZBOX)
        VALUES (1, 2, 1, 1), (2, 2, 1, 99), (3, 2, 1, 2), (4, 2, 1, NULL);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (8, 3, 1);
        INSERT INTO Z_2TAGS VALUES (1, 8), (3, 77), (66, 8)
        """)
    // A box that the filter leaves out is no damage.
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Box, destination: Box, filter: old == "a" }
        - { source: Item, destination: Item }
        - { source: Tag, destination: Tag }
      """, shardBytes: 1)
    #expect(
      try store.table("SELECT Z_PK, ZBOX FROM ZITEM ORDER BY Z_PK") == ["1 1", "2 -", "3 -", "4 -"])
    #expect(try store.table("SELECT * FROM Z_2TAGS") == ["1 8"])
    let dangling = fixture.findings.filter { $0.kind == .dangling }
      .map { "\($0.entity ?? "").\($0.property ?? "") \($0.examples)" }
    #expect(dangling.sorted() == ["Item.box [2]", "Item.tags [3]", "Tag.of [8]"])
    #expect(!fixture.findings.contains { $0.kind == .targetEntity })
  }

  @Test func `calls a reference to an object of a wrong entity damage`() throws {
    let model = { (word: String) in
      [
        entity("Base", attribute(word)), entity("Box", parent: "Base"),
        entity("Bag", parent: "Base"),
        entity("Item", toOne("box", "Box")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: """
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZBOX) VALUES (1, 4, 1, 1), (2, 4, 1, 2)
        """)
    let numbers = try Connection(
      path: fixture.folder.appending("source.sqlite").string, mode: .immutable
    ).table("SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY ORDER BY 1")
    #expect(numbers == ["1 Base", "2 Bag", "3 Box", "4 Item"])
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Base, destination: Base }
        - { source: Bag, destination: Bag }
        - { source: Box, destination: Box }
        - { source: Item, destination: Item }
      """)
    let wrong = fixture.findings.filter { $0.kind == .targetEntity }
    #expect(wrong.map(\.examples) == [[1]])
    #expect(wrong.allSatisfy(Damage.isDamage))
  }

  @Test func `gives places by key when only the to-one side is set`() throws {
    let store = try Self.boxes().migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Box, destination: Box, relationships: { items: default } }
        - { source: Item, destination: Item }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZBOX, Z_FOK_BOX FROM ZITEM ORDER BY Z_PK") == [
        "1 1 2048", "2 1 3072", "3 2 2048", "4 - -",
      ])
  }

  @Test func `writes each pair of a many-to-many relationship once`() throws {
    let model = { (word: String) in
      [
        entity("Post", toMany("tags", "Tag", inverse: "posts"), attribute(word)),
        entity("Tag", toMany("posts", "Post", inverse: "tags")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: """
        INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT) VALUES (5, 1, 1), (6, 1, 1);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (8, 2, 1), (9, 2, 1);
        INSERT INTO Z_1TAGS VALUES (5, 9), (5, 8), (6, 9)
        """)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Post, destination: Post }
        - { source: Tag, destination: Tag }
      """
    let kept = try fixture.migrate(mapping)
    #expect(try kept.table("SELECT * FROM Z_1TAGS ORDER BY 1, 2") == ["5 8", "5 9", "6 9"])
    let renumbered = try fixture.migrate(mapping, renumbers: true, shardBytes: 1)
    #expect(try renumbered.table("SELECT * FROM Z_1TAGS ORDER BY 1, 2") == ["1 1", "1 2", "2 2"])
  }

  @Test func `takes objects of the entity itself and none of its sub-entities`() throws {
    let model = { (word: String) in
      [
        entity("Car", attribute("name"), attribute(word)),
        entity("Sport", attribute("speed", .integer32), parent: "Car"),
        entity("Owner", toOne("car", "Car")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: """
        INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSPEED)
        VALUES (1, 1, 1, 'a', NULL), (2, 2, 1, 'b', 9), (3, 1, 1, 'c', NULL), (4, 2, 1, 'd', 8);
        INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZCAR, Z1_CAR) VALUES (1, 3, 1, 2, 2), (2, 3, 1, 3, 1)
        """)
    let numbers = try fixture.plan(Self.cars).mapped?.mappings.map(\.sourceNumber)
    try #require(numbers == [1, 2, 3], "the fixture's rows go by these entity numbers")
    let store = try fixture.migrate(Self.cars, shardBytes: 1)
    #expect(
      try store.table("SELECT Z_PK, Z_ENT, ZNAME, ZSPEED FROM ZCAR ORDER BY Z_PK") == [
        "1 1 a -", "2 2 b 9", "3 1 c -", "4 2 d 8",
      ])
    #expect(
      try store.table("SELECT Z_PK, ZCAR, Z1_CAR FROM ZOWNER ORDER BY Z_PK") == ["1 2 2", "2 3 1"])
  }

  private static let cars = """
    mapping-model: 1
    entity-mappings:
      - { source: Car, destination: Car }
      - { source: Sport, destination: Sport }
      - { source: Owner, destination: Owner }
    """

  @Test func `evaluates what has no known form, and lets nil lead to nothing`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("City", toOne("country", "Country", inverse: "cities")),
        entity("Continent", toMany("countries", "Country", inverse: "continent")),
        entity(
          "Country", toOne("continent", "Continent", inverse: "countries"),
          toMany("cities", "City", inverse: "country")),
      ],
      to: [
        entity("City", toOne("continent", "Continent", inverse: "cities")),
        entity("Continent", toMany("cities", "City", inverse: "continent")),
      ],
      rows: """
        INSERT INTO ZCONTINENT (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1);
        INSERT INTO ZCOUNTRY (Z_PK, Z_ENT, Z_OPT, ZCONTINENT) VALUES (1, 3, 1, 2), (2, 3, 1, NULL);
        INSERT INTO ZCITY (Z_PK, Z_ENT, Z_OPT, ZCOUNTRY)
        VALUES (1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, NULL)
        """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: City
          destination: City
          relationships:
            continent: FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "ContinentToContinent", $source.country.continent)
        - { source: Continent, destination: Continent }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZCONTINENT FROM ZCITY ORDER BY Z_PK") == ["1 2", "2 -", "3 -"])
  }

  // MARK: Validation

  @Test func `finds everything that Core Data's validation does, with its codes`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity(
          "A", attribute("name"), attribute("count", .integer32), attribute("day", .date),
          toMany("parts", "B", inverse: "whole")),
        entity("B", toOne("whole", "A", inverse: "parts")),
      ],
      to: [
        entity(
          "A",
          attribute(
            "name", optional: false, .minimumLength(2), .maximumLength(3), .matches("[a-c]+")),
          attribute("count", .integer32, .minimum(1), .maximum(5)),
          attribute("day", .date, .minimum(0), .maximum(10)),
          toMany("parts", "B", inverse: "whole", minimum: 2, maximum: 2)),
        entity("B", toOne("whole", "A", inverse: "parts", optional: false)),
      ],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME, ZCOUNT, ZDAY) VALUES
          (1, 1, 1, 'abc', 3, 5), (2, 1, 1, NULL, 0, -1), (3, 1, 1, 'a', 6, 11),
          (4, 1, 1, 'aaaa', NULL, NULL), (5, 1, 1, 'xyz', 1, 0);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZWHOLE) VALUES
          (1, 2, 1, 1), (2, 2, 1, 1), (3, 2, 1, 2), (4, 2, 1, 3), (5, 2, 1, 3), (6, 2, 1, 3),
          (7, 2, 1, NULL)
        """)
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A }
        - { source: B, destination: B }
      """)
    let found = fixture.findings.compactMap { finding in
      finding.code.map { "\($0) \(finding.property ?? "") \(finding.examples)" }
    }.sorted()
    #expect(
      found == [
        "1570 name [2]", "1570 whole [7]", "1580 parts [2]", "1590 parts [3]",
        "1610 count [3]", "1620 count [2]", "1630 day [3]", "1640 day [2]",
        "1660 name [4]", "1670 name [3]", "1680 name [5]",
      ])
  }

  @Test func `notes rows that a pattern could not judge`() throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("name"))],
      to: [entity("A", attribute("name", .string, .matches("(a|a|aa)+b")), attribute("new"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES
          (1, 1, 1, 'aab'), (2, 1, 1, 'aac'), (3, 1, 1, '\(String(repeating: "a", count: 60))')
        """)
    _ = try fixture.migrate(
      "mapping-model: 1\nentity-mappings: [{ source: A, destination: A }]\n")
    #expect(fixture.findings.first { $0.code == 1680 }?.examples == [2])
    let note = fixture.findings.first { $0.kind == .note }
    #expect(note?.property == "name" && note?.count == 1 && note?.examples == [3])
  }
}
