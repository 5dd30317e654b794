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
