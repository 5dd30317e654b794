import GodwitExpressions
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning
@testable import GodwitStagedObjects

/// Two items and a special one, as their columns hold them.
private func shop() throws -> StageFixture {
  let item = EntityDescription(
    name: "Item",
    properties: [
      attribute("name", .string, required: true, validation: [.maximumLength(6)]),
      attribute("rank", .integer16, validation: [.minimum(0), .maximum(100)]),
      attribute("price", .decimal), attribute("id", .uuid), attribute("isNew", .boolean),
      attribute("code", .string, validation: [.matches("[A-Z]{2}[0-9]+")]),
      attribute("photo", .binary, isExternal: true),
      attribute(
        "place", .composite,
        elements: [
          AttributeDescription(traits: PropertyTraits(name: "city"), type: .string),
          AttributeDescription(traits: PropertyTraits(name: "height"), type: .double),
          AttributeDescription(
            traits: PropertyTraits(name: "view"), type: .binary,
            allowsExternalBinaryDataStorage: true),
        ]),
    ], uniquenessConstraints: [["name"]])
  let special = EntityDescription(
    name: "Special", superentity: "Item", properties: [attribute("until", .date)])
  let shop = try StageFixture([item, special])
  try shop.execute(
    """
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPHOTO)
      VALUES (1, 1, 1, 'a', x'01FF'), (2, 2, 5, 'b', NULL), (7, 1, 1, 'c', NULL);
    UPDATE Z_PRIMARYKEY SET Z_MAX = 7 WHERE Z_ENT = 1;
    """)
  return shop
}

extension StageContext {
  fileprivate var first: StageObject { object(ObjectReference("Item", 1, in: .source)) }
}

@Suite struct `A store between two versions` {
  @Test func `shows the objects with the lowest and the highest key of all`() throws {
    let keys = [Int64.min, -1, 2, .max]
    let shop = try shop()
    try shop.execute(
      "DELETE FROM ZITEM; INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES "
        + keys.enumerated().map { "(\($1), 1, 1, '\($0)')" }.joined(separator: ", "))
    try shop.run { store in
      let seen = try store.fetch("Item")
      #expect(seen.map(\.primaryKey) == keys)
    }
  }

  @Test func `shows its objects, those of sub-entities under their own names`() throws {
    try shop().run { store in
      var seen = try store.fetch("Item")
      #expect(seen.map(\.primaryKey) == [1, 2, 7])
      #expect(seen.map(\.entity) == ["Item", "Special", "Item"])
      seen = try store.fetch("Special")
      #expect(seen.map(\.primaryKey) == [2])
      #expect(try store.first.value(forKey: "name") == .string("a"))
      #expect(try store.first.value(forKey: "photo") == .data([0xFF]))
      #expect(try store.first.value(forKey: "rank") == .null)
      #expect(try store.first.value(String.self, forKey: "name") == "a")
      #expect(try store.first.value(Int.self, forKey: "rank") == nil)
    }
  }

  @Test(
    arguments: [
      ("name == \"a\"", [1]), ("name != \"a\" AND rank == NULL", [2, 7]),
      ("name IN {\"b\", \"c\"}", [2, 7]), ("FALSEPREDICATE", []), ("name BEGINSWITH[c] \"B\"", [2]),
    ] as [(String, [Int64])])
  func `finds objects by a predicate`(predicate: String, keys: [Int64]) throws {
    try shop().run { store in
      let found = try store.fetch("Item", where: predicate)
      let count = try store.count("Item", where: predicate)
      #expect(found.map(\.primaryKey) == keys)
      #expect(count == keys.count)
    }
  }

