import GodwitExpressions
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitPersistentStore
@testable import GodwitPlanning
@testable import GodwitStagedObjects

/// Beds with a list of plants: a plant's bed and name are unique together. A plant has a label of its own.
private func garden() throws -> StageFixture {
  let garden = try StageFixture([
    EntityDescription(
      name: "Bed",
      properties: [
        relationship("plants", "Plant", inverse: "bed", many: true, ordered: true),
        relationship("spare", "Plant", inverse: "spareOf", many: true),
      ]),
    EntityDescription(
      name: "Plant",
      properties: [
        attribute("name", .string), relationship("bed", "Bed", inverse: "plants"),
        relationship("spareOf", "Bed", inverse: "spare"),
        relationship("label", "Tag", inverse: "plants"),
        relationship("mark", "Tag", inverse: "marked"),
        attribute(
          "place", .composite,
          elements: [
            AttributeDescription(
              traits: PropertyTraits(name: "point"), type: .composite,
              compositeElements: [
                AttributeDescription(traits: PropertyTraits(name: "x"), type: .double)
              ]), AttributeDescription(traits: PropertyTraits(name: "street"), type: .string),
          ]),
      ], uniquenessConstraints: [["bed", "name"], ["label"], ["mark"]]),
    EntityDescription(
      name: "Tag",
      properties: [
        relationship("marked", "Plant", inverse: "mark"),
        relationship("plants", "Plant", inverse: "label", many: true),
      ]),
  ])
  try garden.execute(
    """
    INSERT INTO ZBED (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
    INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1), (2, 3, 1), (3, 3, 1);
    INSERT INTO ZPLANT (Z_PK, Z_ENT, Z_OPT, ZNAME, ZBED, Z_FOK_BED, ZLABEL, ZMARK)
      VALUES (1, 2, 1, 'a', 1, 2048, 1, 1), (2, 2, 1, 'b', 1, 3072, 2, NULL), (3, 2, 1, 'a', 2, 2048, 3, NULL);
    UPDATE Z_PRIMARYKEY SET Z_MAX = 3;
    """)
  return garden
}

@Suite struct `A change that a uniqueness constraint refuses` {
  typealias Change = @Sendable (StageContext, (EntityName, Int64) -> StageObject) throws -> Void

  private static let all = """
    SELECT Z_PK, Z_OPT, ZNAME, ZBED, Z_FOK_BED, ZLABEL, ZMARK FROM ZPLANT ORDER BY Z_PK
    """

  /// What is changed, and the property of the row that would break a constraint.
  private static let changes: [(String, Change)] = [
    ("Plant.label", { try $1("Plant", 2).setObject($1("Tag", 1), forKey: "label") }),
    // From the other side, where one of two is refused.
    (
      "Plant.label",
      { try $1("Tag", 1).setObjects([$1("Plant", 3), $1("Plant", 2)], forKey: "plants") }
    ),
    ("Plant.label", { try $1("Tag", 1).add($1("Plant", 2), toKey: "plants") }),
    // Of another bed, which would lose it.
    ("Plant.bed", { try $1("Plant", 3).setObject($1("Bed", 1), forKey: "bed") }),
    ("Plant.bed", { try $1("Bed", 1).add($1("Plant", 3), toKey: "plants") }),
    (
      "Plant.bed",
      { _, find in
        try find("Bed", 1).setObjects(
          [find("Plant", 2), find("Plant", 3), find("Plant", 1)], forKey: "plants")
      }
    ), ("Plant.name", { try $1("Plant", 2).setValue("a", forKey: "name") }),
  ]

