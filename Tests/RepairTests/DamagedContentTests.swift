import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

/// Damage that SQL can show: each becomes sound, and the account says what was done about it.
@Suite struct `A store with damaged content` {
  private func only(_ patient: Patient, _ tables: [String] = Patient.entityTables) throws -> Bool {
    try tables.allSatisfy { table in
      let query = "SELECT * FROM \(table) ORDER BY Z_PK"
      return try patient.read(query) == patient.read(query, of: patient.output)
    }
  }

  @Test(arguments: [false, true])
  func `loses nothing when it is sound`(leavesWAL: Bool) throws {
    let patient = try Patient {
      $0.leavesWAL = leavesWAL
      $0.externalFraction = 0.2
      $0.history = !leavesWAL
    }
    let log = FileManager.default.contents(atPath: patient.store + "-wal")
    let report = try patient.repair(models: [])
    #expect(report.lost.isEmpty && report.rebuilt.isEmpty && report.doubtful.isEmpty)
    #expect(report.keptExternalFiles > 0)
    #expect(report.version == "cached model")
    #expect(FileManager.default.contents(atPath: patient.store + "-wal") == log)
    try FileManager.default.copyItem(
      atPath: patient.store, toPath: patient.folder.appendingPathComponent("c").path)
    #expect(try only(patient))
    #expect(try patient.failures().isEmpty)
    let uuid = "SELECT Z_UUID FROM Z_METADATA"
    #expect(try patient.read(uuid) == patient.read(uuid, of: patient.output))
  }

  @Test func `has its history's entities under their own names`() throws {
    let patient = try Patient { $0.history = true }
    let names = "SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT >= 16000 ORDER BY 1"
    let before = try patient.read(names)
    try patient.sql(Damage.names.sql)
    _ = try patient.repair()
    #expect(try patient.failures().isEmpty && before.count == 3)
    #expect(try patient.read(names, of: patient.output) == before)
  }

  /// What is done to the store, what the account says of it, and whether rows stay as they are.
  enum Damage: String, CaseIterable {
    case counters, names, noControl, metadata, cache, index, column, unparsable, version

    var sql: String {
      switch self {
      case .counters: "UPDATE Z_PRIMARYKEY SET Z_MAX = 0"
      case .names: "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Recipe'"
      case .noControl: "DROP TABLE Z_PRIMARYKEY"
      case .metadata: "UPDATE Z_METADATA SET Z_PLIST = NULL"
      case .cache: "UPDATE Z_MODELCACHE SET Z_CONTENT = substr(Z_CONTENT, 1, 100)"
      case .index: "DROP INDEX ZSTEP_ZRECIPE_INDEX"
      case .column: "ALTER TABLE ZTAG RENAME COLUMN ZNAME TO ZNAMEX"
      case .unparsable:
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE ZTAG (' "
          + "WHERE name = 'ZTAG'"
      case .version: "UPDATE ZTAG SET Z_OPT = NULL"
      }
    }

    var subject: RepairReport.Subject {
      switch self {
      case .counters, .names, .noControl: .primaryKey
      case .metadata: .metadata
      case .cache: .modelCache
      case .index: .index
      case .column, .unparsable: .schema
      case .version: .object
      }
    }
  }

  @Test(arguments: Damage.allCases)
  func `gets its structure back`(damage: Damage) throws {
    let patient = try Patient()
    let before = try patient.read("SELECT Z_PK, ZNAME FROM ZTAG ORDER BY Z_PK")
    try patient.sql(damage.sql)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(
      (report.rebuilt + report.doubtful).contains { $0.subject == damage.subject },
      "\(report.rebuilt)")
    #expect(!report.lost.contains { $0.subject == .object || $0.subject == .value })
    let query = "SELECT Z_PK, ZNAME FROM ZTAG ORDER BY Z_PK"
    #expect(try patient.read(query, of: patient.output) == before)
  }

  /// None of a table's rows looks like one of its own: they are all the same.
  @Test(arguments: [
    ("UPDATE ZRECIPE SET ZCREATED = '2020-01-01'", RepairReport.Subject.value),
    ("UPDATE ZRECIPE SET ZCOST = 'much', ZAUTHOR = 'somebody', Z_OPT = 'x'", .value),
    ("UPDATE ZRECIPE SET ZNAME = CAST(ZNAME AS BLOB)", .value),
    ("UPDATE ZRECIPE SET Z_ENT = 99", .entity),
    ("UPDATE ZRECIPE SET Z_ENT = 1", .entity),
    ("ALTER TABLE ZRECIPE ADD COLUMN ZMORE JSON; UPDATE ZRECIPE SET ZMORE = 'x'", .schema),
  ])
  func `keeps the rows of a table all of which are odd`(
    sql: String, subject: RepairReport.Subject
  ) throws {
    let patient = try Patient()
    let before = try patient.allKeys()
    try patient.sql(sql)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    for (table, keys) in before {
      #expect(try patient.keys(of: table, in: patient.output) == keys)
    }
    let items = report.lost + report.doubtful + report.rebuilt
    #expect(items.contains { $0.subject == subject }, "\(items)")
    #expect(!report.lost.contains { $0.subject == .object })
  }

