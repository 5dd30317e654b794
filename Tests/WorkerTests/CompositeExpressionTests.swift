import Foundation
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

private func composite(_ name: String, _ elements: PropertyDescription...) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name), type: .composite,
      compositeElements: elements.compactMap(\.attribute)))
}

/// `place` of a visit and `home` of a bird: a street, a number of a type, and a point within.
private func place(_ name: String, _ number: AttributeType = .integer64) -> PropertyDescription {
  composite(
    name, attribute("street"), attribute("number", number),
    composite("point", attribute("x", .double)))
}

/// Writes down what it reads of composite attributes, by key and by path.
private final class PlacePolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var said: [String] = []

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    let whole = source.value(forKey: "place") as? [String: Any]
    // The whole of it, and one of its elements.
    made.setValue(whole?.merging(["number": 77]) { $1 }, forKey: "place")
    made.setValue(source.value(forKeyPath: "place.street"), forKey: "place.street")
    Self.said.append(
      [
        whole?.keys.sorted().joined(separator: "+"), source["place.street"] as String?,
        source.value(forKeyPath: "bird.home.street") as? String,
        made.value(forKeyPath: "place.street") as? String,
      ].map { $0 ?? "-" }.joined(separator: " "))
  }
}

/// Sets a composite attribute to what a test says.
private final class SettingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var value: Any?

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
      .setValue(Self.value, forKey: "place")
  }
}

/// Looks for objects by what a test says, and reads a path of each.
private final class LookingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var asked: (predicate: String, path: String) = ("", "")
  nonisolated(unsafe) static var found: [Int64] = []

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try manager.forEachSourceObject(ofEntity: "Visit", where: Self.asked.predicate) { visit in
      Self.found.append(visit.reference.primaryKey)
      _ = visit.value(forKeyPath: Self.asked.path)
    }
  }
}

@Suite(.serialized) struct `Composite attributes in expressions` {
  private static let rows = """
    INSERT INTO ZBIRD (Z_PK, Z_ENT, Z_OPT, ZSTREET, ZNUMBER, ZX)
    VALUES (1, 1, 1, 'Marsh', 10, 0.5), (2, 1, 1, NULL, NULL, NULL);
    INSERT INTO ZVISIT (Z_PK, Z_ENT, Z_OPT, ZBIRD, ZSTREET, ZNUMBER, ZX)
    VALUES (1, 2, 1, 1, 'Quay', 3, 1.5), (2, 2, 1, 1, 'Mole', 4, NULL), (3, 2, 1, 2, NULL, NULL, NULL)
    """

  private static func fixture(_ properties: PropertyDescription...) throws -> MigrationFixture {
    func bird(_ more: [PropertyDescription]) -> EntityDescription {
      EntityDescription(
        name: "Bird",
        properties: [place("home"), toMany("visits", "Visit", inverse: "bird")] + more)
    }
    return try MigrationFixture(
      from: [bird([]), entity("Visit", place("place"), toOne("bird", "Bird", inverse: "visits"))],
      to: [
        bird([attribute("text"), attribute("sum", .integer64)]),
        EntityDescription(
          name: "Visit", properties: [toOne("bird", "Bird", inverse: "visits")] + properties),
      ], rows: rows)
  }

  private static func visits(_ row: String, bird: String = "{}") -> String {
    """
    mapping-model: 1
    entity-mappings:
      - { source: Bird, destination: Bird, attributes: \(bird) }
      - source: Visit
        destination: Visit
        others: none
        relationships: { bird: automatic }
    \(row.split(separator: "\n").map { "    " + $0 }.joined(separator: "\n"))
    """
  }

  /// How an element is read, and what that gives for each visit.
  @Test(arguments: [
    ("$source.place.street", ["1 Quay", "2 Mole", "3 -"]),
    ("$source.bird.home.street", ["1 Marsh", "2 Marsh", "3 -"]),
    ("uppercase($source.place.street)", ["1 QUAY", "2 MOLE", "3 -"]),
    ("godwit.string($source.place.point.x)", ["1 1.5", "2 -", "3 -"]),
    ("FUNCTION($source, \"valueForKeyPath:\", \"place.street\")", ["1 Quay", "2 Mole", "3 -"]),
    ("FUNCTION($source, \"valueForKey:\", \"place\").street", ["1 Quay", "2 Mole", "3 -"]),
    ("FUNCTION($source.bird, \"valueForKey:\", \"home\").street", ["1 Marsh", "2 Marsh", "3 -"]),
    ("godwit.string($source.bird.visits.@sum.place.number)", ["1 7", "2 7", "3 0"]),
    ("godwit.string($source.bird.visits.place.street.@count)", ["1 2", "2 2", "3 0"]),
    (
      "godwit.string(SUBQUERY($source.bird.visits, $v, $v.place.street == \"Quay\").@count)",
      ["1 1", "2 1", "3 0"]
    ),
    ("TERNARY($source.place == nil, \"none\", \"some\")", ["1 some", "2 some", "3 none"]),
  ])
  func `give their elements`(expression: String, expected: [String]) throws {
    let store = try Self.fixture(attribute("text")).migrate(
      Self.visits("attributes: { text: '\(expression)' }"))
    #expect(try store.table("SELECT Z_PK, ZTEXT FROM ZVISIT ORDER BY 1") == expected)
  }

