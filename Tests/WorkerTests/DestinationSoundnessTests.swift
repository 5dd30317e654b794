import Foundation
import GodwitCommit
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

/// What workers are asked about an assembled file, after something happened to it.
@Suite struct `An assembled destination` {
  enum Damage: CaseIterable {
    case swappedRoots, droppedEntry, reorderedKeys
  }

  /// `ZKEPT` is carried and `ZMADE` computed.
  private func fixture() throws -> MigrationFixture {
    let kept = entity("Kept", attribute("x"), toOne("a", "Kept"), toOne("b", "Kept"))
    let rows = ["ZKEPT", "ZMADE"].enumerated().map { number, table in
      (1...6).map { key in
        "INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT, ZA, ZB) "
          + "VALUES (\(key), \(number + 1), 1, \(key % 6 + 1), \((key + 2) % 6 + 1));"
      }.joined()
    }.joined()
    let made = entity("Made", attribute("x"), toOne("a", "Made"), toOne("b", "Made"))
    let new = entity(
      "Made", attribute("new"), attribute("x"), toOne("a", "Made"), toOne("b", "Made"))
    return try MigrationFixture(from: [kept, made], to: [kept, new], rows: rows)
  }

  /// Assembles the last migration's store again, changes it, and asks everything.
  private func findings(
    _ fixture: MigrationFixture, usesPages: Bool, _ change: (FilePath) throws -> Void
  ) throws -> [StoreFinding] {
    let latest = try #require(fixture.latest)
    try StoreAssembly(plan: latest.plan, run: latest.run, usesPages: usesPages)
      .assemble(at: latest.store)
    try change(latest.store)
    let context = try ShardContext(run: latest.run)
    try context.openAssembled(latest.store.string)
    return try fixture.soundness(of: latest.store, context)
  }

  @Test(arguments: [true, false])
  func `is sound as it was written`(usesPages: Bool) throws {
    let fixture = try fixture()
    _ = try fixture.migrate()
    #expect(try findings(fixture, usesPages: usesPages) { _ in } == [])
  }

  @Test(arguments: Damage.allCases, [true, false])
  func `is not sound when an index disagrees with its table`(
    damage: Damage, usesPages: Bool
  ) throws {
    let fixture = try fixture()
    _ = try fixture.migrate()
    for table in ["ZKEPT", "ZMADE"] {
      let found = try findings(fixture, usesPages: usesPages) { path in
        switch damage {
        case .swappedRoots: try swapRoots(path, table)
        case .droppedEntry: try dropEntry(path, table)
        case .reorderedKeys: try reorderKeys(path, table)
        }
      }
      #expect(found.map(\.kind) == [.index])
      #expect(found.first?.message.contains(table) == true)
    }
  }

  @Test(arguments: [
    ("UPDATE ZMADE SET ZA = 99 WHERE Z_PK = 2", StoreFinding.Kind.dangling),
    ("UPDATE ZKEPT SET ZA = 99 WHERE Z_PK = 2", .dangling),
    ("UPDATE ZKEPT SET ZA = 'x' WHERE Z_PK = 2", .type),
  ])
  func `is not sound when a reference is not`(sql: String, kind: StoreFinding.Kind) throws {
    let fixture = try fixture()
    _ = try fixture.migrate()
    let found = try findings(fixture, usesPages: true) { path in
      let connection = try Connection(path: path.string, mode: .readWrite)
      try connection.execute(sql)
      try connection.close()
    }
    #expect(found.contains { $0.kind == kind && $0.property == "a" && $0.examples == [2] })
  }

  private func root(_ index: String, _ connection: Connection) throws -> Int64 {
    let row = try connection.rows(
      "SELECT rootpage FROM sqlite_master WHERE name = ?1", [.text(index)])
    return try #require(row.first?.first?.integer)
  }

  private func swapRoots(_ path: FilePath, _ table: String) throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    let (first, second) = ("\(table)_ZA_INDEX", "\(table)_ZB_INDEX")
    let roots = (try root(first, connection), try root(second, connection))
    try connection.execute(
      """
      PRAGMA writable_schema = ON;
      UPDATE sqlite_master SET rootpage = \(roots.1) WHERE name = '\(first)';
      UPDATE sqlite_master SET rootpage = \(roots.0) WHERE name = '\(second)';
      """)
    try connection.close()
  }

  /// The index is made again as a partial one, and then called whole.
  private func dropEntry(_ path: FilePath, _ table: String) throws {
    let index = "\(table)_ZA_INDEX"
    let whole = "CREATE INDEX \(index) ON \(table) (ZA)"
    for sql in [
      "UPDATE sqlite_master SET sql = '\(whole) WHERE Z_PK <> 3' WHERE name = '\(index)'",
      "REINDEX \(index)",
      "UPDATE sqlite_master SET sql = '\(whole)' WHERE name = '\(index)'",
    ] {
      let connection = try Connection(path: path.string, mode: .readWrite)
      try connection.execute("PRAGMA writable_schema = ON; " + sql)
      try connection.close()
    }
  }

  /// Two cells of a leaf change places. Source: https://sqlite.org/fileformat2.html §1.6.
  private func reorderKeys(_ path: FilePath, _ table: String) throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    // Else the pages may be in a WAL.
    try connection.execute("PRAGMA journal_mode = DELETE")
    let page = try root("\(table)_ZA_INDEX", connection)
    try connection.close()
    let file = try #require(FileHandle(forUpdatingAtPath: path.string))
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    var bytes = [UInt8](try #require(try file.read(upToCount: 4096)))
    try #require(bytes[0] == 0x0A)
    (bytes[8], bytes[9], bytes[10], bytes[11]) = (bytes[10], bytes[11], bytes[8], bytes[9])
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    try file.write(contentsOf: Data(bytes))
    try file.close()
  }
}
