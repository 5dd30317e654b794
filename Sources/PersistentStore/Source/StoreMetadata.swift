import GodwitKeyedArchive
import GodwitObjectModel
import GodwitSQLite

/// What a store says about itself in `Z_METADATA`.
///
/// Read tolerantly: every oddity is a ``Problem``, and what can be understood is kept.
/// Source: `core-data-sqlite-format.md` §2.
package struct StoreMetadata: Sendable {
  /// The store's UUID; it stands in a column of its own, not in the property list.
  package var uuid: String?
  /// Application metadata included.
  package var plist: PropertyListDictionary
  /// Rows of `Z_METADATA`; 1 in a sound store.
  package var rowCount: Int
  package var problems: [Problem]

  package init(
    uuid: String?, plist: PropertyListDictionary, rowCount: Int = 1, problems: [Problem] = []
  ) {
    self.uuid = uuid
    self.plist = plist
    self.rowCount = rowCount
    self.problems = problems
  }
}

extension StoreMetadata {
  /// What is wrong with a store's metadata.
  package enum Problem: Sendable, Hashable {
    case unreadableTable(String)
    case noRow
    case severalRows(Int)
    /// `Z_UUID` is not an upper-case UUID.
    case oddUUID
    case missingPlist
    /// `Z_PLIST` can be read, but is an XML property list.
    case notBinaryPlist
    case unreadablePlist(String)
    case plistNotADictionary
    case wrongType(Key)
    /// `NSStoreType` is not `SQLite`, or the hashes are of another style than 3.
    case unexpectedValue(Key)
    /// The version hash of this entity is no 32 bytes of data.
    case oddHash(EntityName)
    /// The digest or the checksum does not follow from the version hashes.
    case digestMismatch(Key)
  }

  /// The keys that Core Data itself sets.
  package enum Key: String, Sendable, Hashable, CaseIterable {
    case frameworkVersion = "NSPersistenceFrameworkVersion"
    case maximumFrameworkVersion = "NSPersistenceMaximumFrameworkVersion"
    case versionHashes = "NSStoreModelVersionHashes"
    case hashesVersion = "NSStoreModelVersionHashesVersion"
    case identifiers = "NSStoreModelVersionIdentifiers"
    case storeType = "NSStoreType"
    case autoVacuumLevel = "_NSAutoVacuumLevel"
    case digest = "NSStoreModelVersionHashesDigest"
    case checksum = "NSStoreModelVersionChecksumKey"
    case ancillaryHashes = "_NSStoreAncillaryModelVersionHashesMetadataKey"
    case historyTracking = "NSPersistentHistoryTrackingKey"
    case storeUUID = "NSStoreUUID"
  }

  subscript(key: Key) -> PropertyList? {
    get { plist[key.rawValue] }
    set { plist[key.rawValue] = newValue }
  }

  /// Keys of the application's own.
  package var applicationKeys: [String] {
    plist.keys.filter { Key(rawValue: $0) == nil }
  }

  package var frameworkVersion: Int? {
    self[.frameworkVersion]?.integer.flatMap { Int(exactly: $0) }
  }

  /// The version hashes of the entities in the store; those of odd form left out.
  package var versionHashes: [EntityName: VersionHash] {
    var hashes: [EntityName: VersionHash] = [:]
    for (name, value) in self[.versionHashes]?.dictionary ?? [:] {
      hashes[EntityName(name)] = value.data.flatMap { VersionHash(bytes: $0) }
    }
    return hashes
  }

  /// The names that have a version hash, of whatever form.
  package var hashedEntities: [EntityName] {
    (self[.versionHashes]?.dictionary?.keys ?? []).map { EntityName($0) }.sorted()
  }

  package var identifiers: [String] {
    (self[.identifiers]?.array ?? []).compactMap(\.string)
  }

  package var checksum: String? { self[.checksum]?.string }
}

extension StoreMetadata {
  /// Reads the one row that there should be.
  ///
  /// - Throws: `SQLiteError` where it is not what the store holds that keeps it from being read.
  package init(_ connection: Connection) throws {
    self.init(uuid: nil, plist: [:], rowCount: 0)
    let rows: [[SQLiteValue]]
    do {
      guard try connection.holds(["Z_UUID", "Z_PLIST"], in: "Z_METADATA") else {
        problems.append(.unreadableTable("it or a column is missing"))
        return
      }
      rows = try connection.rows(
        """
        SELECT Z_UUID, Z_PLIST
          FROM Z_METADATA
         ORDER BY rowid
         LIMIT 1
        """)
      rowCount = Int(
        clamping: try connection.rows("SELECT count(*) FROM Z_METADATA").first?.first?.integer ?? 0)
    } catch let error as SQLiteError where error.isOfContent {
      problems.append(.unreadableTable(error.message))
      return
    }
    guard let row = rows.first else {
      problems.append(.noRow)
      return
    }
    if rowCount > 1 { problems.append(.severalRows(rowCount)) }
    read(uuid: row[0], list: row[1])
  }

  /// Reads one row.
  package init(uuid: SQLiteValue, list: SQLiteValue) {
    self.init(uuid: nil, plist: [:])
    read(uuid: uuid, list: list)
  }

  private mutating func read(uuid value: SQLiteValue, list: SQLiteValue) {
    uuid = value.text
    if !(uuid.map(Self.isUUID) ?? false) { problems.append(.oddUUID) }
    read(list)
  }

  /// Of a property list alone, as a plan has it.
  package init(list: [UInt8]) {
    self.init(uuid: nil, plist: [:])
    read(.blob(list))
  }