  @Test func `says how a column is declared that is another by the rules`() throws {
    let patient = try Patient(rows: 3)
    try patient.sql(
      "ALTER TABLE ZSTEP DROP COLUMN ZTEXT; ALTER TABLE ZSTEP ADD COLUMN ZTEXT VARCHAR(10) DEFAULT 'x'"
    )
    let said = try patient.repair().rebuilt.map(\.message)
    #expect(said.contains("ZSTEP.ZTEXT is declared VARCHAR(10), by the rule VARCHAR"), "\(said)")
  }

  @Test func `says which counts of saves are set to 1`() throws {
    let patient = try Patient()
    let keys = try patient.keys(of: "ZSTEP").prefix(3)
    try patient.sql(
      """
      UPDATE ZSTEP SET Z_OPT = 7;
      UPDATE ZSTEP SET Z_OPT = -2 WHERE Z_PK IN (\(keys.map(String.init).joined(separator: ", ")))
      """)
    let report = try patient.repair()
    let said = report.rebuilt.filter { $0.message.contains("Z_OPT") }
    #expect(said.map(\.entity) == ["Step"] && said.first?.primaryKeys == KeyRanges(keys))
    let counts = try patient.read("SELECT DISTINCT Z_OPT FROM ZSTEP ORDER BY 1", of: patient.output)
    #expect(counts == [[.integer(1)], [.integer(7)]])
  }

  @Test func `names texts that are not UTF-8, and keeps them`() throws {
    let patient = try Patient()
    let keys = try patient.keys(of: "ZRECIPE").prefix(2)
    try patient.sql(
      """
      CREATE TABLE NOTES (id INTEGER PRIMARY KEY, a TEXT);
      INSERT INTO NOTES VALUES (4, CAST(x'61ff' AS TEXT)), (5, 'whole');
      UPDATE ZRECIPE SET ZINSTRUCTIONS = CAST(x'61c328' AS TEXT)
       WHERE Z_PK IN (\(keys.map(String.init).joined(separator: ", ")))
      """)
    let query = "SELECT Z_PK, hex(ZINSTRUCTIONS) FROM ZRECIPE ORDER BY Z_PK"
    let before = try patient.read(query)
    let report = try patient.repair()
    #expect(try patient.read(query, of: patient.output) == before)
    let said = report.doubtful.filter { $0.message.contains("UTF-8") }
    #expect(said.map(\.entity) == ["Recipe", "NOTES"], "\(report.doubtful)")
    #expect(said.map(\.property) == ["instructions", "a"])
    #expect(said.map(\.primaryKeys) == [KeyRanges(keys), KeyRanges([4])])
    #expect(said.map(\.count) == [2, 1])
    #expect(report.lost.isEmpty)
  }