  /// A filter, and the visits that it takes: compiled, evaluated, over a relationship.
  @Test(arguments: [
    ("place.number > 3", ["2"]), ("place.street == \"Quay\"", ["1"]),
    ("place.street != \"Quay\"", ["2", "3"]), ("bird.home.point.x == 0.5", ["1", "2"]),
    ("place != nil", ["1", "2"]), ("ANY bird.visits.place.number == 4", ["1", "2"]),
  ])
  func `select by their elements`(filter: String, expected: [String]) throws {
    let fixture = try Self.fixture(attribute("text"))
    let store = try fixture.migrate(
      Self.visits("filter: '\(filter)'\nattributes: { text: $source.place.street }"))
    #expect(try store.table("SELECT Z_PK FROM ZVISIT ORDER BY 1") == expected)
  }

  /// A whole composite: as it is, of another object, and chosen. Its number becomes narrower.
  @Test(arguments: [
    ("$source.place", ["1 Quay 3 1.5", "2 Mole 4 -", "3 - - -"]),
    ("$source.bird.home", ["1 Marsh 10 0.5", "2 Marsh 10 0.5", "3 - - -"]),
    (
      "TERNARY($source.place.number == 3, $source.place, nil)",
      ["1 Quay 3 1.5", "2 - - -", "3 - - -"]
    ),
    (
      "FUNCTION($source.bird, \"valueForKey:\", \"home\")",
      ["1 Marsh 10 0.5", "2 Marsh 10 0.5", "3 - - -"]
    ),
    ("noindex($source.place)", ["1 Quay 3 1.5", "2 Mole 4 -", "3 - - -"]),
    ("nil", ["1 - - -", "2 - - -", "3 - - -"]),
  ])
  func `are given whole`(expression: String, expected: [String]) throws {
    for type in [AttributeType.integer64, .integer16] {
      let store = try Self.fixture(place("spot", type)).migrate(
        Self.visits("attributes: { spot: '\(expression)' }"))
      #expect(
        try store.table("SELECT Z_PK, ZSTREET, ZNUMBER, ZX FROM ZVISIT ORDER BY 1") == expected)
    }
  }

  @Test func `have no number that its new type does not hold`() throws {
    let fixture = try MigrationFixture(
      from: [entity("Visit", place("place"))], to: [entity("Visit", place("place", .integer16))],
      rows: "INSERT INTO ZVISIT (Z_PK, Z_ENT, Z_OPT, ZNUMBER) VALUES (7, 1, 1, 70000)")
    #expect {
      try fixture.migrate(
        "mapping-model: 1\nentity-mappings: [{ source: Visit, destination: Visit }]")
    } throws: { "\($0)".contains("place.number") || "\($0)".contains("16") }
  }

  @Test func `are what the destination object has of them`() throws {
    let store = try Self.fixture(place("spot"), attribute("text")).migrate(
      Self.visits("attributes: { spot: $source.place, text: $destination.spot.street }"))
    #expect(
      try store.table("SELECT Z_PK, ZTEXT FROM ZVISIT ORDER BY 1") == ["1 Quay", "2 Mole", "3 -"])
  }

  /// Rows of the mapping, and the losses of visits.
  @Test(arguments: [
    ("{ text: $source.place.street }", ["place.number 2", "place.point.x 1"]),
    ("{ text: godwit.string($source.place.point.x) }", ["place.number 2", "place.street 2"]),
    ("{ text: $source.place.street, spot: $source.place }", []),
    ("{ spot: 'TERNARY(1 == 1, $source.place, nil)' }", []),
    ("{ text: none }", ["place.number 2", "place.point.x 1", "place.street 2"]),
  ])
  func `lose the elements that no expression reads`(rows: String, expected: [String]) throws {
    let plan = try Self.fixture(place("spot"), attribute("text")).plan(
      Self.visits("attributes: \(rows == "{ text: none }" ? "{}" : rows)"))
    #expect(
      plan.losses.filter { $0.entity == "Visit" }
        .map { "\($0.property ?? "-") \($0.count)" }.sorted() == expected)
  }

  /// Whatever gives the composite, for an attribute that has a street alone.
  @Test(arguments: [
    "$source.place", "TERNARY(1 == 1, $source.place, nil)", "noindex($source.place)",
    "FUNCTION($source, \"valueForKey:\", \"place\")",
  ])
  func `lose the elements that the attribute does not have`(expression: String) throws {
    let plan = try Self.fixture(composite("spot", attribute("street"))).plan(
      Self.visits("attributes: { spot: '\(expression)' }"))
    #expect(
      plan.losses.filter { $0.entity == "Visit" }
        .map { "\($0.property ?? "-") \($0.count)" }.sorted() == [
          "place.number 2", "place.point.x 1",
        ])
  }

  @Test func `are read by policies`() throws {
    let fixture = try Self.fixture(place("place"), attribute("text"))
    fixture.policies = PolicyRegistry(["Places": PlacePolicy.self])
    PlacePolicy.said = []
    let store = try fixture.migrate(Self.visits("policy: Places\nattributes: {}"))
    #expect(
      PlacePolicy.said == [
        "number+point+street Quay Marsh Quay", "number+street Mole Marsh Mole", "- - - -",
      ])
    #expect(
      try store.table("SELECT Z_PK, ZSTREET, ZNUMBER, ZX FROM ZVISIT ORDER BY 1") == [
        "1 Quay 77 1.5", "2 Mole 77 -", "3 - - -",
      ])
  }

  private static func policy(_ name: String, _ type: EntityMigrationPolicy.Type) throws
    -> (MigrationFixture, String)
  {
    let fixture = try fixture(place("place"))
    fixture.policies = PolicyRegistry([name: type])
    let mapping = visits("attributes: { place: automatic }").replacing(
      "destination: Visit\n", with: "destination: Visit\n    policy: \(name)\n")
    return (fixture, mapping)
  }

  /// What a policy sets the whole to; what the first visit has then, or what the error names.
  nonisolated(unsafe) private static let settings: [(value: Any?, row: String?, refusal: String)] =
    [
      (["street": "Pier", "number": 5] as [String: Any], "Pier 5 -", ""),
      (["point": ["x": 2.5]], "- - 2.5", ""), (["point": NSNull()], "- - -", ""),
      (nil, "- - -", ""), ([String: Any](), "- - -", ""),
      (["stret": "Pier", "number": 5] as [String: Any], nil, "no key stret"),
      (["point": ["y": 2.5]], nil, "no key y"), (["point": 5], nil, "place.point"),
      (["street": ["x": "Pier"]], nil, "place.street"), (5, nil, "place"),
    ]

  @Test(arguments: settings.indices)
  func `take a dictionary of their elements from a policy, and nothing else`(number: Int) throws {
    let (fixture, mapping) = try Self.policy("SettingPolicy", SettingPolicy.self)
    let (value, row, refusal) = Self.settings[number]
    SettingPolicy.value = value
    guard let row else {
      let failure = #expect(throws: PolicyFailure.self) { try fixture.migrate(mapping) }
      let text = failure.map { "\($0.error)" } ?? ""
      #expect(text.contains(refusal) && !text.contains("Pier"), "\(text)")
      return
    }
    let store = try fixture.migrate(mapping)
    #expect(
      try store.table("SELECT ZSTREET, ZNUMBER, ZX FROM ZVISIT WHERE Z_PK = 1") == [row])
  }

  /// A policy's predicate, or a path that it reads, and the objects that are found; nil for an error.
  @Test(
    arguments: [
      ("place.street == nil", "place.street", [3]), ("place == nil", "place.point.x", [3]),
      ("place.point.x == nil", "place.point", [2, 3]),
      ("bird.visits.place.street != nil", "bird", [1, 2, 3]),
      ("place.strret == nil", "bird", nil), ("place.point.y == nil", "bird", nil),
      ("ANY bird.visits.place.strret == nil", "bird", nil),
      ("place.street == nil", "place.strret", nil), ("place != nil", "place.point.y", nil),
    ] as [(String, String, [Int64]?)])
  func `have the elements of the model, and no others, in a policy's questions`(
    predicate: String, path: String, found: [Int64]?
  ) throws {
    let (fixture, mapping) = try Self.policy("LookingPolicy", LookingPolicy.self)
    LookingPolicy.asked = (predicate, path)
    LookingPolicy.found = []
    guard let found else {
      let failure = #expect(throws: PolicyFailure.self) { try fixture.migrate(mapping) }
      #expect(failure.map { "\($0.error)".contains("place.") } == true)
      return
    }
    _ = try fixture.migrate(mapping)
    #expect(LookingPolicy.found == found)
  }
}