  @Test(arguments: changes.indices)
  func `is not made in part, where the handler goes on`(number: Int) throws {
    let (name, change) = Self.changes[number]
    let garden = try garden()
    let before = try garden.rows(Self.all)
    let outcome = try garden.run { store in
      let find: (EntityName, Int64) -> StageObject = {
        store.object(ObjectReference($0, $1, in: .source))
      }
      let error = #expect(throws: StagedMigrationError.self) { try change(store, find) }
      #expect(error?.code == 1551)
      #expect(error.map { "\($0)" }?.hasPrefix("\(name): ") == true)
    }
    #expect(try garden.rows(Self.all) == before)
    #expect(outcome.changed == 0)
  }

  /// Lists go on where they ended before, and what is changed afterwards is noted.
  @Test func `leaves nothing behind for the next`() throws {
    let garden = try garden()
    let outcome = try garden.run { store in
      let find: (EntityName, Int64) -> StageObject = {
        store.object(ObjectReference($0, $1, in: .source))
      }
      let bed = find("Bed", 1)
      #expect(throws: StagedMigrationError.self) {
        try bed.add(find("Plant", 3), toKey: "plants")
      }
      try find("Plant", 3).setValue("c", forKey: "name")
      try bed.add(find("Plant", 3), toKey: "plants")
    }
    #expect(
      try garden.rows("SELECT Z_PK, Z_OPT, ZBED, Z_FOK_BED FROM ZPLANT ORDER BY Z_PK")
        == [
          [1, 1, 1, 2048], [2, 1, 1, 3072], [3, 2, 1, 4096],
        ].map { (row: [Int64]) in row.map { SQLiteValue.integer($0) } })
    // With the two beds.
    #expect(outcome.changed == 3)
  }

  /// The object that a one-to-one relationship is taken from has it no more, so that nothing is broken.
  @Test func `is none where the constraint is kept`() throws {
    let garden = try garden()
    try garden.run { store in
      try store.object(ObjectReference("Plant", 2, in: .source))
        .setObject(store.object(ObjectReference("Tag", 1, in: .source)), forKey: "mark")
    }
    #expect(
      try garden.rows("SELECT ZMARK FROM ZPLANT ORDER BY Z_PK") == [
        [.null], [.integer(1)], [.null],
      ])
  }
}

@Suite struct `A handler` {
  /// A predicate, and the keys of the plants that are found; nil for an error.
  @Test(
    arguments: [
      ("place.street == 'x'", [1]), ("place.street == nil", [2, 3]), ("place.point.x > 1", [1]),
      ("place.point == nil", [2, 3]), ("place == nil", [2, 3]),
      ("bed.plants.place.street == nil", []), ("ANY bed.plants.place.street == 'x'", [1, 2]),
      ("place.strret == 'x'", nil), ("place.strret == nil", nil), ("place.point.y == nil", nil),
      ("place.street.x == nil", nil), ("ANY bed.plants.place.strret == nil", nil),
    ] as [(String, [Int64]?)])
  func `finds objects by elements of composite attributes that there are`(
    predicate: String, keys: [Int64]?
  ) throws {
    let garden = try garden()
    try garden.execute("UPDATE ZPLANT SET ZSTREET = 'x', ZX = 1.5 WHERE Z_PK = 1")
    try garden.run { store in
      guard let keys else {
        #expect(throws: EvaluationError.self) { try store.fetch("Plant", where: predicate) }
        return
      }
      let found = try store.fetch("Plant", where: predicate)
      #expect(found.map(\.primaryKey) == keys)
    }
  }

  /// What a handler does with a context and a plant that an earlier call kept, and with its own context.
  private typealias Use = @Sendable (StageContext, StageObject, StageContext) throws -> Void