  @Test(arguments: ["'x' || rowid", "NULL", "Z_8RECIPES1 + 0.5"])
  func `accounts for pairs none of which can be used`(value: String) throws {
    let patient = try Patient()
    let count = try #require(try patient.read("SELECT count(*) FROM Z_8TAGS")[0][0].integer)
    try patient.sql("UPDATE Z_8TAGS SET Z_8RECIPES1 = \(value)")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.read("SELECT count(*) FROM Z_8TAGS", of: patient.output)[0][0].integer == 0)
    #expect(
      report.lost.contains { $0.subject == .pair && $0.count == count && $0.isCertain },
      "\(report.lost)")
  }

  @Test func `needs a model when metadata or cache are lost`() throws {
    let patient = try Patient()
    try patient.sql("DELETE FROM Z_MODELCACHE")
    #expect(throws: RepairError.self) { try patient.repair(models: []) }
    #expect(throws: RepairError.self) {
      try patient.repair(models: [FixtureModels.Bench.one.model()])
    }
    #expect(try patient.repair().lost.isEmpty)
  }

  @Test func `is not read by another version's entities`() throws {
    let patient = try Patient(version: .one)
    try patient.sql("DELETE FROM Z_METADATA; DELETE FROM Z_MODELCACHE")
    let two = try FixtureModels.Recipes.two.model()
    let error = try #require(throws: RepairError.self) { try patient.repair(models: [two]) }
    guard case .noModel(_, true, let unknown, true) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(!unknown.isEmpty && error.description.contains(unknown[0]))
    let entities = "SELECT Z_PK, Z_ENT FROM ZAUTHOR ORDER BY Z_PK"
    let report = try patient.repair(models: [two, try FixtureModels.Recipes.one.model()])
    #expect(report.keptObjects > 0)
    #expect(try patient.read(entities) == patient.read(entities, of: patient.output))
  }

  @Test func `is repaired when its model has no entities`() throws {
    let patient = try Patient(of: ManagedObjectModel(entities: []), rows: 0) { _ in }
    for models in [[], [patient.model]] {
      let report = try patient.repair(models: models)
      #expect(report.lost.isEmpty && report.doubtful.isEmpty)
    }
  }

  @Test func `is no store where no table is Core Data's`() throws {
    let patient = try Patient(rows: 1)
    try FileManager.default.removeItem(atPath: patient.store)
    let connection = try Connection(path: patient.store, mode: .create)
    try connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    try connection.close()
    for models in [[], [patient.model]] {
      let error = try #require(throws: RepairError.self) { try patient.repair(models: models) }
      guard case .notCoreData = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test func `has the rows of tables that cannot be read counted`() throws {
    let patient = try Patient(rows: 3)
    try patient.sql(
      "CREATE TABLE own (a); INSERT INTO own (a) VALUES (1), (2), (3); PRAGMA writable_schema = ON; "
        + "UPDATE sqlite_master SET sql = 'CREATE TABLE own (' WHERE name = 'own'")
    let report = try patient.repair()
    #expect(report.lost.first { $0.names == ["own"] }?.count == 3)
  }

  @Test func `keeps an application's tables without row ids and with generated columns`() throws {
    let patient = try Patient(rows: 3)
    try patient.sql(
      """
      CREATE TABLE own (x AS (a + 1), a INTEGER PRIMARY KEY, b AS (a * 2) STORED, c REAL);
      INSERT INTO own (a, c) VALUES (3, 1), (7, 2.5), (9, NULL);
      CREATE INDEX byB ON own (b);
      CREATE TABLE keyed (note, name TEXT, item INTEGER, PRIMARY KEY (item, name)) WITHOUT ROWID;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
      INSERT INTO keyed SELECT 'note ' || i, 'n' || (i % 7), i FROM n
      """)
    let queries = ["SELECT * FROM own ORDER BY a", "SELECT * FROM keyed ORDER BY item, name"]
    let before = try queries.map { try patient.read($0) }
    let report = try patient.repair()
    #expect(report.lost.isEmpty, "\(report.lost)")
    #expect(try patient.failures().isEmpty)
    #expect(try queries.map { try patient.read($0, of: patient.output) } == before)
    // A leaf of a tree without row ids is lost with its rows, and no other table's take their place.
    let leaf = try patient.read(
      "SELECT pageno FROM dbstat WHERE name = 'keyed' AND pagetype = 'leaf' LIMIT 1")
    patient.zero(page: Int(try #require(leaf.first?[0].integer)))
    let lossy = try patient.repair()
    #expect(lossy.lost.contains { $0.names == ["keyed"] }, "\(lossy.lost)")
    let left = try patient.read(queries[1], of: patient.output)
    #expect(left.count < 900 && left.count > 100)
    #expect(left.allSatisfy(before[1].contains))
  }

  @Test func `does not lose what was in its WAL before the last checkpoint`() throws {
    let patient = try Patient()
    let connection = try Connection(path: patient.store, mode: .readWrite)
    try connection.execute(
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; UPDATE ZRECIPE SET Z_OPT = 2")
    _ = try connection.rows("PRAGMA wal_checkpoint(RESTART)")
    try connection.execute("UPDATE ZTAG SET Z_OPT = 3 WHERE Z_PK = (SELECT min(Z_PK) FROM ZTAG)")
    let log = try #require(FileManager.default.contents(atPath: patient.store + "-wal"))
    #expect(try patient.repair().lost.isEmpty)
    // A frame of the last transaction is a loss.
    var torn = log
    torn[32 + 24 + 100] ^= 1
    try torn.write(to: URL(fileURLWithPath: patient.store + "-wal"))
    #expect(try patient.repair().lost.contains { $0.subject == .file })
    try log.write(to: URL(fileURLWithPath: patient.store + "-wal"))
    try connection.close()
  }

  @Test func `is not blamed where what was made of it is not sound`() {
    let error = RepairError.notSound("a.sqlite", [])
    #expect(error.description.contains("a mistake of Godwit's"))
  }
}
