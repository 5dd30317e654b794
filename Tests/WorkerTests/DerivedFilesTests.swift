import Foundation
import GodwitBarriers
import GodwitObjectModel
import StoreFixtures
import Testing

/// Files that the coordinator makes of checkpoints between two stages: `offsets.json`, `associations/` and
/// `edges.sqlite`.
@Suite struct `What barriers wrote` {
  private static func fixture() throws -> MigrationFixture {
    func pair(_ word: String) -> [EntityDescription] {
      [
        entity("A", attribute(word), toMany("bs", "B", inverse: "as")),
        entity("B", attribute(word), toMany("as", "A", inverse: "bs")),
      ]
    }
    let rows = (1...4).map { key in
      """
      INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT) VALUES (\(key), 1, 1);
      INSERT INTO ZB (Z_PK, Z_ENT, Z_OPT) VALUES (\(key), 2, 1);
      INSERT INTO Z_1BS VALUES (\(key), \(5 - key));
      """
    }
    return try MigrationFixture(from: pair("old"), to: pair("new"), rows: rows.joined())
  }

  /// Both sides are set, to different things: their pairs are sorted in a file.
  private static let mapping = """
    mapping-model: 1
    entity-mappings:
      - { source: A, destination: A, relationships: { bs: "nil" } }
      - { source: B, destination: B }
    """

  /// The bytes of each file, by its path in the run directory.
  private static func files(_ folder: URL) throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(
      atPath: folder.appending(path: "associations").path
    ).map { "associations/" + $0 }
    return Dictionary(
      uniqueKeysWithValues: try (["offsets.json", "edges.sqlite"] + names).map {
        ($0, try Data(contentsOf: folder.appending(path: $0)))
      })
  }

  @Test func `is made again by a later process where a disk or somebody has changed it`() throws {
    let fixture = try Self.fixture()
    _ = try fixture.migrate(Self.mapping, renumbers: true)
    let (plan, run, _) = try #require(fixture.latest)
    let folder = URL(filePath: run.path.string)
    let made = try Self.files(folder)
    try #require(made.count >= 4)

    func makeAgain() throws {
      let barrier = MappedBarrier(plan: plan, run: run)
      try barrier.associate()
      _ = try barrier.gather()
    }
    let changes: [(Data) -> Data?] = [
      {
        var bytes = $0; bytes[bytes.count / 2] ^= 1; return bytes
      }, { $0.dropLast(1) }, { _ in Data() },
      { _ in made["associations/1.pairs"].map { $0 + [0] } }, { _ in nil },
    ]
    for (name, bytes) in made {
      let path = folder.appending(path: name)
      for change in changes {
        if let changed = change(bytes) {
          try changed.write(to: path)
        } else {
          try FileManager.default.removeItem(at: path)
        }
        try makeAgain()
        #expect(try Self.files(folder) == made, "\(name)")
      }
    }
  }

  @Test func `stays where it is as it was written`() throws {
    let fixture = try Self.fixture()
    _ = try fixture.migrate(Self.mapping, renumbers: true)
    let (plan, run, _) = try #require(fixture.latest)
    func numbers() throws -> [UInt64] {
      try ["offsets.json", "edges.sqlite", "associations/1.pairs"].map {
        let path = URL(filePath: run.path.string).appending(path: $0).path
        return try #require(
          try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
      }
    }
    let before = try numbers()
    let barrier = MappedBarrier(plan: plan, run: run)
    try barrier.associate()
    _ = try barrier.gather()
    #expect(try numbers() == before)
  }
}