  private static let uses: [(what: String, Use)] = [
    ("fetches", { old, _, _ in _ = try old.fetch("Plant") }),
    ("counts", { old, _, _ in _ = try old.count("Plant") }),
    ("inserts", { old, _, _ in _ = try old.insert("Plant") }),
    ("deletes", { old, plant, _ in try old.delete(plant) }),
    (
      "asks for an object",
      { old, plant, _ in
        _ = try old.object(plant.reference).value(forKey: "name")
      }
    ),
    ("reads", { _, plant, _ in _ = try plant.value(forKey: "name") }),
    ("writes", { _, plant, _ in try plant.setValue("x", forKey: "name") }),
    ("looks whether it is there", { _, plant, _ in _ = try plant.isDeleted }),
    ("deletes in the store at hand", { _, plant, new in try new.delete(plant) }),
    (
      "sets an object",
      { _, plant, new in
        try new.fetch("Tag")[0].setObject(plant, forKey: "marked")
      }
    ),
    (
      "sets objects",
      { _, plant, new in
        try new.fetch("Bed")[0].setObjects([plant], forKey: "plants")
      }
    ),
    ("adds an object", { _, plant, new in try new.fetch("Bed")[0].add(plant, toKey: "plants") }),
  ]

  @Test(arguments: uses.indices)
  func `is told that what an earlier call kept is over, whatever it`(number: Int) throws {
    let garden = try garden()
    nonisolated(unsafe) var kept: (context: StageContext, plant: StageObject)?
    try garden.run { kept = ($0, try $0.fetch("Plant")[0]) }
    nonisolated(unsafe) let context = try #require(kept?.context)
    nonisolated(unsafe) let plant = try #require(kept?.plant)
    let reference = plant.reference
    let (what, use) = Self.uses[number]
    let before = try garden.rows("SELECT * FROM ZPLANT ORDER BY Z_PK")
    #expect(throws: StagedMigrationError.callIsOver, "\(what)") {
      try garden.run { try use(context, plant, $0) }
    }
    #expect(try garden.rows("SELECT * FROM ZPLANT ORDER BY Z_PK") == before)
    // Its reference is good.
    try garden.run { try $0.object(reference).setValue("kept", forKey: "name") }
    #expect(
      try garden.rows("SELECT ZNAME FROM ZPLANT WHERE Z_PK = \(reference.primaryKey)")
        == [[.text("kept")]])
  }

  /// As `willMigrate` remembers references for `didMigrate`.
  @Test func `may use references that name the other store`() throws {
    let garden = try garden()
    #expect(garden.side == .source)
    try garden.run { store in
      func other(_ entity: EntityName, _ key: Int64) -> ObjectReference {
        ObjectReference(entity, key, in: .destination)
      }
      let plant = store.object(other("Plant", 2))
      let found = try store.fetch("Plant")[1]
      #expect(plant == found)
      // A tag that another plant has, whose own reference goes.
      try plant.setValue(.object(other("Tag", 1)), forKey: "mark")
      #expect(try store.object(other("Plant", 1)).object(forKey: "mark") == nil)
      #expect(try store.object(other("Tag", 1)).object(forKey: "marked") == plant)
      try plant.setObject(store.object(other("Tag", 2)), forKey: "mark")
      #expect(try store.object(other("Tag", 1)).object(forKey: "marked") == nil)
      let list = [2, 1].map { ExpressionValue.object(other("Plant", $0)) }
      try store.object(other("Bed", 1)).setValue(.array(list), forKey: "plants")
    }
    #expect(
      try garden.rows("SELECT ZMARK, Z_FOK_BED FROM ZPLANT ORDER BY Z_PK") == [
        [.null, .integer(3072)], [.integer(2), .integer(2048)], [.null, .integer(2048)],
      ])
    #expect(
      try garden.rows("SELECT ZMARKED FROM ZTAG ORDER BY Z_PK") == [
        [.null], [.integer(2)], [.null],
      ])
  }

  @Test func `may delete an object again that is gone`() throws {
    let garden = try garden()
    try garden.run { store in
      let plant = try store.fetch("Plant")[0]
      try store.delete(plant)
      try store.delete(plant)
      #expect(try plant.isDeleted && store.count("Plant") == 2)
    }
    #expect(
      try garden.rows("SELECT Z_PK FROM ZPLANT ORDER BY 1") == [[.integer(2)], [.integer(3)]])
  }
}
