import GodwitKeyedArchive
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// What tells Core Data which model a store belongs to: `Z_PRIMARYKEY`, `Z_METADATA` and
/// `Z_MODELCACHE`.
///
/// Source: `core-data-sqlite-format.md` §2 and §3.
package struct StoreStamp {
  /// Their `CREATE TABLE` statements, in the order of the schema.
  package static let controlTables = [
    "CREATE TABLE Z_PRIMARYKEY "
      + "(Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA "
      + "(Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  let hierarchy: EntityHierarchy
  let frameworkVersion: Int

  package init(hierarchy: EntityHierarchy, frameworkVersion: Int) {
    self.hierarchy = hierarchy
    self.frameworkVersion = frameworkVersion
  }

  func write(
    to connection: Connection, layout: StoreLayout, highestKeys: [EntityName: Int64],
    uuid: String, metadata: [String: PropertyList]
  ) throws {
    for statement in Self.controlTables { try connection.execute(statement) }
    for entity in hierarchy.order {
      let above = hierarchy[entity]?.superentity.flatMap { layout.entityNumbers[$0] } ?? 0
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, ?3, ?4)",
        [
          .integer(Int64(layout.entityNumbers[entity] ?? 0)), .text(entity.rawValue),
          .integer(Int64(above)), .integer(above == 0 ? highestKeys[entity] ?? 0 : 0),
        ])
    }
    let sorted = metadata.sorted { $0.key.precedesInBytes($1.key) }
    _ = try connection.rows(
      "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?1, ?2)",
      [
        .text(uuid),
        .blob(self.metadata(keeping: PropertyListDictionary(sorted.map { ($0.key, $0.value) }))),
      ])
    _ = try connection.rows(
      "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?1)",
      [.blob(try hierarchy.model.modelCacheBytes())])
  }

  /// The property list, with every key that is the application's own.
  package func metadata(keeping other: PropertyListDictionary) -> [UInt8] {
    var content = other
    let hashes = hierarchy.versionHashes
    let sorted = hashes.sorted { $0.key < $1.key }
    content["NSPersistenceFrameworkVersion"] = .integer(Int64(frameworkVersion))
    content["NSStoreModelVersionHashes"] = .dictionary(
      PropertyListDictionary(sorted.map { ($0.key.rawValue, .data($0.value.bytes)) }))
    content["NSStoreModelVersionHashesVersion"] = .integer(3)
    content["NSStoreModelVersionIdentifiers"] = .array(
      hierarchy.model.versionIdentifiers.map(PropertyList.string))
    content["NSStoreType"] = .string("SQLite")
    content["_NSAutoVacuumLevel"] = .string("2")
    content["NSStoreModelVersionHashesDigest"] = .string(StoreDigest.hashesDigest(of: hashes))
    content["NSStoreModelVersionChecksumKey"] = .string(StoreDigest.versionChecksum(of: hashes))
    return PropertyList.dictionary(content).binary()
  }
}
