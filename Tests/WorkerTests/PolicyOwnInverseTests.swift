import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitWorker

/// Says of friends what a test has written down.
private class FriendPolicy: EntityMigrationPolicy {
  enum Verb: CaseIterable { case set, add, remove }

  struct Saying {
    var object: Int
    var verb: Verb
    var members: [Int]
  }

  /// What is said when an object is at hand, by its number.
  nonisolated(unsafe) static var copying: [Int: [Saying]] = [:]
  nonisolated(unsafe) static var linking: [Int: [Saying]] = [:]
  /// Objects that are not linked as the mapping says.
  nonisolated(unsafe) static var loners: Set<Int> = []

  private var made: [Int: ManagedObject] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    guard let number = source["number"] as Int? else { return }
    made[number] = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    for saying in Self.copying[number] ?? [] { say(saying) }
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    guard let number = destination["number"] as Int? else { return }
    if !Self.loners.contains(number) {
      try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    }
    guard let sayings = Self.linking[number] else { return }
    for object in try manager.destinationInstances(forEntityMappingName: mapping.name) {
      if let number = object["number"] as Int? { made[number] = object }
    }
    for saying in sayings { say(saying) }
  }

  private func say(_ saying: Saying) {
    guard let object = made[saying.object] else { return }
    let members = saying.members.compactMap { made[$0] }
    switch saying.verb {
    case .set: object.setValue(Set(members), forKey: "friends")
    case .add: for member in members { object.add(member, to: "friends") }
    case .remove: for member in members { object.remove(member, from: "friends") }
    }
  }
}

private final class WholePolicy: FriendPolicy {}
private final class ShardPolicy: FriendPolicy {
  override class var scope: Scope { .shard }
}

/// What Core Data keeps of a relationship that is its own inverse: each pair once.
private struct Friends {
  private(set) var pairs: Set<[Int]> = []
  private var given: Set<[Int]> = []

  private func pair(_ a: Int, _ b: Int) -> [Int] { [min(a, b), max(a, b)] }

  mutating func set(_ a: Int, to members: [Int], isHook: Bool) {
    for pair in pairs where pair.contains(a) {
      guard !members.contains(pair[0] == a ? pair[1] : pair[0]) else { continue }
      pairs.remove(pair)
      if isHook { given.remove(pair) }
    }
    for member in members { add(a, member) }
  }

  mutating func add(_ a: Int, _ b: Int) {
    pairs.insert(pair(a, b))
    given.insert(pair(a, b))
  }

  mutating func take(_ saying: FriendPolicy.Saying) {
    switch saying.verb {
    case .set: set(saying.object, to: saying.members, isHook: true)
    case .add: for member in saying.members { add(saying.object, member) }
    case .remove:
      for member in saying.members {
        pairs.remove(pair(saying.object, member))
        given.remove(pair(saying.object, member))
      }
    }
  }

  var lost: Int { given.subtracting(pairs).count }
}

@Suite(.serialized) struct `What policies say of a relationship that is its own inverse` {
  private static let keys = 1...6

