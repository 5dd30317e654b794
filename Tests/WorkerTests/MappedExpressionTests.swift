import FoundationEssentials
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `The time in expressions` {
  /// What an entity mapping has beside its entities, and the policy-free ways to ask for the time.
  @Test(arguments: [
    ("attributes: { at: now() }", true),
    ("filter: at < now(), attributes: { at: $source.at }", true),
    ("attributes: { at: 'TERNARY($source.at == nil, now(), $source.at)' }", true),
    ("attributes: { at: $source.at }", false),
  ])
  func `is that of the plan, which has it where something asks`(row: String, asks: Bool) throws {
    let fixture = try MigrationFixture(
      from: [entity("Note", attribute("at", .date))],
      to: [entity("Note", attribute("at", .date), attribute("more"))],
      rows: "INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)")
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note, \(row) }
      """
    let before = Date().timeIntervalSinceReferenceDate
    let (first, second) = (try fixture.plan(mapping), try fixture.plan(mapping))
    let moments = [first, second].map { $0.mapped?.runDate }
    #expect(first.fingerprint == second.fingerprint)
    #expect(first.control.storeUUID == second.control.storeUUID)
    #expect(moments.allSatisfy { $0.map { before...(before + 60) ~= $0 } == (asks ? true : nil) })
  }
}

@Suite struct `The destination object in expressions` {
  private static func people() throws -> MigrationFixture {
    try MigrationFixture(
      from: [
        entity("Person", attribute("first"), attribute("last"), attribute("age", .integer16))
      ],
      to: [
        entity(
          "Person", attribute("a"), attribute("age", .integer32), attribute("b"),
          attribute("label", default: .text("none")), attribute("c"),
          attribute("rank", .integer16, default: .integer(7)), attribute("z", .integer64))
      ],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZFIRST, ZLAST, ZAGE)
        VALUES (1, 1, 1, 'Ada', 'L', 36), (4, 1, 1, NULL, 'Hopper', NULL)
        """)
  }

  /// Attribute mappings stand in another order than columns.
  @Test func `has what the attribute mappings before have set, and else the defaults`() throws {
    let store = try Self.people().migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Person
          destination: Person
          others: none
          attributes:
            z: $destination.rank + 1
            c: $source.first
            label: FUNCTION($source.last, "stringByAppendingString:", $destination.label)
            b: FUNCTION($destination.label, "stringByAppendingString:", "!")
            a: $destination.c
            age: $source.age
            rank: TERNARY($destination.age == nil, 0, $destination.age + 1)
      """)
    #expect(
      try store.table("SELECT Z_PK, ZZ, ZC, ZLABEL, ZB, ZA, ZAGE, ZRANK FROM ZPERSON ORDER BY 1")
        == ["1 8 Ada Lnone Lnone! Ada 36 37", "4 8 - Hoppernone Hoppernone! - - 0"])
  }

  @Test func `does not yet have what comes later`() throws {
    let store = try Self.people().migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Person
          destination: Person
          others: none
          attributes:
            a: $destination.c
            b: $destination.label
            z: $destination.age
            c: $source.first
            label: $source.last
            age: $source.age
      """)
    #expect(
      try store.table("SELECT Z_PK, ZA, ZB, ZZ, ZC, ZLABEL, ZAGE FROM ZPERSON ORDER BY 1")
        == ["1 - none - Ada L 36", "4 - none - - Hopper -"])
  }

  @Test func `has external data, inline and in a file`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Image", attribute("bytes", .binary))],
      to: [
        entity(
          "Image",
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "bytes"), type: .binary,
              allowsExternalBinaryDataStorage: true)), attribute("size", .integer64))
      ],
      rows: """
        INSERT INTO ZIMAGE (Z_PK, Z_ENT, Z_OPT, ZBYTES)
        VALUES (1, 1, 1, x'0102030405'), (2, 1, 1, NULL), (3, 1, 1, zeroblob(100001))
        """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Image
          destination: Image
          others: none
          attributes: { bytes: $source.bytes, size: $destination.bytes.length }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZBYTES, ZSIZE FROM ZIMAGE ORDER BY 1") == [
        "1 6 bytes 5", "2 - -", "3 38 bytes 100001",
      ])
  }

  /// A key path over a relationship is compiled; a message to the related object is not.
  @Test func `gives attributes of related objects the same values compiled and evaluated`() throws {
    let people = [
      entity("Person", attribute("age", .integer16), attribute("name")),
      entity("Author", attribute("pen"), parent: "Person"), entity("Editor", parent: "Person"),
    ]
    let fixture = try MigrationFixture(
      from: people + [
        entity(
          "Book", attribute("title"), toOne("by", "Person"), toOne("next", "Book"),
          toOne("pen", "Author"))
      ],
      to: people + [
        entity(
          "Book", attribute("fast"), attribute("fastAge", .integer64), attribute("fastPen"),
          attribute("slow"), attribute("slowAge", .integer64), attribute("slowPen"))
      ],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZAGE, ZNAME, ZPEN)
        VALUES (1, 3, 1, 40, 'Ada', 'x'), (2, 4, 1, NULL, NULL, NULL), (3, 2, 1, 7, 'Eve', NULL);
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZBY, ZNEXT, ZPEN)
        SELECT i, 1, 1, 'title ' || i, nullif(i % 4, 0), nullif(i % 7, 0), nullif(i % 2, 0)
          FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 56)
                SELECT i FROM n);
        """)
    func attributes(_ name: String, _ path: (String, String) -> String) -> String {
      """
            \(name): TERNARY(\(path("by", "age")) > 10, \(path("by", "name")), \(path("next", "title")))
            \(name)Age: TERNARY(\(path("by", "age")) == nil, -1, \(path("by", "age")) * 2 + 1)
            \(name)Pen: uppercase:(\(path("pen", "pen")))
      """
    }
    let fast = attributes("fast") { "$source.\($0).\($1)" }
    let slow = attributes("slow") { "FUNCTION($source.\($0), \"valueForKey:\", \"\($1)\")" }
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Person, destination: Person }
        - { source: Author, destination: Author }
        - { source: Editor, destination: Editor }
        - source: Book
          destination: Book
          others: none
          attributes:
      \(fast)
      \(slow)
      """)
    let differing = """
      SELECT count(*) FROM ZBOOK
       WHERE ZFAST IS NOT ZSLOW OR ZFASTAGE IS NOT ZSLOWAGE OR ZFASTPEN IS NOT ZSLOWPEN
      """
    #expect(try store.table(differing) == ["0"])
    #expect(
      try store.table(
        "SELECT Z_PK, ZFAST, ZFASTAGE, ZFASTPEN FROM ZBOOK WHERE Z_PK IN (1, 2, 3, 4, 7) ORDER BY 1"
      )
        == ["1 Ada 81 X", "2 title 2 -1 -", "3 title 3 15 X", "4 title 4 -1 -", "7 - 15 X"])
  }

  private static func shelves() throws -> MigrationFixture {
    try MigrationFixture(
      from: [
        entity("Book", attribute("title"), attribute("genre")),
        entity("Shelf", attribute("genre")),
      ],
      to: [
        entity(
          "Book", attribute("kind"), attribute("title"), toOne("shelf", "Shelf", inverse: "books")),
        entity("Shelf", attribute("genre"), toMany("books", "Book", inverse: "shelf")),
      ],
      rows: """
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZGENRE)
        VALUES (2, 1, 1, 'a', 'Crime'), (3, 1, 1, 'b', 'none'), (5, 1, 1, 'c', 'war'),
               (6, 1, 1, 'd', NULL);
        INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT, ZGENRE) VALUES (1, 2, 1, 'WAR'), (2, 2, 1, 'CRIME')
        """)
  }

  /// Found again by a value that only the destination has.
  @Test(arguments: [(false, 1 << 24), (false, 1), (true, 1)] as [(Bool, Int64)])
  func `has all its attributes in relationship expressions`(renumbers: Bool, shardBytes: Int64)
    throws
  {
    let fixture = try Self.shelves()
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Book
          destination: Book
          filter: title != 'b'
          attributes: { kind: "uppercase:($source.genre)" }
          relationships:
            shelf: FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "ShelfToShelf", SUBQUERY(FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:", "Shelf", "TRUEPREDICATE"), $manager.sourceContext, NO), $s, $s.genre == $destination.kind))
        - { source: Shelf, destination: Shelf }
      """, renumbers: renumbers, shardBytes: shardBytes)
    #expect(
      try store.table(
        """
        SELECT b.ZTITLE, b.ZKIND, s.ZGENRE
          FROM ZBOOK AS b LEFT JOIN ZSHELF AS s ON s.Z_PK = b.ZSHELF
         ORDER BY b.Z_PK
        """) == ["a CRIME CRIME", "c WAR WAR", "d - -"])
  }

  @Test(arguments: [
    (attribute: "$destination.objectID.absoluteString", words: "no URI yet"),
    (attribute: "$destination.title", words: "no property title"),
  ])
  func `names what it does not have`(attribute: String, words: String) throws {
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Person, destination: Person, attributes: { a: "\(attribute)" } }
      """
    let fixture = try Self.people()
    let error = #expect(throws: (any Error).self) { try fixture.migrate(mapping) }
    #expect("\(error.map(String.init(describing:)) ?? "")".contains(words))
  }

  @Test func `is not there when it is decided what a mapping takes`() throws {
    let outcome = try Self.people().outcome(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Person, destination: Person, filter: $destination.rank == 7 }
      """)
    #expect("\(outcome)".contains("there is no $destination here"))
  }
}

@Suite struct `A derived attribute of an object's own values` {
  @Test(arguments: [
    (derivation: "canonical:(name)", values: ["1 uber", "2 -", "3 x y"]),
    (derivation: "lowercase:(name)", values: ["1 über", "2 -", "3 x y"]),
    (derivation: "uppercase:(name)", values: ["1 ÜBER", "2 -", "3 X Y"]),
  ])
  func `is computed of what the mapping gives`(derivation: String, values: [String]) throws {
    let derived = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "key"), type: .string, derivationExpression: derivation))
    let fixture = try MigrationFixture(
      from: [entity("Tag", attribute("key"), attribute("title"))],
      to: [entity("Tag", derived, attribute("name"))],
      rows: """
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZKEY)
        VALUES (1, 1, 1, 'Über', 'stale'), (2, 1, 1, NULL, 'stale'), (3, 1, 1, 'X y', 'stale')
        """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Tag, destination: Tag, attributes: { name: $source.title } }
      """)
    #expect(try store.table("SELECT Z_PK, ZKEY FROM ZTAG ORDER BY 1") == values)
  }
}

