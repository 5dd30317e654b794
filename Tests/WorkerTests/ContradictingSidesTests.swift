import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitPlanning

@Suite struct `A relationship whose two sides a mapping model sets to different things` {
  /// How an entity mapping gives its side.
  enum Rule: CaseIterable {
    case automatic, other, some, none

    func row(_ property: String, _ other: String, isToOne: Bool = false) -> String {
      let objects =
        isToOne
        ? "TERNARY($source.\(property).flag == 1, $source.\(property), nil)"
        : "SUBQUERY($source.\(property), $x, $x.flag == 1)"
      return switch self {
      case .automatic: "automatic"
      case .other: "{ along: \(other) }"
      case .some:
        #"'FUNCTION($manager, "destinationInstancesForSourceRelationshipNamed:sourceInstances:", "#
          + #""\#(property)", \#(objects))'"#
      case .none: "'nil'"
      }
    }
  }

  enum Shape: CaseIterable {
    case oneToMany, ordered, manyToMany

    var isToOne: Bool { self != .manyToMany }
  }

  private static func entities(_ shape: Shape, _ word: String) -> [EntityDescription] {
    func ofA(_ name: String, _ inverse: String) -> PropertyDescription {
      shape.isToOne ? toOne(name, "B", inverse: inverse) : toMany(name, "B", inverse: inverse)
    }
    func ofB(_ name: String, _ inverse: String) -> PropertyDescription {
      toMany(name, "A", inverse: inverse, ordered: shape == .ordered)
    }
    let (number, flag) = (attribute("number", .integer16), attribute("flag", .integer16))
    return [
      entity("A", number, flag, attribute(word), ofA("b", "as"), ofA("ob", "oas")),
      entity("B", number, flag, attribute(word), ofB("as", "b"), ofB("oas", "ob")),
    ]
  }

  /// Objects of both entities, and the pairs of the source's two relationships.
  private struct Draw {
    static let keys = 1...5
    let shape: Shape
    var random: SplitMix64
    var flags: [Int: Int] = [:]
    var pairs: [[[Int]]] = [[], []]

    init(seed: UInt64, _ shape: Shape) {
      self.shape = shape
      random = SplitMix64(seed: seed)
      for key in Self.keys { flags[key] = random.below(2) }
      for number in 0..<2 {
        for a in Self.keys {
          let found = Self.keys.filter { _ in random.below(3) == 0 }
          pairs[number] += (shape.isToOne ? Array(found.prefix(1)) : found).map { [a, $0] }
        }
      }
    }

    var rows: String {
      var text = ""
      for key in Self.keys {
        for (entity, table) in [(1, "ZA"), (2, "ZB")] {
          text += """
            INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZFLAG)
            VALUES (\(key), \(entity), 1, \(key), \(flags[key] ?? 0));
            """
        }
      }
      for (number, name) in ["B", "OB"].enumerated() {
        for pair in pairs[number] {
          if shape.isToOne {
            // The last member comes first.
            let place = shape == .ordered ? ", Z_FOK_\(name) = \(9_000 - pair[0])" : ""
            text += "UPDATE ZA SET Z\(name) = \(pair[1])\(place) WHERE Z_PK = \(pair[0]);"
          } else {
            text += "INSERT INTO Z_1\(name) VALUES (\(pair[0]), \(pair[1]));"
          }
        }
      }
      return text
    }

    /// What a rule gives an object, in the order of the source.
    func members(_ rule: Rule, of object: Int, side: Int) -> [Int] {
      guard rule != .none else { return [] }
      let found = pairs[rule == .other ? 1 : 0].filter { $0[side] == object }.map { $0[1 - side] }
      return (shape == .ordered && side == 1 ? found.reversed() : found)
        .filter { rule != .some || flags[$0] == 1 }
    }
  }

