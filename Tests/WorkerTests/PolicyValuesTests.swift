import Foundation
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Couples become one object, which both are associated with as soon as the first is met.
private final class CouplePolicy: EntityMigrationPolicy {
  private var people: [Int: ManagedObject] = [:]

  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager)
    throws
  {
    try manager.forEachSourceObject(ofEntity: "Person") { person in
      people[person["number"] as Int? ?? 0] = person
    }
  }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let known = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    guard known.isEmpty else { return }
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    if let mate = people[source["mate"] as Int? ?? 0] {
      try manager.associate(sourceInstance: mate, withDestinationInstance: made, for: mapping)
    }
  }
}

/// Makes all objects before the first source object has its turn.
private final class EarlyPolicy: EntityMigrationPolicy {
  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager)
    throws
  {
    try manager.forEachSourceObject(ofEntity: "Person") { person in
      let note = try manager.insertNewObject(forEntityName: "Note")
      try manager.associate(sourceInstance: person, withDestinationInstance: note, for: mapping)
    }
  }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    made.first?["name"] = source["name"] as String?
  }
}

/// Changes what others are derived from, in each stage.
private final class RenamingPolicy: EntityMigrationPolicy {
  private var first: ManagedObject?

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    if first == nil { first = made } else { made["name"] = "in copy" }
    made["loud"] = "what a policy says of a derived attribute"
  }

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    first?["name"] = "at the end"
    try manager.insertNewObject(forEntityName: "Note")["name"] = "inserted"
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    if destination["number"] as Int? == 3 { destination["name"] = "in link" }
  }
}

/// Casts what has no type, as code for Core Data does.
private final class CastingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var said = ""

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let (number, ratio) = (source.value(forKey: "number"), source.value(forKey: "ratio"))
    let (is64, is32, is16) = (number as? Int, number as? Int32, number as? Int16)
    let (double, single) = (ratio as? Double, ratio as? Float)
    let isOn = source.value(forKey: "isOn") as? Bool
    Self.said =
      "\(is64 ?? -1) \(is32 ?? -1) \(is16 ?? -1) \(double ?? -1) \(single ?? -1) \(isOn ?? false)"
    manager.userInfo["number"] = Int16(7)
    Self.said += " \(manager[userInfo: "number"] as? Int16 ?? -1)"
  }
}

/// Answers expressions.
private final class AnsweringPolicy: EntityMigrationPolicy {
  override class var selectors: Set<String> { ["kind:", "chosen:"] }

  override func perform(
    _ selector: String, with arguments: [Any?], manager: MigrationManager
  ) throws -> Any? {
    if selector == "chosen:" {
      var found: Set<ManagedObject> = []
      try manager.forEachSourceObject(ofEntity: "Person", where: "number > 1") { found.insert($0) }
      return found
    }
    return switch arguments[0] {
    case is MigrationManager: "manager"
    case is CurrentEntityMapping: "mapping"
    case let policy as EntityMigrationPolicy: policy === self ? "self" : "another"
    default: "nothing"
    }
  }
}

/// Says wrong things of new objects.
private final class WrongPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try manager.insertNewObject(forEntityName: "Note")["number"] = "no number"
  }
}

/// Asks for objects by what has no value.
private final class AskingPolicy: EntityMigrationPolicy {
  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager)
    throws
  {
    try manager.forEachSourceObject(ofEntity: "Person", where: "name > number") { _ in }
  }
}

@Suite(.serialized) struct `What a policy reads and sets` {
  private static func fixture() throws -> MigrationFixture {
    let derived = [
      ("loud", "uppercase:(name)"), ("quiet", "lowercase:(loud)"), ("figure", "lowercase:(number)"),
    ].map { name, derivation in
      PropertyDescription.attribute(
        AttributeDescription(
          traits: PropertyTraits(name: name), type: .string, derivationExpression: derivation))
    }
    let fixture = try MigrationFixture(
      from: [
        entity(
          "Person", attribute("name"), attribute("number", .integer32),
          attribute("mate", .integer64), attribute("ratio", .float), attribute("isOn", .boolean))
      ],
      to: [
        EntityDescription(
          name: "Note", properties: [attribute("name"), attribute("number", .integer32)] + derived)
      ],
      rows: """
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER, ZMATE, ZRATIO, ZISON)
        VALUES (1, 1, 1, 'a', 1, 4, 0.5, 1), (2, 1, 1, 'b', 2, 3, 1.5, 0), (3, 1, 1, 'c', 3, 2, 2.5, 1),
          (4, 1, 1, 'd', 4, 1, 3.5, 1)
        """)
    fixture.policies = PolicyRegistry([
      "Couple": CouplePolicy.self, "Early": EarlyPolicy.self, "Renaming": RenamingPolicy.self,
      "Casting": CastingPolicy.self,
      "Answering": AnsweringPolicy.self, "Wrong": WrongPolicy.self, "Asking": AskingPolicy.self,
    ])
    return fixture
  }

