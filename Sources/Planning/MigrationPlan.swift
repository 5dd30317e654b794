import FoundationEssentials
import GodwitObjectModel
import GodwitPersistentStore

/// Everything that is decided about one store's migration before a row is read.
///
/// Workers and the commit follow the plan and decide nothing: destination numbers, keys, columns
/// and shards stand here. It is written to the run directory once; every checkpoint carries its
/// ``fingerprint``, so work done under another plan is never mistaken for this one's.
package struct MigrationPlan: Codable, Sendable, Equatable {
  /// The layout of this file, and what the digests of checkpoints are taken of. A plan of another version
  /// is made again, never guessed at.
  package static let formatVersion = 5

  package var formatVersion = MigrationPlan.formatVersion
  /// SHA-256 in hexadecimal over everything else in the plan.
  package var fingerprint = ""

  /// The source store, as given.
  package var sourcePath: String
  /// Evidence that the source is still the one that was planned for.
  package var sourceIdentity: StoreIdentity
  /// The file that is read: the source itself, or its private clone in the run directory.
  package var readPath: String
  /// The source's `_EXTERNAL_DATA` folder; it need not exist.
  package var externalDataPath: String
  /// Where the destination goes; the source's own path when it takes the source's place.
  package var destinationPath: String

  package var source: ModelIdentity
  package var destination: ModelIdentity
  /// True when the mapping was inferred.
  package var isLightweight: Bool

  /// Everything of the destination's `sqlite_master`, in the order in which Core Data makes it.
  package var schema: [SchemaStatement]
  package var control: ControlRows
  package var tables: [TablePlan]
  package var joinTables: [JoinTablePlan]
  package var foreignTables: [ForeignTablePlan]
  /// SQL of the triggers that are carried, made last.
  package var triggers: [String]
  /// SQL of indexes on foreign tables.
  package var foreignIndexes: [String]

  /// The shards. A unit's place in this list is its number.
  package var units: [Shard]
  /// Checks across the rows of the source that no shard can make.
  package var audits: [StoreSoundness.Job]
  /// What a person should know: renames, narrowing, triggers that could not be carried.
  package var notes: [String]
  /// Rows, values and references of the source that the migration drops, counted while planning.
  package var losses: [Loss] = []
  /// Of an inferred plan's ``losses`` those that only its rows tell, whatever came before or comes after.
  package var rowLosses: [Loss]?
  /// What is wrong with the source's control tables and schema, where the request accepts it: the
  /// destination has these again.
  package var acceptedDamage: [StoreFinding] = []
  /// The entity mappings, where mapping models were given.
  package var mapped: MappedPlan?
}

/// One version of a model, by what a store records of it.
package struct ModelIdentity: Codable, Sendable, Equatable {
  /// The version's name, where the model came with one.
  package var versionName: String?
  package var checksum: String

  package init(versionName: String?, checksum: String) {
    self.versionName = versionName
    self.checksum = checksum
  }
}

