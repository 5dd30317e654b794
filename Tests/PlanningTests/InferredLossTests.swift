import GodwitMapping
import GodwitObjectModel
import Testing

@testable import GodwitPlanning

private func model(_ entities: EntityDescription...) throws -> EntityHierarchy {
  try EntityHierarchy(ManagedObjectModel(entities: entities))
}

private func entity(
  _ name: EntityName, _ properties: PropertyDescription..., parent: EntityName? = nil,
  isAbstract: Bool = false
) -> EntityDescription {
  EntityDescription(
    name: name, superentity: parent, isAbstract: isAbstract, properties: properties)
}

private func attribute(
  _ name: String, _ type: AttributeType = .string, id: String? = nil, derived: String? = nil
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, renamingIdentifier: id), type: type,
      derivationExpression: derived))
}

private func toOne(
  _ name: String, _ destination: EntityName, inverse: String? = nil
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name), destinationEntity: destination, inverseName: inverse))
}

private func toMany(
  _ name: String, _ destination: EntityName, inverse: String? = nil, ordered: Bool = false,
  transient: Bool = false
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name, isTransient: transient), destinationEntity: destination,
      inverseName: inverse, maxCount: 0, isOrdered: ordered))
}

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
      inferred.losses.map { [$0.entity.rawValue, $0.property] } == [
        ["A", "dropped"], ["B", "ofBoth"], ["C", nil],
      ])
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
        "A.place.zip has no element of its key path and type: its values would be dropped",
        "A.place.town has no element of its key path and type: its values would be dropped",
      ])
  }

  /// `A` before and after, beside `B` with a to-one to it.
  @Test(
    arguments: [
      // The pairs stay, and nothing keeps their order.
      (
        entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
        entity("A", toMany("bs", "B", inverse: "a")),
        "The order of A.bs is not kept: the places of its members would be dropped"
      ),
      (
        entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
        entity("A", toMany("bs", "B", inverse: "a", ordered: true, transient: true)),
        "The order of A.bs is not kept: the places of its members would be dropped"
      ),
      (
        entity("A", attribute("n", .integer64)),
        entity("A", attribute("n", .integer64, derived: "x.y")),
        "A.n becomes derived: its values would be dropped, and derived when Core Data saves an object"
      ),
      // Nothing is lost.
      (
        entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
        entity("A", toMany("bs", "B", inverse: "a", ordered: true), attribute("n")), nil
      ),
      (
        entity("A", toMany("bs", "B", inverse: "a")),
        entity("A", toMany("bs", "B", inverse: "a", ordered: true)), nil
      ),
      // Only the values tell.
      (
        entity("A", attribute("n", .integer64)), entity("A", attribute("n", .integer16)), nil
      ),
    ] as [(EntityDescription, EntityDescription, String?)])
  func `names what a migration would count`(
    before: EntityDescription, after: EntityDescription, message: String?
  ) throws {
    func whole(_ a: EntityDescription) throws -> EntityHierarchy {
      let isInverse = a.properties.contains { $0.name == "bs" }
      return try model(a, entity("B", toOne("a", "A", inverse: isInverse ? "bs" : nil)))
    }
    let inferred = InferredMapping(source: try whole(before), destination: try whole(after))
    #expect(inferred.losses.map(\.message) == [message].compactMap(\.self))
  }

  @Test func `names the order that goes with its side of a relationship`() throws {
    let inferred = InferredMapping(
      source: try model(
        entity("A", toMany("bs", "B", inverse: "a", ordered: true)),
        entity("B", toOne("a", "A", inverse: "bs"))),
      destination: try model(entity("A"), entity("B", toOne("a", "A"))))
    #expect(inferred.losses.map { [$0.entity.rawValue, $0.property] } == [["A", "bs"]])
  }

  @Test func `names references to objects that are no longer what they may point to`() throws {
    func models(_ parent: EntityName?) throws -> EntityHierarchy {
      try model(
        entity("Kid", parent: parent), entity("Person"), entity("Place", toOne("owner", "Person")))
    }
    let inferred = InferredMapping(source: try models("Person"), destination: try models(nil))
    #expect(
      inferred.losses.map(\.message) == [
        "Place.owner may no longer point to Kid: its references would be dropped"
      ])
  }
}
