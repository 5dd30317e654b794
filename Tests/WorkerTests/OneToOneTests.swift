import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

@testable import GodwitWorker

/// Objects are told by their names: `a1` … are of entity `A`, `b1` … of entity `B`.
private struct Pairing {
  var partner: [String: String] = [:]

  /// What Core Data's inverses come to when one side is set: both leave their partners.
  mutating func set(_ object: String, to other: String?) {
    if let old = partner[object] { partner[old] = nil }
    partner[object] = nil
    guard let other else { return }
    if let old = partner[other] { partner[old] = nil }
    partner[object] = other
    partner[other] = object
  }
}

@Suite struct `A one-to-one relationship of a mapped migration` {
  /// How an entity mapping gives the relationship its value.
  enum Rule: String, CaseIterable {
    case unset = "default"
    /// The source's own partner.
    case automatic
    /// Another object of the other entity, which several may name.
    case other
    /// Another object, or nil by condition.
    case otherOrNone
  }

  /// Random objects with partners that need not agree, as Core Data tolerates them.
  private struct Draw {
    var random: SplitMix64
    var a: [Int: (partner: Int?, other: Int?, flag: Int)] = [:]
    var b: [Int: (partner: Int?, other: Int?)] = [:]

    init(seed: UInt64) {
      random = SplitMix64(seed: seed)
      let count = 5
      for key in 1...count {
        a[key] = (pick(count), pick(count), random.below(2))
        b[key] = (pick(count), pick(count))
      }
    }

    mutating func pick(_ count: Int) -> Int? {
      let found = random.below(count + 2)
      return found >= 1 && found <= count ? found : nil
    }

    var rows: String {
      func text(_ number: Int?) -> String { number.map(String.init) ?? "NULL" }
      return
        a.keys.sorted().map { key in
          let row = a[key] ?? (nil, nil, 0)
          return """
            INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZNAME, ZFLAG, ZB, ZOTHER)
            VALUES (\(key), 1, 1, 'a\(key)', \(row.flag), \(text(row.partner)), \(text(row.other)));
            """
        }.joined()
        + b.keys.sorted().map { key in
          let row = b[key] ?? (nil, nil)
          return """
            INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT, ZNAME, ZA, ZOTHER)
            VALUES (\(key), 2, 1, 'b\(key)', \(text(row.partner)), \(text(row.other)));
            """
        }.joined()
    }
  }

  private static func entities(_ word: String) -> [EntityDescription] {
    [
      entity(
        "A", attribute("name"), attribute("flag", .integer16), attribute(word),
        toOne("b", "B", inverse: "a"), toOne("other", "B")),
      entity("B", attribute("name"), toOne("a", "A", inverse: "b"), toOne("other", "A")),
    ]
  }

  private static func expression(_ rule: Rule, of property: String, in source: String) -> String {
    let objects =
      rule == .other ? "$source.other" : "TERNARY($source.other.name LIKE '?2', nil, $source.other)"
    let made =
      #"FUNCTION($manager, "destinationInstancesForSourceRelationshipNamed:sourceInstances:", "other", \#(objects))"#
    return rule == .unset || rule == .automatic ? rule.rawValue : "'" + made.quotedForYAML + "'"
  }