  @Test func `refuses a predicate that cannot be read, or names what is not there`() throws {
    #expect(throws: ExpressionError.self) {
      try shop().run { _ = try $0.fetch("Item", where: "name ==") }
    }
    #expect(throws: EvaluationError.self) {
      try shop().run { _ = try $0.fetch("Item", where: "nothing == 1") }
    }
    let error = #expect(throws: StagedMigrationError.self) {
      try shop().run { _ = try $0.fetch("Nothing") }
    }
    #expect(error?.code == 1550)
  }

  @Test func `does not count beyond the highest number`() throws {
    let shop = try shop()
    try shop.execute("UPDATE ZITEM SET Z_OPT = 9223372036854775807")
    try shop.run { try $0.first.setValue(5, forKey: "rank") }
    #expect(try shop.rows("SELECT DISTINCT Z_OPT FROM ZITEM") == [[.integer(.max)]])
  }

  @Test func `keeps what a handler sets, and counts one change for each object`() throws {
    let shop = try shop()
    let outcome = try shop.run { store in
      try store.forEach("Item") { object in
        try object.setValue(object.primaryKey, forKey: "rank")
        try object.setValue(true, forKey: "isNew")
      }
      try store.first.setValue(.data([1, 2]), forKey: "photo")
    }
    #expect(
      try shop.rows("SELECT Z_PK, Z_OPT, ZRANK, ZISNEW FROM ZITEM ORDER BY Z_PK") == [
        [.integer(1), .integer(2), .integer(1), .integer(1)],
        [.integer(2), .integer(6), .integer(2), .integer(1)],
        [.integer(7), .integer(2), .integer(7), .integer(1)],
      ])
    #expect(try shop.rows("SELECT ZPHOTO FROM ZITEM WHERE Z_PK = 1") == [[.blob([1, 1, 2])]])
    #expect(outcome.changed == 3)
    #expect(outcome.counts == nil)
  }

  @Test func `derives texts again from what a handler sets`() throws {
    let shop = try StageFixture([
      EntityDescription(
        name: "Item",
        properties: [
          attribute("name", .string), attribute("plain", .string, derivation: "canonical:(name)"),
          attribute("loud", .string, derivation: "uppercase:(name)"),
          attribute("hush", .string, derivation: "lowercase:(loud)"),
        ])
    ])
    try shop.execute(
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPLAIN, ZLOUD)
        VALUES (1, 1, 1, 'a', 'a', 'A'), (2, 1, 1, 'b', 'as it is', 'AS IT IS');
      UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_ENT = 1;
      """)
    try shop.run { try $0.first.setValue("Élan", forKey: "name") }
    #expect(
      try shop.rows("SELECT ZPLAIN, ZLOUD, ZHUSH FROM ZITEM ORDER BY Z_PK") == [
        [.text("elan"), .text("ÉLAN"), .text("élan")],
        [.text("as it is"), .text("AS IT IS"), .null],
      ])
  }

  @Test func `reads and writes the elements of a composite attribute`() throws {
    let shop = try shop()
    try shop.run { store in
      try store.first.setValue("Bern", forKey: "place.city")
      try store.first.setValue(540, forKey: "place.height")
      #expect(
        try store.first.value(forKey: "place")
          == .dictionary(["city": .string("Bern"), "height": .real(540), "view": .null]))
      try store.first.setValue(.dictionary(["city": .string("Thun")]), forKey: "place")
      #expect(try store.first.value(String.self, forKey: "place.city") == "Thun")
      #expect(try store.first.value(forKey: "place.height") == .null)
      let others = try store.fetch("Item", where: "place == nil").count
      try store.first.setValue(.null, forKey: "place")
      #expect(try store.first.value(forKey: "place") == .null)
      #expect(try store.fetch("Item", where: "place == nil").count == others + 1)
      try store.first.setValue("Thun", forKey: "place.city")
      #expect(try store.fetch("Item", where: "place == nil").count == others)
    }
    #expect(
      try shop.rows("SELECT ZCITY, ZHEIGHT FROM ZITEM WHERE Z_PK = 1") == [[.text("Thun"), .null]])
    for key in ["place.street", "place.city.part", "name.city"] {
      #expect(throws: StagedMigrationError.self) {
        try shop.run { _ = try $0.first.value(forKey: key) }
      }
    }
  }

  @Test(arguments: [("photo", "ZPHOTO"), ("place.view", "ZVIEW")])
  func `keeps a large value in a file, and lets one go that nothing refers to`(
    key: String, column: String
  ) throws {
    let shop = try shop()
    let large = [UInt8](repeating: 7, count: 100_001)
    try shop.run { store in
      try store.first.setValue(.data(large), forKey: key)
      #expect(try store.first.value(forKey: key) == .data(large))
    }
    let folder = StoreFiles(shop.path).externalDataFolder
    let names = files(below: folder)
    #expect(names.count == 1)
    #expect(
      try shop.rows("SELECT \(column) FROM ZITEM WHERE Z_PK = 1")
        == [[.blob([2] + Array((names.first ?? "").utf8) + [0])]])
    // The same again changes nothing; a small value lets the file go.
    #expect(
      try shop.run { try $0.first.setValue(.data(large), forKey: key) }.obsolete == [])
    #expect(files(below: folder) == names)
    #expect(try shop.run { try $0.first.setValue(.null, forKey: key) }.obsolete == names)
    #expect(files(below: folder) == [])
    // So does its object.
    try shop.run { try $0.first.setValue(.data(large), forKey: key) }
    #expect(try shop.run { try $0.delete($0.first) }.obsolete == names)
    #expect(files(below: folder) == [])
  }

  @Test func `is as it was when a handler throws`() throws {
    struct Stop: Error {}
    let shop = try shop()
    let before = try shop.rows("SELECT * FROM ZITEM")
    #expect(throws: Stop.self) {
      try shop.run { store in
        try store.first.setValue("x", forKey: "name")
        _ = try store.insert("Item")
        throw Stop()
      }
    }
    #expect(try shop.rows("SELECT * FROM ZITEM") == before)
    #expect(try shop.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT = 1") == [[.integer(7)]])
  }

  @Test func `goes on saying WAL in its header`() throws {
    let shop = try shop()
    try shop.execute("PRAGMA journal_mode = WAL")
    try shop.run { try $0.first.setValue("x", forKey: "name") }
    #expect(try shop.rows("SELECT ZNAME FROM ZITEM WHERE Z_PK = 1") == [[.text("x")]])
    let source = try SourceStore(path: shop.path, snapshotFolder: "/nowhere")
    #expect(source.isWAL)
    #expect(!source.identity.hasPendingChanges)
  }

  @Test(arguments: [
    ("rank", ExpressionValue.integer(32_768), 1610), ("rank", .integer(101), 1610),
    ("rank", .integer(-1), 1620), ("rank", .string("1"), 1550), ("isNew", .string("x"), 1550),
    ("name", .string("too long"), 1660), ("name", .string("b"), 1551), ("id", .data([1]), 1550),
    ("price", .real(.infinity), 1610), ("until", .real(0), 1550), ("nothing", .null, 1550),
    ("code", .string("ab1"), 1680), ("name", .null, 1570), ("photo", .string("x"), 1550),
  ])
  func `refuses a value that the model does not allow`(
    name: String, value: ExpressionValue, code: Int
  ) throws {
    let shop = try shop()
    let error = #expect(throws: StagedMigrationError.self) {
      try shop.run { try $0.first.setValue(value, forKey: name) }
    }
    #expect(error?.code == code)
    // What no object of the entity has is no object's fault.
    let isUnknown = ["until", "nothing"].contains(name)
    #expect(error?.description.contains("Z_PK 1") == !isUnknown, "\(error as Any)")
    #expect(
      try shop.rows("SELECT ZNAME, ZRANK, ZCODE FROM ZITEM WHERE Z_PK = 1") == [
        [.text("a"), .null, .null]
      ])
  }

  @Test func `judges what is left when the handler is done, and tells of everything`() throws {
    let shop = try shop()
    try shop.run { store in
      try store.first.setValue(.null, forKey: "name")
      try store.first.setValue(200, forKey: "rank")
      try store.first.setValue("d", forKey: "name")
      try store.first.setValue(20, forKey: "rank")
    }
    let error = #expect(throws: StagedMigrationError.self) {
      try shop.run { store in
        try store.first.setValue(.null, forKey: "name")
        try store.first.setValue(200, forKey: "rank")
      }
    }
    #expect(error?.code == 1560)
    guard case .invalidObjects(let findings) = error else {
      Issue.record("another error: \(String(describing: error))")
      return
    }
    #expect(findings.compactMap(\.code).sorted() == [1570, 1610])
    #expect(findings.allSatisfy { $0.examples == [1] })
    #expect(try shop.rows("SELECT ZNAME FROM ZITEM WHERE Z_PK = 1") == [[.text("d")]])
  }

  @Test func `notes values that their pattern could not judge, and saves them`() throws {
    let shop = try shop()
    let settings = StageStore.Settings(
      side: shop.side, pattern: { _ in { _ in nil } }, runDate: 0)
    let outcome = try StageStore.run(
      { try $0.first.setValue("A", forKey: "code") }, on: shop.path, model: shop.model,
      settings: settings)
    #expect(outcome.notes.map(\.kind) == [.note] && outcome.notes[0].property == "code")
    #expect(outcome.notes.map(\.examples) == [[1]])
    #expect(try shop.rows("SELECT ZCODE FROM ZITEM WHERE Z_PK = 1") == [[.text("A")]])
  }

  @Test func `has no object of another entity or key`() throws {
    let shop = try shop()
    for object in [shop.object("Item", 2), shop.object("Item", 3)] {
      let error = #expect(throws: StagedMigrationError.self) {
        try shop.run { _ = try $0.object(object).value(forKey: "name") }
      }
      #expect(error?.code == 133_000)
    }
  }

  @Test func `gives new objects the next keys and the model's defaults`() throws {
    let item = EntityDescription(
      name: "Item",
      properties: [
        attribute("rank", .integer16, initial: .integer(7)), attribute("name", .string),
        attribute("photo", .binary, isExternal: true, initial: .blob([5])),
      ])
    let base = EntityDescription(name: "Base", isAbstract: true, properties: [])
    let special = EntityDescription(name: "Special", superentity: "Item", properties: [])
    let shop = try StageFixture([base, item, special])
    try shop.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 40 WHERE Z_NAME = 'Item'")
    let outcome = try shop.run { store in
      let first = try store.insert("Item")
      let second = try store.insert("Special")
      try second.setValue(9, forKey: "rank")
      #expect([first.primaryKey, second.primaryKey] == [41, 42])
      // Objects that a walk inserts are not met by it.
      var met = 0
      try store.forEach("Item") { _ in
        met += 1
        _ = try store.insert("Item")
      }
      #expect(met == 2)
    }
    #expect(
      try shop.rows("SELECT Z_PK, Z_ENT, Z_OPT, ZRANK, ZPHOTO FROM ZITEM WHERE Z_PK < 43") == [
        [.integer(41), .integer(2), .integer(1), .integer(7), .blob([1, 5])],
        [.integer(42), .integer(3), .integer(1), .integer(9), .blob([1, 5])],
      ])
    #expect(
      try shop.rows("SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Item'") == [[.integer(44)]])
    #expect(outcome.counts == ["Item": 3, "Special": 1])
    for name in ["Base", "Nothing"] {
      #expect(throws: StagedMigrationError.self) {
        try shop.run { _ = try $0.insert(EntityName(name)) }
      }
    }
  }
}
