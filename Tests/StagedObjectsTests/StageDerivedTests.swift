import GodwitCommit
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitStagedObjects

@Suite struct `A derived attribute in a handler's store` {
  /// Three items with two parts each, and their count.
  private func parts(
    _ rule: RelationshipDescription.DeleteRule, hasInverse: Bool, isUnique: Bool = false
  ) throws -> StageFixture {
    var item = EntityDescription(
      name: "Item",
      properties: [
        attribute("name", .string), attribute("n", .integer32, derivation: "parts.@count"),
        relationship("parts", "Part", inverse: hasInverse ? "item" : nil, many: true),
      ])
    if isUnique { item.uniquenessConstraints = [["n"]] }
    let back = relationship("item", "Item", inverse: "parts", rule: rule)
    let store = try StageFixture([
      item, EntityDescription(name: "Part", properties: hasInverse ? [back] : []),
      EntityDescription(name: "Spare", superentity: "Part"),
    ])
    try store.run { store in
      for members in 1...3 {
        let item = try store.insert("Item")
        let parts = try (0..<members).map { try store.insert($0 == 0 ? "Spare" : "Part") }
        try item.setObjects(parts, forKey: "parts")
      }
    }
    return store
  }

  private let counted = "SELECT ZN, Z_OPT FROM ZITEM ORDER BY Z_PK"

