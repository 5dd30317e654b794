import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@testable import GodwitPlanning

/// What is counted, as `kind entity.property count keys`.
private func text(_ losses: [Loss]?) -> [String] {
  (losses ?? []).map { loss in
    let place = [loss.entity, loss.property].compactMap { $0 }.joined(separator: ".")
    let keys = loss.primaryKeys.map(String.init).joined(separator: ",")
    return "\(loss.kind.rawValue) \(place) \(loss.count) \(keys)"
  }
}

@Suite struct `Losses of an inferred migration` {
  @Test func `are none where nothing is dropped`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Trade", attribute("amount", .integer16), toOne("day", "Day")), entity("Day")],
      to: [
        entity("Trade", attribute("amount", .integer64), toOne("day", "Day"), attribute("note")),
        entity("Day"),
      ],
      rows: """
        INSERT INTO ZTRADE (Z_PK, Z_ENT, Z_OPT, ZAMOUNT, ZDAY) VALUES (1, 2, 1, 7, 1);
        INSERT INTO ZDAY (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)
        """)
    #expect(try fixture.plan().losses == [])
  }

  @Test func `name dropped entities with their attributes, and dropped attributes`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Draft", attribute("scribble"), attribute("weight", .double)),
        entity("Empty", attribute("nothing")),
        entity("Note", attribute("text"), attribute("mood"), attribute("unused")),
        entity("Memo", attribute("day", .date), parent: "Note"),
      ],
      to: [entity("Note", attribute("text"))],
      rows: """
        INSERT INTO ZDRAFT (Z_PK, Z_ENT, Z_OPT, ZSCRIBBLE, ZWEIGHT)
        VALUES (1, 1, 1, 'a', NULL), (4, 1, 1, 'b', 1.5);
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTEXT, ZMOOD, ZDAY)
        VALUES (1, 3, 1, 'x', '', NULL), (2, 3, 1, 'x', NULL, NULL), (3, 4, 1, 'x', 'y', 7)
        """)
    let losses = try fixture.plan().losses
    #expect(
      text(losses) == ["entity Draft 2 1,4", "entity Memo 1 3", "attribute Note.mood 1 1"])
    #expect(
      losses.map(\.message) == [
        "Draft has no successor: 2 objects are dropped, with the attributes scribble (2 values) "
          + "and weight (1 value).",
        "Memo has no successor: 1 object is dropped, with the attributes mood (1 value), text "
          + "(1 value), unused (0 values) and day (1 value).",
        "Note.mood has no successor: 1 value is dropped.",
      ])
  }

  @Test func `of one relationship for two reasons have the order of what is said of them`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("A", toOne("x", "B", inverse: "y")), entity("B", toMany("y", "A", inverse: "x")),
        entity("C", parent: "B"),
      ],
      to: [entity("A"), entity("B")],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX, Z2_X) VALUES (1, 1, 1, 1, 2), (2, 1, 1, 2, 3);
        INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1)
        """)
    #expect(
      try fixture.plan().losses.map(\.message) == [
        "C has no successor: 1 object is dropped.",
        "A.x has no successor: 1 reference is dropped.",
        "A.x has no successor, nor has its inverse y: 1 reference is dropped.",
      ])
  }

  @Test func `name tables and columns that are none of the model's, with what is in them`() throws {
    let model = [entity("A", attribute("n", .integer64), toMany("bs", "B")), entity("B")]
    let rows = """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 7), (2, 1, 1, 8);
      CREATE TABLE ZOWN (x); INSERT INTO ZOWN VALUES (1), (NULL);
      CREATE TABLE Z_9OLD (a, b); CREATE TABLE Own (x); INSERT INTO Own VALUES (1);
      CREATE VIRTUAL TABLE Z_A_place USING rtree (k, x0, x1);
      INSERT INTO Z_A_place VALUES (1, 0, 0);
      ALTER TABLE ZA ADD COLUMN ZOTHER; ALTER TABLE ZA ADD COLUMN ZEMPTY;
      UPDATE ZA SET ZOTHER = 5 WHERE Z_PK = 2
      """
    let fixture = try MigrationFixture(
      from: model, to: model + [entity("C")], rows: rows)
    let plan = try fixture.plan()
    #expect(text(plan.losses) == ["column ZA.ZOTHER 1 ", "table ZOWN 2 "])
    #expect(plan.foreignTables.map(\.name) == ["Own"])
    #expect(plan.notes.count { $0.contains("The virtual table Z_A_place is not carried") } == 1)
  }

  @Test(arguments: [
    ("CREATE TABLE zfoo (x)", "zfoo"),  // SQLite compares names without regard to case
    ("CREATE TABLE Own (x); CREATE INDEX z_foo_BYn ON Own (x)", "z_foo_BYn"),
  ])
  func `never take a name that the destination needs from an application`(
    sql: String, name: String
  ) throws {
    var foo = entity("Foo", attribute("n", .integer64))
    foo.fetchIndexes = [.init(name: "byN", elements: [.init(propertyName: "n")])]
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("n"))], to: [entity("A", attribute("n")), foo], rows: sql)
    let error = try #require(throws: PlanError.self) { try fixture.plan() }
    guard case .unsupported(_, let what) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(what.contains(" \(name) is none of the model's"))
  }

  @Test(arguments: [
    // Values that fit stay, whatever the type's width.
    (AttributeType.integer64, AttributeType.integer16, ["narrowing A.n 2 2,3"]),
    (.integer64, .boolean, ["narrowing A.n 3 1,2,3"]),
    (.integer64, .double, ["narrowing A.n 1 3"]),  // 2⁵³ + 1
    (.integer64, .decimal, []),
    (.integer32, .double, []),
  ])
  func `count numbers that change`(old: AttributeType, new: AttributeType, expected: [String])
    throws
  {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("n", old))], to: [entity("A", attribute("n", new))],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN)
        VALUES (1, 1, 1, 7), (2, 1, 1, 40000), (3, 1, 1, 9007199254740993), (4, 1, 1, NULL),
               (5, 1, 1, 1)
        """)
    #expect(text(try fixture.plan().losses) == expected)
  }

  @Test func `count references by what becomes of both ends`() throws {
    func models(_ isOld: Bool) -> [EntityDescription] {
      [
        entity("Folder", toMany("items", "Item", inverse: "folder")),
        entity(
          "Item", toOne("folder", "Folder", inverse: "items"),
          toMany("tags", "Tag", inverse: "items")),
        entity("Tag", toMany("items", "Item", inverse: "tags")),
      ] + (isOld ? [entity("Shared", parent: "Folder")] : [])
    }
    let rows = """
      INSERT INTO ZFOLDER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 2, 1);
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZFOLDER)
      VALUES (1, 3, 1, 1), (2, 3, 1, 2), (3, 3, 1, 2), (4, 3, 1, NULL);
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1), (2, 4, 1);
      INSERT INTO Z_3TAGS (Z_3ITEMS, Z_4TAGS) VALUES (1, 1), (1, 2), (3, 2)
      """
    let dropped = try MigrationFixture(from: models(true), to: models(false), rows: rows)
    #expect(
      text(try dropped.plan().losses) == ["entity Shared 1 2", "reference Item.folder 2 2,3"])
    // Without either side, pairs are lost once; with one side they are all kept.
    let bare = [
      entity("Folder"), entity("Item"), entity("Tag"), entity("Shared", parent: "Folder"),
    ]
    let both = try MigrationFixture(from: models(true), to: bare, rows: rows)
    #expect(
      text(try both.plan().losses) == [
        "relationship Item.folder 3 1,2,3", "relationship Item.tags 3 1,3",
      ])
  }

  @Test func `are a reason to refuse, each by itself, where the request says so`() throws {
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("n"), attribute("m"))], to: [entity("A")],
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN, ZM) VALUES (3, 1, 1, 'x', 'y')")
    guard case .refused(let code, let reasons) = try fixture.outcome(losses: .refuse) else {
      Issue.record("not refused")
      return
    }
    #expect(code == 134_110)
    #expect(reasons.map(\.property) == ["m", "n"])
    #expect(reasons.allSatisfy { $0.reason == "lost-attribute" && $0.entity == "A" })
    #expect(reasons.allSatisfy { $0.count == 1 && $0.primaryKeys == [3] })
  }

  @Test func `say what becomes of values where the attribute becomes derived`() throws {
    func model(_ name: PropertyDescription, _ count: PropertyDescription) -> [EntityDescription] {
      [
        entity("Dept", attribute("name"), count, toMany("emps", "Emp", inverse: "dept")),
        entity("Emp", name, toOne("dept", "Dept", inverse: "emps")),
      ]
    }
    func derived(_ name: String, _ type: AttributeType, _ expression: String)
      -> PropertyDescription
    {
      .attribute(
        AttributeDescription(
          traits: PropertyTraits(name: name), type: type, derivationExpression: expression))
    }
    let fixture = try MigrationFixture(
      from: model(attribute("n"), attribute("size", .integer32)),
      to: model(
        derived("n", .string, "dept.name"), derived("size", .integer32, "emps.@count")),
      rows: """
        INSERT INTO ZDEPT (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSIZE) VALUES (1, 1, 1, 'D', 7);
        INSERT INTO ZEMP (Z_PK, Z_ENT, Z_OPT, ZN, ZDEPT) VALUES (1, 2, 1, 'x', 1), (2, 2, 1, 'y', 1)
        """)
    #expect(
      try fixture.plan().losses.map(\.message) == [
        "Dept.size becomes derived: 1 value is replaced by what the derivation gives.",
        "Emp.n becomes derived: 2 values are dropped, and derived when Core Data saves an object.",
      ])
  }

  @Test func `of a chain are those of the whole way`() throws {
    func model(_ properties: PropertyDescription...) throws -> EntityHierarchy {
      try EntityHierarchy(
        ManagedObjectModel(entities: [EntityDescription(name: "A", properties: properties)]))
    }
    let fixture = try MigrationFixture(
      from: [entity("A", attribute("n", .integer32), attribute("m"))], to: [entity("A")],
      rows: """
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZN, ZM)
        VALUES (1, 1, 1, 40000, NULL), (2, 1, 1, 7, 'y')
        """)
    let store = try SourceStore(
      path: fixture.folder.appending("source.sqlite"),
      snapshotFolder: fixture.folder.appending("snapshot"))
    // A narrow type on the way changes a number for good; what was added on the way is not a loss.
    let versions = [
      try model(attribute("n", .integer32), attribute("m")),
      try model(
        attribute("n", .integer16), attribute("m", optional: false, default: .text("none")),
        attribute("added", default: .text("new"))),
      try model(attribute("n", .integer32)),
    ]
    let losses = try LossCounter.losses(of: store, over: versions)
    #expect(
      text(losses) == [
        "attribute A.m 1 2", "narrowing A.n 1 1",
      ])
    #expect(
      losses?.last?.message == "A.n becomes Integer 32: 1 number changes, because Integer 16, its "
        + "type on the way, cannot hold it.")
  }
}

