import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Each test with one shard, and with a shard for every row.
@Suite struct `A lightweight migration` {
  static let shardSizes: [Int64] = [1 << 24, 1]

  @Test(arguments: shardSizes)
  func `widens, drops, adds and fills in attributes`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity(
          "Trade", attribute("amount", .integer32), attribute("gone"), attribute("rate", .float))
      ],
      to: [
        entity(
          "Trade", attribute("amount", .double), attribute("note", default: .text("none")),
          attribute("rate", .float, optional: false, default: .real(0.5)))
      ],
      rows: """
        INSERT INTO ZTRADE (Z_PK, Z_ENT, Z_OPT, ZAMOUNT, ZRATE, ZGONE)
        VALUES (1, 1, 1, 7, 1.5, 'a'), (5, 1, 9, -3, NULL, NULL), (6, 1, 2, NULL, 2, 'c')
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_PK, Z_OPT, ZAMOUNT, ZRATE, ZNOTE FROM ZTRADE ORDER BY Z_PK") == [
        "1 1 7.0 1.5 none", "5 9 -3.0 0.5 none", "6 2 - 2.0 none",
      ])
    #expect(fixture.findings == [])
  }

  @Test(arguments: shardSizes)
  func `renumbers entities where rows point to them`(shardBytes: Int64) throws {
    // A new entity before the others by name shifts every number.
    let people = [
      entity("Person", attribute("name")),
      entity("Pupil", attribute("grade", .integer16), parent: "Person"),
      entity("Seat", toOne("holder", "Person")),
    ]
    let fixture = try MigrationFixture(
      from: people, to: people + [entity("Aisle", attribute("name"))],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'a'), (2, 2, 1, 'b');
        INSERT INTO ZSEAT (Z_PK, Z_ENT, Z_OPT, ZHOLDER, Z1_HOLDER)
        VALUES (1, 3, 1, 1, 1), (2, 3, 1, 2, 2), (3, 3, 1, NULL, NULL)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK, Z_ENT FROM ZPERSON ORDER BY Z_PK") == ["1 2", "2 3"])
    #expect(
      try store.table("SELECT Z_PK, Z_ENT, ZHOLDER, Z2_HOLDER FROM ZSEAT ORDER BY Z_PK") == [
        "1 4 1 2", "2 4 2 3", "3 4 - -",
      ])
  }

  @Test(arguments: shardSizes)
  func `lets go of objects whose entity is removed`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Animal"), entity("Cat", parent: "Animal"), entity("Dog", parent: "Animal"),
        entity("Home", toOne("guest", "Animal")),
      ],
      to: [
        entity("Animal"), entity("Dog", parent: "Animal"), entity("Home", toOne("guest", "Animal")),
      ],
      rows: """
        INSERT INTO ZANIMAL (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 3, 1);
        INSERT INTO ZHOME (Z_PK, Z_ENT, Z_OPT, ZGUEST, Z1_GUEST)
        VALUES (1, 4, 1, 1, 2), (2, 4, 1, 2, 3)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK, Z_ENT FROM ZANIMAL") == ["2 2"])
    #expect(
      try store.table("SELECT Z_PK, ZGUEST, Z1_GUEST FROM ZHOME ORDER BY Z_PK") == [
        "1 - -", "2 2 2",
      ])
  }

  @Test(arguments: shardSizes)
  func `gives places by key where a relationship begins to be ordered`(shardBytes: Int64) throws {
    func model(ordered: Bool) -> [EntityDescription] {
      [
        entity("Box", toMany("items", "Item", inverse: "box", ordered: ordered)),
        entity("Item", toOne("box", "Box", inverse: "items")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model(ordered: false), to: model(ordered: true),
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZBOX)
        VALUES (1, 2, 1, 2), (2, 2, 1, 1), (3, 2, 1, 2), (4, 2, 1, NULL), (5, 2, 1, 2)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_PK, ZBOX, Z_FOK_BOX FROM ZITEM ORDER BY Z_PK") == [
        "1 2 2048", "2 1 2048", "3 2 3072", "4 - -", "5 2 4096",
      ])
  }

  @Test(arguments: shardSizes)
  func `turns a to-one into a list of one`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Note", toOne("tag", "Tag", inverse: "notes")),
        entity("Tag", toMany("notes", "Note", inverse: "tag")),
      ],
      to: [
        entity("Note", toMany("tag", "Tag", inverse: "notes", ordered: true)),
        entity("Tag", toMany("notes", "Note", inverse: "tag", ordered: true)),
      ],
      rows: """
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1), (2, 2, 1);
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTAG)
        VALUES (1, 1, 1, 2), (2, 1, 1, NULL), (3, 1, 1, 2), (4, 1, 1, 1)
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    // Columns: the note, the tag, the note's place at the tag, the tag's place at the note.
    #expect(
      try store.table(
        "SELECT Z_1NOTES, Z_2TAG, Z_FOK_1NOTES, Z_FOK_2TAG FROM Z_1TAG ORDER BY 1, 2") == [
          "1 2 2048 2048", "3 2 3072 2048", "4 1 2048 2048",
        ])
  }

  @Test(arguments: shardSizes)
  func `moves an entity out of its hierarchy`(shardBytes: Int64) throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Base", attribute("name")),
        entity("Part", attribute("size", .integer16), parent: "Base"),
      ],
      to: [
        entity("Base", attribute("name")),
        entity("Part", attribute("name"), attribute("size", .integer16)),
      ],
      rows: """
        INSERT INTO ZBASE (Z_PK, Z_ENT, Z_OPT, ZSIZE, ZNAME)
        VALUES (1, 1, 1, NULL, 'a'), (2, 2, 1, 7, 'b'), (3, 1, 1, NULL, 'c')
        """)
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK, ZNAME FROM ZBASE ORDER BY Z_PK") == ["1 a", "3 c"])
    #expect(try store.table("SELECT Z_PK, Z_ENT, ZSIZE, ZNAME FROM ZPART") == ["2 2 7 b"])
  }

  @Test func `moves an unchanged table without computing it`() throws {
    let same = [entity("Kept", attribute("name"), toOne("other", "Kept"))]
    let fixture = try MigrationFixture(
      from: same, to: same + [entity("Later", attribute("name"))],
      rows: "INSERT INTO ZKEPT (Z_PK, Z_ENT, Z_OPT, ZOTHER, ZNAME) VALUES (1, 1, 1, 1, 'a')")
    #expect(try fixture.plan().tables.first { $0.name == "ZKEPT" }?.way == .carried)
    #expect(try fixture.migrate().table("SELECT Z_PK, ZOTHER, ZNAME FROM ZKEPT") == ["1 1 a"])
  }

  // Lengths of a value before, and of the column's value after: marker and data, or a reference.
  @Test func `reports what it finds wrong in the source`() throws {
    let model = { (more: [PropertyDescription]) in
      [
        EntityDescription(
          name: "Row",
          properties: [attribute("count", .integer16, optional: false), toOne("next", "Row")] + more
        )
      ]
    }
    let fixture = try MigrationFixture(
      from: model([]), to: model([attribute("more")]),
      rows: """
        INSERT INTO ZROW (Z_PK, Z_ENT, Z_OPT, ZCOUNT, ZNEXT)
        VALUES (1, 1, 1, 1, 99), (2, 1, 1, 'many', NULL), (3, 1, 1, 40000, 1), (4, 1, 1, NULL, NULL)
        """)
    _ = try fixture.migrate()
    let kinds = Set(fixture.findings.map(\.kind))
    #expect(kinds == [.dangling, .type, .required])
    #expect(fixture.findings.first { $0.kind == .dangling }?.examples == [1])
    #expect(fixture.findings.filter { $0.kind == .type }.flatMap(\.examples).sorted().contains(2))
  }

  @Test func `asks the rows what the models leave open`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))],
      to: [entity("Row", attribute("a"), attribute("b", optional: false))],
      rows: "INSERT INTO ZROW (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    guard case .refused(let code, let reasons) = try fixture.outcome() else {
      Issue.record("a required attribute without a default was accepted")
      return
    }
    #expect(code == 134_110)
    #expect(reasons.map(\.reason) == ["required-without-default"])
    #expect(reasons.first?.property == "b")
  }

  @Test(arguments: ["INTEGER", "VARCHAR", "FLOAT", "NUMERIC"])
  func `tells CloudKit's rows apart, also where their entities have no successor`(type: String)
    throws
  {
    let thing = { (name: EntityName) in entity(name, attribute("a")) }
    let fixture = try MigrationFixture(
      from: [thing("A"), thing("B"), thing("C")], to: [thing("C")],
      rows: """
        CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY, ZENTITYID \(type), ZENTITYPK INTEGER);
        CREATE UNIQUE INDEX ANSCKTHING_U ON ANSCKTHING (ZENTITYID, ZENTITYPK);
        INSERT INTO ANSCKTHING VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, -2, 1), (5, NULL, 1);
        CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
        INSERT INTO ACHANGE VALUES (1, 1), (2, 2), (3, 3);
        """)
    let store = try fixture.migrate()
    #expect(
      try store.table("SELECT Z_PK, CAST(ZENTITYID AS INTEGER), ZENTITYPK FROM ANSCKTHING") == [
        "1 -3 1", "2 -4 1", "3 1 1", "4 -2 1", "5 - 1",
      ])
    #expect(try store.table("SELECT ZENTITY FROM ACHANGE") == ["0", "0", "1"])
  }

  /// Left of a version that had one entity more.
  @Test func `gives a number of no entity to none of the destination's`() throws {
    let thing = { (name: EntityName) in entity(name, attribute("a")) }
    for names in [["AA", "P", "Q"], ["P", "Q", "R"]] as [[EntityName]] {
      let fixture = try MigrationFixture(
        from: [thing("P"), thing("Q")], to: names.map(thing),
        rows: """
          CREATE TABLE ANSCKTHING (Z_PK INTEGER PRIMARY KEY, ZENTITYID INTEGER, ZENTITYPK INTEGER);
          CREATE UNIQUE INDEX ANSCKTHING_U ON ANSCKTHING (ZENTITYID, ZENTITYPK);
          INSERT INTO ANSCKTHING VALUES (1, 2, 1), (2, 3, 1), (3, 16001, 1);
          CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, ZENTITY INTEGER);
          INSERT INTO ACHANGE VALUES (1, 2), (2, 3), (3, 16001);
          """)
      let store = try fixture.migrate()
      let q = names[0] == "AA" ? 3 : 2
      #expect(
        try store.table("SELECT ZENTITYID FROM ANSCKTHING ORDER BY Z_PK") == [
          "\(q)", "-3", "16001",
        ])
      #expect(
        try store.table("SELECT ZENTITY FROM ACHANGE ORDER BY Z_PK") == ["\(q)", "0", "16001"])
    }
  }

  @Test(arguments: [("places", "rtree(id, low, high)"), ("ZPLACES", "fts5(title)")])
  func `says what to do about a virtual table of an application`(
    name: String, module: String
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("Row", attribute("a"))], to: [entity("Row", attribute("b"))],
      rows: "CREATE VIRTUAL TABLE \(name) USING \(module)")
    #expect {
      _ = try fixture.outcome()
    } throws: {
      let message = "\($0)"
      return message.contains("virtual table \(name)") && message.contains("Drop it in a copy")
    }
  }
}
