import Foundation
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitBarriers
@testable import GodwitPlanning
@testable import GodwitWorker

@Suite struct `Sorting lines` {
  @Test(arguments: [1, 100, 5_000, 1 << 20])
  func `gives every line by its four keys, whatever fits into memory`(memory: Int) throws {
    try withFolder { folder in
      var random = Numbers(state: UInt64(memory))
      let sort = LineSort(folder: folder, memory: memory)
      for count in [0, 1, 777] {
        let lines = (0..<count).map { _ in
          SortLine(
            random.below(9) - 4, random.below(3), random.below(5), random.below(1_000),
            values: (random.below(7), Int64.min))
        }
        for line in lines { try sort.append(line) }
        var found: [[Int64]] = []
        try sort.forEach { found.append(Self.numbers($0)) }
        let expected = lines.map(Self.numbers).sorted { $0.lexicographicallyPrecedes($1) }
        #expect(found.map { Array($0.prefix(4)) } == expected.map { Array($0.prefix(4)) })
        #expect(found.sorted { $0.lexicographicallyPrecedes($1) } == expected)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.string) == [])
    }
  }

  private static func numbers(_ line: SortLine) -> [Int64] {
    [line.keys.0, line.keys.1, line.keys.2, line.keys.3, line.values.0, line.values.1]
  }
}

@Suite struct `Gathering the pairs of a relationship` {
  /// What is to come out, in SQL: the rules of ``EdgeGathering`` once more.
  private static func expectation(_ target: RelationshipGroup.Target) -> String {
    switch target {
    case .columns(_, let isOrdered):
      """
      SELECT a, b, entity, \(isOrdered
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY b ORDER BY p IS NULL, p, iif(p IS NULL, seq, a)) - 1)" : "NULL")
        FROM (SELECT a, b, entity, seq, max(position) OVER (PARTITION BY a, b) AS p,
                     row_number() OVER (PARTITION BY a ORDER BY side, seq DESC) AS n FROM raw)
       WHERE n = 1 AND b <> \(Edge.nobody) ORDER BY a
      """
    case .join(_, let first, let second, _):
      """
      SELECT a, b, \(first
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY b ORDER BY p1 IS NULL, p1, iif(p1 IS NULL, seq, a)) - 1)" : "NULL"),
             \(second
        ? "2048 + 1024 * (row_number() OVER (PARTITION BY a ORDER BY p0 IS NULL, p0, iif(p0 IS NULL, seq, b)) - 1)" : "NULL")
        FROM (SELECT a, b, min(seq) AS seq, min(CASE side WHEN 0 THEN position END) AS p0,
                     min(CASE side WHEN 1 THEN position END) AS p1
                FROM raw GROUP BY a, b)
       ORDER BY a, b
      """
    case .count: "SELECT a, count(*), NULL, NULL FROM edges0 GROUP BY a ORDER BY a"
    }
  }

  private static let targets: [RelationshipGroup.Target] = [
    .columns(table: 0, isOrdered: false), .columns(table: 0, isOrdered: true),
    .join(0, firstIsOrdered: false, secondIsOrdered: false, isReflexive: false),
    .join(0, firstIsOrdered: true, secondIsOrdered: false, isReflexive: false),
    .join(0, firstIsOrdered: false, secondIsOrdered: true, isReflexive: false),
    .join(0, firstIsOrdered: true, secondIsOrdered: true, isReflexive: false),
  ]

  // So many groups that each has little memory, or one that has all of it.
  @Test(arguments: targets, [1, 1 << 20])
  func `agrees with the same rules in SQL`(target: RelationshipGroup.Target, groups: Int) throws {
    try withFolder { folder in
      var random = Numbers(state: 7)
      for count in [0, 1, 40, 30_000] {
        let file = try Connection(path: ":memory:", mode: .create)
        try file.execute(
          """
          CREATE TABLE raw
            (seq INTEGER PRIMARY KEY, side INTEGER, a INTEGER, b INTEGER, entity INTEGER,
             position INTEGER)
          """)
        let raw = try file.prepare(
          """
          INSERT INTO raw (side, a, b, entity, position) VALUES (?1, ?2, ?3, ?4, nullif(?5, -1))
          """)
        let group = RelationshipGroup(entity: "A", relationship: "b", target: target)
        let gathering = try EdgeGathering(
          group, number: 0, of: groups, in: file, folder: folder)
        let isColumns = if case .columns = target { true } else { false }
        let keys = Int64(max(2, count / 3))
        for _ in 0..<count {
          let edge = Edge(
            side: random.below(2), row: random.below(keys),
            other: isColumns && random.below(20) == 0 ? Edge.nobody : random.below(keys),
            entity: random.below(3), position: random.below(6) - 1)
          let numbers = [edge.side, edge.row, edge.other, edge.entity, edge.position]
          for (place, number) in numbers.enumerated() {
            try raw.bind(Int32(place + 1), number)
          }
          try raw.run()
          try gathering.take(edge)
        }
        try gathering.finish()
        let found = try file.rows("SELECT * FROM edges0 ORDER BY a, b")
        let expected = try file.rows(Self.expectation(target))
        #expect(found == expected)
        #expect(found.isEmpty == (count == 0))
        let counts = RelationshipGroup(
          entity: "A", relationship: "count", target: .count(of: 0, side: 0))
        let counting = try EdgeGathering(counts, number: 1, of: 2, in: file, folder: folder)
        try counting.finish()
        #expect(
          try file.rows("SELECT * FROM edges1 ORDER BY a")
            == file.rows(Self.expectation(counts.target)))
      }
    }
  }

  @Test func `lets a one-to-one relationship's objects go from hand to hand`() throws {
    try withFolder { folder in
      let file = try Connection(path: ":memory:", mode: .create)
      var group = RelationshipGroup(
        entity: "A", relationship: "b", target: .columns(table: 0, isOrdered: false))
      group.isOneToOne = true
      let gathering = try EdgeGathering(group, number: 3, of: 4, in: file, folder: folder)
      let pairs: [(Int64, Int64)] = [
        (1, 10), (2, 20), (3, 10), (2, 30), (4, 40), (4, Edge.nobody),
      ]
      for (row, other) in pairs {
        try gathering.take(Edge(side: 0, row: row, other: other, entity: 5, position: -1))
      }
      try gathering.finish()
      #expect(
        try file.table("SELECT a, b, entity FROM edges3 ORDER BY a") == ["2 30 5", "3 10 5"])
    }
  }
}

/// A small seeded source of numbers.
private struct Numbers {
  var state: UInt64

  mutating func below(_ bound: Int64) -> Int64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int64(state >> 33) % bound
  }
}

private func withFolder(_ body: (FilePath) throws -> Void) throws {
  let folder = FileManager.default.temporaryDirectory
    .appendingPathComponent("godwit-pairs-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  try body(FilePath(folder.path))
}