@Suite struct `Losses of a mapping model` {
  private let source = [
    entity(
      "Note", attribute("text"), attribute("mood"), attribute("stars", .integer32),
      toOne("author", "Person", inverse: "notes"), toOne("draft", "Draft")),
    entity("Draft", attribute("scribble")),
    entity("Person", attribute("name"), toMany("notes", "Note", inverse: "author")),
  ]
  private let destination = [
    entity("Note", attribute("text"), attribute("stars", .integer16)),
    entity("Person", attribute("name")),
  ]
  private let rows = """
    INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTEXT, ZMOOD, ZSTARS, ZAUTHOR, ZDRAFT)
    VALUES (1, 2, 1, 'a', 'b', 40000, 1, 1), (2, 2, 1, 'a', NULL, 7, NULL, NULL);
    INSERT INTO ZDRAFT (Z_PK, Z_ENT, Z_OPT, ZSCRIBBLE) VALUES (1, 1, 1, 'x');
    INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 3, 1, 'n')
    """

  @Test func `are what no mapping takes and no expression reads`() throws {
    let fixture = try MigrationFixture(from: source, to: destination, rows: rows)
    let plan = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note }
        - { source: Person, destination: Person }
      """)
    #expect(
      text(plan.losses) == [
        "entity Draft 1 1", "attribute Note.mood 1 1", "narrowing Note.stars 1 1",
        "relationship Note.author 1 1", "relationship Note.draft 1 1",
      ])
  }

  @Test func `are none of what a row reads, of whatever object, and not what a filter reads`()
    throws
  {
    let fixture = try MigrationFixture(from: source, to: destination, rows: rows)
    let plan = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - source: Note
          destination: Note
          attributes:
            text: FUNCTION($source.mood, "stringByAppendingString:", $source.draft.scribble)
            stars: "1"
        - source: Person
          destination: Person
          filter: notes.@count >= 0
      """)
    #expect(
      text(plan.losses) == [
        "entity Draft 1 1", "attribute Note.stars 2 1,2", "attribute Note.text 2 1,2",
        "relationship Note.author 1 1", "reference Note.draft 1 1",
      ])
  }
}