  private func mapping(_ policy: String, _ more: String = "") -> String {
    """
    mapping-model: 1
    entity-mappings:
      - source: Person
        destination: Note
        policy: \(policy)
    \(more)
    """
  }

  @Test func `finds what was associated with an object before its turn`() throws {
    let store = try Self.fixture().migrate(mapping("Couple"))
    #expect(try store.table("SELECT ZNAME FROM ZNOTE ORDER BY Z_PK") == ["a", "b"])
  }

  @Test func `finds what was associated before the first object's turn`() throws {
    let store = try Self.fixture().migrate(mapping("Early"))
    #expect(try store.table("SELECT ZNAME FROM ZNOTE ORDER BY Z_PK") == ["a", "b", "c", "d"])
  }

  @Test func `has derived attributes follow, whatever stage sets the others`() throws {
    let store = try Self.fixture().migrate(mapping("Renaming"))
    #expect(
      try store.table("SELECT ZNAME, ZLOUD, ZFIGURE FROM ZNOTE ORDER BY Z_PK") == [
        "at the end AT THE END -", "in copy IN COPY -", "in link IN LINK -", "in copy IN COPY -",
        "inserted INSERTED -",
      ])
    #expect(try store.table("SELECT count(*) FROM ZNOTE WHERE ZQUIET = lower(ZNAME)") == ["5"])
  }

  @Test func `is a number of every type that holds it`() throws {
    _ = try Self.fixture().migrate(mapping("Casting"))
    #expect(CastingPolicy.said == "4 4 4 3.5 3.5 true 7")
  }

  @Test(arguments: [
    ("$manager", "manager"), ("$entityMapping", "mapping"), ("$entityPolicy", "self"),
    ("$source.name", "nothing"),
  ])
  func `is what an expression passes`(argument: String, found: String) throws {
    let store = try Self.fixture().migrate(
      mapping(
        "Answering",
        "    attributes: { name: 'FUNCTION($entityPolicy, \"kind:\", \(argument))' }"))
    #expect(try store.table("SELECT DISTINCT ZNAME FROM ZNOTE") == [found])
  }

  @Test func `is no object whose attributes are being set`() throws {
    let error = #expect(throws: (any Error).self) {
      try Self.fixture().migrate(
        mapping(
          "Answering",
          "    attributes: { name: 'FUNCTION($entityPolicy, \"kind:\", $destination)' }"))
    }
    #expect("\(error as Any)".contains("$destination cannot be passed to a selector"))
  }

  @Test func `chooses the source objects`() throws {
    let store = try Self.fixture().migrate(
      mapping(
        "Answering", "    source-expression: 'FUNCTION($entityPolicy, \"chosen:\", nil)'"))
    #expect(try store.table("SELECT ZNAME FROM ZNOTE ORDER BY 1") == ["b", "c", "d"])
  }

  /// Keys are given out when all shards have made their objects.
  @Test func `is told of a new object without a key`() throws {
    let error = #expect(throws: (any Error).self) { try Self.fixture().migrate(mapping("Wrong")) }
    #expect("\(error as Any)".contains("a new object of Note: number cannot be set"))
  }

  @Test func `is told whose question has no value`() throws {
    let error = #expect(throws: PolicyFailure.self) {
      try Self.fixture().migrate(mapping("Asking"))
    }
    #expect(error?.hook == "beginEntityMapping")
    // A question mark in its text would make the macro take it for optional, and expect nothing.
    let said = "\(error?.error as Any)"
    #expect(said.contains("the predicate has no value"))
  }
}
