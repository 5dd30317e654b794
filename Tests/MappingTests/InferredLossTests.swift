import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `What inference leaves behind` {
  @Test func `names entities, attributes and relationships without a successor`() throws {
    let inferred = InferredMapping(
      source: try model(
        entity("A", attribute("gone"), attribute("kept"), attribute("old"), toOne("r", "A")),
        entity("B", attribute("p")), entity("C", attribute("p"), isAbstract: true)),
      destination: try model(entity("A", attribute("kept"), attribute("new", id: "old"))))
    #expect(
      inferred.losses.map { [$0.entity.rawValue, $0.property] } == [
        ["A", "gone"], ["A", "r"], ["B", nil],
      ])
  }

  @Test func `names a lost relationship and its inverse once, and none that one side keeps`() throws
  {
    let inferred = InferredMapping(
      source: try model(
        entity(
          "A", toMany("both", "B", inverse: "ofBoth"), toMany("one", "B", inverse: "ofOne"),
          toOne("dropped", "C")),
        entity("B", toOne("ofBoth", "A", inverse: "both"), toOne("ofOne", "A", inverse: "one")),
        entity("C")),
      destination: try model(entity("A", toMany("one", "B")), entity("B")))
    #expect(
      inferred.losses.map { [$0.entity.rawValue, $0.property] } == [["B", "ofBoth"], ["C", nil]])
  }

  /// `A.x` and `B.y` are inverses; either may be to-many, and either transient before and after.
  @Test(
    arguments: [
      // The pairs are the to-one's column.
      (Side(isToMany: true), Side(), Side(isToMany: true), Side(isTransient: true), ["B.y"]),
      (Side(isToMany: true), Side(), Side(isToMany: true, isTransient: true), Side(), []),
      // Each to-one has a column, and either to-many has the join table made.
      (Side(), Side(), Side(), Side(isTransient: true), []),
      (Side(), Side(), Side(isTransient: true), Side(isTransient: true), ["A.x"]),
      (
        Side(isToMany: true), Side(isToMany: true), Side(isToMany: true, isTransient: true),
        Side(isToMany: true), []
      ),
      // What had no place has nothing to lose, and the other side speaks for itself.
      (Side(isToMany: true), Side(isTransient: true), nil, nil, []),
      (Side(isTransient: true), Side(), nil, nil, ["B.y"]),
      (Side(isToMany: true, isTransient: true), Side(isToMany: true), nil, nil, ["B.y"]),
    ] as [(Side, Side, Side?, Side?, [String])])
  func `names a relationship that no longer has a place in the store`(
    x: Side, y: Side, newX: Side?, newY: Side?, expected: [String]
  ) throws {
    func sides(_ x: Side?, _ y: Side?) throws -> EntityHierarchy {
      try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "A", properties: x.map { [$0.property("x", to: "B", inverse: "y")] } ?? []),
          EntityDescription(
            name: "B", properties: y.map { [$0.property("y", to: "A", inverse: "x")] } ?? []),
        ]))
    }
    let inferred = InferredMapping(source: try sides(x, y), destination: try sides(newX, newY))
    #expect(inferred.losses.map { "\($0.entity).\($0.property ?? "-")" } == expected)
  }

  struct Side: Sendable {
    var isToMany = false
    var isTransient = false

    func property(
      _ name: String, to destination: EntityName, inverse: String
    ) -> PropertyDescription {
      isToMany
        ? toMany(name, destination, transient: isTransient, inverse: inverse)
        : toOne(name, destination, transient: isTransient, inverse: inverse)
    }
  }

  @Test func `has the elements of composites that go or change their type`() throws {
    func place(_ elements: PropertyDescription...) -> EntityDescription {
      entity(
        "A",
        .attribute(
          AttributeDescription(
            traits: PropertyTraits(name: "place"), type: .composite,
            compositeElements: elements.compactMap(\.attribute))))
    }
    let inferred = InferredMapping(
      source: try model(
        place(attribute("street"), attribute("zip", .integer32), attribute("town"))),
      destination: try model(place(attribute("street"), attribute("zip"), attribute("new"))))
    #expect(
      inferred.losses.map(\.message) == [
        "A.place.zip becomes String: its values would be dropped",
        "A.place.town has no successor: its values would be dropped",
      ])
  }
}
