import GodwitMapping
import GodwitObjectModel
import Testing

/// One change of a model, with what inference makes of it.
struct Change: Sendable, CustomStringConvertible {
  let description: String
  let old: EntityDescription
  let new: EntityDescription
  var refusals: [String] = []
  var conditions: [String] = []
  var notes: [InferenceNote.Kind] = []

  init(
    _ description: String, _ old: EntityDescription, _ new: EntityDescription,
    refusals: [String] = [], conditions: [String] = [], notes: [InferenceNote.Kind] = []
  ) {
    self.description = description
    self.old = old
    self.new = new
    self.refusals = refusals
    self.conditions = conditions
    self.notes = notes
  }

  /// The property `p` changes, beside an entity `B`.
  static func property(
    _ description: String, _ old: PropertyDescription?, _ new: PropertyDescription?,
    refusals: [String] = [], conditions: [String] = [], notes: [InferenceNote.Kind] = []
  ) -> Change {
    func entityA(_ property: PropertyDescription?) -> EntityDescription {
      EntityDescription(name: "A", properties: property.map { [$0] } ?? [])
    }
    return Change(
      description, entityA(old), entityA(new), refusals: refusals, conditions: conditions,
      notes: notes)
  }

  static let all: [Change] = [
    .property("an optional attribute is added", nil, attribute("p")),
    .property(
      "a required attribute with a default is added", nil,
      attribute("p", .integer32, optional: false, default: .integer(4))),
    .property(
      "a required attribute without a default is added", nil, attribute("p", optional: false),
      conditions: ["noRows A: required-without-default A.p 134110 documented"]),
    // It may be absent, and its elements with it.
    .property(
      "a required composite attribute is added", nil, attribute("p", .composite, optional: false)),
    .property(
      "a composite attribute becomes required", attribute("p", .composite),
      attribute("p", .composite, optional: false)),
    .property("an attribute is removed", attribute("p"), nil),
    .property("a relationship is removed", toMany("p", "B"), nil),
    .property(
      "an attribute is renamed", attribute("p"), attribute("q", id: "p"),
      notes: [.renamedProperty]),
    .property(
      "a relationship is renamed", toOne("p", "B"), toOne("q", "B", id: "p"),
      notes: [.renamedProperty]),
    Change(
      "an entity is renamed", entity("A", attribute("p")), entity("C", attribute("p"), id: "A"),
      notes: [.renamedEntity]),
    .property(
      "a required attribute becomes optional", attribute("p", optional: false), attribute("p")),
    .property(
      "an optional attribute becomes required with a default", attribute("p", .integer16),
      attribute("p", .integer16, optional: false, default: .integer(0))),
    .property(
      "an optional attribute becomes required without a default", attribute("p"),
      attribute("p", optional: false),
      conditions: ["noNulls A.p: required-without-default A.p 134110 documented"]),
    .property(
      "a renamed attribute becomes required", attribute("o"),
      attribute("p", optional: false, id: "o"),
      conditions: ["noNulls A.o: required-without-default A.p 134110 documented"],
      notes: [.renamedProperty]),
    .property(
      "a required attribute stays required", attribute("p", optional: false),
      attribute("p", optional: false)),
    .property(
      "a derived attribute is required", nil,
      attribute("p", .integer64, optional: false, derived: "count:(b)")),
    .property(
      "a required derived attribute becomes one like any other",
      attribute("p", optional: false, derived: "b.p"), attribute("p", optional: false),
      conditions: ["noNulls A.p: required-without-default A.p 134110 documented"]),
    .property(
      "a required derived attribute becomes one with a default",
      attribute("p", optional: false, derived: "b.p"),
      attribute("p", optional: false, default: .text(""))),
    Change(
      "an attribute begins to count", entity("A", toMany("p", "B")),
      entity("A", toMany("p", "B"), attribute("n", .integer16, derived: "p.@count")),
      conditions: ["at most 32767 A.p: count-out-of-range A.n 134110 unspecified"]),
    Change(
      "an attribute begins to count in a wide type", entity("A", toMany("p", "B")),
      entity("A", toMany("p", "B"), attribute("n", .integer64, derived: "p.@count"))),
    Change(
      "an attribute goes on to count",
      entity("A", toMany("p", "B"), attribute("n", .integer16, derived: "p.@count")),
      entity(
        "A", toMany("q", "B", id: "p"), attribute("m", .integer16, id: "n", derived: "q.@count")),
      notes: [.renamedProperty, .renamedProperty]),
    .property("a number widens", attribute("p", .integer16), attribute("p", .integer64)),
    .property("an integer becomes double", attribute("p", .integer32), attribute("p", .double)),
    .property(
      "a long integer becomes double", attribute("p", .integer64), attribute("p", .double),
      notes: [.narrowing]),
    .property(
      "a number narrows", attribute("p", .integer64), attribute("p", .integer16),
      notes: [.narrowing]),
    .property(
      "a number becomes a boolean", attribute("p", .integer16), attribute("p", .boolean),
      notes: [.narrowing]),
    .property(
      "a double becomes decimal", attribute("p", .double), attribute("p", .decimal),
      notes: [.narrowing]),
    .property(
      "a number becomes a string", attribute("p", .integer16), attribute("p", .string),
      refusals: ["attribute-type A.p 134190 documented"]),
    .property(
      "a date becomes a double", attribute("p", .date), attribute("p", .double),
      refusals: ["attribute-type A.p 134190 documented"]),
    .property(
      "a transformable becomes binary", attribute("p", .transformable), attribute("p", .binary),
      refusals: ["attribute-type A.p 134190 documented"]),
    .property(
      "an attribute becomes composite", attribute("p"), attribute("p", .composite),
      refusals: ["attribute-type A.p 134190 documented"]),
    .property("an attribute becomes a relationship", attribute("p"), toOne("p", "B")),
    .property("an optional relationship is added", nil, toOne("p", "B")),
    Change(
      "two relationships become inverses",
      entity("A", toMany("p", "A"), toMany("q", "A")),
      entity("A", toMany("p", "A", inverse: "q"), toMany("q", "A", inverse: "p")),
      notes: [.inverseDecides]),
    .property(
      "a required relationship is added", nil, toOne("p", "B", optional: false),
      conditions: ["noRows A: required-relationship A.p 134110 documented"]),
    .property("a required to-many is added", nil, toMany("p", "B", optional: false)),
    .property(
      "a to-many that asks for one is added", nil, toMany("p", "B", optional: false, minimum: 1),
      conditions: ["noRows A: required-relationship A.p 134110 unspecified"]),
    .property(
      "a to-one becomes required", toOne("p", "B"), toOne("p", "B", optional: false),
      conditions: ["noNulls A.p: required-relationship A.p 134110 documented"]),
    .property(
      "a to-one becomes a to-many", toOne("p", "B"), toMany("p", "B"),
      conditions: ["room A.p: shared-targets A.p 134110 unspecified"]),
    .property(
      "a to-many becomes a to-one", toMany("p", "B"), toOne("p", "B"),
      conditions: ["room A.p: to-many-to-one A.p 134110 unspecified"]),
    .property("a to-many becomes ordered", toMany("p", "B"), toMany("p", "B", ordered: true)),
    .property("a to-many becomes unordered", toMany("p", "B", ordered: true), toMany("p", "B")),
    .property(
      "a relationship leads elsewhere", toOne("p", "B"), toOne("p", "A"),
      refusals: ["relationship-destination A.p 134190 documented"]),
    .property(
      "a transient attribute becomes persistent", attribute("p", transient: true),
      attribute("p", optional: false),
      conditions: ["noRows A: required-without-default A.p 134110 documented"]),
    .property(
      "a persistent attribute becomes transient", attribute("p"),
      attribute("p", optional: false, transient: true)),
    Change(
      "an entity becomes abstract", entity("A", attribute("p", optional: false)),
      entity("A", attribute("q", optional: false), isAbstract: true),
      conditions: ["noRows A: abstract-with-rows A 134110 unspecified"]),
    Change(
      "a uniqueness constraint is added", entity("A", attribute("p"), attribute("r")),
      entity(
        "A", attribute("q", optional: false, default: .text("x"), id: "p"), attribute("s"),
        unique: [["q", "s"]]),
      conditions: [
        "unique A(p or text(\"x\"), always nil): uniqueness A (q, s) 134111 documented"
      ],
      notes: [.renamedProperty]),
    .property(
      "an identifier names an intermediate name", attribute("paintColor", id: "color"),
      attribute("primaryColor", id: "paintColor"), notes: [.intermediateIdentifier]),
    .property(
      "a chain keeps the first name", attribute("paintColor", id: "color"),
      attribute("primaryColor", id: "color"), notes: [.renamedProperty]),
    .property(
      "one name has two identifiers", attribute("p"), attribute("p", id: "other"),
      notes: [.differentIdentifiers]),
    Change(
      "an entity of one name has two identifiers", entity("A"), entity("A", id: "X"),
      notes: [.differentIdentifiers]),
    Change(
      "an entity's identifier names an intermediate name", entity("Vehicle", id: "Car"),
      entity("Wagon", id: "Vehicle"), notes: [.intermediateIdentifier]),
    Change(
      "an entity's chain keeps the first name", entity("Vehicle", id: "Car"),
      entity("Wagon", id: "Car"), notes: [.renamedEntity]),
    Change(
      "two properties come from one", entity("A", attribute("p")),
      entity("A", attribute("p"), attribute("q", id: "p")),
      refusals: ["duplicate-identifier A.q 134190 unspecified"], notes: [.renamedProperty]),
    Change(
      "two properties share an identifier", entity("A", attribute("p"), attribute("q", id: "p")),
      entity("A"), refusals: ["duplicate-identifier A.q 134190 unspecified"]),
  ]
}

