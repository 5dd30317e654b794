import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitWorker

/// Says of relationships what a test has written down.
private class SayingPolicy: EntityMigrationPolicy {
  enum Verb: CaseIterable { case set, add, remove }

  /// Of an object of `A` on side 0, of one of `B` on side 1.
  struct Saying {
    var side: Int
    var object: Int
    var verb: Verb
    var members: [Int]
  }

  /// What is said when an object is at hand, by its entity mapping and number.
  nonisolated(unsafe) static var copying: [Int: [Saying]] = [:]
  nonisolated(unsafe) static var linking: [String: [Int: [Saying]]] = [:]
  /// Objects of `A` come with one of `B` each.
  nonisolated(unsafe) static var makesB = false

  private var made: [[Int: ManagedObject]] = [[:], [:]]
  private static let keys = ["b", "as"]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    guard Self.makesB, let number = source["number"] as Int? else { return }
    made[0][number] = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    let other = try manager.insertNewObject(forEntityName: "B")
    other["number"] = number
    made[1][number] = other
    try manager.associate(sourceInstance: source, withDestinationInstance: other, for: mapping)
    for saying in Self.copying[number] ?? [] { say(saying) }
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    if Self.makesB, destination.entityName == "B" { return }
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    guard let number = destination["number"] as Int?,
      let sayings = Self.linking[mapping.name]?[number]
    else { return }
    made = [[:], [:]]
    for name in Self.makesB ? ["A"] : ["A", "B"] {
      for object in try manager.destinationInstances(forEntityMappingName: name) {
        guard let number = object["number"] as Int? else { continue }
        made[object.entityName == "A" ? 0 : 1][number] = object
      }
    }
    for saying in sayings { say(saying) }
  }

  private func say(_ saying: Saying) {
    guard let object = made[saying.side][saying.object] else { return }
    let key = Self.keys[saying.side]
    let members = saying.members.compactMap { made[1 - saying.side][$0] }
    let isToMany = object.relationshipsByName[key]?.isToMany ?? true
    switch saying.verb {
    case .set where isToMany: object.setValue(members, forKey: key)
    case .set: object.setValue(members.first, forKey: key)
    case .add: for member in members { object.add(member, to: key) }
    case .remove: for member in members { object.remove(member, from: key) }
    }
  }
}

/// The same, in shards: then most words are about objects of other shards.
private final class ShardedSayingPolicy: SayingPolicy {
  override class var scope: Scope { .shard }
}

extension Links {
  fileprivate mutating func take(_ saying: SayingPolicy.Saying) {
    let (object, members) = (saying.object, saying.members)
    func pair(_ member: Int) -> [Int] { saying.side == 0 ? [object, member] : [member, object] }
    switch saying.verb {
    case .set:
      let old = (saying.side == 0 ? ofA : ofB)[object] ?? []
      forget(old.filter { !members.contains($0) }.map(pair))
      if saying.side == 0 { setA(object, to: members) } else { setB(object, to: members) }
    case .add:
      for member in members {
        if saying.side == 0 { addA(object, member) } else { addB(object, member) }
      }
    case .remove: for member in members { remove(pair(member)[0], pair(member)[1]) }
    }
  }
}

@Suite(.serialized) struct `What policies say of both sides of a relationship` {
  enum Shape: CaseIterable {
    case oneToMany, ordered, manyToMany, manyToOrdered, oneToOne

    var isToOne: Bool { self != .manyToMany && self != .manyToOrdered }
    /// Of the objects of `A` that one of `B` has.
    var isOrdered: Bool { self == .ordered || self == .manyToOrdered }
    var links: Links { Links(isToOne: isToOne, isOneToOne: self == .oneToOne) }
  }

  private static let keys = 1...5
  /// Migrations drawn for each shape and test; `GODWIT_DRAWS` sets another number.
  private static let draws =
    ProcessInfo.processInfo.environment["GODWIT_DRAWS"].flatMap { Int($0) } ?? 12

  private static func entities(_ shape: Shape, _ word: String) -> [EntityDescription] {
    let ofA = shape.isToOne ? toOne("b", "B", inverse: "as") : toMany("b", "B", inverse: "as")
    let ofB =
      shape == .oneToOne
      ? toOne("as", "A", inverse: "b")
      : toMany("as", "A", inverse: "b", ordered: shape.isOrdered)
    let number = attribute("number", .integer16)
    return [
      entity("A", number, attribute(word), ofA),
      entity("B", number, attribute(word), ofB),
    ]
  }