@Suite struct `A source expression` {
  private static func fixture() throws -> MigrationFixture {
    try MigrationFixture(
      from: [
        entity(
          "Item", attribute("name"), attribute("price", .integer32),
          toOne("shop", "Shop", inverse: "items")),
        entity("Rare", parent: "Item"),
        entity("Shop", attribute("city"), toMany("items", "Item", inverse: "shop")),
      ],
      to: [
        entity(
          "Item", attribute("name"), attribute("price", .integer64),
          toOne("shop", "Shop", inverse: "items")),
        entity("Rare", parent: "Item"),
        entity("Shop", attribute("city"), toMany("items", "Item", inverse: "shop")),
      ],
      rows: """
        INSERT INTO ZSHOP (Z_PK, Z_ENT, Z_OPT, ZCITY) VALUES (1, 3, 1, 'Bonn'), (2, 3, 1, 'Rome');
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPRICE, ZSHOP)
        VALUES (1, 1, 1, 'a', 5, 1), (2, 1, 1, 'b', 50, 2), (3, 2, 1, 'r', 9, 2), (6, 1, 1, 'c', 7, 1),
               (9, 1, 1, 'd', 2, NULL)
        """)
  }

  private static let all =
    #"FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:", "Item", "TRUEPREDICATE"), $manager.sourceContext, NO)"#
  private static func fetch(_ entity: String, _ predicate: String) -> String {
    #"FETCH(FUNCTION($manager, "fetchRequestForSourceEntityNamed:predicateString:", "\#(entity)", "\#(predicate)"), $manager.sourceContext, NO)"#
  }

