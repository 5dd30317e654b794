import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@testable import GodwitPlanning

/// `P.x` and `Q.y` are a one-to-one, which has a column on each side. Core Data tolerates that a pair is in one
/// of them alone: 1 and 1 are in `x` alone, 3 and 3 in `y` alone, 2 and 2 in both.
@Suite struct `A pair that one side of a one-to-one has` {
  private static let rows = """
    INSERT INTO ZP (Z_PK, Z_ENT, Z_OPT, ZX) VALUES (1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, NULL);
    INSERT INTO ZQ (Z_PK, Z_ENT, Z_OPT, ZY) VALUES (1, 2, 1, NULL), (2, 2, 1, 2), (3, 2, 1, 3)
    """
  private static let source = model(
    toOne("x", "Q", inverse: "y"), toOne("y", "P", inverse: "x"), "old")

  private static func model(
    _ x: PropertyDescription?, _ y: PropertyDescription?, _ word: String = "new"
  ) -> [EntityDescription] {
    [("P" as EntityName, x), ("Q", y)].map { name, relationship in
      EntityDescription(
        name: name, properties: [attribute(word)] + [relationship].compactMap(\.self))
    }
  }

  /// What becomes of either side, and what is counted, as `property count keys`.
  private static let changes: [(x: PropertyDescription?, y: PropertyDescription?, lost: [String])] =
    [
      (toOne("x", "Q", inverse: "y"), toOne("y", "P", inverse: "x"), []),
      (nil, toOne("y", "P"), ["P.x 1 1"]),
      (toOne("x", "Q"), nil, ["Q.y 1 3"]),
      (nil, nil, ["P.x 2 1,2", "Q.y 1 3"]),
      // Without the other column a pair comes from the one that is left.
      (toMany("x", "Q", inverse: "y"), toOne("y", "P", inverse: "x"), ["P.x 1 1"]),
      (toOne("x", "Q", inverse: "y"), toMany("y", "P", inverse: "x"), ["Q.y 1 3"]),
      (toMany("x", "Q", inverse: "y"), toMany("y", "P", inverse: "x"), ["Q.y 1 3"]),
      // Removed, and added under another name.
      (toOne("x2", "Q", inverse: "y"), toOne("y", "P", inverse: "x2"), ["P.x 1 1"]),
      (toMany("x2", "Q", inverse: "y"), toOne("y", "P", inverse: "x2"), ["P.x 1 1"]),
      (toOne("x", "Q"), toOne("y", "P"), []),
      (toOne("x", "Q"), toMany("y", "P"), []),
    ]

  private func pairs(_ store: Connection) throws -> Set<String> {
    var pairs: Set<String> = []
    for (table, first, column) in [
      ("ZP", "Z_PK", "ZX"), ("ZP", "Z_PK", "ZX2"), ("ZQ", "ZY", "Z_PK"), ("ZP", "Z_PK", "Z2Y"),
      ("Z_1X", "Z_1Y", "Z_2X"), ("Z_2Y", "Z_1X", "Z_2Y"), ("Z_1X", "Z_1X", "Z_2Y"),
    ] {
      let sql = "SELECT \(first), \(column) FROM \(table) WHERE \(first) + \(column) NOT NULL"
      if let found = try? store.table(sql) { pairs.formUnion(found) }
    }
    return pairs
  }

