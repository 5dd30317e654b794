import Foundation
import GodwitObjectModel
import GodwitSQLite
import Testing

@testable import GodwitWorker

/// Makes many of the first object, each of which it associates twice, and asks for both directions.
private final class ManyPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var many = 0
  /// Objects are associated with the second source object before its turn, too.
  nonisolated(unsafe) static var isEarly = false
  nonisolated(unsafe) static var said: [String] = []

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    guard source["name"] as String? == "a" else { return }
    var second: ManagedObject?
    try manager.forEachSourceObject(ofEntity: "A", where: "name == 'b'") { second = $0 }
    let owners = Self.isEarly ? [second, source].compactMap(\.self) : [source]
    var made: [ManagedObject] = []
    for _ in 0..<Self.many {
      made.append(try manager.insertNewObject(forEntityName: "A"))
      for owner in owners + owners {
        try manager.associate(
          sourceInstance: owner, withDestinationInstance: made[made.count - 1], for: mapping)
      }
    }
    Self.said = []
    for owner in owners {
      let found = try manager.destinationInstances(
        forEntityMappingName: mapping.name, sourceInstances: [owner])
      Self.said.append(found == made ? "all" : "\(found.count)")
    }
    for object in [made[0], made[made.count - 1]] {
      let found = try manager.sourceInstances(
        forEntityMappingName: mapping.name, destinationInstances: [object])
      Self.said.append(found.map { $0["name"] as String? ?? "-" }.joined())
    }
    let all = try manager.sourceInstances(
      forEntityMappingName: mapping.name, destinationInstances: made)
    Self.said.append("\(all.count)")
  }
}

/// Makes an object of each, in shards.
private final class ShardedPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }
}

/// Takes the name of what became of an object's partner, wherever it was made.
private final class PartnerPolicy: EntityMigrationPolicy {
  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    let partner =
      try manager.sourceInstances(
        forEntityMappingName: mapping.name, destinationInstances: [destination]
      ).first?["partner"] as ManagedObject?
    guard let partner else { return }
    destination["name"] =
      try manager.destinationInstances(forEntityMappingName: "AToA", sourceInstances: [partner])
      .first?["name"] as String?
  }
}

/// Says what became of its objects when the store has been written.
private final class LookingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var said: [String] = []
  nonisolated(unsafe) static var readsTold = false

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) {
    if destination["name"] as String? == "b" { manager.userInfo["told"] = destination }
  }

  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    func names(_ objects: [ManagedObject]) -> String {
      objects.map { $0["name"] as String? ?? "-" }.joined(separator: " ")
    }
    let sources = try manager.sourceInstances(forEntityMappingName: mapping.name)
    Self.said = [
      names(try manager.destinationInstances(forEntityMappingName: mapping.name)),
      names(
        try manager.destinationInstances(
          forEntityMappingName: mapping.name, sourceInstances: sources)), names(sources),
    ]
    if Self.readsTold {
      _ = (manager.userInfo["told"] as? ManagedObject)?.value(forKey: "name")
    }
  }
}

@Suite(.serialized) struct `What a policy asks for` {
  private static func fixture(_ rows: String) throws -> MigrationFixture {
    let fixture = try MigrationFixture(
      from: [
        entity("A", attribute("name")), entity("B", attribute("name"), toOne("partner", "A")),
      ],
      to: [entity("A", attribute("name")), entity("B", attribute("name"))], rows: rows)
    fixture.policies = PolicyRegistry([
      "Many": ManyPolicy.self, "Sharded": ShardedPolicy.self, "Partner": PartnerPolicy.self,
      "Looking": LookingPolicy.self,
    ])
    return fixture
  }

  /// A few are looked through, more are in a set.
  @Test(arguments: [1, 63, 64, 65, 200], [false, true])
  func `is each object once, in the order of the associations`(many: Int, isEarly: Bool) throws {
    (ManyPolicy.many, ManyPolicy.isEarly) = (many, isEarly)
    let fixture = try Self.fixture(
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b')")
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, policy: Many }
        - { source: B, destination: B }
      """)
    #expect(
      ManyPolicy.said
        == (isEarly ? ["all", "all", "ba", "ba", "2"] : ["all", "a", "a", "1"]))
    #expect(try store.table("SELECT count(*) FROM ZA") == ["\(many)"])
  }

  /// In an order that goes through the shards again and again.
  @Test(arguments: [Int64(1) << 24, 1 << 12])
  func `is found in whichever shard made it`(shardBytes: Int64) throws {
    let fixture = try Self.fixture(
      """
      WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 600)
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME)
        SELECT x, 1, 1, 'name ' || x || hex(zeroblob(200)) FROM c;
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZPARTNER) SELECT Z_PK, 2, 1, Z_PK * 97 % 601 FROM ZA;
      """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, policy: Sharded }
        - { source: B, destination: B, policy: Partner }
      """, shardBytes: shardBytes)
    #expect(
      try store.table(
        "SELECT count(*), sum(ZNAME LIKE 'name ' || (Z_PK * 97 % 601) || '0%') FROM ZB")
        == ["600 600"])
  }

  private let looking = """
    mapping-model: 1
    entity-mappings:
      - { source: A, destination: A, policy: Looking }
      - { source: B, destination: B }
    """

  /// A migrated store, of which the rows of some keys are taken out before it is looked at again.
  private func look(without keys: String) throws {
    let fixture = try Self.fixture(
      """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME)
      VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b'), (3, 1, 1, 'c')
      """)
    LookingPolicy.readsTold = false
    _ = try fixture.migrate(looking)
    LookingPolicy.readsTold = true
    let latest = try #require(fixture.latest)
    let store = try Connection(path: latest.store.string, mode: .readWrite)
    try store.execute("DELETE FROM ZA WHERE Z_PK IN (\(keys))")
    try store.close()
    let context = try ShardContext(run: latest.run, policies: fixture.policies)
    try context.openAssembled(latest.store.string)
    _ = try PolicyCustomValidation(context: context).run(0)
  }

  @Test(arguments: [("", ["a b c", "a b c", "a b c"]), ("1, 3", ["b", "b", "b"])])
  func `is not what was taken out of the store, when that is validated`(
    keys: String, said: [String]
  ) throws {
    try look(without: keys)
    #expect(LookingPolicy.said == said)
  }

  @Test func `is an error where it reads an object that was taken out`() throws {
    let failure = #expect(throws: PolicyFailure.self) { try look(without: "2") }
    #expect(failure?.hook == "performCustomValidation")
    let said = "\(failure?.error as Any)"
    #expect(said.contains("Z_PK 2: name cannot be read"))
    #expect(said.contains("not in the destination"))
  }
}
