import Foundation
import GodwitFixtures
import GodwitObjectModel
import GodwitPersistentStore
import GodwitRepair
import GodwitSQLite
import StoreFixtures
import SystemPackage

/// A seeded store of the Recipes model in a folder of its own, to be damaged and repaired.
final class Patient {
  let folder: URL
  let model: ManagedObjectModel
  var store: String { folder.appendingPathComponent("Recipes.sqlite").path }
  var output: String { folder.appendingPathComponent("Repaired.sqlite").path }
  var externalFolder: String {
    folder.appendingPathComponent(".Recipes_SUPPORT/_EXTERNAL_DATA").path
  }

  /// Tables of entities, and those of pairs.
  static let entityTables = [
    "ZAUTHOR", "ZCATEGORY", "ZCOOKBOOK", "ZIMAGE", "ZINGREDIENT", "ZRECIPE", "ZSTEP", "ZTAG",
  ]

  convenience init(
    rows: Int = 40, seed: UInt64 = 7, version: FixtureModels.Recipes = .two,
    _ change: (inout StoreOptions) -> Void = { _ in }
  ) throws {
    try self.init(of: try version.model(), rows: rows, seed: seed, change)
  }

  /// A store of another model.
  init(
    of model: ManagedObjectModel, rows: Int, seed: UInt64 = 7,
    _ change: (inout StoreOptions) -> Void
  ) throws {
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-repair-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.model = model
    var options = StoreOptions(seed: seed, rows: rows)
    change(&options)
    try StoreGenerator(model, options: options).write(to: store)
  }

  /// 30 objects of the entity X, whose only property is a number.
  static func ofOneEntity() throws -> Patient {
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "X",
        properties: [
          .attribute(AttributeDescription(traits: PropertyTraits(name: "n"), type: .integer64))
        ])
    ])
    return try Patient(of: model, rows: 30) { _ in }
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  // MARK: Damage

  var bytes: [UInt8] {
    get { Array(FileManager.default.contents(atPath: store) ?? Data()) }
    set { _ = FileManager.default.createFile(atPath: store, contents: Data(newValue)) }
  }

  var pageCount: Int { bytes.count / 4096 }

  func zero(page: Int) {
    bytes.replaceSubrange((page - 1) * 4096..<page * 4096, with: repeatElement(0, count: 4096))
  }

  func sql(_ text: String) throws {
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute(text)
    try connection.close()
  }

  func read(_ text: String, of path: String? = nil) throws -> [[SQLiteValue]] {
    try Connection(path: path ?? store, mode: .readOnly).rows(text)
  }

  func keys(of table: String, in path: String? = nil) throws -> [Int64] {
    try read("SELECT Z_PK FROM \(table) ORDER BY 1", of: path).compactMap { $0[0].integer }
  }

  // MARK: Repair

  /// Repairs the store; what an earlier repair wrote goes first.
  func repair(
    models: [ManagedObjectModel]? = nil, clearing: Bool = true
  ) throws -> RepairReport {
    for name in ["", "-wal", "-shm"].map({ "Repaired.sqlite" + $0 }) + [".Repaired_SUPPORT"]
    where clearing {
      try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
    let versions = (models ?? [model]).map {
      ModelVersion(name: "Recipes", model: $0, isCurrent: true, path: "")
    }
    return try StoreRepair(
      FilePath(store), output: FilePath(output), models: GivenModels([versions])
    ).run()
  }

  /// What `verify` finds wrong in the output.
  func failures() throws -> [StoreFinding] {
    let source = try SourceStore(path: FilePath(output), snapshotFolder: FilePath(folder.path))
    let binding = StoreBinding(source, try EntityHierarchy(model))
    return try StoreSoundness.check(binding).filter(\.kind.isFailure)
  }

  /// Objects that the store had and that neither the output has nor the account names, by table.
  func unaccounted(_ before: [String: [Int64]], _ report: RepairReport) throws -> [String] {
    try before.sorted { $0.key < $1.key }.flatMap { table, keys in
      let kept = Set(try self.keys(of: table, in: output))
      return keys.filter { key in
        !kept.contains(key)
          && !report.lost.contains { item in
            item.subject == .object && item.entity.map(Self.table) == table
              && item.primaryKeys?.contains(key) == true
          }
      }.map { "\(table) \($0)" }
    }
  }

  func allKeys() throws -> [String: [Int64]] {
    Dictionary(
      uniqueKeysWithValues: try Self.entityTables.map { ($0, try keys(of: $0)) })
  }

  private static func table(of entity: String) -> String {
    ["Chef", "Blogger"].contains(entity) ? "ZAUTHOR" : "Z" + entity.uppercased()
  }
}