  @Test(arguments: Shape.allCases, 0..<8)
  func `has what Core Data's assignments, one after the other, come to`(
    shape: Shape, seed: Int
  ) throws {
    var draw = Draw(seed: UInt64(seed), shape)
    let rules = (0..<3).map { _ in Rule.allCases[draw.random.below(4)] }
    let parts = draw.random.below(2) == 1 ? [0, 1] : [0]
    let comesFirst = draw.random.below(2) == 1
    let ofA = parts.map { part in
      """
        - name: A\(part)
          source: A
          destination: A
          filter: \(parts.count == 2 ? "flag == \(part)" : "TRUEPREDICATE")
          relationships: { b: \(rules[part].row("b", "ob", isToOne: shape.isToOne)), ob: { value: default } }

      """
    }.joined()
    let ofB = """
        - source: B
          destination: B
          relationships: { as: \(rules[2].row("as", "oas")), oas: { value: default } }

      """
    let mapping =
      "mapping-model: 1\nentity-mappings:\n" + (comesFirst ? ofA + ofB : ofB + ofA)

    var expected = Links(isToOne: shape.isToOne)
    func setB() {
      for key in Draw.keys { expected.setB(key, to: draw.members(rules[2], of: key, side: 1)) }
    }
    if !comesFirst { setB() }
    for part in parts {
      for key in Draw.keys where parts.count == 1 || draw.flags[key] == part {
        expected.setA(key, to: draw.members(rules[part], of: key, side: 0))
      }
    }
    if comesFirst { setB() }

    let fixture = try MigrationFixture(
      from: Self.entities(shape, "old"), to: Self.entities(shape, "new"), rows: draw.rows)
    let agree =
      parts.allSatisfy { rules[$0] == rules[2] } && [.automatic, .other].contains(rules[2])
    for (renumbers, shardBytes) in [(false, 1 << 24), (true, 1)] as [(Bool, Int64)] {
      let store = try fixture.migrate(mapping, renumbers: renumbers, shardBytes: shardBytes)
      let groups = try #require(fixture.latest?.plan.mapped?.groups)
      #expect(groups.contains { $0.isSequential == true } != agree, "\(mapping)")
      let found = try store.links(isToOne: shape.isToOne, isOrdered: shape == .ordered)
      #expect(found.count == expected.pairs.count)
      #expect(Set(found) == expected.pairs, "\(mapping)")
      // What one of A's mappings has no row for is lost for another reason.
      let taken = fixture.droppedByMapping.filter { $0.kind == .sharedTarget }
      #expect(taken.reduce(0) { $0 + Int($1.count) } == (agree ? 0 : expected.lost), "\(mapping)")
      guard shape == .ordered, !agree else { continue }
      let lists = Dictionary(grouping: found) { $0[1] }.mapValues { $0.map { $0[0] } }
      #expect(lists == expected.ofB.filter { !$0.value.isEmpty }, "\(mapping)")
    }
  }

  @Test func `and that is its own inverse is set object by object`() throws {
    func model(_ word: String) -> [EntityDescription] {
      [
        entity(
          "Person", attribute("flag", .integer16), attribute(word),
          toMany("friends", "Person", inverse: "friends"))
      ]
    }
    let rows = """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZFLAG) VALUES (1, 1, 1, 0), (2, 1, 1, 1), (3, 1, 1, 0);
      INSERT INTO Z_1FRIENDS VALUES (1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2);
      """
    let fixture = try MigrationFixture(from: model("old"), to: model("new"), rows: rows)
    func pairs(_ friends: String) throws -> [String] {
      try fixture.migrate(
        """
        mapping-model: 1
        entity-mappings:
          - { source: Person, destination: Person, relationships: { friends: \(friends) } }
        """
      ).table("SELECT * FROM Z_1FRIENDS ORDER BY 1, 2")
    }
    #expect(try pairs("automatic") == ["1 2", "1 3", "2 1", "2 3", "3 1", "3 2"])
    #expect(fixture.droppedByMapping.isEmpty)
    // The second one has no friend with the flag and says so; the third one comes later.
    #expect(try pairs(Rule.some.row("friends", "")) == ["2 3", "3 2"])
    #expect(fixture.droppedByMapping.map(\.count) == [1])
  }

