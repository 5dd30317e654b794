import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning

private func attribute(
  _ name: String, _ type: AttributeType, required: Bool = false, isExternal: Bool = false,
  validation: [ValidationRule] = []
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, isOptional: !required), type: type,
      allowsExternalBinaryDataStorage: isExternal, validation: validation))
}

/// Two items and a special one, as their columns hold them.
private struct Shop {
  let scratch: Scratch
  let path: FilePath
  let model: EntityHierarchy

  init() throws {
    scratch = try Scratch()
    path = scratch.path.appending("store.sqlite")
    let item = EntityDescription(
      name: "Item",
      properties: [
        attribute("name", .string, required: true, validation: [.maximumLength(6)]),
        attribute("rank", .integer16, validation: [.minimum(0), .maximum(100)]),
        attribute("price", .decimal), attribute("id", .uuid), attribute("isNew", .boolean),
        attribute("photo", .binary, isExternal: true),
      ], uniquenessConstraints: [["name"]])
    let special = EntityDescription(
      name: "Special", superentity: "Item", properties: [attribute("until", .date)])
    model = try EntityHierarchy(ManagedObjectModel(entities: [item, special]))
    let schema = DestinationSchema(StoreLayout(model))
    let connection = try Connection(path: path.string, mode: .create)
    for statement in schema.statements { try connection.execute(statement.sql) }
    try connection.execute(
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPHOTO)
        VALUES (1, 1, 1, 'a', x'01FF'), (2, 2, 5, 'b', NULL), (7, 1, 1, 'c', NULL)
      """)
    for row in schema.primaryKeys(highestKeys: ["Item": 7]) {
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, ?)",
        [
          .integer(row.number), .text(row.name), .integer(row.superNumber),
          .integer(row.highestKey),
        ])
    }
    let metadata = StoreMetadata(uuid: "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0", plist: [:])
    _ = try connection.rows(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [
        .text("0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"), .blob(metadata.bytes(migratedTo: model)),
      ])
    try connection.close()
  }

  func run(_ handler: CustomMigrationStage.Handler) throws {
    try StageStore.run(handler, on: path, model: model)
  }

  func rows(_ sql: String) throws -> [[SQLiteValue]] {
    let connection = try Connection(path: path.string, mode: .immutable)
    let rows = try connection.rows(sql)
    try connection.close()
    return rows
  }
}

private let first = StageObjectID(entity: "Item", primaryKey: 1)

@Suite struct `A store between two versions` {
  @Test func `shows its objects, those of sub-entities under their own names`() throws {
    let shop = try Shop()
    try shop.run { store in
      var seen: [StageObjectID] = []
      try store.fetch("Item") { seen.append($0) }
      #expect(seen.map(\.primaryKey) == [1, 2, 7])
      #expect(seen.map(\.entity) == ["Item", "Special", "Item"])
      seen = []
      try store.fetch("Special") { seen.append($0) }
      #expect(seen == [StageObjectID(entity: "Special", primaryKey: 2)])
      #expect(try store.value(of: "name", for: first) == .text("a"))
      #expect(try store.value(of: "photo", for: first) == .blob([0xFF]))
      #expect(try store.value(of: "rank", for: first) == .null)
    }
  }

  @Test func `keeps what a handler sets, and counts one change for each object`() throws {
    let shop = try Shop()
    try shop.run { store in
      try store.fetch("Item") { object in
        try store.setValue(.integer(object.primaryKey), of: "rank", for: object)
        try store.setValue(.integer(1), of: "isNew", for: object)
      }
      try store.setValue(.blob([1, 2]), of: "photo", for: first)
    }
    #expect(
      try shop.rows("SELECT Z_PK, Z_OPT, ZRANK, ZISNEW FROM ZITEM ORDER BY Z_PK") == [
        [.integer(1), .integer(3), .integer(1), .integer(1)],
        [.integer(2), .integer(6), .integer(2), .integer(1)],
        [.integer(7), .integer(2), .integer(7), .integer(1)],
      ])
    #expect(try shop.rows("SELECT ZPHOTO FROM ZITEM WHERE Z_PK = 1") == [[.blob([1, 1, 2])]])
  }

  @Test func `is as it was when a handler throws`() throws {
    struct Stop: Error {}
    let shop = try Shop()
    let before = try shop.rows("SELECT * FROM ZITEM")
    #expect(throws: Stop.self) {
      try shop.run { store in
        try store.setValue(.text("x"), of: "name", for: first)
        throw Stop()
      }
    }
    #expect(try shop.rows("SELECT * FROM ZITEM") == before)
  }

  @Test(arguments: [
    ("rank", SQLiteValue.integer(32_768), 1550), ("rank", .integer(101), 1610),
    ("rank", .integer(-1), 1620), ("rank", .text("1"), 1550), ("isNew", .integer(2), 1550),
    ("name", .text("too long"), 1660), ("name", .text("b"), 1551), ("id", .blob([1]), 1550),
    ("price", .real(.infinity), 1550), ("until", .real(0), 1550), ("nothing", .null, 1550),
  ])
  func `refuses a value that the model does not allow`(
    name: String, value: SQLiteValue, code: Int
  ) throws {
    let shop = try Shop()
    let error = #expect(throws: StagedMigrationError.self) {
      try shop.run { try $0.setValue(value, of: name, for: first) }
    }
    #expect(error?.code == code)
  }

  @Test func `lets a required attribute be empty for a while only`() throws {
    let shop = try Shop()
    try shop.run { store in
      try store.setValue(.null, of: "name", for: first)
      try store.setValue(.text("d"), of: "name", for: first)
    }
    let error = #expect(throws: StagedMigrationError.self) {
      try shop.run { try $0.setValue(.null, of: "name", for: first) }
    }
    #expect(error?.code == 1570)
    #expect(try shop.rows("SELECT ZNAME FROM ZITEM WHERE Z_PK = 1") == [[.text("d")]])
  }

  @Test func `has no object of another entity or key`() throws {
    let shop = try Shop()
    for object in [
      StageObjectID(entity: "Item", primaryKey: 2), StageObjectID(entity: "Item", primaryKey: 3),
    ] {
      let error = #expect(throws: StagedMigrationError.self) {
        try shop.run { _ = try $0.value(of: "name", for: object) }
      }
      #expect(error?.code == 133_000)
    }
  }
}
