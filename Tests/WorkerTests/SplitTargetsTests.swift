import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

private func mapping(_ lines: [String]) -> String {
  "mapping-model: 1\nentity-mappings:\n" + lines.map { "  - { \($0) }\n" }.joined()
}

/// `'FUNCTION($manager, …, "X1", $source.x)'`, without the quotes; several in braces.
private func call(_ mappings: String..., along relationship: String, inBraces: Bool = true)
  -> String
{
  let calls = mappings.map {
    "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"\($0)\", "
      + "$source.\(relationship))"
  }
  return inBraces ? "{\(calls.joined(separator: ", "))}" : calls.joined()
}

@Suite struct `A relationship to objects that several entity mappings take` {
  private static func model(_ word: String, hasSubentity: Bool) -> [EntityDescription] {
    [
      entity("A", attribute(word), toOne("x", "X", inverse: "as")),
      entity("X", attribute("k", .integer16), attribute("m"), toMany("as", "A", inverse: "x")),
      entity("Y", attribute("k", .integer16)),
    ] + (hasSubentity ? [entity("Xs", parent: "X")] : [])
  }

  /// Each of five objects of `A` has an `X` of its own, whose `k` is its key.
  private static func rows(hasSubentity: Bool) -> String {
    (1...5).map { key in
      let number = hasSubentity && key == 5 ? 3 : 2
      return """
        INSERT INTO ZX (Z_PK, Z_ENT, Z_OPT, ZK) VALUES (\(key), \(number), 1, \(key));
        INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZX\(hasSubentity ? ", Z2_X" : ""))
        VALUES (\(key), 1, 1, \(key)\(hasSubentity ? ", \(number)" : ""));
        """
    }.joined()
  }