  private mutating func read(_ value: SQLiteValue) {
    let bytes: [UInt8]
    switch value {
    case .blob(let blob): bytes = blob
    case .text(let text): bytes = Array(text.utf8)
    case .null, .integer, .real:
      problems.append(.missingPlist)
      return
    }
    if !bytes.starts(with: Array("bplist".utf8)) { problems.append(.notBinaryPlist) }
    do {
      guard let found = try PropertyList(bytes: bytes).dictionary else {
        problems.append(.plistNotADictionary)
        return
      }
      plist = found
    } catch {
      problems.append(.unreadablePlist((error as? ArchiveError)?.reason ?? "\(error)"))
      return
    }
    judge()
  }

  private mutating func judge() {
    if self[.storeType]?.string != "SQLite" { problems.append(.unexpectedValue(.storeType)) }
    if self[.hashesVersion]?.integer != 3 { problems.append(.unexpectedValue(.hashesVersion)) }
    if self[.frameworkVersion]?.integer == nil { problems.append(.wrongType(.frameworkVersion)) }
    if self[.identifiers]?.array == nil { problems.append(.wrongType(.identifiers)) }
    guard let listed = self[.versionHashes]?.dictionary else {
      problems.append(.wrongType(.versionHashes))
      return
    }
    let odd = listed.filter { $0.value.data.flatMap { VersionHash(bytes: $0) } == nil }
    guard odd.isEmpty else {
      problems += odd.map { .oddHash(EntityName($0.key)) }
      return
    }
    let hashes = versionHashes
    if let digest = self[.digest], digest.string != StoreDigest.hashesDigest(of: hashes) {
      problems.append(.digestMismatch(.digest))
    }
    if let checksum = self[.checksum], checksum.string != StoreDigest.versionChecksum(of: hashes) {
      problems.append(.digestMismatch(.checksum))
    }
  }

  /// 36 characters, hexadecimal digits in capitals.
  static func isUUID(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return bytes.count == 36
      && bytes.enumerated().allSatisfy { place, byte in
        [8, 13, 18, 23].contains(place)
          ? byte == UInt8(ascii: "-")
          : (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte)
      }
  }
}

extension StoreMetadata {
  /// `Z_PLIST` of the store after a migration, as a binary property list.
  ///
  /// The application's keys stay as they are. The framework version is carried and raised to
  /// ``StoreLayout/recentFramework`` where the store was of a framework with another layout, since
  /// what is written is always the recent one.
  ///
  /// - Parameters:
  ///   - entities: The entities that the store holds; nil for all of the model.
  ///   - keepsHistory: Whether the tables of Core Data's own entities go along: else their hashes go, too.
  package func bytes(
    migratedTo hierarchy: EntityHierarchy, entities: Set<EntityName>? = nil,
    keepsHistory: Bool = true
  ) -> [UInt8] {
    var migrated = self
    if !keepsHistory { migrated[.ancillaryHashes] = nil }
    let hashes = hierarchy.versionHashes.filter { entities?.contains($0.key) ?? true }
    let sorted = hashes.sorted { $0.key < $1.key }
    let carried = frameworkVersion ?? 0
    let version = carried < 900 ? StoreLayout.recentFramework : carried
    migrated[.frameworkVersion] = .integer(Int64(version))
    if let maximum = self[.maximumFrameworkVersion] {
      let carriedMaximum = maximum.integer ?? 0
      migrated[.maximumFrameworkVersion] = .integer(max(carriedMaximum, Int64(version)))
    }
    migrated[.versionHashes] = .dictionary(
      PropertyListDictionary(sorted.map { (key: $0.key.rawValue, value: .data($0.value.bytes)) }))
    migrated[.hashesVersion] = .integer(3)
    migrated[.identifiers] = .array(hierarchy.model.versionIdentifiers.map { .string($0) })
    migrated[.storeType] = .string("SQLite")
    migrated[.autoVacuumLevel] = .string("2")
    migrated[.digest] = .string(StoreDigest.hashesDigest(of: hashes))
    migrated[.checksum] = .string(StoreDigest.versionChecksum(of: hashes))
    return PropertyList.dictionary(migrated.plist).binary()
  }
}

extension StoreMetadata {
  /// Why nothing of the property list is known, where it is there; nil where it was read.
  package var whyUnread: String? {
    problems.first { problem in
      switch problem {
      case .unreadablePlist, .plistNotADictionary, .missingPlist, .unreadableTable, .noRow: true
      default: false
      }
    }?.description
  }
}

extension StoreMetadata.Problem: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unreadableTable(let reason): "Z_METADATA cannot be read: \(reason)"
    case .noRow: "Z_METADATA has no row"
    case .severalRows(let count): "Z_METADATA has \(count) rows"
    case .oddUUID: "Z_UUID is not a UUID in capitals"
    case .missingPlist: "Z_PLIST is NULL or no data"
    case .notBinaryPlist: "Z_PLIST is not a binary property list"
    case .unreadablePlist(let reason): "Z_METADATA.Z_PLIST cannot be read: \(reason)"
    case .plistNotADictionary: "Z_PLIST is not a dictionary"
    case .wrongType(let key): "\(key.rawValue) is missing or of a wrong type"
    case .unexpectedValue(let key): "\(key.rawValue) has an unexpected value"
    case .oddHash(let name): "the version hash of \(name) is not 32 bytes of data"
    case .digestMismatch(let key): "\(key.rawValue) does not follow from the version hashes"
    }
  }
}
