import Foundation
import GodwitCommit
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

/// What verify and soundness say of an assembled file, after something happened to it.
@Suite struct `An assembled destination` {
  enum Damage: CaseIterable {
    case swappedRoots, droppedEntry, reorderedKeys, repeatedEntry
  }

  /// `ZKEPT` is carried and `ZMADE` computed.
  private func fixture() throws -> MigrationFixture {
    let kept = entity("Kept", attribute("x"), toOne("a", "Kept"), toOne("b", "Kept"))
    let rows = ["ZKEPT", "ZMADE"].enumerated().map { number, table in
      (1...60).map { key in
        "INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT, ZA, ZB) "
          + "VALUES (\(key), \(number + 1), 1, \(key % 60 + 1), \((key + 2) % 60 + 1));"
      }.joined()
    }.joined()
    let made = entity("Made", attribute("x"), toOne("a", "Made"), toOne("b", "Made"))
    let new = entity(
      "Made", attribute("new"), attribute("x"), toOne("a", "Made"), toOne("b", "Made"))
    return try MigrationFixture(from: [kept, made], to: [kept, new], rows: rows)
  }

  /// Several units a table, so that each reads a part of every index.
  private func migrated() throws -> MigrationFixture {
    let fixture = try fixture()
    _ = try fixture.migrate(shardBytes: 256)
    try #require((fixture.latest?.plan.units(in: .verify).count ?? 0) >= 6)
    return fixture
  }

  /// Assembles the last migration's store again, changes it, and reads it back.
  private func verified(
    _ fixture: MigrationFixture, usesPages: Bool, _ change: (FilePath) throws -> Void
  ) throws -> ShardContext {
    let latest = try #require(fixture.latest)
    try StoreAssembly(plan: latest.plan, run: latest.run, usesPages: usesPages)
      .assemble(at: latest.store)
    try change(latest.store)
    let context = try ShardContext(run: latest.run)
    try context.openAssembled(latest.store.string)
    for unit in latest.plan.units(in: .verify) { _ = try VerifyStage(context: context).run(unit) }
    return context
  }

