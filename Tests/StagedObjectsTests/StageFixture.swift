import Foundation
import GodwitExpressions
import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPersistentStore
@testable import GodwitPlanning
@testable import GodwitStagedObjects

func attribute(
  _ name: String, _ type: AttributeType, required: Bool = false, isExternal: Bool = false,
  initial: StoredDefault? = nil, validation: [ValidationRule] = [], derivation: String? = nil,
  elements: [AttributeDescription]? = nil
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, isOptional: !required), type: type,
      defaultValue: initial, allowsExternalBinaryDataStorage: isExternal,
      derivationExpression: derivation, compositeElements: elements, validation: validation))
}

func relationship(
  _ name: String, _ target: EntityName, inverse: String?, many: Bool = false,
  ordered: Bool = false, required: Bool = false, counts: ClosedRange<Int>? = nil,
  rule: RelationshipDescription.DeleteRule = .nullify
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name, isOptional: !required), destinationEntity: target,
      inverseName: inverse, minCount: counts?.lowerBound ?? (required && !many ? 1 : 0),
      maxCount: counts?.upperBound ?? (many ? 0 : 1), isOrdered: ordered, deleteRule: rule))
}

/// An item with the sum of its parts' weights.
let weighedItem = EntityDescription(
  name: "Item",
  properties: [
    attribute("name", .string), attribute("sum", .integer32, derivation: "parts.w.@sum"),
    relationship("parts", "Part", inverse: "item", many: true),
  ])

/// A store on the disk for handlers, as an earlier step has left it.
final class StageFixture {
  let scratch: Scratch
  let path: FilePath
  let model: EntityHierarchy
  let side: ObjectReference.Store

  /// An empty store.
  init(_ entities: [EntityDescription], side: ObjectReference.Store = .source) throws {
    self.side = side
    scratch = try Scratch()
    path = scratch.path.appending("store.sqlite")
    model = try EntityHierarchy(ManagedObjectModel(entities: entities))
    let schema = DestinationSchema(StoreLayout(model))
    let connection = try Connection(path: path.string, mode: .create)
    try connection.execute("PRAGMA auto_vacuum = 2")
    for statement in schema.statements { try connection.execute(statement.sql) }
    for row in schema.primaryKeys(highestKeys: [:]) {
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, ?)",
        [
          .integer(row.number), .text(row.name), .integer(row.superNumber),
          .integer(row.highestKey),
        ])
    }
    let uuid = "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"
    let metadata = StoreMetadata(uuid: uuid, plist: [:])
    _ = try connection.rows(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [.text(uuid), .blob(metadata.bytes(migratedTo: model))])
    _ = try connection.rows(
      "INSERT INTO Z_MODELCACHE VALUES (?)", [.blob(try model.model.modelCacheBytes())])
    try connection.close()
  }

  @discardableResult
  func run(_ handler: CustomMigrationStage.Handler) throws -> StageStore.Outcome {
    try StageStore.run(
      handler, on: path, model: model,
      settings: .init(
        side: side,
        pattern: { pattern in
          guard let found = try? Regex(pattern) else { return nil }
          return { $0.wholeMatch(of: found) != nil }
        }, runDate: 0))
  }

  func rows(_ sql: String) throws -> [[SQLiteValue]] {
    let connection = try Connection(path: path.string, mode: .immutable)
    let rows = try connection.rows(sql)
    try connection.close()
    return rows
  }

  func execute(_ sql: String) throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    try connection.execute(sql)
    try connection.close()
  }

  /// Makes it a store of frameworks before 2023, which record no checksum of the version.
  func dropChecksum() throws {
    let connection = try Connection(path: path.string, mode: .readWrite)
    var metadata = try StoreMetadata(connection)
    metadata[.checksum] = nil
    _ = try connection.rows(
      "UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(PropertyList.dictionary(metadata.plist).binary())]
    )
    try connection.close()
  }

  func object(_ entity: EntityName, _ key: Int64) -> ObjectReference {
    ObjectReference(entity, key, in: side)
  }

  /// What the independent judge says against the store.
  func complaints() throws -> String { try OracleJudge.findings(path, validating: true) }
}
