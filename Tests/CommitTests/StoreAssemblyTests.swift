import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPlanning

@Suite struct `A store assembly` {
  @Test func `makes sqlite_master in the plan's order, text for text`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let store = try fixture.assembled()
    let found = try store.rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
      .map { $0[0].text ?? "" }
    let foreign = fixture.plan.foreignTables.map(\.sql) + fixture.plan.foreignIndexes
    let own = found.filter { !$0.hasPrefix("CREATE TABLE sqlite_sequence") }
    let expected = AssemblyFixture.schema + foreign + fixture.plan.triggers
    #expect(own == expected)
    #expect(try store.rows("PRAGMA integrity_check") == [[.text("ok")]])
    // A row's number in sqlite_master is its place: nothing is left of the reordering.
    #expect(
      try store.rows("SELECT min(rowid), max(rowid) - count(*) FROM sqlite_master")
        == [[.integer(1), .integer(0)]])
  }

  @Test func `makes the file as Core Data does`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    try fixture.assembly.assemble(at: fixture.destination)
    let header = [UInt8](
      try Data(contentsOf: URL(fileURLWithPath: fixture.destination.string)).prefix(100))
    #expect(header[16] == 0x10 && header[17] == 0)  // page size 4096
    #expect(header[18] == 2 && header[19] == 2)  // WAL
    #expect(header[47] == 4)  // schema format
    #expect(header[55] != 0 && header[67] == 1)  // auto_vacuum 2: incremental
    let store = try Connection(path: fixture.destination.string, mode: .immutable)
    #expect(try store.rows("PRAGMA auto_vacuum") == [[.integer(2)]])
    #expect(try store.rows("PRAGMA freelist_count") == [[.integer(0)]])
    #expect(
      files(below: fixture.scratch.path).filter { $0.hasPrefix("assembled") } == [
        "assembled.sqlite"
      ])
  }

  @Test func `says rollback journal where the source did`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    fixture.plan.control.isWAL = false
    try fixture.assembly.assemble(at: fixture.destination)
    let header = [UInt8](
      try Data(contentsOf: URL(fileURLWithPath: fixture.destination.string)).prefix(20))
    #expect(header[18] == 1 && header[19] == 1)
  }

  @Test func `carries tables and join tables whole, under other names`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let store = try fixture.assembled()
    let source = try Connection(path: fixture.source.string, mode: .immutable)
    #expect(
      try store.rows("SELECT * FROM ZCARRIED ORDER BY Z_PK")
        == source.rows("SELECT * FROM ZOLD ORDER BY Z_PK"))
    #expect(
      try store.rows("SELECT * FROM Z_1NEW ORDER BY 1, 2")
        == source.rows("SELECT * FROM Z_1OLD ORDER BY 1, 2"))
    #expect(
      try store.rows("SELECT count(*) FROM ZCARRIED INDEXED BY Z_Carried_byB WHERE ZB > ''")
        == [[.integer(300)]])
  }

  @Test func `carries columns that stand in another order`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    fixture.plan.tables[0].columns = ["ZB", "ZA"]
    fixture.plan.tables[0].keptColumns = ["ZY", "ZX"]
    let store = try fixture.assembled()
    let source = try Connection(path: fixture.source.string, mode: .immutable)
    #expect(
      try store.rows("SELECT ZA, ZB FROM ZCARRIED ORDER BY Z_PK")
        == source.rows("SELECT ZX, ZY FROM ZOLD ORDER BY Z_PK"))
    #expect(try store.rows("PRAGMA integrity_check") == [[.text("ok")]])
  }

  @Test func `merges copy and link checkpoints of each shard`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let store = try fixture.assembled()
    let rows = try store.rows("SELECT * FROM ZTHING ORDER BY Z_PK")
    #expect(rows.count == 40)
    #expect(
      rows[0] == [
        .integer(1), .integer(3), .integer(1), .integer(3), .real(1), .text("thing 1"), .null,
      ])
    #expect(
      rows[39] == [
        .integer(40), .integer(3), .integer(1), .null, .real(40), .text("thing 40"), .null,
      ])
    #expect(
      try store.rows("SELECT count(*), sum(Z_3RIGHT) FROM Z_3PAIR") == [
        [.integer(40), .integer(820)]
      ])
    #expect(try store.rows("SELECT count(*) FROM ZEMPTY") == [[.integer(0)]])
  }

  @Test func `renumbers foreign tables and keeps their counters`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let store = try fixture.assembled()
    #expect(
      try store.rows("SELECT * FROM ANSCKTHING ORDER BY Z_PK") == [
        [.integer(4), .integer(5), .text("a")], [.integer(9), .integer(2), .text("b")],
      ])
    #expect(
      try store.rows("SELECT name, seq FROM sqlite_sequence") == [
        [.text("ANSCKTHING"), .integer(20)]
      ])
  }

  @Test func `writes the control rows`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let store = try fixture.assembled()
    #expect(
      try store.rows("SELECT * FROM Z_PRIMARYKEY ORDER BY 1") == [
        [.integer(1), .text("Carried"), .integer(0), .integer(900)],
        [.integer(3), .text("Thing"), .integer(0), .integer(40)],
      ])
    #expect(
      try store.rows("SELECT * FROM Z_METADATA") == [
        [.integer(1), .text(fixture.plan.control.storeUUID), .blob([1, 2, 3])]
      ])
    #expect(try store.rows("SELECT * FROM Z_MODELCACHE") == [[.blob([4, 5])]])
  }

  @Test func `moves carried rows as raw records`() throws {
    let fixture = try AssemblyFixture()
    let file = try Connection(path: fixture.destination.string, mode: .create)
    for sql in AssemblyFixture.schema { try file.execute(sql) }
    try file.attachImmutable(fixture.source.string, as: "src")
    for (table, columns, source, carried) in [
      (
        "ZCARRIED", ["Z_PK", "Z_ENT", "Z_OPT", "ZA", "ZB"], "ZOLD",
        ["Z_PK", "Z_ENT", "Z_OPT", "ZX", "ZY"]
      ),
      ("Z_1NEW", ["Z_1LEFT", "Z_2RIGHT"], "Z_1OLD", ["Z_1L", "Z_2R"]),
    ] {
      let sql = try Transfer.statement(
        into: table, columns, from: source, expressions: carried.map(quoted), in: file)
      var dropped: [String] = []
      #expect(
        try Transfer.isWhole(sql, into: table, from: source, in: file) { index in
          dropped.append(index)
          try file.execute("DROP INDEX \(quoted(index))")
        })
      #expect(dropped == (table == "ZCARRIED" ? ["Z_Carried_byB"] : []))
      // Behind the last raw record stands what SQLite would do if the table were not empty.
      let program = try file.rows("EXPLAIN " + sql).map { $0[1].text ?? "" }
      let end = try #require(program.lastIndex { $0 == "RowData" || $0 == "RowCell" })
      #expect(!program[...end].contains("MakeRecord"))
      #expect(!program[...end].contains("Column"))
    }
  }

  @Test func `carries row by row where a transfer is impossible`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    // Another affinity: SQLite must look at each value.
    fixture.plan.schema[0] = try statement(
      AssemblyFixture.schema[0].replacingOccurrences(of: "ZA INTEGER", with: "ZA VARCHAR"))
    let store = try fixture.assembled()
    #expect(try store.rows("SELECT DISTINCT typeof(ZA) FROM ZCARRIED") == [[.text("text")]])
    #expect(try store.rows("PRAGMA integrity_check") == [[.text("ok")]])
  }

  @Test func `starts anew over what a crash left`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    for suffix in ["", "-journal", "-wal"] {
      try write("left over", to: FilePath(fixture.destination.string + suffix))
    }
    let store = try fixture.assembled()
    #expect(try store.rows("SELECT count(*) FROM ZTHING") == [[.integer(40)]])
  }

  @Test func `gives the same bytes every time`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let other = fixture.scratch.path.appending("other.sqlite")
    try fixture.assembly.assemble(at: fixture.destination)
    try fixture.assembly.assemble(at: other)
    #expect(
      FileManager.default.contentsEqual(
        atPath: fixture.destination.string, andPath: other.string))
  }

  @Test func `gives the same content by pages and through SQLite`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    // One computed table has what only SQLite can write.
    fixture.plan.schema.insert(
      try statement("CREATE INDEX Z_3PAIR_SOME ON Z_3PAIR (Z_3LEFT) WHERE Z_3LEFT > 3"), at: 11)
    let other = fixture.scratch.path.appending("other.sqlite")
    let store = try fixture.assembled()
    try StoreAssembly(plan: fixture.plan, run: fixture.run, usesPages: false).assemble(at: other)
    let reference = try Connection(path: other.string, mode: .readOnly)
    let objects = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
    #expect(try store.rows(objects) == reference.rows(objects))
    for table in try store.rows("SELECT name FROM sqlite_master WHERE type = 'table'") {
      let sql = "SELECT rowid, * FROM \(quoted(table[0].text ?? "")) ORDER BY rowid"
      #expect(try store.rows(sql) == reference.rows(sql))
    }
    for sql in [
      "SELECT ZKEY, rowid FROM ZTHING INDEXED BY ZTHING_ZKEY_INDEX ORDER BY ZKEY",
      "SELECT ZNAME, rowid FROM ZTHING INDEXED BY Z_Thing_UNIQUE_name ORDER BY ZNAME",
      "SELECT count(*) FROM Z_3PAIR INDEXED BY Z_3PAIR_SOME WHERE Z_3LEFT > 3",
    ] {
      #expect(try store.rows(sql) == reference.rows(sql))
    }
    for pragma in ["integrity_check", "journal_mode", "freelist_count", "auto_vacuum"] {
      #expect(try store.rows("PRAGMA \(pragma)") == reference.rows("PRAGMA \(pragma)"))
    }
  }

  @Test func `says how many rows are written`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let told = Mutex<[Int64]>([])
    try fixture.assembly.assemble(
      at: fixture.destination,
      progress: { rows in
        told.withLock { $0.append(rows) }
      })
    let rows = told.withLock { $0 }
    #expect(rows == rows.sorted())
    #expect(rows.last == 682)  // 300 and 300 carried, 40 and 40 computed, 2 foreign
  }

  @Test(arguments: [true, false])
  func `refuses what is no record`(usesPages: Bool) throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    let name = CheckpointName(stage: .rows, unit: 2)
    let writer = try CheckpointWriter(
      path: fixture.run.path(of: name), name: name,
      fingerprint: try #require(Hexadecimal.bytes(of: fixture.plan.fingerprint)))
    // A header that says that it is longer than the record.
    try [UInt8]([9, 1, 1]).withUnsafeBytes { try writer.append(channel: 0, key: 7, $0) }
    try writer.finish(summary: [UInt8](try JSONEncoder().encode(ShardSummary())))
    #expect(throws: CommitError.damagedRow(table: "ZTHING", unit: 2, row: 7)) {
      try StoreAssembly(plan: fixture.plan, run: fixture.run, usesPages: usesPages)
        .assemble(at: fixture.destination)
    }
  }

  @Test func `refuses rows that do not ascend`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    try fixture.writeThings(15...35, unit: 1)
    #expect(throws: CommitError.damagedRow(table: "ZTHING", unit: 1, row: 15)) {
      try fixture.assembly.assemble(at: fixture.destination)
    }
  }

  @Test func `misses a checkpoint that is not there`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    try fixture.run.discard(CheckpointName(stage: .rows, unit: 1))
    #expect(throws: CommitError.missingCheckpoint(stage: "rows", unit: 1)) {
      try fixture.assembly.assemble(at: fixture.destination)
    }
  }

  @Test func `names the entity whose uniqueness constraint is broken`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    try fixture.writeThings(1...20, unit: 2) { "thing \($0 / 2)" }
    // "thing 1" stands at rows 2 and 3, "thing 2" at 4 and 5, and so on.
    let error = CommitError.uniqueness(
      entity: "Thing", index: "Z_Thing_UNIQUE_name", rows: RowTally(Array(2...19)))
    for usesPages in [true, false] {
      #expect(throws: error) {
        try StoreAssembly(plan: fixture.plan, run: fixture.run, usesPages: usesPages)
          .assemble(at: fixture.destination)
      }
    }
    #expect(error.code == 134_111)
    #expect(!error.description.contains("thing 1"))
    #expect(error.description.contains("set-aside` leaves such objects alone"))
  }

  @Test func `takes leave of a plan that cannot be followed`() throws {
    let fixture = try AssemblyFixture()
    try fixture.writeCheckpoints()
    fixture.plan.tables[0].sourceTable = "ZNOWHERE"
    #expect(throws: CommitError.unusablePlan("the source has no table ZNOWHERE")) {
      try fixture.assembly.assemble(at: fixture.destination)
    }
  }
}
