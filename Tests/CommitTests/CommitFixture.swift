import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning

/// Thrown by an observer of durable steps, to stop where a crash would.
struct SimulatedCrash: Error {}

/// Counts durable steps, and stops after one of them, or lets it fail.
final class StepCounter: Sendable {
  private let count = Mutex(0)
  private let last: Int
  private let error: any Error & Sendable

  init(stoppingAfter last: Int = .max, by error: any Error & Sendable = SimulatedCrash()) {
    (self.last, self.error) = (last, error)
  }

  var steps: Int { count.withLock { $0 } }

  func pass() throws {
    let now = count.withLock {
      $0 += 1
      return $0
    }
    if now == last { throw error }
  }
}

/// An application opens a store while a file is added beside it, and the process that adds it is killed some durable
/// steps later.
func opening<Result>(
  _ store: FilePath, whileAdding file: FilePath, killedAfter kill: Int, _ body: () throws -> Result
) throws -> Result {
  let application = Mutex<FileDescriptor?>(nil)
  defer { try? application.withLock { $0 }?.close() }
  let crash = StepCounter(stoppingAfter: kill)
  return try DurableSteps.observing(with: { _, path in
    let wasOpen = try application.withLock { descriptor in
      if descriptor != nil { return true }
      if path == file {
        descriptor = try FileDescriptor.open(store, .readOnly, options: .closeOnExec)
      }
      return false
    }
    if wasOpen { try crash.pass() }
  }) { try body() }
}

/// Whether a crash has left a file or a folder that is not whole.
func hasUnfinished(below folder: FilePath) throws -> Bool {
  try FileManager.default.subpathsOfDirectory(atPath: folder.string)
    .contains { $0.contains(".partial-") }
}

func copyFile(_ source: FilePath, _ target: FilePath) throws {
  if FileManager.default.fileExists(atPath: target.string) {
    try FileManager.default.removeItem(atPath: target.string)
  }
  try FileManager.default.copyItem(atPath: source.string, toPath: target.string)
}

func write(_ text: String, to path: FilePath) throws {
  try Data(text.utf8).write(to: URL(fileURLWithPath: path.string))
}

/// A plan that knows paths and nothing of rows: all that a swap looks at.
func emptyPlan(source: FilePath, readPath: FilePath, destination: FilePath) throws -> MigrationPlan
{
  MigrationPlan(
    fingerprint: String(repeating: "ab", count: 32),
    sourcePath: source.string, sourceIdentity: try StoreFiles(source).identity(),
    readPath: readPath.string, externalDataPath: StoreFiles(source).externalDataFolder.string,
    destinationPath: destination.string,
    source: ModelIdentity(versionName: "1", checksum: "one"),
    destination: ModelIdentity(versionName: "2", checksum: "two"), isLightweight: true,
    schema: [],
    control: ControlRows(
      primaryKeys: [], storeUUID: "9F1C2B61-0000-4000-8000-000000000001", metadata: [1, 2, 3],
      modelCache: [4, 5], isWAL: true),
    tables: [], joinTables: [], foreignTables: [], triggers: [], foreignIndexes: [], units: [],
    audits: [], notes: [])
}

/// What a store at a path holds, read from a private copy, as SQLite would read it there.
enum StoreContent: Equatable {
  case old, new, absent
  case broken(String)

  /// Rows of a whole store: one word, a hundred times.
  static let rows: Int64 = 100

  init(_ path: FilePath, scratch: FilePath) throws {
    guard try DurableFile.exists(path) else {
      self = .absent
      return
    }
    let copy = scratch.appending("look-\(UUID().uuidString).sqlite")
    for suffix in ["", "-wal", "-journal"]
    where try DurableFile.exists(FilePath(path.string + suffix)) {
      try copyFile(FilePath(path.string + suffix), FilePath(copy.string + suffix))
    }
    defer {
      for suffix in ["", "-wal", "-shm", "-journal"] {
        try? FileManager.default.removeItem(atPath: copy.string + suffix)
      }
    }
    let connection = try Connection(path: copy.string, mode: .readWrite)
    let check = try connection.rows("PRAGMA integrity_check").first?.first?.text ?? ""
    let words = try connection.rows("SELECT WORD, count(*) FROM ZWORD GROUP BY WORD")
    guard check == "ok", words.count == 1, words[0][1] == .integer(StoreContent.rows) else {
      self = .broken("\(check), \(words)")
      return
    }
    self = words[0][0] == .text("old") ? .old : .new
  }
}