@Suite struct `References that a mapping model has no room for` {
  private let rows = """
    INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZBOX) VALUES (1, 2, 1, 4), (2, 2, 1, 4), (3, 2, 1, 5);
    INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (4, 1, 1), (5, 1, 1)
    """
  private let mapping = """
    mapping-model: 1
    entity-mappings:
      - { source: Box, destination: Box }
      - { source: Part, destination: Part }
    """

  @Test(arguments: [Int64(1), 1 << 20])
  func `are counted where a to-one without inverse becomes to-many`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [entity("Box"), entity("Part", toOne("box", "Box"))],
      to: [entity("Box"), entity("Part", toMany("box", "Box"))], rows: rows)
    let store = try fixture.migrate(mapping, shardBytes: shardBytes)
    #expect(try store.table("SELECT count(*) FROM ZBOX WHERE Z2BOX IS NOT NULL") == ["2"])
    #expect(text(fixture.droppedByMapping) == ["shared-target Part.box 1 4"])
  }

  @Test(arguments: [Int64(1), 1 << 20])
  func `are counted where a to-many becomes to-one`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Box", toMany("parts", "Part", inverse: "box")),
        entity("Part", toOne("box", "Box", inverse: "parts")),
      ],
      to: [
        entity("Box", toOne("parts", "Part", inverse: "box")),
        entity("Part", toOne("box", "Box", inverse: "parts")),
      ], rows: rows)
    let store = try fixture.migrate(mapping, shardBytes: shardBytes)
    let left = try store.table("SELECT count(*) FROM ZPART WHERE ZBOX IS NOT NULL")
    #expect(left == ["2"])
    #expect(text(fixture.droppedByMapping) == ["shared-target Box.parts 1 4"])
  }
}

