import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Each test with one shard, and with a shard for every row.
@Suite struct `The pairs of relationships, inferred` {
  static let shardSizes: [Int64] = [1 << 24, 1]

  /// What a refusal by rows says.
  private func refusal(_ fixture: MigrationFixture) throws -> [String] {
    guard case .refused(let code, let reasons) = try fixture.outcome() else { return [] }
    return reasons.map { reason in
      let keys = (reason.primaryKeys ?? []).map(String.init).joined(separator: ",")
      return
        "\(code) \(reason.reason) \(reason.entity ?? "").\(reason.property ?? "") \(reason.count ?? 0): \(keys)"
    }
  }

  private func losses(_ fixture: MigrationFixture) throws -> [String] {
    try fixture.plan().losses.map { loss in
      let keys = loss.primaryKeys.map(String.init).joined(separator: ",")
      return "\(loss.kind) \(loss.entity ?? "").\(loss.property ?? "") \(loss.count): \(keys)"
    }
  }

  // MARK: Membership

  @Test(arguments: shardSizes)
  func `do not stay behind where an object leaves the relationship's entity`(shardBytes: Int64)
    throws
  {
    let rest = [
      entity("Base"), entity("Note", toMany("tags", "Tag", inverse: "notes"), parent: "Base"),
      EntityDescription(
        name: "Tag",
        properties: [toMany("notes", "Note", inverse: "tags"), count("noteCount", of: "notes")]),
    ]
    // The same numbers before and after: only membership of Note changes.
    let fixture = try MigrationFixture(
      from: rest + [entity("Sketch", parent: "Note")],
      to: rest + [entity("Sketch", parent: "Base")],
      rows: """
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNOTECOUNT) VALUES (1, 4, 1, 2), (2, 4, 1, 1);
        INSERT INTO Z_2TAGS (Z_2NOTES, Z_4TAGS) VALUES (1, 1), (2, 1), (2, 2)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_2NOTES, Z_4TAGS FROM Z_2TAGS") == ["1 1"])
    #expect(try store.table("SELECT Z_PK, ZNOTECOUNT FROM ZTAG ORDER BY 1") == ["1 1", "2 0"])
  }

  /// The only objects of an abstract entity leave it. A reference to nothing stays as it is.
  @Test(arguments: shardSizes, [true, false])
  func `need no other object for a place in an order`(shardBytes: Int64, wasOrdered: Bool) throws {
    func model(_ parent: EntityName?, ordered: Bool = true) -> [EntityDescription] {
      var list = entity("List", toMany("items", "Item", inverse: "list", ordered: ordered))
      list.isAbstract = true
      return [list, entity("Item", toOne("list", "List", inverse: "items"), parent: parent)]
    }
    let fixture = try MigrationFixture(
      from: model("List", ordered: wasOrdered), to: model(nil),
      rows: """
        INSERT INTO ZLIST (Z_PK, Z_ENT, Z_OPT, ZLIST) VALUES (1, 2, 1, 2), (2, 2, 1, NULL), (3, 2, 1, 9);
        \(wasOrdered ? "UPDATE ZLIST SET Z_FOK_LIST = 512 * Z_PK WHERE ZLIST NOTNULL" : "")
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    let places = try store.table("SELECT Z_PK, ZLIST, Z_FOK_LIST NOTNULL FROM ZITEM ORDER BY 1")
    #expect(places == ["1 - 0", "2 - 0", "3 9 1"])
    guard wasOrdered else { return }
    #expect(try store.table("SELECT Z_FOK_LIST FROM ZITEM WHERE Z_PK = 3") == ["1536"])
  }

  @Test(arguments: shardSizes)
  func `leave no key in a column that an object no longer has`(shardBytes: Int64) throws {
    func model(_ parent: EntityName) -> [EntityDescription] {
      [
        entity("Base"), entity("Sketch", parent: parent),
        entity("Item", toOne("box", "Box", inverse: "items"), parent: "Base"),
        EntityDescription(
          name: "Box",
          properties: [toMany("items", "Item", inverse: "box"), count("itemCount", of: "items")]),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("Item"), to: model("Base"),
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT, ZITEMCOUNT) VALUES (1, 4, 1, 2);
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT, ZBOX) VALUES (1, 2, 1, 1), (2, 3, 1, 1)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK, ZBOX FROM ZBASE ORDER BY 1") == ["1 1", "2 -"])
    #expect(try store.table("SELECT ZITEMCOUNT FROM ZBOX") == ["1"])
  }

  @Test(arguments: shardSizes)
  func `of two relationships come together where one moves up for both`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Animal"), entity("Cat", toMany("toys", "Toy", inverse: "cats"), parent: "Animal"),
        entity("Dog", toMany("toys", "Toy", inverse: "dogs"), parent: "Animal"),
        entity(
          "Toy", toMany("cats", "Cat", inverse: "toys"), toMany("dogs", "Dog", inverse: "toys")),
      ],
      to: [
        entity("Animal", toMany("toys", "Toy", inverse: "animals")),
        entity("Cat", parent: "Animal"),
        entity("Dog", parent: "Animal"),
        entity("Toy", toMany("animals", "Animal", inverse: "toys")),
      ],
      rows: """
        INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
        INSERT INTO ZTOY (Z_PK, Z_ENT, Z_OPT) VALUES (1, 4, 1), (2, 4, 1);
        INSERT INTO Z_2TOYS (Z_2CATS, Z_4TOYS) VALUES (1, 1), (1, 2);
        INSERT INTO Z_3TOYS (Z_3DOGS, Z_4TOYS1) VALUES (2, 2)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_1ANIMALS, Z_4TOYS FROM Z_1TOYS ORDER BY 1, 2") == [
        "1 1", "1 2", "2 2",
      ])
  }

  @Test(arguments: shardSizes)
  func `are none where no entity remains that may be a target`(shardBytes: Int64) throws {
    let rest = [entity("Base"), entity("Box", toMany("items", "Item"))]
    let fixture = try MigrationFixture(
      from: rest + [entity("Item", parent: "Base"), entity("Sub", parent: "Base")],
      to: rest + [
        EntityDescription(name: "Item", superentity: "Base", isAbstract: true),
        entity("Sub", parent: "Item"),
      ],
      rows: "INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1)")
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK, Z_ENT, Z4ITEMS FROM ZBASE") == ["1 3 -"])
  }

  /// `A.one` and `A.many`, and the two relationships of `B` that are their inverses.
  private static func exchanging(one: String, many: String) -> [EntityDescription] {
    [
      entity("A", toOne("one", "B", inverse: one), toMany("many", "B", inverse: many)),
      entity(
        "B", toMany("list", "A", inverse: one == "list" ? "one" : "many", ordered: true),
        toMany("set", "A", inverse: one == "set" ? "one" : "many")),
    ]
  }

  @Test(arguments: shardSizes, [true, false])
  func `keep the places in a list whose inverse is another one now`(
    shardBytes: Int64, becomesManyToMany: Bool
  ) throws {
    let (toList, toSet) = (
      Self.exchanging(one: "list", many: "set"), Self.exchanging(one: "set", many: "list")
    )
    let objects =
      "INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);"
      + (1...4).map { "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (\($0), 1, 1);" }.joined()
    // The fourth one is in the pairs, and not in the list. The fifth one's is a list of nobody.
    let fixture =
      becomesManyToMany
      ? try MigrationFixture(
        from: toList, to: toSet,
        rows: objects + """
          UPDATE ZA SET ZONE = 1, Z_FOK_ONE = CASE Z_PK WHEN 1 THEN 9 WHEN 2 THEN 5 ELSE 7 END WHERE Z_PK < 4;
          INSERT INTO Z_1MANY (Z_1SET, Z_2MANY) VALUES (1, 1), (2, 1), (3, 1), (4, 1)
          """)
      : try MigrationFixture(
        from: toSet, to: toList,
        rows: objects + """
          UPDATE ZA SET ZONE = 1;
          INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZONE) VALUES (5, 1, 1, 99);
          INSERT INTO Z_1MANY (Z_1LIST, Z_2MANY, Z_FOK_1LIST) VALUES (1, 1, 9), (2, 1, 5), (3, 1, 7)
          """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table(
        becomesManyToMany
          ? "SELECT Z_1LIST, Z_FOK_1LIST FROM Z_1MANY ORDER BY 2"
          : "SELECT Z_PK, Z_FOK_ONE FROM ZA ORDER BY ZONE, 2")
        == ["2 2048", "3 3072", "1 4096", "4 5120"] + (becomesManyToMany ? [] : ["5 2048"]))
  }

  // MARK: Counts

  @Test(arguments: shardSizes)
  func `are counted where a count is new, or counts something else`(shardBytes: Int64) throws {
    func model(_ more: PropertyDescription...) -> [EntityDescription] {
      [
        EntityDescription(
          name: "Author", properties: [toMany("books", "Book", inverse: "author")] + more),
        entity("Book", toOne("author", "Author", inverse: "books")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model(count("kept", of: "books")),
      to: model(count("kept", of: "books"), count("number", of: "books")),
      rows: """
        INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZKEPT) VALUES (1, 1, 1, 2), (2, 1, 1, 0);
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZAUTHOR) VALUES (1, 2, 1, 1), (2, 2, 1, 1)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_PK, ZKEPT, ZNUMBER FROM ZAUTHOR ORDER BY 1") == ["1 2 2", "2 0 0"])
  }

  // MARK: References without room

  /// Three employees of a department, and one of another.
  private func employees(_ destination: [EntityDescription]) throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("Department"), entity("Employee", toOne("department", "Department"))],
      to: destination,
      rows: """
        INSERT INTO ZDEPARTMENT (Z_PK, Z_ENT, Z_OPT) VALUES (7, 1, 1), (8, 1, 1);
        INSERT INTO ZEMPLOYEE (Z_PK, Z_ENT, Z_OPT, ZDEPARTMENT)
        VALUES (1, 2, 1, 7), (2, 2, 1, 7), (3, 2, 1, 8), (4, 2, 1, 7), (5, 2, 1, NULL)
        """)
  }

  private let withoutInverse = [
    entity("Department"), entity("Employee", toMany("department", "Department")),
  ]
  private let withToOne = [
    entity("Department", toOne("employee", "Employee", inverse: "department")),
    entity("Employee", toOne("department", "Department", inverse: "employee")),
  ]

  @Test func `are refused with the keys of the objects whose reference has no room`() throws {
    for destination in [withoutInverse, withToOne] {
      #expect(
        try refusal(try employees(destination)) == [
          "134110 shared-targets Employee.department 2: 2,4"
        ])
    }
  }

  @Test(arguments: shardSizes)
  func `are dropped and counted where that is allowed`(shardBytes: Int64) throws {
    let many = try employees(withoutInverse)
    many.losses = .allow
    #expect(try losses(many) == ["sharedTarget Employee.department 2: 2,4"])
    #expect(
      try many.migrate(shardBytes: shardBytes).table(
        "SELECT Z_PK, Z2DEPARTMENT FROM ZDEPARTMENT ORDER BY 1") == ["7 1", "8 3"])
    let one = try employees(withToOne)
    one.losses = .allow
    #expect(try losses(one) == ["sharedTarget Employee.department 2: 2,4"])
    let store = try one.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_PK, ZDEPARTMENT FROM ZEMPLOYEE ORDER BY 1") == [
        "1 7", "2 -", "3 8", "4 -", "5 -",
      ])
    #expect(
      try store.table("SELECT Z_PK, ZEMPLOYEE FROM ZDEPARTMENT ORDER BY 1") == ["7 1", "8 3"])
  }

  // The references of either side, and what is refused, or what both sides come to.
  @Test(arguments: [
    (owners: "(1, 7), (2, 8)", targets: "(7, 1), (8, NULL)", refused: "", kept: ["1 7", "2 8"]),
    (owners: "(1, 7), (2, NULL)", targets: "(7, NULL), (8, 2)", refused: "", kept: ["1 7", "2 8"]),
    (owners: "(1, 7), (2, 7)", targets: "(7, 2), (8, NULL)", refused: "1: 7", kept: ["2 7"]),
    (
      owners: "(1, 7), (2, NULL)", targets: "(7, 2), (8, 1)", refused: "1: 7", kept: ["1 8", "2 7"]
    ),
    (owners: "(1, 7), (2, 7)", targets: "(7, 1), (8, 2)", refused: "1: 7", kept: ["1 7", "2 8"]),
  ])
  func `of two to-ones that become inverses come together`(
    owners: String, targets: String, refused: String, kept: [String]
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Car", toOne("driver", "Person")), entity("Person", toOne("car", "Car"))],
      to: [
        entity("Car", toOne("driver", "Person", inverse: "car")),
        entity("Person", toOne("car", "Car", inverse: "driver")),
      ],
      rows: """
        INSERT INTO ZCAR (Z_PK, ZDRIVER) VALUES \(targets);
        INSERT INTO ZPERSON (Z_PK, ZCAR) VALUES \(owners);
        UPDATE ZCAR SET Z_ENT = 1, Z_OPT = 1; UPDATE ZPERSON SET Z_ENT = 2, Z_OPT = 1
        """)
    #expect(
      try refusal(fixture)
        == (refused.isEmpty ? [] : ["134110 shared-targets Car.driver \(refused)"]))
    fixture.losses = .allow
    let store = try fixture.migrate(shardBytes: 1)
    #expect(
      try store.table("SELECT Z_PK, ZCAR FROM ZPERSON WHERE ZCAR IS NOT NULL ORDER BY 1") == kept)
    #expect(
      try store.table("SELECT ZDRIVER, Z_PK FROM ZCAR WHERE ZDRIVER IS NOT NULL ORDER BY 1") == kept
    )
  }

  // MARK: To-many to to-one

  // The form of the to-many in the source, the rows that give object 1 one or two objects, and
  // which of them is first.
  static let forms:
    [(name: String, old: [EntityDescription], one: String, two: String, first: Int)] =
      [
        (
          "one-to-many",
          [
            entity("Box", toMany("item", "Item", inverse: "box")),
            entity("Item", toOne("box", "Box", inverse: "item")),
          ], "UPDATE ZITEM SET ZBOX = 1 WHERE Z_PK = 6", "UPDATE ZITEM SET ZBOX = 1", 5
        ),
        (
          "without inverse", [entity("Box", toMany("item", "Item")), entity("Item")],
          "UPDATE ZITEM SET Z1ITEM = 1 WHERE Z_PK = 6", "UPDATE ZITEM SET Z1ITEM = 1", 5
        ),
        (
          "many-to-many, ordered",
          [
            entity("Box", toMany("item", "Item", inverse: "box", ordered: true)),
            entity("Item", toMany("box", "Box", inverse: "item")),
          ], "INSERT INTO Z_1ITEM (Z_1BOX, Z_2ITEM, Z_FOK_2ITEM) VALUES (1, 6, 2048)",
          "INSERT INTO Z_1ITEM (Z_1BOX, Z_2ITEM, Z_FOK_2ITEM) VALUES (1, 5, 3072), (1, 6, 2048)", 6
        ),
      ]

  @Test(arguments: forms.indices, [true, false])
  func `let a to-many become a to-one where no object has several`(form: Int, isInverse: Bool)
    throws
  {
    let form = Self.forms[form]
    let new = [
      entity("Box", toOne("item", "Item", inverse: isInverse ? "boxes" : nil)),
      EntityDescription(
        name: "Item", properties: isInverse ? [toMany("boxes", "Box", inverse: "item")] : []),
    ]
    for (rows, isRefused) in [(form.one, false), (form.two, true)] {
      let fixture = try MigrationFixture(
        from: form.old, to: new,
        rows: """
          INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
          INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (5, 2, 1), (6, 2, 1);
          \(rows)
          """)
      #expect(
        try refusal(fixture) == (isRefused ? ["134110 to-many-to-one Box.item 1: 1"] : []),
        "\(form.name)")
      fixture.losses = .allow
      let kept = isRefused ? form.first : 6
      #expect(
        try fixture.migrate(shardBytes: 1).table("SELECT Z_PK, ZITEM FROM ZBOX ORDER BY 1") == [
          "1 \(kept)", "2 -",
        ], "\(form.name)")
    }
  }

  // Friends of friends: the pairs, how many are dropped, by the lowest keys, and what is left.
  @Test(arguments: [
    (pairs: "(1, 2), (2, 1)", refused: "", kept: ["1 2", "2 1", "3 -", "4 -"]),
    (
      pairs: "(1, 2), (2, 1), (1, 3), (3, 1)", refused: "1: 1", kept: ["1 2", "2 1", "3 -", "4 -"]
    ),
    (
      pairs: "(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)", refused: "2: 2,3",
      kept: ["1 2", "2 1", "3 -", "4 -"]
    ),
    (
      pairs: "(1, 1), (1, 2), (2, 1), (3, 4), (4, 3)", refused: "1: 1",
      kept: ["1 1", "2 -", "3 4", "4 3"]
    ),
  ])
  func `of a relationship that is its own inverse stay both ways round`(
    pairs: String, refused: String, kept: [String]
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Person", toMany("friend", "Person", inverse: "friend"))],
      to: [entity("Person", toOne("friend", "Person", inverse: "friend"))],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1);
        INSERT INTO Z_1FRIEND VALUES \(pairs)
        """)
    #expect(
      try refusal(fixture)
        == (refused.isEmpty ? [] : ["134110 to-many-to-one Person.friend \(refused)"]))
    fixture.losses = .allow
    let store = try fixture.migrate(shardBytes: 1)
    #expect(try store.table("SELECT Z_PK, ZFRIEND FROM ZPERSON ORDER BY 1") == kept)
  }

  // MARK: Uniqueness

  @Test(arguments: [
    (AttributeType.integer16, "70000", "80000"), (.boolean, "2", "3"), (.integer32, "1.5", "1.25"),
    (.float, "16777216.0", "16777217.0"),
  ])
  func `and values are refused where only conversion makes them equal`(
    type: AttributeType, first: String, second: String
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Ticket", attribute("code", .double))],
      to: [
        EntityDescription(
          name: "Ticket", properties: [attribute("code", type)], uniquenessConstraints: [["code"]])
      ],
      rows: """
        INSERT INTO ZTICKET (Z_PK, Z_ENT, Z_OPT, ZCODE)
        VALUES (1, 1, 1, 0), (2, 1, 1, \(first)), (3, 1, 1, \(second)), (4, 1, 1, NULL)
        """)
    #expect(try refusal(fixture) == ["134111 uniqueness Ticket.code 2: 2,3"])
  }
}

private func count(_ name: String, of relationship: String) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name), type: .integer64,
      derivationExpression: "count:(\(relationship))"))
}
