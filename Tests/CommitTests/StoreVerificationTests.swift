import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPlanning

extension AssemblyFixture {
  /// Units that the verify stage goes over, with the queries that a worker's rows come from.
  private static let queries: [(unit: Int, sql: String)] = [
    (0, "SELECT * FROM ZCARRIED"), (1, "SELECT * FROM ZTHING WHERE Z_PK BETWEEN 21 AND 40"),
    (2, "SELECT * FROM ZTHING WHERE Z_PK BETWEEN 1 AND 20"), (3, "SELECT * FROM Z_1NEW"),
    (4, "SELECT * FROM Z_3PAIR"), (5, "SELECT * FROM ANSCKTHING"),
  ]

  /// Writes the summaries of a stage as a look at the file gives them.
  func writeSummaries(_ stage: Stage, of file: FilePath) throws {
    let connection = try Connection(path: file.string, mode: .immutable)
    for (unit, sql) in AssemblyFixture.queries {
      var summary = ShardSummary()
      for row in try connection.rows(sql) {
        summary.rows += 1
        let isEntity = unit < 3
        let number = isEntity ? Int(row[1].integer ?? 0) : 0
        let bytes = record(row)
        summary.digests[number, default: RowSetDigest()].add(bytes)
        summary.bytes += Int64(bytes.count)
      }
      try writeCheckpoint(stage, unit, rows: [], summary: summary)
    }
    if stage == .rows {
      try writeCheckpoint(stage, 6, rows: [], summary: ShardSummary(rows: 7))
    }
  }

  /// An assembled file whose rows were validated, and perhaps damaged since.
  func verified(after damage: String = "") throws -> StoreVerification {
    try writeCheckpoints()
    try assembly.assemble(at: destination)
    try writeSummaries(.rows, of: destination)
    let connection = try Connection(path: destination.string, mode: .readWrite)
    try connection.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    try connection.execute("PRAGMA journal_mode = DELETE; " + damage)
    try connection.close()
    try writeSummaries(.verify, of: destination)
    return StoreVerification(plan: plan, run: run)
  }
}

@Suite struct `A store verification` {
  @Test func `counts what was migrated`() throws {
    let fixture = try AssemblyFixture()
    let counts = try fixture.verified().check(fixture.destination)
    #expect(
      counts.tables == [
        "ZCARRIED": 300, "ZTHING": 40, "Z_1NEW": 300, "Z_3PAIR": 40, "ANSCKTHING": 2,
      ])
    #expect(counts.rows == 682)
    #expect(counts.bytes > 0)
  }

  @Test func `finds a changed value`() throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified(
      after: "UPDATE ZTHING SET ZVALUE = ZVALUE + 1 WHERE Z_PK = 30")
    #expect(throws: CommitError.digestMismatch(table: "ZTHING", entity: "Thing")) {
      try verification.check(fixture.destination)
    }
  }

  @Test func `finds values that changed places`() throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified(
      after: """
        UPDATE ZTHING SET ZNAME = NULL WHERE Z_PK = 3;
        UPDATE ZTHING SET ZNAME = 'thing 3' WHERE Z_PK = 4;
        UPDATE ZTHING SET ZNAME = 'thing 4' WHERE Z_PK = 3;
        """)
    #expect(throws: CommitError.digestMismatch(table: "ZTHING", entity: "Thing")) {
      try verification.check(fixture.destination)
    }
  }

  @Test(arguments: [
    (
      damage: "DELETE FROM ZCARRIED WHERE Z_PK = 3", table: "ZCARRIED", entity: Int64(1),
      expected: Int64(300), found: Int64(299)
    ),
    // The same row under a new key, within a shard.
    (
      damage: "INSERT INTO ZCARRIED SELECT 4, Z_ENT, Z_OPT, ZA, ZB FROM ZCARRIED WHERE Z_PK = 3",
      table: "ZCARRIED", entity: 1, expected: 300, found: 301
    ),
    (
      damage: "UPDATE ZTHING SET Z_ENT = 4 WHERE Z_PK = 3", table: "ZTHING", entity: 3,
      expected: 40, found: 39
    ),
  ])
  func `finds a lost row, a duplicate and a row of another entity`(
    damage: String, table: String, entity: Int64, expected: Int64, found: Int64
  ) throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified(after: damage)
    #expect(
      throws: CommitError.wrongRowCount(
        table: table, entityNumber: entity, expected: expected, found: found)
    ) {
      try verification.check(fixture.destination)
    }
  }

  @Test(arguments: [
    // Outside every shard's keys, where no digest sees it.
    (
      damage: "INSERT INTO ZTHING (Z_PK, Z_ENT) VALUES (1000, 3)", table: "ZTHING",
      entity: Int64(3), count: Int64(41)
    ),
    (
      damage: "INSERT INTO ZTHING (Z_PK, Z_ENT) VALUES (1000, 7)", table: "ZTHING", entity: 7,
      count: 1
    ),
    (
      damage: "INSERT INTO ZEMPTY (Z_PK, Z_ENT) VALUES (1, 9)", table: "ZEMPTY", entity: nil,
      count: 1
    ),
  ])
  func `finds a row outside every shard`(
    damage: String, table: String, entity: Int64?, count: Int64
  ) throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified(after: damage)
    #expect(
      throws: CommitError.wrongRowCount(
        table: table, entityNumber: entity, expected: count - 1, found: count)
    ) {
      try verification.check(fixture.destination)
    }
  }

  @Test func `finds a torn page`() throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified()
    let handle = try #require(FileHandle(forUpdatingAtPath: fixture.destination.string))
    try handle.seek(toOffset: 4096 * 3)
    try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
    try handle.close()
    do {
      _ = try verification.check(fixture.destination)
      Issue.record("a torn page was accepted")
    } catch CommitError.damagedDestination(let path, _) {
      #expect(path == fixture.destination)
    }
  }

  @Test func `misses a unit that was not verified`() throws {
    let fixture = try AssemblyFixture()
    let verification = try fixture.verified()
    try fixture.run.discard(CheckpointName(stage: .verify, unit: 2))
    #expect(throws: CommitError.missingCheckpoint(stage: "verify", unit: 2)) {
      try verification.check(fixture.destination)
    }
  }
}