  private static func fixture(_ friends: [[Int]]) throws -> MigrationFixture {
    func entities(_ word: String) -> [EntityDescription] {
      [
        entity(
          "A", attribute("number", .integer16), attribute(word),
          toMany("friends", "A", inverse: "friends"))
      ]
    }
    var rows = keys.map {
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNUMBER) VALUES (\($0), 1, 1, \($0));"
    }.joined()
    for pair in friends {
      for (a, b) in Set([pair, pair.reversed()]).map({ ($0[0], $0[1]) }) {
        rows += "INSERT INTO Z_1FRIENDS (Z_1FRIENDS, REFLEXIVE) VALUES (\(a), \(b));"
      }
    }
    let fixture = try MigrationFixture(from: entities("old"), to: entities("new"), rows: rows)
    fixture.policies = PolicyRegistry([
      "WholePolicy": WholePolicy.self, "ShardPolicy": ShardPolicy.self,
    ])
    FriendPolicy.copying = [:]
    FriendPolicy.linking = [:]
    FriendPolicy.loners = []
    return fixture
  }

  /// Compares the destination of one policy, in one piece and in shards.
  private static func check(
    _ fixture: MigrationFixture, _ policies: [String], isLinked: Bool, _ expected: Friends
  ) throws {
    for policy in policies {
      let mapping = """
        mapping-model: 1
        entity-mappings:
          - { name: A, source: A, destination: A, policy: \(policy), \
        relationships: { friends: \(isLinked ? "automatic" : "{ value: default }") } }
        """
      for shardBytes in [1 << 24, 1] as [Int64] {
        let store = try fixture.migrate(mapping, shardBytes: shardBytes)
        let found = try store.rows(
          """
          SELECT x.ZNUMBER, y.ZNUMBER FROM Z_1FRIENDS AS j
            JOIN ZA AS x ON x.Z_PK = j.Z_1FRIENDS JOIN ZA AS y ON y.Z_PK = j.REFLEXIVE
          """
        ).map { $0.map { Int($0.integer ?? 0) } }
        let said = """
          \(policy) \(shardBytes) \(FriendPolicy.copying) \(FriendPolicy.linking) \
          \(FriendPolicy.loners)
          """
        #expect(Set(found) == expected.pairs.union(expected.pairs.map { $0.reversed() }), "\(said)")
        #expect(found.count == Set(found).count)
        let lost = fixture.droppedByMapping.filter { $0.kind == .sharedTarget }
        #expect(lost.reduce(0) { $0 + Int($1.count) } == expected.lost, "\(said)")
      }
    }
  }

  private static func saying(
    among known: ClosedRange<Int>, _ random: inout SplitMix64
  ) -> FriendPolicy.Saying {
    FriendPolicy.Saying(
      object: known.lowerBound + random.below(known.count),
      verb: FriendPolicy.Verb.allCases[random.below(3)],
      members: known.filter { _ in random.below(3) == 0 })
  }

  @Test func `stands last where the first side's object was linked before`() throws {
    let fixture = try Self.fixture([[1, 2], [3, 4]])
    FriendPolicy.loners = [2]
    FriendPolicy.linking = [2: [.init(object: 2, verb: .set, members: [])]]
    var expected = Friends()
    expected.set(3, to: [4], isHook: false)
    try Self.check(fixture, ["WholePolicy", "ShardPolicy"], isLinked: true, expected)
  }

  @Test(arguments: 0..<16)
  func `in the link stage comes to Core Data's assignments, in one piece and in shards`(
    seed: Int
  ) throws {
    var random = SplitMix64(seed: UInt64(seed) &* 13 &+ 3)
    let friends = Self.keys.flatMap { a in
      Self.keys.filter { $0 >= a && random.below(4) == 0 }.map { [a, $0] }
    }
    let fixture = try Self.fixture(friends)
    FriendPolicy.loners = Set(Self.keys.filter { _ in random.below(3) == 0 })
    let isLinked = random.below(3) > 0
    var expected = Friends()
    for key in Self.keys {
      if isLinked, !FriendPolicy.loners.contains(key) {
        let members = friends.filter { $0.contains(key) }.map { $0[0] == key ? $0[1] : $0[0] }
        expected.set(key, to: members, isHook: false)
      }
      guard random.below(2) == 0 else { continue }
      FriendPolicy.linking[key] = (0...random.below(2)).map { _ in
        Self.saying(among: Self.keys, &random)
      }
      for saying in FriendPolicy.linking[key] ?? [] { expected.take(saying) }
    }
    try Self.check(fixture, ["WholePolicy", "ShardPolicy"], isLinked: isLinked, expected)
  }

  @Test(arguments: 0..<16)
  func `in the copy stage comes to Core Data's assignments`(seed: Int) throws {
    var random = SplitMix64(seed: UInt64(seed) &* 29 &+ 7)
    let fixture = try Self.fixture([])
    var expected = Friends()
    for key in Self.keys {
      FriendPolicy.copying[key] = (0...random.below(3)).map { _ in
        Self.saying(among: 1...key, &random)
      }
      for saying in FriendPolicy.copying[key] ?? [] { expected.take(saying) }
    }
    for key in Self.keys where random.below(4) == 0 {
      FriendPolicy.linking[key] = [Self.saying(among: Self.keys, &random)]
      for saying in FriendPolicy.linking[key] ?? [] { expected.take(saying) }
    }
    try Self.check(fixture, ["WholePolicy"], isLinked: false, expected)
  }
}