  @Test(
    .enabled(if: OracleJudge.isHere, "skipped: the independent judge is not there"),
    arguments: [
      (RelationshipDescription.DeleteRule.noAction, true, "the other side is no change", Int64(1)),
      (.nullify, true, "the other side changes", 2), (.cascade, true, "so does what goes", 2),
      (.nullify, false, "nothing leads to the other side", 1),
    ])
  func `counts without an object that was deleted`(
    rule: RelationshipDescription.DeleteRule, hasInverse: Bool, why: String, changes: Int64
  ) throws {
    let store = try parts(rule, hasInverse: hasInverse)
    #expect(
      try store.rows(counted) == [
        [.integer(1), .integer(1)], [.integer(2), .integer(1)], [.integer(3), .integer(1)],
      ])
    try store.run { store in
      let parts = try store.fetch("Part").filter { $0.entity == "Part" }
      if rule == .cascade {
        // With it goes the item, and what the item does not take along.
        try store.delete(parts[0])
      } else {
        try store.delete(parts[0])
        try store.delete(try store.fetch("Spare")[2])
      }
    }
    let rows = try store.rows(counted)
    if rule == .cascade {
      #expect(rows == [[.integer(1), .integer(1)], [.integer(3), .integer(1)]], "\(why)")
    } else {
      #expect(
        rows == [
          [.integer(1), .integer(1)], [.integer(1), .integer(changes)],
          [.integer(2), .integer(changes)],
        ], "\(why)")
    }
    #expect(try store.complaints() == "")
  }

  /// Items with their parts' weights, and parts with their item's name and the time of their change.
  private func weights() throws -> StageFixture {
    let store = try StageFixture([
      weighedItem,
      EntityDescription(name: "Other", properties: [attribute("name", .string)]),
      EntityDescription(
        name: "Part",
        properties: [
          attribute("w", .integer32), attribute("itemName", .string, derivation: "item.name"),
          attribute("stamp", .date, derivation: "now()"),
          relationship("item", "Item", inverse: "parts"),
        ]),
    ])
    try store.execute(
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZSUM) VALUES (1, 1, 1, 'i', 5);
      INSERT INTO ZOTHER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
      INSERT INTO ZPART (Z_PK, Z_ENT, Z_OPT, ZITEM, ZW, ZITEMNAME, ZSTAMP)
        VALUES (1, 3, 1, 1, 2, 'i', 100.5), (2, 3, 1, 1, 3, 'i', 100.5);
      UPDATE Z_PRIMARYKEY SET Z_MAX = 2;
      """)
    return store
  }

  private let stamps = "SELECT ZSTAMP = 100.5, ZSTAMP = 0 FROM ZPART ORDER BY Z_PK"

  @Test func `that is the time of the change is so for each object that is changed`() throws {
    let store = try weights()
    try store.run { store in
      try store.fetch("Part")[0].setValue(7, forKey: "w")
      _ = try store.insert("Part")
    }
    let (kept, now) = (
      [SQLiteValue.integer(1), .integer(0)], [SQLiteValue.integer(0), .integer(1)]
    )
    #expect(try store.rows(stamps) == [now, kept, now])
  }

  /// Core Data's triggers call a function for it.
  @Test func `that is the time of the change is so where a trigger keeps it, too`() throws {
    let store = try weights()
    let connection = try Connection(path: store.path.string, mode: .readWrite)
    try connection.registerNumber(CarriedTriggers.now, 1)
    try connection.execute(
      """
      CREATE TRIGGER Z_DA_ZPART_Part_stamp_UPDATE AFTER UPDATE OF ZW ON ZPART BEGIN
        UPDATE ZPART SET ZSTAMP = NSCoreDataNow() WHERE Z_PK = NEW.Z_PK; END
      """)
    try connection.close()
    try store.run { try $0.fetch("Part")[1].setValue(7, forKey: "w") }
    #expect(
      try store.rows(stamps) == [[.integer(1), .integer(0)], [.integer(0), .integer(1)]])
  }

  @Test(
    arguments: [
      ("Item", "Item.sum Part.itemName"), ("Part", "Item.sum Part.itemName"), ("Other", ""),
    ])
  func `that leads to other objects is named where these are changed`(
    changed: String, named: String
  ) throws {
    let store = try weights()
    let outcome = try store.run { store in
      let object = try store.fetch(EntityName(changed))[0]
      if changed == "Part" {
        try store.delete(object)
      } else {
        try object.setValue("x", forKey: "name")
      }
    }
    #expect(
      outcome.notes.allSatisfy { $0.kind == .note && $0.message.contains("not derived again") })
    #expect(
      outcome.notes.map { "\($0.entity ?? "").\($0.property ?? "")" }.joined(separator: " ")
        == named)
    #expect(
      try store.rows("SELECT ZSUM FROM ZITEM") == [[.integer(5)]])
  }

  @Test func `of a constraint may be exchanged between objects`() throws {
    let store = try parts(.nullify, hasInverse: true, isUnique: true)
    try store.run { store in
      let items = try store.fetch("Item")
      let (few, many) = (
        try items[0].objects(forKey: "parts"), try items[2].objects(forKey: "parts")
      )
      try items[0].setObjects(many, forKey: "parts")
      try items[2].setObjects(few, forKey: "parts")
    }
    #expect(
      try store.rows("SELECT ZN FROM ZITEM ORDER BY Z_PK")
        == [[.integer(3)], [.integer(2)], [.integer(1)]])
    let error = #expect(throws: StagedMigrationError.self) {
      try store.run { store in
        let item = try store.fetch("Item")[0]
        try store.delete(try item.objects(forKey: "parts")[0])
      }
    }
    #expect(error?.code == 1551)
  }

  /// Items and gifts, which are items, of different names in one table.
  private func names() throws -> StageFixture {
    var item = EntityDescription(
      name: "Item",
      properties: [
        attribute("name", .string), attribute("group", .integer16),
        attribute("plain", .string, derivation: "canonical:(name)"),
      ])
    item.uniquenessConstraints = [["group", "plain"]]
    let store = try StageFixture([item, EntityDescription(name: "Gift", superentity: "Item")])
    try store.run { store in
      for (name, entity) in [("A", "Item"), ("B", "Gift"), ("C", "Item")] {
        let object = try store.insert(EntityName(entity))
        try object.setValue(name, forKey: "name")
        try object.setValue(1, forKey: "group")
      }
    }
    return store
  }

  @Test func `of a constraint may be passed around, between entities of one table, too`() throws {
    let store = try names()
    try store.run { store in
      for (object, name) in zip(try store.fetch("Item"), ["B", "C", "A"]) {
        try object.setValue(name, forKey: "name")
      }
    }
    #expect(
      try store.rows("SELECT ZPLAIN FROM ZITEM ORDER BY Z_PK") == [
        [.text("b")], [.text("c")], [.text("a")],
      ])
  }

  @Test func `that follows from default values given to invalid rows is judged as theirs`() throws {
    var item = EntityDescription(
      name: "Item",
      properties: [
        attribute("name", .string, required: true, initial: .text("A")),
        attribute("plain", .string, derivation: "canonical:(name)"),
      ])
    item.uniquenessConstraints = [["plain"]]
    let store = try StageFixture([item])
    try store.execute("INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1)")
    let error = #expect(throws: CommitError.self) {
      try InvalidRowCleaning(.default, rejects: store.scratch.path.appending("rejects"))
        .clean(
          store.path, model: store.model,
          settings: .init(side: .destination, pattern: nil, runDate: 0))
    }
    guard case .givenValue("Item", "plain", "plain", let rows, true)? = error else {
      Issue.record("\(error as Any)")
      return
    }
    #expect(rows.primaryKeys == [2])
  }

  @Test(arguments: [
    ([2: "Á"], 2, "what the handler leaves alone"),
    ([1: "ç", 3: "Ç"], 3, "what the handler changes, too"),
  ])
  func `that breaks a constraint is an error that names its object`(
    changes: [Int: String], place: Int, why: String
  ) throws {
    let store = try names()
    let before = try store.rows("SELECT * FROM ZITEM ORDER BY Z_PK")
    let error = #expect(throws: StagedMigrationError.self) {
      try store.run { store in
        let objects = try store.fetch("Item")
        for (key, name) in changes { try objects[key - 1].setValue(name, forKey: "name") }
      }
    }
    #expect(error?.code == 1551, "\(why)")
    #expect(error?.description.contains("(Z_PK \(place))") == true, "\(why): \(error as Any)")
    #expect(error?.description.contains("plain") == true)
    #expect(try store.rows("SELECT * FROM ZITEM ORDER BY Z_PK") == before)
  }
}
