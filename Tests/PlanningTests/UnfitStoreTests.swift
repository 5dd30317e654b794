import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitPlanning

@Suite struct `A store to be planned for` {
  private let folder: URL
  private var path: String { folder.appending(path: "items.sqlite").path }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "godwit-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private static func model(_ names: String...) -> ManagedObjectModel {
    ManagedObjectModel(entities: [
      EntityDescription(
        name: "Item",
        properties: names.map {
          .attribute(AttributeDescription(traits: PropertyTraits(name: $0), type: .string))
        })
    ])
  }

  private static let empty = ManagedObjectModel(entities: [])

  /// - Parameter model: One without entities; nil for one with two items.
  private func makeStore(_ model: ManagedObjectModel? = nil) throws -> Connection {
    let hierarchy = try EntityHierarchy(model ?? Self.model("text"))
    let schema = DestinationSchema(StoreLayout(hierarchy))
    let connection = try Connection(path: path, mode: .create)
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    for statement in schema.statements { try connection.execute(statement.sql) }
    if model == nil {
      try connection.execute(
        "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZTEXT) VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b'); "
          + "INSERT INTO Z_PRIMARYKEY VALUES (1, 'Item', 0, 2)")
    }
    let uuid = "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"
    let metadata = StoreMetadata(uuid: uuid, plist: [:])
    _ = try connection.rows(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [.text(uuid), .blob(metadata.bytes(migratedTo: hierarchy))])
    _ = try connection.rows(
      "INSERT INTO Z_MODELCACHE VALUES (?)",
      [.blob(try hierarchy.model.modelCacheBytes())])
    _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    return connection
  }

  private func plan(_ store: String, _ given: [ModelVersion]? = nil) throws -> PlanOutcome {
    let versions =
      given ?? [
        ModelVersion(name: "1", model: Self.model("text"), isCurrent: false, path: "1"),
        ModelVersion(name: "2", model: Self.model("text", "more"), isCurrent: true, path: "2"),
      ]
    var request = MigrationRequest(
      store: FilePath(store), models: versions, destination: nil,
      output: FilePath(store + "-output"),
      snapshotFolder: FilePath(folder.appending(path: "snapshot").path))
    request.losses = .refuse
    return try Planner().plan(request)
  }

  @Test(arguments: ["row", "hashes"])
  func `is damaged where nothing tells its version`(lost: String) throws {
    let connection = try makeStore()
    if lost == "row" {
      try connection.execute("DELETE FROM Z_METADATA")
    } else {
      let list = StoreMetadata(uuid: nil, plist: [:])
        .bytes(migratedTo: try EntityHierarchy(Self.empty))
      _ = try connection.rows("UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(list)])
    }
    try connection.close()
    let error = #expect(throws: PlanError.self) { try plan(path) }
    #expect(error?.code == 134_150 && error?.liesInTheStore == true)
    #expect(error?.reasons.map(\.reason) == ["metadata"])
    for text in try [#require(error).description, #require(error?.reasons.first).message] {
      #expect(text.contains("godwit repair") && !text.contains("carry on"), "\(text)")
    }
  }

  @Test(arguments: ["0", "1"])
  func `of a model without entities is of the version that has none`(destination: String) throws {
    try makeStore(Self.empty).close()
    let versions = [("0", Self.empty), ("1", Self.model("text"))].map { name, model in
      ModelVersion(name: name, model: model, isCurrent: name == destination, path: name)
    }
    switch try plan(path, versions) {
    case .sameModel: #expect(destination == "0")
    case .migrate(let plan):
      #expect(destination == "1" && plan.source.versionName == "0")
      #expect(plan.schema.contains { $0.name == "ZITEM" } && plan.losses.isEmpty)
    case .refused, .needsMapping: Issue.record("it is not migrated")
    }
  }

  @Test func `is damaged where its rows have no keys`() throws {
    let connection = try makeStore()
    try connection.execute(
      "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, 'PRIMARY', 'XRIMARY') "
        + "WHERE name = 'ZITEM'")
    try connection.close()
    let error = #expect(throws: PlanError.self) { try plan(path) }
    #expect(error?.code == 134_150 && error?.reasons.map(\.reason) == ["schema"])
  }

  @Test func `has transactions in its WAL noted that cannot be read`() throws {
    let connection = try makeStore()
    for text in ["c", "d"] { try connection.execute("UPDATE ZITEM SET ZTEXT = '\(text)'") }
    let copy = folder.appending(path: "copy.sqlite").path
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
    }
    try connection.close()
    func notes() throws -> [String] {
      guard case .migrate(let plan) = try plan(copy) else { return ["no plan"] }
      return plan.notes.filter { $0.contains("WAL") }
    }
    #expect(try notes() == [])
    var log = try Data(contentsOf: URL(filePath: copy + "-wal"))
    log[32 + 24 + 100] ^= 1
    try log.write(to: URL(filePath: copy + "-wal"))
    #expect(try notes().count == 1)
  }
}

@Suite struct `A question of many parts` {
  @Test(arguments: [1, 100, 101, 500, 501, 3_000])
  func `is asked whatever their number`(count: Int) throws {
    let question = PairSet.union((1...count).map { "SELECT \($0) AS o" })
    let connection = try Connection(path: ":memory:", mode: .create)
    let answer = try connection.rows("SELECT count(o), sum(o) FROM (\(question))")
    #expect(answer[0].map(\.integer) == [Int64(count), Int64(count * (count + 1) / 2)])
  }
}