@Suite struct `An inferred mapping` {
  @Test(arguments: Change.all) func `judges that`(change: Change) throws {
    let mapping = InferredMapping(
      source: try model(change.old, entity("B", toMany("items", "B"))),
      destination: try model(change.new, entity("B", toMany("items", "B"))))
    #expect(
      mapping.refusals.map {
        "\($0.reason.rawValue) \($0.place) \($0.code) \($0.certainty.rawValue)"
      }
        == change.refusals)
    #expect(mapping.rowConditions.map(text) == change.conditions)
    #expect(mapping.notes.map(\.kind) == change.notes)
    #expect(mapping.isPossible == change.refusals.isEmpty)
    for refusal in mapping.refusals + mapping.rowConditions.map(\.refusal) {
      #expect(!refusal.message.isEmpty && !refusal.message.hasSuffix("."))
      #expect(refusal.advice.hasSuffix("."))
      #expect(refusal.text == "\(refusal.message). \(refusal.advice)")
    }
  }

  // A Transformable attribute's default value is an object, a composite's a dictionary.
  @Test(arguments: [
    (AttributeType.transformable, true, true), (.transformable, false, false),
    (.composite, true, true), (.composite, false, true),
  ])
  func `says where a default value cannot be given`(
    type: AttributeType, isOptional: Bool, isNoted: Bool
  ) throws {
    var new = AttributeDescription(
      traits: PropertyTraits(name: "p", isOptional: isOptional), type: type)
    new.archived[.defaultValue] = [1]
    let mapping = InferredMapping(
      source: try model(entity("A")), destination: try model(entity("A", .attribute(new))))
    #expect(mapping.notes.map(\.kind) == (isNoted ? [.defaultNotGiven] : []))
    let refusals = mapping.rowConditions.map(\.refusal)
    #expect(refusals.map(\.reason) == (isNoted ? [] : [.requiredWithoutDefault]))
    #expect(refusals.allSatisfy { $0.message.contains("that only the application can store") })
    #expect(refusals.allSatisfy { $0.advice.hasPrefix("Make p optional") })
  }

  private func text(_ condition: RowCondition) -> String {
    let refusal = condition.refusal
    let question =
      switch condition.question {
      case .noRows(let entity): "noRows \(entity)"
      case .noNulls(let entity, let property): "noNulls \(entity).\(property)"
      case .noneEmpty(let entity, let name): "noneEmpty \(entity).\(name)"
      case .room(let entity, let name): "room \(entity).\(name)"
      case .countable(let entity, let name, let most): "at most \(most) \(entity).\(name)"
      case .unique(let parts):
        "unique "
          + parts.map { part in
            "\(part.entity)("
              + part.terms.map { term in
                switch term {
                case .source(let name, let type, let value):
                  name + (type.map { " as \($0)" } ?? "") + (value.map { " or \($0)" } ?? "")
                case .target(let name): "target of \(name)"
                case .count(let name): "count of \(name)"
                case .constant(let value): "always " + (value.map { "\($0)" } ?? "nil")
                }
              }.joined(separator: ", ") + ")"
          }.joined(separator: " ")
      }
    return "\(question): \(refusal.reason.rawValue) \(refusal.place) \(refusal.code) "
      + refusal.certainty.rawValue
  }

  @Test func `finds properties that moved in the hierarchy`() throws {
    let mapping = InferredMapping(
      source: try model(
        entity("Parent", attribute("a")), entity("Child", attribute("b"), parent: "Parent")),
      destination: try model(
        entity("Parent", attribute("b")), entity("Child", attribute("a"), parent: "Parent")))
    #expect(mapping.isPossible)
    #expect(mapping.correspondence(of: "a", in: "Child")?.entity == "Parent")
    #expect(mapping.correspondence(of: "b", in: "Child")?.entity == "Child")
    #expect(mapping.correspondence(of: "b", in: "Parent") == nil)  // no such source property
  }

  @Test func `follows a relationship to a renamed entity`() throws {
    let mapping = InferredMapping(
      source: try model(entity("A", toOne("p", "B")), entity("B")),
      destination: try model(entity("A", toOne("p", "C")), entity("C", id: "B")))
    #expect(mapping.isPossible)
    #expect(mapping.successors["B"] == "C")
  }

  @Test func `is unsure where a destination has one name and two identifiers`() throws {
    let mapping = InferredMapping(
      source: try model(entity("A", toOne("p", "B")), entity("B")),
      destination: try model(entity("A", toOne("p", "B")), entity("B", id: "X")))
    #expect(mapping.refusals.map(\.certainty) == [.unspecified])
  }

  @Test func `never merges two hierarchies into one table`() throws {
    let separate = try model(entity("A"), entity("B"))
    let together = try model(
      entity("P", isAbstract: true), entity("A", parent: "P"), entity("B", parent: "P"))
    let merged = InferredMapping(source: separate, destination: together)
    #expect(merged.refusals.map(\.reason) == [.mergeRoots])
    #expect(merged.refusals.map(\.place) == ["P"])
    // The other way round is allowed, and so is a new parent of one.
    #expect(InferredMapping(source: together, destination: separate).isPossible)
    let parented = try model(entity("P"), entity("A", parent: "P"), entity("B"))
    #expect(InferredMapping(source: separate, destination: parented).isPossible)
  }

  @Test func `says which identifier keeps the objects of an entity`() throws {
    let mapping = InferredMapping(
      source: try model(entity("Vehicle", id: "Car")),
      destination: try model(entity("Wagon", id: "Vehicle"), entity("Vehicle")))
    #expect(
      mapping.notes.map(\.message) == [
        "Vehicle is in both models under different renaming identifiers: it is removed and added",
        "the identifier of Wagon names Vehicle, whose own identifier is Car: the entity is removed "
          + "and added. Repeat Car as the identifier to keep its objects",
      ])
    #expect(mapping.notes.last?.property == nil)
  }

  @Test func `gives an entity one successor`() throws {
    let mapping = InferredMapping(
      source: try model(entity("A")),
      destination: try model(entity("A"), entity("B", id: "A")))
    #expect(mapping.refusals.map(\.reason) == [.splitEntity])
    #expect(mapping.successors["A"] == "A")
  }

  @Test func `takes the parts of a uniqueness constraint from every concrete sub-entity`() throws {
    let old = try model(
      entity("P", attribute("p"), isAbstract: true), entity("A", parent: "P"),
      entity("B", parent: "P"))
    let new = try model(
      entity("P", attribute("p"), isAbstract: true, unique: [["p"]]), entity("A", parent: "P"),
      entity("B", parent: "P"), entity("C", parent: "P"))
    let conditions = InferredMapping(source: old, destination: new).rowConditions
    let parts = ["A", "B"].map {
      UniquePart(
        entity: EntityName($0), terms: [.source(property: "p", convertedTo: nil, default: nil)])
    }
    #expect(conditions.contains { $0.question == .unique(parts) })
  }

  /// What `A.p` and the constraint on it become, and whether rows can break the constraint.
  @Test(arguments: [
    (AttributeType.integer32, [["p"]], AttributeType.integer32, [["p"]], false),
    (.integer16, [["p"]], .integer32, [["p"]], false),  // wider
    (.integer32, [["p"]], .integer16, [["p"]], true),  // narrower: two values may become one
    (.integer32, [["p", "q"]], .integer32, [["q", "p"]], false),
    (.integer32, [["p", "q"]], .integer32, [["p"]], true),
    (.integer32, [["q"]], .integer32, [["p"]], true),
    (.integer32, [], .integer32, [["p"]], true),
  ])
  func `leaves constraints open that are new or count more`(
    old: AttributeType, before: [[String]], new: AttributeType, after: [[String]], isOpen: Bool
  ) throws {
    func side(_ type: AttributeType, _ unique: [[String]]) throws -> EntityHierarchy {
      try model(
        entity("A", attribute("p", type), attribute("q"), unique: unique), entity("B", parent: "A"))
    }
    let inferred = InferredMapping(source: try side(old, before), destination: try side(new, after))
    #expect(inferred.rowConditions.count == 1)
    #expect(inferred.changedRowConditions.isEmpty == !isOpen)
  }

  /// What a constraint is on, and whether a column keeps it: else no row is refused for it.
  @Test(arguments: [
    (["p"], true), (["one"], true), (["p", "one"], true), (["place"], false),
    (["p", "place"], false),
    (["many"], false), (["gone"], false), (["p", "gone"], false), (["any"], false),
    (["none"], false),
  ])
  func `asks of constraints that a column keeps alone`(names: [String], isKept: Bool) throws {
    func side(_ unique: [[String]]) throws -> EntityHierarchy {
      try model(
        entity(
          "A", attribute("p"), attribute("gone", transient: true), attribute("any", .undefined),
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "place", isOptional: true), type: .composite,
              compositeElements: [
                AttributeDescription(traits: PropertyTraits(name: "street"), type: .string)
              ])), toOne("one", "A"), toMany("many", "A"), unique: unique))
    }
    let inferred = InferredMapping(source: try side([]), destination: try side([names]))
    let found = inferred.changedRowConditions.map(\.refusal).filter { $0.reason == .uniqueness }
    #expect(found.map(\.properties) == (isKept ? [names] : []))
  }

  @Test func `asks nothing of the rows of an abstract entity, which has none`() throws {
    let side = try model(
      entity("P", attribute("p", optional: false), isAbstract: true), entity("A", parent: "P"))
    #expect(InferredMapping(source: side, destination: side).rowConditions == [])
  }

  @Test func `amounts to a mapping model with Core Data's names`() throws {
    let mapping = InferredMapping(
      source: try model(
        entity("Folder", attribute("title"), toMany("notes", "Note")), entity("Note"),
        entity("Same", attribute("x")), entity("Gone")),
      destination: try model(
        entity(
          "Box", attribute("name", id: "title"), attribute("new"), toMany("notes", "Note"),
          id: "Folder"),
        entity("Note", attribute("text")), entity("Same", attribute("x")), entity("Extra"),
        entity("Root", isAbstract: true))
    ).mappingModel
    #expect(
      mapping.entityMappings.map(\.name) == [
        "IEM_Transform_Folder", "IEM_Add_Extra", "IEM_Transform_Note", "IEM_Copy_Same",
        "IEM_Remove_Gone",
      ])
    let box = try #require(mapping.entityMapping(named: "IEM_Transform_Folder"))
    #expect(
      box.properties.attributes.map { "\($0.name) \($0.expression?.description ?? "-")" } == [
        "name FUNCTION($source, \"valueForKey:\", \"title\")", "new -",
      ])
    #expect(
      box.properties.relationships.map { $0.expression?.description } == [
        "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
          + "\"notes\", FUNCTION($source, \"valueForKey:\", \"notes\"))"
      ])
  }
}
