import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitFixtures
@testable import StoreFixtures

@Suite struct `A generated derived attribute` {
  private func boxes(_ type: AttributeType) -> ManagedObjectModel {
    ManagedObjectModel(entities: [
      EntityDescription(
        name: "Box",
        properties: [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "n", isOptional: false), type: type,
              derivationExpression: "items.@count")),
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "items"), destinationEntity: "Item",
              inverseName: "box", maxCount: 0)),
        ]),
      EntityDescription(
        name: "Item",
        properties: [
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "box"), destinationEntity: "Box", inverseName: "items"))
        ]),
    ])
  }

  @Test(
    arguments: [
      (.integer16, true), (.integer64, true), (.decimal, true), (.double, true), (.date, true),
      (.boolean, false), (.string, false), (.binary, false), (.uuid, false), (.uri, false),
      (.transformable, false),
    ] as [(AttributeType, Bool)])
  func `counts members where numbers are values of its type, and is NULL elsewhere`(
    type: AttributeType, counts: Bool
  ) throws {
    let scratch = try Scratch()
    try StoreGenerator(boxes(type), options: StoreOptions(seed: 1, rows: 9))
      .write(to: scratch.path("a.sqlite"))
    let store = try Connection(path: scratch.path("a.sqlite"), mode: .immutable)
    let members = "(SELECT count(*) FROM ZITEM WHERE ZBOX = b.Z_PK)"
    #expect(
      try store.rows("SELECT count(*) FROM ZBOX AS b WHERE ZN IS \(counts ? members : "NULL")")
        == [[.integer(9)]])
  }

  @Test func `is refused a number of members that its type cannot hold`() throws {
    let scratch = try Scratch()
    var options = StoreOptions(seed: 1, rows: 32_767)
    options.rowsByEntity = ["Box": 1]
    options.nullFraction = 0
    try StoreGenerator(boxes(.integer16), options: options).write(to: scratch.path("a.sqlite"))
    options.rows += 1
    #expect(
      throws: FixtureError.tooManyMembers(property: "Box.n", relationship: "items", most: 32_767)
    ) {
      try StoreGenerator(boxes(.integer16), options: options).write(to: scratch.path("b.sqlite"))
    }
    try StoreGenerator(boxes(.integer32), options: options).write(to: scratch.path("c.sqlite"))
  }
}