  private func findings(
    _ fixture: MigrationFixture, usesPages: Bool, _ change: (FilePath) throws -> Void
  ) throws -> [StoreFinding] {
    let context = try verified(fixture, usesPages: usesPages, change)
    return try fixture.soundness(of: try #require(fixture.latest).store, context)
  }

  @Test(arguments: [true, false])
  func `is sound as it was written, and verify alone says so`(usesPages: Bool) throws {
    let fixture = try migrated()
    let context = try verified(fixture, usesPages: usesPages) { _ in }
    #expect(try context.destinationJobs().count == 6)
    #expect(try fixture.openJobs(of: context) == [])
    let latest = try #require(fixture.latest)
    let counts = try StoreVerification(plan: latest.plan, run: latest.run).check(latest.store)
    #expect(counts.tables == ["ZKEPT": 60, "ZMADE": 60])
  }

  @Test(arguments: ["ZKEPT", "ZMADE"], [true, false])
  func `is refused when a row was lost, made or changed`(table: String, usesPages: Bool) throws {
    let fixture = try migrated()
    let latest = try #require(fixture.latest)
    let verification = StoreVerification(plan: latest.plan, run: latest.run)
    let number: Int64 = table == "ZKEPT" ? 1 : 2
    func error(after sql: String) throws -> CommitError? {
      _ = try verified(fixture, usesPages: usesPages) { path in
        let connection = try Connection(path: path.string, mode: .readWrite)
        try connection.execute("PRAGMA journal_mode = DELETE; " + sql)
        try connection.close()
      }
      return #expect(throws: CommitError.self) { try verification.check(latest.store) }
    }
    #expect(
      try error(after: "DELETE FROM \(table) WHERE Z_PK = 7")
        == .wrongRowCount(table: table, entityNumber: number, expected: 60, found: 59))
    #expect(
      try error(after: "INSERT INTO \(table) (Z_PK, Z_ENT, Z_OPT) VALUES (61, \(number), 1)")
        == .wrongRowCount(table: table, entityNumber: nil, expected: 60, found: 61))
    #expect(
      try error(after: "UPDATE \(table) SET ZX = 'another' WHERE Z_PK = 7")
        == .digestMismatch(table: table, entity: table == "ZKEPT" ? "Kept" : "Made"))
  }

  @Test(arguments: Damage.allCases, [true, false])
  func `is not sound when an index disagrees with its table`(
    damage: Damage, usesPages: Bool
  ) throws {
    let fixture = try migrated()
    for table in ["ZKEPT", "ZMADE"] {
      let found = try findings(fixture, usesPages: usesPages) { path in
        switch damage {
        case .swappedRoots: try swapRoots(path, table)
        case .droppedEntry: try dropEntry(path, table)
        case .reorderedKeys: try editLeaf(path, table, swapFirstCells)
        case .repeatedEntry: try editLeaf(path, table, repeatFirstCell)
        }
      }
      #expect(found.map(\.kind) == [.index])
      #expect(found.first?.message.contains(table) == true)
    }
  }

  @Test(
    arguments: [
      ("UPDATE ZMADE SET ZA = 99 WHERE Z_PK = 2", StoreFinding.Kind.dangling),
      ("UPDATE ZKEPT SET ZA = 99 WHERE Z_PK = 2", .dangling),
      ("UPDATE ZKEPT SET ZA = 'x' WHERE Z_PK = 2", .type),
      (
        "UPDATE ZMADE SET Z_ENT = 1 WHERE Z_PK = (SELECT ZA FROM ZMADE WHERE Z_PK = 2)",
        .targetEntity
      ),
    ], [true, false])
  func `is not sound when a reference is not`(
    damage: (sql: String, kind: StoreFinding.Kind), usesPages: Bool
  ) throws {
    let fixture = try migrated()
    let found = try findings(fixture, usesPages: usesPages) { path in
      let connection = try Connection(path: path.string, mode: .readWrite)
      try connection.execute(damage.sql)
      try connection.close()
    }
    #expect(found.contains { $0.kind == damage.kind && $0.property == "a" && $0.examples == [2] })
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

  /// Changes the only page of an index. Source: https://sqlite.org/fileformat2.html §1.6.
  private func editLeaf(_ path: FilePath, _ table: String, _ edit: (inout [UInt8]) -> Void) throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    // Else the pages may be in a WAL.
    try connection.execute("PRAGMA journal_mode = DELETE")
    let page = try root("\(table)_ZA_INDEX", connection)
    try connection.close()
    let file = try #require(FileHandle(forUpdatingAtPath: path.string))
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    var bytes = [UInt8](try #require(try file.read(upToCount: 4096)))
    try #require(bytes[0] == 0x0A)
    edit(&bytes)
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    try file.write(contentsOf: Data(bytes))
    try file.close()
  }

  private func swapFirstCells(_ page: inout [UInt8]) {
    (page[8], page[9], page[10], page[11]) = (page[10], page[11], page[8], page[9])
  }

  /// The first entry once more before itself, in the free space of the page.
  private func repeatFirstCell(_ page: inout [UInt8]) {
    let count = Int(page[3]) << 8 | Int(page[4])
    let content = Int(page[5]) << 8 | Int(page[6])
    let first = Int(page[8]) << 8 | Int(page[9])
    let size = max(4, 1 + Int(page[first]))
    let place = content - size
    page.replaceSubrange(place..<content, with: page[first..<(first + size)])
    page.replaceSubrange(10..<(10 + 2 * count), with: page[8..<(8 + 2 * count)])
    for (offset, number) in [(3, count + 1), (5, place), (8, place)] {
      (page[offset], page[offset + 1]) = (UInt8(number >> 8), UInt8(number & 0xFF))
    }
  }
}