/// The rows of the three control tables.
package struct ControlRows: Codable, Sendable, Equatable {
  /// `Z_PRIMARYKEY`, entities of history included.
  package var primaryKeys: [PrimaryKeyRow]
  package var storeUUID: String
  /// `Z_PLIST`: a binary property list.
  package var metadata: [UInt8]
  /// `Z_CONTENT`: a raw-deflated keyed archive of the whole model, whatever part of it the store holds.
  package var modelCache: [UInt8]
  /// True when the file's header is to say WAL, as the source's does.
  package var isWAL: Bool
  /// `PRAGMA user_version` and `application_id`, which are the application's; Core Data leaves them 0.
  package var userVersion: Int64 = 0
  package var applicationID: Int64 = 0

  init(
    primaryKeys: [PrimaryKeyRow], storeUUID: String, metadata: [UInt8], modelCache: [UInt8],
    isWAL: Bool
  ) {
    self.primaryKeys = primaryKeys
    self.storeUUID = storeUUID
    self.metadata = metadata
    self.modelCache = modelCache
    self.isWAL = isWAL
  }

  /// With what the header of the source's file says.
  init(
    primaryKeys: [PrimaryKeyRow], storeUUID: String, metadata: [UInt8], modelCache: [UInt8],
    of store: SourceStore
  ) throws {
    self.init(
      primaryKeys: primaryKeys, storeUUID: storeUUID, metadata: metadata, modelCache: modelCache,
      isWAL: store.header.isWAL)
    userVersion = try store.connection.rows("PRAGMA user_version").first?.first?.integer ?? 0
    applicationID = try store.connection.rows("PRAGMA application_id").first?.first?.integer ?? 0
  }

  /// The destination's model: as much of the cached one as the store holds, under the hashes that it records.
  package func hierarchy() throws -> EntityHierarchy {
    try EntityHierarchy(modelCache: modelCache).held(
      under: StoreMetadata(list: metadata).versionHashes)
  }

  private enum CodingKeys: String, CodingKey {
    case primaryKeys, storeUUID, metadata, modelCache, isWAL, userVersion, applicationID
  }

  // Bytes as base64: as numbers they would be most of a plan.

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    primaryKeys = try container.decode([PrimaryKeyRow].self, forKey: .primaryKeys)
    storeUUID = try container.decode(String.self, forKey: .storeUUID)
    metadata = [UInt8](try container.decode(Data.self, forKey: .metadata))
    modelCache = [UInt8](try container.decode(Data.self, forKey: .modelCache))
    isWAL = try container.decode(Bool.self, forKey: .isWAL)
    userVersion = try container.decodeIfPresent(Int64.self, forKey: .userVersion) ?? 0
    applicationID = try container.decodeIfPresent(Int64.self, forKey: .applicationID) ?? 0
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(primaryKeys, forKey: .primaryKeys)
    try container.encode(storeUUID, forKey: .storeUUID)
    try container.encode(Data(metadata), forKey: .metadata)
    try container.encode(Data(modelCache), forKey: .modelCache)
    try container.encode(isWAL, forKey: .isWAL)
    if userVersion != 0 { try container.encode(userVersion, forKey: .userVersion) }
    if applicationID != 0 { try container.encode(applicationID, forKey: .applicationID) }
  }
}

extension MigrationPlan {
  /// The units that a stage has work for.
  ///
  /// Copy: rows that are computed. Link: rows with relationships, carried ones too, for their
  /// targets are looked at. Validate: everything. Verify: everything that is in the destination.
  package func units(in stage: PlanStage) -> [Int] {
    units.indices.filter { number in
      switch units[number].subject {
      case .mapping(let index):
        return mappedUnit(index, isIn: stage)
      case .inserted:
        return stage == .validate
      case .table where mapped != nil:
        return stage == .verify
      case .joinTable where mapped != nil:
        return stage == .validate || stage == .verify
      case .table(let index):
        let table = tables[index]
        switch stage {
        case .copy: return table.way == .computed
        case .link:
          return table.entities.contains { !$0.references.isEmpty }
            || (table.way == .computed && !table.relationshipPlaces.isEmpty)
        case .validate: return true
        case .verify: return table.way != .removed
        }
      case .joinTable(let index):
        switch stage {
        case .copy: return false
        case .link: return joinTables[index].way == .computed
        case .validate, .verify: return true
        }
      case .foreignTable:
        return stage == .validate || stage == .verify
      }
    }
  }
}

extension MigrationPlan {
  private func mappedUnit(_ index: Int, isIn stage: PlanStage) -> Bool {
    guard let mapped, mapped.mappings.indices.contains(index) else { return false }
    let mapping = mapped.mappings[index]
    if mapping.policy != nil {
      // Verify is when the policy looks at the whole destination.
      return stage != .validate || mapping.table != nil
    }
    guard mapping.table != nil else { return false }
    return switch stage {
    case .copy, .validate: true
    case .link: mapping.hasLinkStage
    case .verify: false
    }
  }
}

extension MigrationPlan {
  /// Copy, link and validate of a unit are done in one pass: keys are kept, and link reads the
  /// source alone, so that no unit has to wait for another.
  package var isOnePass: Bool { mapped == nil }
}
