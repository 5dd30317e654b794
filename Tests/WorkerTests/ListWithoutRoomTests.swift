import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A list where there is room for one` {
  /// A box that has a list of things, or one.
  private static func boxes(of thing: EntityName, ordered: Bool = false) -> [EntityDescription] {
    let things =
      ordered
      ? toMany("item", thing, inverse: "box", ordered: true) : toOne("item", thing, inverse: "box")
    return [entity("Box", things), entity(thing, toOne("box", "Box", inverse: "item"))]
  }

  // Lists against the order of the keys, the form of the source and of the destination, and who keeps which.
  static let lists:
    [(
      name: String, old: [EntityDescription], rows: String, new: [EntityDescription], kept: [String]
    )] =
      [
        (
          "of a one-to-many", boxes(of: "Item", ordered: true),
          "UPDATE ZITEM SET ZBOX = 1 + Z_PK / 7, Z_FOK_BOX = 9 - Z_PK", boxes(of: "Item"),
          ["1 6", "2 8"]
        ),
        (
          "of a one-to-many, looked at from its items", boxes(of: "Aid", ordered: true),
          "UPDATE ZAID SET ZBOX = 1 + Z_PK / 7, Z_FOK_BOX = 9 - Z_PK", boxes(of: "Aid"),
          ["1 6", "2 8"]
        ),
        (
          // Box 1 comes first for item 6, so that the next of box 2 is left for it.
          "of a many-to-many",
          [
            entity("Box", toMany("item", "Item", inverse: "box", ordered: true)),
            entity("Item", toMany("box", "Box", inverse: "item")),
          ],
          """
          INSERT INTO Z_1ITEM (Z_1BOX, Z_2ITEM, Z_FOK_2ITEM)
          VALUES (1, 5, 3072), (1, 6, 2048), (2, 5, 5120), (2, 6, 2048), (2, 7, 4096), (2, 8, 3072)
          """,
          boxes(of: "Item"), ["1 6", "2 8"]
        ),
        (
          "of two relationships, of which each box has one",
          [
            entity("Box"),
            entity("Can", toMany("item", "Item", inverse: "can", ordered: true), parent: "Box"),
            entity("Jar", toMany("item", "Item", inverse: "jar", ordered: true), parent: "Box"),
            entity(
              "Item", toOne("can", "Can", inverse: "item"), toOne("jar", "Jar", inverse: "item")),
          ],
          """
          UPDATE ZBOX SET Z_ENT = 1 + Z_PK; UPDATE ZITEM SET Z_ENT = 4;
          UPDATE ZITEM SET ZCAN = 1, Z_FOK_CAN = 9 - Z_PK WHERE Z_PK < 7;
          UPDATE ZITEM SET ZJAR = 2, Z_FOK_JAR = 9 - Z_PK WHERE Z_PK > 6
          """,
          [
            entity("Box", toOne("item", "Item")), entity("Can", parent: "Box"),
            entity("Jar", parent: "Box"), entity("Item"),
          ], ["1 6", "2 8"]
        ),
      ]

  @Test(arguments: lists.indices, [1 << 24, 1] as [Int64])
  func `keeps the first by its place, with one shard and with a shard for every row`(
    list: Int, shardBytes: Int64
  ) throws {
    let list = Self.lists[list]
    let items = list.old.last?.name.rawValue ?? ""
    let table = "Z" + items.uppercased()
    // Numbers are in the order of the names.
    let (box, item): (Int, Int) = items == "Aid" ? (2, 1) : (1, 2)
    let fixture = try MigrationFixture(
      from: list.old, to: list.new,
      rows: """
        INSERT INTO ZBOX (Z_PK, Z_ENT, Z_OPT) VALUES (1, \(box), 1), (2, \(box), 1);
        INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT)
        VALUES (5, \(item), 1), (6, \(item), 1), (7, \(item), 1), (8, \(item), 1);
        \(list.rows)
        """)
    fixture.losses = .allow
    let store = try fixture.migrate(shardBytes: shardBytes)
    #expect(
      try store.table("SELECT Z_PK, ZITEM FROM ZBOX ORDER BY 1") == list.kept, "\(list.name)")
    guard list.new.last?.properties.isEmpty == false else { return }
    #expect(
      try store.table("SELECT ZBOX, Z_PK FROM \(table) WHERE ZBOX NOTNULL ORDER BY 1") == list.kept,
      "\(list.name)")
  }
}