  private static func mapping(_ expression: String) -> String {
    """
    mapping-model: 1
    entity-mappings:
      - source: Item
        destination: Item
        source-expression: '\(expression)'
      - { source: Shop, destination: Shop }
    """
  }

  @Test(
    arguments: [
      (fetch("Item", "price < 10"), [1, 6, 9]),  // the plain fetch, written out
      ("SUBQUERY(\(all), $i, $i.price < 10 AND $i.shop != nil)", [1, 6]),
      (fetch("Shop", "city == \\\"Bonn\\\"") + ".@distinctUnionOfSets.items", [1, 6]),
      ("\(all)[0]", [1]),  // one object alone
      ("{\(all)[LAST], \(all)[FIRST], \(all)[FIRST]}", [1, 9]),  // any order, nothing twice
      (fetch("Item", "FALSEPREDICATE"), []),
      ("{}", []),
    ] as [(String, [Int64])])
  func `takes the objects that it yields, and their relationships`(
    expression: String, keys: [Int64]
  ) throws {
    let fixture = try Self.fixture()
    let store = try fixture.migrate(Self.mapping(expression), shardBytes: 1)
    let names = [1: "a", 6: "c", 9: "d"] as [Int64: String]
    let shops = [1: "1", 6: "1", 9: "-"] as [Int64: String]
    let expected = keys.map { "\($0) \(names[$0] ?? "") \(shops[$0] ?? "")" }
    #expect(try store.table("SELECT Z_PK, ZNAME, ZSHOP FROM ZITEM ORDER BY 1") == expected)
    let renumbered = try fixture.migrate(Self.mapping(expression), renumbers: true, shardBytes: 1)
    #expect(
      try renumbered.table("SELECT Z_PK, ZNAME, ZSHOP FROM ZITEM ORDER BY 1")
        == keys.enumerated().map {
          "\($0.offset + 1) \(names[$0.element] ?? "") \(shops[$0.element] ?? "")"
        })
  }

  @Test(arguments: [
    (fetch("Shop", "TRUEPREDICATE"), "yields objects of Shop"),
    ("5", "yields no objects"),
    (
      all.replacingOccurrences(of: ", NO)", with: ", YES)"), "yields no objects"
    ),
    ("$source.shop.items", "there is no $source here"),
    (fetch("Itme", "TRUEPREDICATE"), "Did you mean Item?"),
    (fetch("TRUEPREDICATE", "Item"), "no entity TRUEPREDICATE"),  // arguments the wrong way round
    (fetch("Item", "price <"), "predicate cannot be read"),
    (fetch("Item", "prize < 3"), "Did you mean price?"),
    (
      all.replacingOccurrences(of: "sourceContext", with: "destinationContext"),
      "nothing can be fetched from the destination"
    ),
    (
      #"FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "ShopToShop", nil)"#,
      "yields destination objects"
    ),
  ])
  func `that cannot be one is refused with its reason`(expression: String, words: String) throws {
    let outcome = try Self.fixture().outcome(Self.mapping(expression))
    guard case .needsMapping(let code, let reasons) = outcome else {
      Issue.record("\(outcome) is no refusal")
      return
    }
    #expect(code == 134_110)
    #expect(reasons.contains { $0.message.contains(words) }, "\(reasons.map(\.message))")
  }

  @Test func `that yields an object of a sub-entity fails with its key`() throws {
    let fixture = try Self.fixture()
    let error = #expect(throws: EvaluationError.self) {
      try fixture.migrate(Self.mapping(Self.fetch("Shop", "TRUEPREDICATE") + ".@unionOfSets.items"))
    }
    #expect(error?.entity == "Rare")
    #expect(error?.primaryKey == 3)
  }
}