  /// The row for `A.x`, filters of mappings of `X` to itself, and which objects of `A` keep their `X`
  /// where those with an even `k` go to `Y`.
  @Test(
    arguments: [
      ("automatic", [1], false, ["1", "3", "5"]),
      ("automatic", [1], true, ["1", "3", "5"]),
      ("automatic", [1, 3], false, ["1", "3", "5"]),
      ("automatic", [1, 3], true, ["1", "3", "5"]),
      ("'\(call("X1", along: "x", inBraces: false))'", [1], false, ["1", "3", "5"]),
      ("'\(call("X1", along: "x"))'", [1], false, ["1", "3", "5"]),
      ("'\(call("X3", "X1", along: "x"))'", [1, 3], false, ["1", "3", "5"]),
      // What another mapping takes, and nothing asks.
      ("'\(call("X3", along: "x"))'", [1, 3], false, ["3"]),
    ] as [(String, [Int], Bool, [String])], [Int64(1), 1 << 20])
  func `counts references to what goes to another entity`(
    example: (row: String, parts: [Int], hasSubentity: Bool, kept: [String]), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.model("old", hasSubentity: example.hasSubentity),
      to: Self.model("new", hasSubentity: example.hasSubentity),
      rows: Self.rows(hasSubentity: example.hasSubentity))
    let filters = [1: example.parts == [1] ? "modulus:by:(k, 2) == 1" : "k IN {1, 5}", 3: "k == 3"]
    let lines =
      ["source: A, destination: A, relationships: { x: \(example.row) }"]
      + example.parts.map {
        "name: X\($0), source: X, destination: X, filter: '\(filters[$0] ?? "")', "
          + "relationships: { as: default }"
      }
      + ["source: X, destination: Y, filter: 'modulus:by:(k, 2) == 0'", "type: remove, source: Y"]
      + (example.hasSubentity
        ? ["source: Xs, destination: Xs, relationships: { as: default }"] : [])
    let store = try fixture.migrate(mapping(lines), shardBytes: shardBytes)
    #expect(try store.table("SELECT Z_PK FROM ZA WHERE ZX NOTNULL ORDER BY 1") == example.kept)
    #expect(Set(fixture.droppedByMapping.map(\.kind)) == [.reference])
    #expect(Set(fixture.droppedByMapping.map(\.property)) == ["x"])
    #expect(
      fixture.droppedByMapping.reduce(0) { $0 + Int($1.count) } == 5 - example.kept.count)
  }

  /// Rows of the two sides.
  @Test(
    arguments: [("automatic", "automatic"), ("automatic", "default"), ("default", "automatic")],
    [false, true])
  func `is as without a mapping that takes none of them to another entity`(
    rows: (x: String, as: String), hasSubentity: Bool
  ) throws {
    let lines =
      ["source: A, destination: A, relationships: { x: \(rows.x) }"]
      + ["X1", "X2"].map {
        "name: \($0), source: X, destination: X, filter: k > 0, attributes: { m: '\"\($0)\"' }, "
          + "relationships: { as: \(rows.as) }"
      } + (hasSubentity ? ["source: Xs, destination: Xs"] : [])
    let fixture = try MigrationFixture(
      from: Self.model("old", hasSubentity: hasSubentity),
      to: Self.model("new", hasSubentity: hasSubentity), rows: Self.rows(hasSubentity: hasSubentity)
    )
    func result(_ more: [String]) throws -> ([String], [Loss], [String]) {
      let store = try fixture.migrate(mapping(lines + more))
      let found = try store.table(
        "SELECT a.Z_PK, x.ZK, x.ZM FROM ZA AS a JOIN ZX AS x ON x.Z_PK = a.ZX ORDER BY 1")
      let notes = try #require(fixture.latest).plan.notes.filter { !$0.contains("uncovered") }
      return (found, fixture.droppedByMapping, notes)
    }
    let (without, with) = (try result([]), try result(["source: X, destination: Y, filter: k < 0"]))
    #expect(without.0 == with.0)
    #expect(without.0.count == 5)
    #expect(without.1 == with.1)
    #expect(without.2 == with.2)
  }

  /// Calls in braces, and the order in which an object has what they give.
  @Test(
    arguments: [
      (call("X1", "X2", along: "xs"), ["2 X1", "4 X1", "1 X2", "3 X2"]),
      (call("X2", "X1", along: "xs"), ["1 X2", "3 X2", "2 X1", "4 X1"]),
      (call("X2", "X1", "X2", along: "xs"), ["1 X2", "3 X2", "2 X1", "4 X1"]),
      (
        "{\(call("X1", along: "xs")), \(call("X2", along: "xs"))}",
        ["2 X1", "4 X1", "1 X2", "3 X2"]
      ),
      (call("X1", along: "xs"), ["2 X1", "4 X1"]),
    ], [Int64(1), 1 << 20])
  func `has what each call gives of all of them, one call after the other`(
    example: (calls: String, expected: [String]), shardBytes: Int64
  ) throws {
    func model(_ word: String) -> [EntityDescription] {
      [
        entity(
          "A", attribute(word), toMany("xs", "X", inverse: "as", ordered: true), toOne("x", "X")),
        entity("X", attribute("k", .integer16), attribute("m"), toMany("as", "A", inverse: "xs")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);"
        + (1...4).map { key in
          """
          INSERT INTO ZX (Z_PK, Z_ENT, Z_OPT, ZK) VALUES (\(key), 2, 1, \(key));
          INSERT INTO Z_1XS (Z_1AS, Z_2XS, Z_FOK_2XS) VALUES (1, \(key), \(1024 * key)), (2, \(key), \(1024 * key));
          """
        }.joined())
    func lists(_ expression: String) throws -> [String] {
      let store = try fixture.migrate(
        mapping([
          "source: A, destination: A, relationships: { xs: '\(expression)', x: '\(expression)' }",
          "name: X1, source: X, destination: X, filter: 'modulus:by:(k, 2) == 0', "
            + "attributes: { m: '\"X1\"' }, relationships: { as: default }",
          "name: X2, source: X, destination: X, filter: 'modulus:by:(k, 2) == 1', "
            + "attributes: { m: '\"X2\"' }, relationships: { as: default }",
        ]), shardBytes: shardBytes)
      #expect(
        try store.table("SELECT x.ZK, x.ZM FROM ZA AS a JOIN ZX AS x ON x.Z_PK = a.ZX")
          == Array(repeating: example.expected[0], count: 2))
      return try store.table(
        """
        SELECT x.ZK, x.ZM FROM Z_1XS AS j JOIN ZX AS x ON x.Z_PK = j.Z_2XS
         ORDER BY j.Z_1AS, j.Z_FOK_2XS
        """)
    }
    #expect(try lists(example.calls) == example.expected + example.expected)
    // Each reference to what no call asks for counts once, though two relationships follow it.
    let unasked = fixture.droppedByMapping.filter { $0.kind == .reference }
    #expect(unasked.reduce(0) { $0 + Int($1.count) } == 2 * (4 - example.expected.count))
    // As where the expression is evaluated for each object.
    #expect(
      try lists("TERNARY(1 == 1, \(example.calls), nil)") == example.expected + example.expected)
  }
}