  private static func fixture(_ shape: Shape, _ random: inout SplitMix64) throws
    -> (MigrationFixture, pairs: [[Int]])
  {
    var rows = ""
    var pairs: [[Int]] = []
    for key in keys {
      for (entity, table) in [(1, "ZA"), (2, "ZB")] {
        rows += """
          INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT, ZNUMBER) VALUES (\(key), \(entity), 1, \(key));
          """
      }
    }
    for a in keys {
      let found = keys.filter { b in
        random.below(3) == 0 && (shape != .oneToOne || !pairs.contains { $0[1] == b })
      }
      for b in shape.isToOne ? Array(found.prefix(1)) : found {
        pairs.append([a, b])
        let place = shape == .ordered ? ", Z_FOK_B = \(2_048 + 1_024 * a)" : ""
        let pair =
          switch shape {
          case .manyToMany: "INSERT INTO Z_1B VALUES (\(a), \(b));"
          case .manyToOrdered:
            "INSERT INTO Z_1B (Z_1AS, Z_2B, Z_FOK_1AS) VALUES (\(a), \(b), \(2_048 + 1_024 * a));"
          default: "UPDATE ZA SET ZB = \(b)\(place) WHERE Z_PK = \(a);"
          }
        rows += pair
        if shape == .oneToOne { rows += "UPDATE ZB SET ZAS = \(a) WHERE Z_PK = \(b);" }
      }
    }
    let fixture = try MigrationFixture(
      from: entities(shape, "old"), to: entities(shape, "new"), rows: rows)
    fixture.policies = PolicyRegistry(["SayingPolicy": SayingPolicy.self])
    return (fixture, pairs)
  }

  private static func saying(
    _ shape: Shape, among known: ClosedRange<Int>, of sides: [Int], _ random: inout SplitMix64
  )
    -> SayingPolicy.Saying
  {
    let side = sides[random.below(sides.count)]
    let isToOne = side == 0 ? shape.isToOne : shape == .oneToOne
    let verb = isToOne ? .set : SayingPolicy.Verb.allCases[random.below(3)]
    var members = known.filter { _ in random.below(2) == 0 }
    if random.below(2) == 0 { members.reverse() }
    if isToOne { members = Array(members.prefix(1)) }
    return .init(
      side: side, object: known.lowerBound + random.below(known.count), verb: verb, members: members
    )
  }