/// A source store with external data, a run directory, and an assembled destination.
final class SwapFixture: Sendable {
  enum Way: String, CaseIterable, Sendable {
    /// In place, everything in the main file.
    case settled
    /// In place, with half of the rows only in the WAL.
    case walled
    /// To a path of its own, from a source with a WAL.
    case beside
    /// As `settled`, of a store whose checkpoints are kept in memory.
    case small

    var hasWAL: Bool { self == .walled || self == .beside }
  }

  static let kept = "00000000-0000-4000-8000-00000000000A"
  static let obsolete = "00000000-0000-4000-8000-00000000000B"
  static let added = Array("added".utf8).withUnsafeBytes {
    ExternalFileName.name(of: Array("row 3".utf8), $0)
  }
  /// Written for a row of the destination, which does not refer to it any more.
  static let dropped = "00000000-0000-4000-8000-00000000000D"

  let way: Way
  let scratch: Scratch
  private let runScratch: Scratch?
  let folder: FilePath
  let source: FilePath
  let destination: FilePath
  let run: RunDirectory
  let plan: MigrationPlan

  /// How many durable steps an undisturbed commit takes.
  static func durableSteps(_ way: Way) throws -> Int {
    let (counter, fixture) = (StepCounter(), try SwapFixture(way))
    let assembled = try fixture.assemble()
    try DurableSteps.observing(with: { _, _ in try counter.pass() }) {
      _ = try fixture.swap.commit(assembled)
    }
    return counter.steps
  }

  init(_ way: Way, runParent: FilePath? = nil) throws {
    self.way = way
    scratch = try Scratch()
    runScratch = try runParent.map { try Scratch(in: $0) }
    folder = try scratch.folder("stores")
    source = folder.appending("Recipes.sqlite")
    destination = way == .beside ? folder.appending("Copy.store") : source
    let directory = RunDirectory((runScratch ?? scratch).path.appending("run"))
    run = way == .small ? directory.inMemory : directory
    try run.create()
    try SwapFixture.makeSource(source, inWAL: way.hasWAL, scratch: try scratch.folder("make"))
    let external = StoreFiles(source).externalDataFolder
    try FileManager.default.createDirectory(
      atPath: external.string, withIntermediateDirectories: true)
    try write("kept", to: external.appending(SwapFixture.kept))
    try write("obsolete", to: external.appending(SwapFixture.obsolete))
    try FileManager.default.createDirectory(
      atPath: run.external.string, withIntermediateDirectories: true)
    try write("added", to: run.external.appending(SwapFixture.added))
    try write("dropped", to: run.external.appending(SwapFixture.dropped))
    var readPath = source
    if way.hasWAL {
      readPath = run.snapshot.appending("store.sqlite")
      try copyFile(source, readPath)
      try copyFile(StoreFiles(source).wal, StoreFiles(readPath).wal)
      let clone = try Connection(path: readPath.string, mode: .readWrite)
      try clone.execute("PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(TRUNCATE)")
      try clone.close()
    }
    var plan = try emptyPlan(source: source, readPath: readPath, destination: destination)
    plan.tables = [SwapFixture.wordTable]
    self.plan = plan
  }

  /// A table whose entity has one attribute that may be stored in a file.
  private static var wordTable: TablePlan {
    let rules = RowRules([
      RowRules.Rule(
        place: 0, allowed: .max, check: .external, low: 0, high: 0, entity: "Word",
        property: "data", type: .binary)
    ])
    return TablePlan(
      name: "ZWORD", root: "Word", way: .computed, columns: ["ZPICTURE"], sourceTable: "ZWORD",
      keptColumns: [], copyColumns: ["ZDATA"], copyExpressions: [], linkColumns: [],
      pairQueries: [],
      entities: [
        EntityProgram(
          source: "Word", destination: "Word", sourceNumber: 1, destinationNumber: 1,
          attributes: [.source(0)], relationships: [], sourceRules: rules, destinationRules: rules,
          references: [])
      ], elsewhere: [], expectedRows: 100, attributePlaces: [0], relationshipPlaces: [])
  }