  @Test(arguments: [Shape.oneToMany, .ordered], 0..<8)
  func `because one of them has room for fewer objects has the last word, too`(
    shape: Shape, seed: Int
  ) throws {
    var draw = Draw(seed: UInt64(seed), .manyToMany)
    let comesFirst = draw.random.below(2) == 1
    let lines = [
      "source: A, destination: A, relationships: { ob: { value: default } }",
      "source: B, destination: B, relationships: { oas: { value: default } }",
    ].map { "  - { \($0) }\n" }
    let mapping =
      "mapping-model: 1\nentity-mappings:\n"
      + (comesFirst ? lines : lines.reversed()).joined()

    var expected = Links(isToOne: true)
    func setB() {
      for key in Draw.keys { expected.setB(key, to: draw.members(.automatic, of: key, side: 1)) }
    }
    if !comesFirst { setB() }
    for key in Draw.keys {
      expected.setA(key, to: Array(draw.members(.automatic, of: key, side: 0).prefix(1)))
    }
    if comesFirst { setB() }

    let fixture = try MigrationFixture(
      from: Self.entities(.manyToMany, "old"), to: Self.entities(shape, "new"), rows: draw.rows)
    for shardBytes in [Int64(1), 1 << 24] {
      let store = try fixture.migrate(mapping, shardBytes: shardBytes)
      let found = try store.links(isToOne: true, isOrdered: shape == .ordered)
      #expect(Set(found) == expected.pairs, "\(mapping)")
      // Each pair that is dropped counts once, whichever side has dropped it.
      #expect(
        fixture.droppedByMapping.reduce(0) { $0 + Int($1.count) }
          == draw.pairs[0].count - expected.pairs.count)
      guard shape == .ordered else { continue }
      let lists = Dictionary(grouping: found) { $0[1] }.mapValues { $0.map { $0[0] } }
      #expect(lists == expected.ofB.filter { !$0.value.isEmpty }, "\(mapping)")
    }
    let notes = try #require(fixture.latest?.plan.notes)
    #expect(
      notes.filter { $0.contains("A.b and B.as") && $0.contains("has room for one") }.count == 1)
  }

  /// A relationship of the source, what it says of four people, and what becomes of it.
  @Test(
    arguments: [
      (
        [toOne("boss", "Person", inverse: "team"), toMany("team", "Person", inverse: "boss")],
        "ZBOSS",
        [3, 3, 4, 2], ["2 4", "4 2"], [3]
      ),
      ([toOne("boss", "Person")], "ZBOSS", [3, 3, 4, 2], ["2 4", "4 2"], [3]),
      // The last one has no boss, and says so.
      ([toOne("boss", "Person")], "ZBOSS", [3, 3, 4, nil], [], [3]),
      // Here nobody says more than that there are pairs.
      (
        [toMany("boss", "Person")], "Z1BOSS", [3, 3, 4, nil],
        ["1 3", "2 3", "3 1", "3 2", "3 4", "4 3"], []
      ),
    ] as [([PropertyDescription], String, [Int?], [String], [Int64])])
  func `and that becomes its own inverse has what objects say of it one after the other`(
    source: [PropertyDescription], column: String, values: [Int?], pairs: [String], lost: [Int64]
  ) throws {
    let rows = values.enumerated().map { index, value in
      "INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, \(column)) "
        + "VALUES (\(index + 1), 1, 1, \(value.map(String.init) ?? "NULL"));"
    }
    let fixture = try MigrationFixture(
      from: [EntityDescription(name: "Person", properties: source)],
      to: [entity("Person", toMany("friends", "Person", inverse: "friends"))],
      rows: rows.joined())
    for shardBytes in [Int64(1), 1 << 24] {
      let store = try fixture.migrate(
        """
        mapping-model: 1
        entity-mappings:
          - { source: Person, destination: Person, relationships: { friends: { along: boss } } }
        """, shardBytes: shardBytes)
      #expect(try store.table("SELECT * FROM Z_1FRIENDS ORDER BY 1, 2") == pairs)
      #expect(fixture.droppedByMapping.map(\.count) == lost)
    }
  }

  @Test func `by one and the same object is set in the order of its rows`() throws {
    func model(_ word: String) -> [EntityDescription] {
      [
        entity(
          "Node", attribute(word), toOne("parent", "Node", inverse: "children"),
          toMany("children", "Node", inverse: "parent"))
      ]
    }
    let rows = """
      INSERT INTO ZNODE (Z_PK, Z_ENT, Z_OPT, ZPARENT)
      VALUES (1, 1, 1, 3), (2, 1, 1, 1), (3, 1, 1, NULL), (4, 1, 1, 4);
      """
    let fixture = try MigrationFixture(from: model("old"), to: model("new"), rows: rows)
    // Rows are sorted by name: children, then parent.
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Node, destination: Node, relationships: { children: 'nil' } }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZPARENT FROM ZNODE WHERE ZPARENT NOT NULL") == ["2 1", "4 4"])
    let plan = try #require(fixture.latest?.plan)
    #expect(
      plan.notes.filter { $0.contains("Node.parent and Node.children") && $0.contains("default") }
        .count == 1)
  }
}