  private static func check(
    _ fixture: MigrationFixture, _ mapping: String, _ shape: Shape, _ expected: Links,
    shardBytes: Int64 = 1 << 24
  ) throws {
    let store = try fixture.migrate(mapping, renumbers: shardBytes == 1, shardBytes: shardBytes)
    let found = try store.links(isToOne: shape.isToOne, isOrdered: shape.isOrdered)
    #expect(found.count == expected.pairs.count)
    #expect(
      Set(found) == expected.pairs, "\(mapping)\(SayingPolicy.copying)\(SayingPolicy.linking)")
    let lost = fixture.droppedByMapping.filter { $0.kind == .sharedTarget }
    #expect(
      lost.reduce(0) { $0 + Int($1.count) } == expected.lost,
      "\(mapping)\(SayingPolicy.copying)\(SayingPolicy.linking)")
    guard shape.isOrdered else { return }
    let lists = Dictionary(grouping: found) { $0[1] }.mapValues { $0.map { $0[0] } }
    #expect(
      lists == expected.ofB.filter { !$0.value.isEmpty },
      "\(mapping)\(SayingPolicy.copying)\(SayingPolicy.linking)")
  }

  @Test(arguments: Shape.allCases, 0..<draws)
  func `comes, with what mappings say, to what Core Data's assignments come to`(
    shape: Shape, seed: Int
  ) throws {
    var random = SplitMix64(seed: UInt64(seed) &* 77 &+ 5)
    let (fixture, pairs) = try Self.fixture(shape, &random)
    let order = random.below(2) == 0 ? ["A", "B"] : ["B", "A"]
    let hooked = [["A"], ["B"], ["A", "B"]][random.below(3)]
    // Both sides by expressions, as Xcode writes them, or one, or none.
    let defaults = [["A", "B"], ["A"], ["B"], []][random.below(4)]
    let sides = [[0, 1], [0], [1]][random.below(3)]
    SayingPolicy.makesB = false
    SayingPolicy.copying = [:]
    SayingPolicy.linking = [:]
    for name in hooked {
      for key in Self.keys where random.below(2) == 0 {
        SayingPolicy.linking[name, default: [:]][key] = (0...random.below(2)).map { _ in
          Self.saying(shape, among: Self.keys, of: sides, &random)
        }
      }
    }
    var mapping = "mapping-model: 1\nentity-mappings:\n"
    var expected = shape.links
    for name in order {
      let value = defaults.contains(name) ? "automatic" : "{ value: default }"
      mapping += """
          - { name: \(name), source: \(name), destination: \(name), \
        relationships: { \(name == "A" ? "b" : "as"): \(value) }\
        \(hooked.contains(name) ? ", policy: SayingPolicy" : "") }

        """
      for key in Self.keys {
        if defaults.contains(name) {
          let side = name == "A" ? 0 : 1
          let members = pairs.filter { $0[side] == key }.map { $0[1 - side] }
          if side == 0 { expected.setA(key, to: members) } else { expected.setB(key, to: members) }
        }
        for saying in SayingPolicy.linking[name]?[key] ?? [] { expected.take(saying) }
      }
    }
    for policy in [SayingPolicy.self, ShardedSayingPolicy.self] {
      fixture.policies = PolicyRegistry(["SayingPolicy": policy])
      for shardBytes in [1 << 24, 1] as [Int64] {
        try Self.check(fixture, mapping, shape, expected, shardBytes: shardBytes)
      }
    }
  }

  @Test(arguments: Shape.allCases, 0..<draws)
  func `in the copy stage comes before anything that the link stage says`(shape: Shape, seed: Int)
    throws
  {
    var random = SplitMix64(seed: UInt64(seed) &* 31 &+ 11)
    let (fixture, _) = try Self.fixture(shape, &random)
    let sides = [[0, 1], [0], [1]][random.below(3)]
    SayingPolicy.makesB = true
    SayingPolicy.copying = [:]
    SayingPolicy.linking = [:]
    var expected = shape.links
    for key in Self.keys {
      SayingPolicy.copying[key] = (0...random.below(3)).map { _ in
        Self.saying(shape, among: 1...key, of: sides, &random)
      }
      for saying in SayingPolicy.copying[key] ?? [] { expected.take(saying) }
    }
    let isEmptied = random.below(2) == 0
    for key in Self.keys {
      if isEmptied { expected.setA(key, to: []) }
      guard random.below(3) == 0 else { continue }
      SayingPolicy.linking["A", default: [:]][key] = [
        Self.saying(shape, among: Self.keys, of: sides, &random)
      ]
      for saying in SayingPolicy.linking["A"]?[key] ?? [] { expected.take(saying) }
    }
    try Self.check(
      fixture,
      """
      mapping-model: 1
      entity-mappings:
        - { name: A, source: A, destination: A, policy: SayingPolicy, \
      relationships: { b: \(isEmptied ? "'nil'" : "{ value: default }") } }
      """, shape, expected)
  }

  /// The other side's list is told apart by what comes last in it.
  @Test func `puts what is taken away and added again at the end of the other side's list`() throws
  {
    var random = SplitMix64(seed: 1)
    let (fixture, _) = try Self.fixture(.manyToOrdered, &random)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { name: A, source: A, destination: A, policy: SayingPolicy, \
      relationships: { b: { value: default } } }
        - { name: B, source: B, destination: B, relationships: { as: { value: default } } }
      """
    func said(_ sayings: SayingPolicy.Saying...) throws {
      SayingPolicy.makesB = false
      (SayingPolicy.copying, SayingPolicy.linking) = ([:], ["A": [5: sayings]])
      var expected = Shape.manyToOrdered.links
      for saying in sayings { expected.take(saying) }
      #expect(expected.ofB[1] == [2, 1])
      try Self.check(fixture, mapping, .manyToOrdered, expected)
    }
    try said(
      .init(side: 0, object: 1, verb: .add, members: [1]),
      .init(side: 0, object: 2, verb: .add, members: [1]),
      .init(side: 0, object: 1, verb: .set, members: []),
      .init(side: 0, object: 1, verb: .add, members: [1]))
    try said(
      .init(side: 1, object: 1, verb: .set, members: [1, 2]),
      .init(side: 0, object: 1, verb: .set, members: [3]),
      .init(side: 0, object: 1, verb: .add, members: [1]))
  }
}
