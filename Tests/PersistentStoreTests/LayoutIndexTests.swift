import GodwitObjectModel
import GodwitPersistentStore
import Testing

@Suite struct `The indexes of a store layout` {
  @Test(arguments: [
    FetchIndexDescription(name: "i", elements: [.init(propertyName: "x", isRTree: true)]),
    FetchIndexDescription(
      name: "i", elements: [.init(propertyName: "x")], partialIndexPredicate: "x > 3"),
    FetchIndexDescription(name: "i", elements: [.init(propertyName: nil, expression: "x + 1")]),
    FetchIndexDescription(
      name: "i", elements: [.init(propertyName: "x"), .init(propertyName: "gone")]),
    FetchIndexDescription(
      name: "i", elements: [.init(propertyName: "next")], partialIndexPredicate: "x > 3"),
    FetchIndexDescription(
      name: "i",
      elements: [.init(propertyName: "next"), .init(propertyName: nil, expression: "x + 1")]),
  ])
  func `leave one out whose SQL is not known, and say so`(index: FetchIndexDescription) throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Place",
        properties: [
          .attribute("x", .double),
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "next"), destinationEntity: "Place")),
        ], fetchIndexes: [index]))
    let layout = StoreLayout(hierarchy)
    #expect(layout.tables.flatMap(\.indexes).map(\.name) == ["ZPLACE_ZNEXT_INDEX"])
    #expect(layout.problems == [.unknownIndex("i", of: "Place")])
    #expect(layout.notes.count == 1 && layout.notes[0].contains("The index i of Place is not made"))
    try layout.requireUsable()
  }

  @Test func `leave one out on an attribute that has a relationship's name, and say so`() throws {
    let tag = FetchIndexDescription(name: "byTag", elements: [.init(propertyName: "tag")])
    let layout = StoreLayout(
      try EntityHierarchy(
        EntityDescription(name: "Root", isAbstract: true, properties: []),
        EntityDescription(
          name: "Car", superentity: "Root",
          properties: [
            .relationship(
              RelationshipDescription(
                traits: PropertyTraits(name: "tag"), destinationEntity: "Root"))
          ], fetchIndexes: [tag]),
        EntityDescription(
          name: "Dog", superentity: "Root", properties: [.attribute("tag", .string)],
          fetchIndexes: [tag])))
    // Of the relationship the automatic one serves.
    #expect(
      layout.tables.flatMap(\.indexes).map(\.sql) == [
        "CREATE INDEX ZROOT_ZTAG_INDEX ON ZROOT (ZTAG)",
        "CREATE INDEX ZROOT_Z_ENT_INDEX ON ZROOT (Z_ENT)",
      ])
    #expect(layout.problems == [.unknownIndex("byTag", of: "Dog")])
  }

  @Test(arguments: [["gone"], ["x", "gone"], ["places"]])
  func `leave out a uniqueness constraint over what has no column, and say so`(
    properties: [String]
  ) throws {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Place",
        properties: [
          .attribute("x", .double),
          .relationship(
            RelationshipDescription(
              traits: PropertyTraits(name: "places"), destinationEntity: "Place", maxCount: 0)),
        ], uniquenessConstraints: [properties, ["x"]]))
    let layout = StoreLayout(hierarchy)
    let unique = layout.tables.flatMap(\.indexes).map(\.name).filter { $0.contains("UNIQUE") }
    #expect(unique == ["Z_Place_UNIQUE_x"])
    #expect(layout.problems == [.unknownConstraint(properties, of: "Place")])
    #expect(
      layout.notes == [
        "The uniqueness constraint Place (\(properties.joined(separator: ", "))) is not kept: not every "
          + "property of it has a column of its own, or another index has its name, and how "
          + "Core Data keeps such a one is not known."
      ])
    try layout.requireUsable()
  }

  @Test func `leave out a uniqueness constraint whose index has another one's name, and say so`()
    throws
  {
    let hierarchy = try EntityHierarchy(
      EntityDescription(
        name: "Place", properties: ["n", "m", "n_m"].map { .attribute($0, .string) },
        uniquenessConstraints: [["n", "m"], ["n_m"]]))
    let layout = StoreLayout(hierarchy)
    let unique = layout.tables.flatMap(\.indexes).map(\.name).filter { $0.contains("UNIQUE") }
    #expect(unique == ["Z_Place_UNIQUE_n_m"])
    #expect(layout.problems == [.unknownConstraint(["n_m"], of: "Place")])
  }

  @Test func `keep a uniqueness constraint that is listed twice by one index`() throws {
    let layout = StoreLayout(
      try EntityHierarchy(
        EntityDescription(
          name: "Place", properties: [.attribute("n", .string)],
          uniquenessConstraints: [["n"], ["n"]])))
    #expect(layout.tables.flatMap(\.indexes).map(\.name) == ["Z_Place_UNIQUE_n"])
    #expect(layout.problems.isEmpty)
  }

  @Test func `leave out a uniqueness constraint whose index has a fetch index's name, and say so`()
    throws
  {
    let layout = StoreLayout(
      try EntityHierarchy(
        EntityDescription(
          name: "Place", properties: [.attribute("n", .string)], uniquenessConstraints: [["n"]],
          fetchIndexes: [
            FetchIndexDescription(name: "UNIQUE_n", elements: [.init(propertyName: "n")])
          ])))
    #expect(layout.tables.flatMap(\.indexes).map(\.isUnique) == [false])
    #expect(layout.problems == [.unknownConstraint(["n"], of: "Place")])
  }
}