  @Test(arguments: changes.indices)
  func `is kept, or counted once`(number: Int) throws {
    let change = Self.changes[number]
    let fixture = try MigrationFixture(
      from: Self.source, to: Self.model(change.x, change.y), rows: Self.rows)
    let store = try fixture.migrate()
    let losses = try #require(fixture.latest).plan.losses
    let text = losses.map { loss in
      "\(loss.entity ?? "").\(loss.property ?? "") \(loss.count) "
        + loss.primaryKeys.map(String.init).joined(separator: ",")
    }
    #expect(text.sorted() == change.lost)
    #expect(losses.allSatisfy { $0.kind == .relationship })
    let lost = losses.reduce(0) { $0 + Int($1.count) }
    let left = try pairs(store)
    #expect(left.count == 3 - lost, "\(left)")
    guard case .refused(_, let reasons) = try fixture.outcome(losses: .refuse) else {
      #expect(change.lost.isEmpty)
      return
    }
    #expect(
      reasons.count == losses.count && reasons.allSatisfy { $0.reason == "lost-relationship" })
  }

  @Test func `is said to be what the inverse does not have`() throws {
    func messages(_ x: PropertyDescription?) throws -> [String] {
      let y = toOne("y", "P", inverse: x?.relationship?.name)
      return try MigrationFixture(from: Self.source, to: Self.model(x, y), rows: Self.rows).plan()
        .losses.map(\.message)
    }
    #expect(
      try messages(nil) == [
        "P.x has no successor, and its inverse y does not have them: 1 reference is dropped."
      ])
    #expect(
      try messages(toMany("x", "Q", inverse: "y")) == [
        "P.x takes the references of its inverse y, which does not have them: 1 reference is dropped."
      ])
  }

  /// Rows for relationships, and what is counted.
  @Test(
    arguments: [
      ("", "{ y: automatic }", ["P.x 1"]), ("{ x: automatic }", "", ["Q.y 1"]),
      ("", "", ["P.x 2", "Q.y 1"]), ("{ x: automatic }", "{ y: automatic }", []),
    ] as [(String, String, [String])])
  func `counts where no row of a mapping model reads its side`(
    x: String, y: String, lost: [String]
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.source,
      to: Self.model(
        x.isEmpty ? nil : toOne("x", "Q", inverse: y.isEmpty ? nil : "y"),
        y.isEmpty ? nil : toOne("y", "P", inverse: x.isEmpty ? nil : "x")), rows: Self.rows)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: P, destination: P, relationships: \(x.isEmpty ? "{}" : x) }
        - { source: Q, destination: Q, relationships: \(y.isEmpty ? "{}" : y) }
      """
    let store = try fixture.migrate(mapping)
    let losses = try #require(fixture.latest).plan.losses + fixture.droppedByMapping
    let counts = losses.filter { $0.kind != .attribute }.map {
      "\($0.entity ?? "").\($0.property ?? "") \($0.count)"
    }
    let sum = losses.filter { $0.kind != .attribute }.reduce(0) { $0 + Int($1.count) }
    let left = try pairs(store)
    #expect(left.count == 3 - sum, "\(counts) \(left)")
    if !lost.isEmpty { #expect(counts.sorted() == lost) }
  }

  private static let split = ["P", "Q"].flatMap {
    [
      "source: \($0), destination: \($0), filter: old == nil",
      "source: \($0), destination: \($0)2, filter: old != nil",
    ]
  }
  /// `x` asks both mappings of `Q`, of which one has no row for `y`.
  private static let halved = [
    "source: P, destination: P",
    "name: Low, source: Q, destination: Q, filter: old == nil, relationships: { y: default }",
    "name: High, source: Q, destination: Q, filter: old != nil",
  ]

  /// Entity mappings, whether the second one of `Q` takes its objects, and what the stages count, of pairs
  /// that are in `x` alone, in both columns and in `y` alone.
  @Test(
    arguments: [
      (split, true, ["P.x 1,2", "Q.y 3"]), (split, false, []),
      // What both columns have the other side keeps.
      (halved, false, ["Q.y 3"]),
    ] as [([String], Bool, [String])], [Int64(1), 1 << 20])
  func `is kept, or counted, by the rows of its own side`(
    example: (mappings: [String], isSecond: Bool, lost: [String]), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.source,
      to: [
        entity("P", attribute("old"), toOne("x", "Q", inverse: "y")),
        entity("Q", attribute("old"), toOne("y", "P", inverse: "x")),
        entity("P2", attribute("old"), toOne("x", "Q2", inverse: "y")),
        entity("Q2", attribute("old"), toOne("y", "P2", inverse: "x")),
      ],
      rows: Self.rows + (example.isSecond ? "; UPDATE ZQ SET ZOLD = 'second'" : ""))
    _ = try fixture.migrate(
      "mapping-model: 1\nentity-mappings:\n"
        + example.mappings.map { "  - { \($0) }\n" }.joined(), shardBytes: shardBytes)
    var lost: [String: [Int64]] = [:]
    for loss in fixture.droppedByMapping where loss.kind == .reference {
      #expect(loss.count == loss.primaryKeys.count)
      lost["\(loss.entity ?? "").\(loss.property ?? "")", default: []] += loss.primaryKeys
    }
    let text = lost.map { "\($0) \($1.sorted().map(String.init).joined(separator: ","))" }
    #expect(text.sorted() == example.lost)
  }

  @Test
  func `stays one-sided through versions that keep both sides, and is lost where they do not`()
    throws
  {
    func hierarchy(_ entities: [EntityDescription]) throws -> EntityHierarchy {
      try EntityHierarchy(ManagedObjectModel(entities: entities))
    }
    let fixture = try MigrationFixture(from: Self.source, to: Self.source, rows: Self.rows)
    let store = try SourceStore(
      path: fixture.folder.appending("source.sqlite"),
      snapshotFolder: fixture.folder.appending("snapshot"))
    let ends = try hierarchy(Self.source)
    let renamed = try hierarchy(
      Self.model(toMany("x", "Q", inverse: "y"), toOne("y", "P", inverse: "x"), "old"))
    let halved = try hierarchy(Self.model(nil, toOne("y", "P"), "old"))
    func lost(_ versions: EntityHierarchy...) throws -> [String] {
      try (LossCounter.losses(of: store, over: versions) ?? []).map {
        "\($0.entity ?? "").\($0.property ?? "") \($0.count)"
      }
    }
    #expect(try lost(ends, ends, ends) == [])
    #expect(try lost(ends, ends, halved) == ["P.x 1"])
    #expect(try lost(ends, renamed, ends) == ["P.x 1"])
    #expect(try lost(ends, halved, ends) == ["P.x 1"])
  }
}
