import GodwitObjectModel
import GodwitPlanning
import Testing

/// Its index lies over the table, which other sub-entities have, too.
@Suite struct `A uniqueness constraint of a sub-entity` {
  private static func model(_ constraints: [[String]]) -> [EntityDescription] {
    [
      EntityDescription(name: "P", isAbstract: true, properties: [attribute("a")]),
      EntityDescription(name: "S", superentity: "P", uniquenessConstraints: constraints),
      entity("T", parent: "P"),
    ]
  }

  // S has the keys 1 and 2, T 3 and 4.
  @Test(arguments: [
    ("x x y z", "S", [1, 2] as [Int64], "constraint occur more than once (2 objects, Z_PK 1, 2)"),
    ("x y z z", "T", [3, 4], "constraint of S occur more than once, in objects of T: it counts"),
    ("x y x z", "P", [1, 3], "in objects of S and T: it counts for the whole table of P (2"),
    ("x x x x", "P", [1, 2, 3, 4], "in objects of S and T: it counts for the whole table of P (4"),
  ])
  func `is refused with the entity that has the objects`(
    values: String, name: String, keys: [Int64], words: String
  ) throws {
    let value = values.split(separator: " ").map { "'\($0)'" }
    let fixture = try MigrationFixture(
      from: Self.model([]), to: Self.model([["a"]]),
      rows: """
        INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZA)
        VALUES (1, 2, 1, \(value[0])), (2, 2, 1, \(value[1])), (3, 3, 1, \(value[2])), (4, 3, 1, \(value[3]))
        """)
    guard case .refused(134_111, let reasons) = try fixture.outcome() else {
      Issue.record("not refused")
      return
    }
    #expect(reasons.map(\.reason) == ["uniqueness"])
    let reason = try #require(reasons.first)
    #expect(reason.entity == name && reason.property == "a")
    #expect(reason.primaryKeys == keys && reason.count == Int64(keys.count))
    #expect(reason.message.contains(words), "\(reason.message)")
  }
}