  @Test(arguments: 0..<20)
  func `is paired up as Core Data's assignments, one after the other, would`(seed: Int) throws {
    var draw = Draw(seed: UInt64(seed))
    let rules = (0..<3).map { _ in Rule.allCases[draw.random.below(4)] }
    let isSplit = draw.random.below(2) == 1
    let comesFirst = draw.random.below(2) == 1
    func line(_ name: String, _ entity: String, _ filter: String, _ rule: Rule) -> String {
      let property = entity == "A" ? "b" : "a"
      return """
          - name: \(name)
            source: \(entity)
            destination: \(entity)
            filter: \(filter)
            relationships: { \(property): \(Self.expression(rule, of: property, in: entity)) }

        """
    }
    let ofA =
      isSplit
      ? line("A0", "A", "flag == 0", rules[0]) + line("A1", "A", "flag == 1", rules[1])
      : line("A0", "A", "TRUEPREDICATE", rules[0])
    let ofB = line("B0", "B", "TRUEPREDICATE", rules[2])
    let mapping =
      "mapping-model: 1\nentity-mappings:\n" + (comesFirst ? ofA + ofB : ofB + ofA)

    var expected = Pairing()
    func assign(_ object: String, _ rule: Rule, _ partner: String?, _ other: String?) {
      switch rule {
      case .unset: break
      case .automatic: expected.set(object, to: partner)
      case .other: expected.set(object, to: other)
      case .otherOrNone: expected.set(object, to: other?.hasSuffix("2") == true ? nil : other)
      }
    }
    func runA(_ flag: Int?, _ rule: Rule) {
      for key in draw.a.keys.sorted() {
        guard let row = draw.a[key], flag == nil || row.flag == flag else { continue }
        assign("a\(key)", rule, row.partner.map { "b\($0)" }, row.other.map { "b\($0)" })
      }
    }
    func runB() {
      for key in draw.b.keys.sorted() {
        guard let row = draw.b[key] else { continue }
        assign("b\(key)", rules[2], row.partner.map { "a\($0)" }, row.other.map { "a\($0)" })
      }
    }
    if !comesFirst { runB() }
    if isSplit {
      runA(0, rules[0])
      runA(1, rules[1])
    } else {
      runA(nil, rules[0])
    }
    if comesFirst { runB() }

    let fixture = try MigrationFixture(
      from: Self.entities("old"), to: Self.entities("new"), rows: draw.rows)
    let wanted = expected.partner.map { "\($0) \($1)" }.sorted()
    for (renumbers, shardBytes) in [(false, 1 << 24), (true, 1)] as [(Bool, Int64)] {
      let store = try fixture.migrate(mapping, renumbers: renumbers, shardBytes: shardBytes)
      let found = try store.table(
        """
        SELECT x.ZNAME, y.ZNAME FROM ZA AS x JOIN ZB AS y ON y.Z_PK = x.ZB
         UNION ALL
        SELECT y.ZNAME, x.ZNAME FROM ZB AS y JOIN ZA AS x ON x.Z_PK = y.ZA
        """)
      #expect(found.sorted() == wanted, "\(mapping)")
    }
  }

  @Test(.enabled(if: OracleJudge.isHere, "needs ../shared"), arguments: 100..<106)
  func `has inverses that hold both ways`(seed: Int) throws {
    var draw = Draw(seed: UInt64(seed))
    let rules = (0..<2).map { _ in Rule.allCases[1 + draw.random.below(3)] }
    let fixture = try MigrationFixture(
      from: Self.entities("old"), to: Self.entities("new"), rows: draw.rows)
    _ = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: A, destination: A, relationships: { b: \(Self.expression(rules[0], of: "b", in: "A")) } }
        - { source: B, destination: B, relationships: { a: \(Self.expression(rules[1], of: "a", in: "B")) } }
      """)
    let store = try #require(fixture.latest?.store)
    #expect(try OracleJudge.findings(store, validating: true) == "")
  }

  /// Of people and whom they want to be married to.
  @Test(arguments: [
    (spouses: [1: 2, 2: 1, 3: 4, 4: 3], expected: ["1 2", "2 1", "3 4", "4 3"], lost: 0),
    (spouses: [1: 2, 2: 3, 3: 1], expected: ["1 3", "3 1"], lost: 2),  // the last assignment stays
    (spouses: [1: 1], expected: ["1 1"], lost: 0),
    (spouses: [3: 1, 4: 1], expected: ["1 4", "4 1"], lost: 1),
    (spouses: [1: 4], expected: [], lost: 1),  // 4 wants nobody, and says so last
  ])
  func `that is its own inverse is kept both ways, too`(
    spouses: [Int: Int], expected: [String], lost: Int
  ) throws {
    func model(_ word: String) -> [EntityDescription] {
      [
        entity(
          "Person", attribute(word), toOne("spouse", "Person", inverse: "spouse"),
          toOne("wanted", "Person"))
      ]
    }
    let rows = (1...4).map { key in
      """
      INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZWANTED)
      VALUES (\(key), 1, 1, \(spouses[key].map(String.init) ?? "NULL"));
      """
    }.joined()
    let fixture = try MigrationFixture(from: model("old"), to: model("new"), rows: rows)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - source: Person
          destination: Person
          relationships: { spouse: 'FUNCTION($manager, "destinationInstancesForSourceRelationshipNamed:sourceInstances:", "wanted", $source.wanted)' }
      """)
    #expect(
      try store.table(
        "SELECT Z_PK, ZSPOUSE FROM ZPERSON WHERE ZSPOUSE IS NOT NULL ORDER BY 1") == expected)
    #expect(fixture.droppedByMapping.map { Int($0.count) } == (lost == 0 ? [] : [lost]))
  }
}

extension String {
  /// For a YAML text in single quotes.
  fileprivate var quotedForYAML: String {
    split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
  }
}