@Suite struct `A store without an entity of the models` {
  @Test func `is refused as foreign`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Account")], to: [entity("Recipe")], rows: "SELECT 1")
    // Its own version is among the models that are given: then nobody was mistaken.
    #expect(throws: Never.self) { try fixture.plan() }
    guard case .refused(let code, let reasons) = try fixture.outcome(givesSource: false) else {
      Issue.record("not refused")
      return
    }
    #expect(code == 134_020)
    #expect(reasons.map(\.reason) == ["foreign-store"])
  }

  /// One that is for its version makes it none.
  @Test(arguments: [("Account", nil), ("Order", "mapping-mismatch")])
  func `is refused as foreign where no mapping model is for its version`(
    source: String, besides: String?
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Account")], to: [entity("Recipe")], rows: "SELECT 1")
    let outcome = try fixture.outcome(
      """
      mapping-model: 1
      entity-mappings:
        - { source: \(source), destination: Recipe }
      """, givesSource: false)
    switch (outcome, besides) {
    case (.migrate, nil): break
    case (.refused(let code, let reasons), let besides?):
      #expect(code == 134_020)
      #expect(reasons.map(\.reason) == ["foreign-store", besides])
    default: Issue.record("\(outcome)")
    }
  }

  @Test func `is not foreign where a renaming identifier leads to it`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Account")],
      to: [EntityDescription(name: "Recipe", renamingIdentifier: "Account", properties: [])],
      rows: "SELECT 1")
    guard case .migrate = try fixture.outcome(givesSource: false) else {
      Issue.record("not migrated")
      return
    }
  }
}