  private static func makeSource(_ path: FilePath, inWAL: Bool, scratch: FilePath) throws {
    let work = scratch.appending("work.sqlite")
    let connection = try Connection(path: work.string, mode: .create)
    try connection.execute(
      """
      PRAGMA synchronous = OFF;
      PRAGMA journal_mode = WAL;
      PRAGMA wal_autocheckpoint = 0;
      CREATE TABLE ZWORD (Z_PK INTEGER PRIMARY KEY, WORD VARCHAR, ZDATA BLOB);
      CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
      INSERT INTO Z_METADATA VALUES (1, 'the source', NULL);
      """)
    let insert =
      "INSERT INTO ZWORD (WORD) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
      + "WHERE i < 50) SELECT 'old' FROM n"
    try connection.execute(insert)
    try connection.execute(reference(to: kept, row: 1) + reference(to: obsolete, row: 2))
    _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    try connection.execute(insert)
    if !inWAL { _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)") }
    try copyFile(work, path)
    if inWAL { try copyFile(StoreFiles(work).wal, StoreFiles(path).wal) }
    try connection.close()
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path.string)
  }

  /// A binary value that is stored in a file.
  static func reference(to name: String, row: Int) -> String {
    "UPDATE ZWORD SET ZDATA = CAST(x'02' || '\(name)' || x'00' AS BLOB) WHERE Z_PK = \(row);"
  }

  /// A commit that a crash cut off after so many durable steps.
  static func crashed(_ way: Way, after step: Int) throws -> SwapFixture {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let crash = StepCounter(stoppingAfter: step)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
        _ = try fixture.swap.commit(assembled)
      }
    }
    return fixture
  }

  /// A commit that a crash cut off when it had written its journal.
  static func interrupted(_ way: Way) throws -> SwapFixture {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, path.lastComponent?.string == "journal.json" { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    return fixture
  }

  /// As if the journal's marks had been taken on the same volume, under another number.
  func renumberVolume() throws {
    guard let text = try? String(contentsOfFile: run.journal.string, encoding: .utf8) else {
      return
    }
    // Without its digest, as an earlier version wrote it.
    let plain = text.replacing(/,"digest":"[0-9a-f]{64}"}$/, with: "}")
    let other = plain.replacing(/"device":[0-9]+/, with: #""device":4660"#)
    try #require(other != plain && plain != text)
    try other.write(toFile: run.journal.string, atomically: false, encoding: .utf8)
  }

  func recover(_ leases: [LeaseToken] = []) throws -> StoreSwap.Recovery {
    try StoreSwap.recover(run: run, source: source, destination: destination, leases: leases)
  }

  var swap: StoreSwap { swap("R1", []) }

  func swap(_ name: String, _ leases: [LeaseToken]) -> StoreSwap {
    var swap = StoreSwap(plan: plan, run: run, name: name)
    swap.leases = leases
    return swap
  }

  /// Stands in for the assembly.
  func assemble() throws -> FilePath {
    let path = try swap.assemblyPath()
    try StoreAssembly(plan: plan, run: run).discard(path)
    let connection = try Connection(path: path.string, mode: .create)
    try connection.execute(
      """
      PRAGMA synchronous = OFF;
      CREATE TABLE ZWORD (Z_PK INTEGER PRIMARY KEY, WORD VARCHAR, ZPICTURE BLOB);
      INSERT INTO ZWORD (WORD)
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
      SELECT 'new' FROM n;
      \(SwapFixture.reference(to: SwapFixture.kept, row: 1)
        .replacing("ZDATA", with: "ZPICTURE"))
      \(SwapFixture.reference(to: SwapFixture.added, row: 3)
        .replacing("ZDATA", with: "ZPICTURE"))
      PRAGMA journal_mode = WAL;
      """)
    try connection.close()
    return path
  }

  func content(of path: FilePath? = nil) throws -> StoreContent {
    try StoreContent(path ?? destination, scratch: try scratch.folder("looks"))
  }

  /// Everything beside the store that an undisturbed commit leaves.
  var expectedFiles: [String] { expectedFiles(named: "R1") }

  func expectedFiles(named name: String) -> [String] {
    let (kept, obsolete, added) = (SwapFixture.kept, SwapFixture.obsolete, SwapFixture.added)
    let backup = "Recipes.sqlite.godwit-backup-\(name)"
    let original = [
      ".Recipes_SUPPORT/_EXTERNAL_DATA/\(kept)", "Recipes.sqlite",
    ]
    switch way {
    case .beside:
      return
        (original + [
          ".Recipes_SUPPORT/_EXTERNAL_DATA/\(obsolete)", "Recipes.sqlite-wal", "Copy.store",
          ".Copy_SUPPORT/_EXTERNAL_DATA/\(kept)", ".Copy_SUPPORT/_EXTERNAL_DATA/\(obsolete)",
          ".Copy_SUPPORT/_EXTERNAL_DATA/\(added)",
        ]).sorted()
    case .settled, .walled, .small:
      return
        (original + [
          ".Recipes_SUPPORT/_EXTERNAL_DATA/\(added)", "\(backup).sqlite",
          ".\(backup)_SUPPORT/_EXTERNAL_DATA/\(kept)",
          ".\(backup)_SUPPORT/_EXTERNAL_DATA/\(obsolete)",
        ] + (way == .walled ? ["\(backup).sqlite-wal"] : [])).sorted()
    }
  }
}
