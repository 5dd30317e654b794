import Foundation
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite(.serialized) struct `An entity migration policy` {
  // MARK: What policies are written for

  private static func books() throws -> MigrationFixture {
    let fixture = try MigrationFixture(
      from: [entity("Book", attribute("title"), attribute("authorName"))],
      to: [
        entity(
          "Author", attribute("name"), attribute("works", .integer16),
          attribute("kind", default: .text("person")), toMany("books", "Book", inverse: "author")),
        entity("Book", attribute("title"), toOne("author", "Author", inverse: "books")),
      ],
      rows: """
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZAUTHORNAME)
        VALUES (2, 1, 1, 'Emma', 'Austen'), (3, 1, 1, 'Ivanhoe', 'Scott'),
               (5, 1, 1, 'Persuasion', 'Austen'), (8, 1, 1, 'Beowulf', NULL)
        """)
    fixture.policies = PolicyRegistry(["AuthorPolicy": AuthorPolicy.self])
    return fixture
  }

  @Test func `makes related objects of a column, one for each value`() throws {
    let fixture = try Self.books()
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Book, destination: Book, policy: Library.AuthorPolicy }
      """)
    #expect(
      try store.table(
        """
        SELECT b.Z_PK, b.ZTITLE, a.Z_PK, a.ZNAME, a.ZWORKS, a.ZKIND
          FROM ZBOOK AS b LEFT JOIN ZAUTHOR AS a ON a.Z_PK = b.ZAUTHOR
         ORDER BY b.Z_PK
        """) == [
          "1 Emma 1 Austen 2 person", "2 Ivanhoe 2 Scott 1 person",
          "3 Persuasion 1 Austen 2 person", "4 Beowulf - - - -",
        ])
    #expect(try store.table("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY") == ["Author 2", "Book 4"])
    #expect(fixture.findings.isEmpty)
  }

  /// More objects than are kept as such at a time.
  @Test(arguments: [10, 700])
  func `finds the transient values that it gave its objects, in the next stage, too`(count: Int)
    throws
  {
    let scratch = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "scratch", isTransient: true), type: .string))
    let fixture = try MigrationFixture(
      from: [entity("Item", attribute("number", .integer32)), entity("Other")],
      to: [
        entity(
          "Item", attribute("number", .integer32), attribute("title"), attribute("seen"), scratch),
        entity("Other", attribute("notes", .integer32)),
      ],
      rows: """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNUMBER) SELECT i, 1, 1, i FROM n;
        INSERT INTO ZOTHER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)
        """)
    fixture.policies = PolicyRegistry([
      "ScratchPolicy": ScratchPolicy.self, "ScratchReader": ScratchReader.self,
    ])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Item, destination: Item, policy: ScratchPolicy }
        - { source: Other, destination: Other, policy: ScratchReader }
      """)
    #expect(
      try store.table(
        """
        SELECT sum(ZTITLE = 'note ' || ZNUMBER), sum(ZSEEN = 'note ' || ZNUMBER),
               (SELECT ZNOTES FROM ZOTHER)
          FROM ZITEM
        """) == ["\(count) \(count) \(count)"])
  }

  /// A text that Foundation cannot read, or would change, is no nil.
  @Test(arguments: [
    ("https://example.org/a%20b?c#d", true), ("mailto:a@example.org", true), ("a/b", true),
    ("", false),
    ("not a url", false), ("http://[::1", false), ("http://exa mple/ü", false),
  ])
  func `copies a URI as it is, or says that it cannot`(text: String, isCopied: Bool) throws {
    let fixture = try MigrationFixture(
      from: [entity("Item", attribute("link", .uri))],
      to: [entity("Item", attribute("link", .uri), attribute("other"))],
      rows: "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZLINK) VALUES (1, 1, 1, '\(text)')")
    fixture.policies = PolicyRegistry(["CopyingPolicy": CopyingPolicy.self])
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Item, destination: Item, policy: CopyingPolicy }
      """
    if isCopied {
      let store = try fixture.migrate(mapping)
      #expect(try store.rows("SELECT ZLINK FROM ZITEM") == [[.text(text)]])
    } else {
      let failure = #expect(throws: PolicyFailure.self) { _ = try fixture.migrate(mapping) }
      #expect(failure.map { "\($0.error)".contains("link") } == true)
    }
  }

  @Test func `merges many objects into one, drops some, and relationships follow`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Note", attribute("title"), toMany("tags", "Tag", inverse: "notes")),
        entity("Tag", attribute("name"), toMany("notes", "Note", inverse: "tags")),
      ],
      to: [
        entity("Note", attribute("title"), toMany("tags", "Tag", inverse: "notes")),
        entity(
          "Tag", attribute("name"), attribute("color"), toMany("notes", "Note", inverse: "tags")),
      ],
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b');
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME)
        VALUES (1, 2, 1, 'Red'), (2, 2, 1, 'red'), (3, 2, 1, ''), (4, 2, 1, 'blue');
        INSERT INTO Z_1TAGS (Z_1NOTES, Z_2TAGS) VALUES (1, 1), (1, 2), (1, 3), (2, 2), (2, 4)
        """)
    fixture.policies = PolicyRegistry(["TagPolicy": TagPolicy.self])
    // Notes and their tags are mapped by Core Data's own default.
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note }
        - { source: Tag, destination: Tag, policy: TagPolicy }
      """)
    #expect(
      try store.table(
        """
        SELECT n.Z_PK, n.ZTITLE, t.ZNAME
          FROM Z_1TAGS AS j JOIN ZNOTE AS n ON n.Z_PK = j.Z_1NOTES JOIN ZTAG AS t ON t.Z_PK = j.Z_2TAGS
         ORDER BY n.Z_PK, t.ZNAME
        """) == ["1 a red", "2 b blue", "2 b red"])
    #expect(try store.table("SELECT count(*) FROM ZTAG") == ["2"])
  }

  @Test func `links by key, and reads what other mappings made`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Person", attribute("name"), attribute("number", .integer32)),
        entity("Pet", attribute("name"), attribute("ownerNumber", .integer32)),
      ],
      to: [
        entity("Person", attribute("name"), toMany("pets", "Pet", inverse: "owner")),
        entity(
          "Pet", attribute("name"), attribute("label"), toOne("owner", "Person", inverse: "pets")),
      ],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER)
        VALUES (7, 1, 1, 'Ann', 100), (9, 1, 1, 'Bob', 200);
        INSERT INTO ZPET (Z_PK, Z_ENT, Z_OPT, ZNAME, ZOWNERNUMBER)
        VALUES (1, 2, 1, 'Rex', 200), (2, 2, 1, 'Tom', 100), (3, 2, 1, 'Stray', 5)
        """)
    fixture.policies = PolicyRegistry(["OwnerPolicy": OwnerPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Pet, destination: Pet, policy: OwnerPolicy }
        - { source: Person, destination: Person }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZNAME, ZOWNER, ZLABEL FROM ZPET ORDER BY Z_PK") == [
        "1 Rex 9 Bob's Rex", "2 Tom 7 Ann's Tom", "3 Stray - -",
      ])
  }

  /// Books that come to stand on a shelf.
  private static func shelves(rows: String) throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("Book", attribute("title"))],
      to: [
        entity(
          "Book", attribute("title"), attribute("siblings", .integer32),
          toOne("shelf", "Shelf", inverse: "books")),
        entity(
          "Shelf", attribute("width", .integer16),
          toMany("books", "Book", inverse: "shelf", ordered: true)),
      ],
      rows: rows)
  }

  @Test func `gathers more members than stay at hand, in order, and passes on what it knows`()
    throws
  {
    let fixture = try Self.shelves(
      rows: """
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE)
        SELECT value, 1, 1, 'book ' || value
          FROM (WITH RECURSIVE n(value) AS
                  (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 1000)
                SELECT value FROM n)
        """)
    fixture.policies = PolicyRegistry(["ShelfPolicy": ShelfPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Book, destination: Book, policy: ShelfPolicy }
      """)
    #expect(
      try store.table(
        """
        SELECT count(*), count(DISTINCT ZSHELF), min(ZSIBLINGS), max(ZSIBLINGS),
               sum(Z_FOK_SHELF = 1024 + 1024 * Z_PK), sum(ZTITLE = 'book ' || Z_PK)
          FROM ZBOOK
        """) == ["1000 1 1000 1000 1000 1000"])
    #expect(try store.table("SELECT Z_PK, ZWIDTH FROM ZSHELF") == ["1 7"])
  }

  @Test func `tells expressions what it knows, by the manager's userInfo`() throws {
    let fixture = try Self.shelves(
      rows: "INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b')")
    fixture.policies = PolicyRegistry(["ShelfPolicy": ShelfPolicy.self, "Begin": BeginPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Book, destination: Book, policy: Begin, attributes: { siblings: $manager.userInfo.start + 1 } }
      """)
    #expect(
      try store.table("SELECT ZTITLE, ZSIBLINGS FROM ZBOOK ORDER BY Z_PK") == ["a 42", "b 42"])
  }

  @Test func `passes on what it changes, whatever others leave as it was`() throws {
    let model = { (extra: [PropertyDescription]) in
      ["A", "B"].map { name in
        EntityDescription(
          name: EntityName(name), superentity: nil, properties: [attribute("x")] + extra)
      }
    }
    let fixture = try MigrationFixture(
      from: model([]), to: model([attribute("y")]),
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 'a');
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 2, 1, 'b')
        """)
    fixture.policies = PolicyRegistry(["Counting": CountingPolicy.self])
    CountingPolicy.seen = []
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, policy: Counting }
        - { source: B, destination: B, policy: Counting }
      """)
    #expect(CountingPolicy.seen == ["AToA linked", "BToB linked"])
  }

  // MARK: Without code of its own

  @Test(arguments: [1 as Int64, 1 << 24])
  func `that overrides nothing changes nothing but the keys`(shardBytes: Int64) throws {
    let models = [
      entity("Note", attribute("title"), toMany("tags", "Tag", inverse: "notes", ordered: true)),
      entity(
        "Tag", attribute("name"), toMany("notes", "Note", inverse: "tags"),
        toOne("parent", "Tag", inverse: "children"),
        toMany("children", "Tag", inverse: "parent", ordered: true)),
    ]
    let next = [
      entity(
        "Note", attribute("title"), attribute("words", .integer32),
        toMany("tags", "Tag", inverse: "notes", ordered: true)),
      models[1],
    ]
    let fixture = try MigrationFixture(
      from: models, to: next,
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (3, 1, 1, 'a'), (4, 1, 1, 'b');
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPARENT, Z_FOK_PARENT)
        VALUES (1, 2, 1, 'x', NULL, NULL), (5, 2, 1, 'y', 1, 3072), (6, 2, 1, 'z', 1, 2048);
        INSERT INTO Z_1TAGS (Z_1NOTES, Z_2TAGS, Z_FOK_2TAGS)
        VALUES (3, 1, 2048), (3, 6, 3072), (3, 5, 4096), (4, 5, 2048)
        """)
    fixture.policies = PolicyRegistry(["Plain": EntityMigrationPolicy.self])
    func mapping(_ policy: String) -> String {
      """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note\(policy), attributes: { words: $source.title.length } }
        - { source: Tag, destination: Tag\(policy), filter: name != 'w' }
      """
    }
    let without = try fixture.migrate(mapping(""), renumbers: true, shardBytes: shardBytes)
    let with = try fixture.migrate(mapping(", policy: Plain"), shardBytes: shardBytes)
    for table in ["ZNOTE", "ZTAG", "Z_1TAGS", "Z_PRIMARYKEY"] {
      let sql = "SELECT * FROM \(table) ORDER BY 1, 2"
      #expect(try with.table(sql) == without.table(sql), "\(table)")
      #expect(try !with.table(sql).isEmpty)
    }
  }

  @Test(arguments: ["", ", policy: Plain"], ["", ", policy: Plain"])
  func `or none, the first mapping that takes an object is met first`(first: String, second: String)
    throws
  {
    let models = { (word: String) in
      [entity("Box", attribute(word)), entity("Item", toOne("box", "Box"))]
    }
    let fixture = try MigrationFixture(
      from: models("old"), to: models("new"),
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZBOX) VALUES (1, 2, 1, 2)
        """)
    fixture.policies = PolicyRegistry(["Plain": EntityMigrationPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { name: One, source: Box, destination: Box\(first), attributes: { new: "'one'" } }
        - { name: Two, source: Box, destination: Box\(second), attributes: { new: "'two'" } }
        - { source: Item, destination: Item }
      """, renumbers: true)
    let met = "SELECT ZNEW FROM ZBOX AS b JOIN ZITEM AS i ON i.ZBOX = b.Z_PK"
    #expect(try store.table(met) == ["one"])
    #expect(try store.table("SELECT count(*) FROM ZBOX") == ["4"])
  }

  @Test func `runs its hooks in Core Data's order, for every kind of mapping`() throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", .integer32)), entity("Gone", attribute("x"))],
      to: [entity("A", attribute("x", .integer32), attribute("y")), entity("New", attribute("x"))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 1), (4, 1, 1, 2);
        INSERT INTO ZGONE (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 2, 1, 'x')
        """)
    fixture.policies = PolicyRegistry(["Recorder": Recorder.self])
    Recorder.calls = []
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { name: first, source: A, destination: A, policy: Recorder }
        - { name: added, destination: New, policy: Recorder }
        - { name: removed, type: remove, source: Gone, policy: Recorder }
      """)
    #expect(
      Recorder.calls == [
        "first begin", "first create 1", "first create 4", "first endCreation",
        "added begin", "added endCreation", "removed begin", "removed endCreation",
        "first resume", "first link 1", "first link 2", "first endLinks",
        "added resume", "added endLinks", "removed resume", "removed endLinks",
        "first resume", "first validate", "first end", "added resume", "added validate",
        "added end", "removed resume", "removed validate", "removed end",
      ])
  }

  // MARK: Errors

  private static func failing(_ way: String) throws -> any Error {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("x", .integer32))],
      to: [entity("A", attribute("x", .integer32), attribute("y"))],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 1), (4, 1, 1, 2)")
    fixture.policies = PolicyRegistry(["Failing": FailingPolicy.self])
    FailingPolicy.way = way
    do {
      _ = try fixture.migrate(
        """
        mapping-model: 1
        entity-mappings:
          - { source: A, destination: A, policy: Failing }
        """)
    } catch {
      return error
    }
    throw CocoaError(.featureUnsupported)
  }

  @Test(arguments: ["throw", "cancel", "validation"])
  func `fails with its own error`(way: String) throws {
    let error = try Self.failing(way)
    let failure = try #require(error as? PolicyFailure)
    #expect(failure.error as? TooBad == TooBad())
    #expect(failure.isCancellation == (way == "cancel"))
    #expect(failure.primaryKey == (way == "validation" ? nil : 4))
    #expect(failure.mapping == "AToA" && failure.policy == "Failing")
  }

  @Test(arguments: [
    ("key", "nonsense"), ("type", "x"), ("value", "x"), ("range", "x"), ("source", "source"),
    ("entity", "Nobody"), ("late", "inserted"),
  ])
  func `is told what it did wrong, and where`(way: String, word: String) throws {
    let error = try Self.failing(way)
    let failure = try #require(error as? PolicyFailure)
    #expect(failure.error is PolicyError)
    #expect("\(failure.error)".contains(word))
    if way != "late" { #expect(failure.primaryKey == 4 && failure.entity == "A") }
  }

  @Test func `that is not registered stops the plan`() throws {
    let fixture = try Self.books()
    fixture.policies = PolicyRegistry()
    let outcome = try fixture.outcome(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Book, destination: Book, policy: AuthorPolicy }
      """)
    guard case .needsMapping(134_170, let reasons) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(reasons.contains { $0.message.contains("AuthorPolicy") })
  }
}
