import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What a store is: version, entities, rows, features, and whether it is sound.
package struct StoreInspection: Codable, Sendable {
  /// What is asked of the files of external data that rows refer to.
  package enum ExternalData: Sendable {
    /// Nothing, unless rows are read.
    case unasked
    /// They are there where the store has a folder for them.
    case inFolder
    /// They are there: the store is known to have had the folder.
    case required
  }

  package struct Entity: Codable, Sendable {
    package var name: String
    /// `Z_ENT`.
    package var number: Int64
    package var superentityNumber: Int64?
    /// Objects of exactly this entity; nil where no model tells whose rows are whose.
    package var rows: Int64?
  }

  package private(set) var event = "store"
  package var store: String
  package var bytes: Int64
  package var uuid: String?
  package var frameworkVersion: Int?
  package var identifiers: [String]
  package var checksum: String?
  /// The version whose hashes are the store's: a given one's name, or `cached model`.
  package var version: String?
  /// Without one: in which entities the nearest given version differs.
  package var differing: [String] = []
  package var nearest: String?
  package var entities: [Entity] = []
  package var rows: Int64?
  package var features: [String] = []
  package var findings: [StoreFinding] = []
  /// False where something is wrong that Core Data's own stores never have, and where something
  /// could not be checked.
  package var isSound: Bool
  /// What could not be checked, for want of a model or since the file is damaged; empty where
  /// everything was.
  package var unchecked: [String] = []

  /// - Parameters:
  ///   - models: Those among whose versions, and their mergers, the store's own is looked for, before its
  ///     cached model.
  ///   - snapshotFolder: For the private clone of a store with a WAL.
  ///   - readsRows: Whether every row is looked at, not only control tables and schema.
  ///   - externalData: What is asked of files that rows refer to.
  /// - Throws: ``StoreError/changed(_:)`` where another process keeps replacing files of external data: whether
  ///   the store's are there cannot be told.
  ///
  /// Where another process writes to the store meanwhile, a clone of it is read.
  package init(
    _ path: FilePath, models: GivenModels, snapshotFolder: FilePath, readsRows: Bool,
    externalData: ExternalData = .unasked
  ) throws {
    func inspection(ofClone isClone: Bool) throws -> StoreInspection {
      try StoreInspection(
        reading: path, isClone, models: models, snapshotFolder: snapshotFolder,
        readsRows: readsRows, externalData)
    }
    var watch = SourceWatch(path)
    var tries = watch.wasLocked ? 1 : 0
    var found = Swift.Result { try inspection(ofClone: tries > 0) }
    while !Self.isTrusted(found, ofClone: tries > 0), let interference = watch.interference() {
      guard tries < Self.mostTries else { throw interference }
      tries += 1
      watch = SourceWatch(path)
      found = Swift.Result { try inspection(ofClone: true) }
    }
    self = try found.get()
  }

  private static let mostTries = 20

  /// Whether it says something of a store to which somebody writes. A clone is of one moment; the files that its
  /// rows refer to may be gone since.
  private static func isTrusted(
    _ found: Swift.Result<StoreInspection, any Error>, ofClone isClone: Bool
  ) -> Bool {
    guard case .success(let inspection) = found else { return isClone }
    let failures = inspection.findings.filter(\.kind.isFailure)
    return inspection.isSound
      || isClone && (failures.isEmpty || failures.contains { $0.kind != .external })
  }

  private init(
    reading path: FilePath, _ isClone: Bool, models: GivenModels, snapshotFolder: FilePath,
    readsRows: Bool, _ externalData: ExternalData
  ) throws {
    let source = try SourceStore(
      path: path, snapshotFolder: snapshotFolder, alwaysClones: isClone)
    let metadata = source.metadata
    store = path.string
    bytes = source.identity.bytes
    uuid = metadata.uuid
    frameworkVersion = metadata.frameworkVersion
    identifiers = metadata.identifiers
    checksum = metadata.checksum
    isSound = true
    entities = source.entityKeys.map {
      Entity(
        name: $0.name, number: $0.number,
        superentityNumber: $0.superNumber == 0 ? nil : $0.superNumber, rows: nil)
    }
    features = try Self.features(of: source)
    findings = metadata.problems.map { StoreFinding(kind: .metadata, message: "\($0)") }
    let hashes = metadata.versionHashes
    guard let (hierarchy, notes) = try find(hashes, models, source) else {
      findings += try StoreSoundness.unreadableModelCache(of: source)
      if readsRows { findings += try StoreSoundness.file(of: source) }
      unchecked = ["tables and columns", "rows", "relationships", "external data"]
      isSound = false
      return
    }
    do {
      try judge(StoreBinding(source, hierarchy), readsRows: readsRows, externalData)
    } catch let error as SQLiteError where error.isCorruption {
      // What can be said of the rest is worth more than the error alone.
      findings += try StoreSoundness.file(of: source)
      if !findings.contains(where: { $0.kind == .file }) {
        findings.append(StoreFinding(kind: .file, message: "\(error)"))
      }
      unchecked = ["rows", "relationships", "external data"]
      isSound = false
    }
    findings += notes
  }

  private mutating func judge(
    _ binding: StoreBinding, readsRows: Bool, _ externalData: ExternalData
  ) throws {
    let census = try StoreCensus(binding)
    for place in entities.indices {
      entities[place].rows = census.entities[EntityName(entities[place].name)]?.count
    }
    rows = census.tables.values.reduce(0) { $0 + $1.rows }
    let needsFolder = externalData == .required
    if readsRows {
      findings = try StoreSoundness.check(
        binding, pattern: RegularExpression.matcher, needsExternalFolder: needsFolder)
    } else {
      findings = try StoreSoundness.structure(of: binding)
      if externalData != .unasked {
        findings += try StoreSoundness.externalFiles(of: binding, needsFolder: needsFolder)
      }
    }
    isSound = !findings.contains(where: \.kind.isFailure)
  }

  /// The model that the store was written under: the given one most like its own, else its own.
  ///
  /// - Returns: Also where a given version of the store's hashes would read it wrongly.
  private mutating func find(
    _ hashes: [EntityName: VersionHash], _ models: GivenModels, _ source: SourceStore
  ) throws -> (EntityHierarchy, notes: [StoreFinding])? {
    var fewest: [EntityName]?
    var given: [(name: String, hierarchy: EntityHierarchy)] = []
    for version in models.versions {
      let hierarchy = StoreBinding.fitting(try version.hierarchy(), to: source)
      let computed = hierarchy.versionHashes
      if computed == hashes {
        given.append((version.name, hierarchy))
        continue
      }
      let different = Set(computed.keys).union(hashes.keys)
        .filter { computed[$0] != hashes[$0] }.sorted()
      if different.count < fewest?.count ?? .max {
        fewest = different
        differing = different.map(\.rawValue)
        nearest = version.name
      }
    }
    if given.isEmpty, let merged = try models.merger(of: hashes) {
      given.append((merged.name, try merged.hierarchy()))
    }
    // A damaged cache is a finding elsewhere and no reason to say nothing.
    let own = try source.readableModel().flatMap { try? EntityHierarchy($0) }
      .flatMap {
        StoreBinding.fitting($0, to: source).own(under: hashes, of: given.map(\.hierarchy))
      }
    guard let first = given.first else {
      if models.versions.isEmpty, own != nil { version = "cached model" }
      return own.map { ($0, []) }
    }
    (differing, nearest) = ([], nil)
    let place = own.map { UnhashedDifference.closest(to: $0, among: given.map(\.hierarchy)) }
    guard let own, place == .some(nil) else {
      let chosen = given[(place ?? 0) ?? 0]
      version = chosen.name
      return (chosen.hierarchy, [])
    }
    version = first.name
    let notes = UnhashedDifference.between(given: first.hierarchy, own: own).storage.map {
      StoreFinding(
        kind: .note,
        message:
          "\(first.name) has the store's version hashes, and would not read the store as the "
          + "model cached in it wrote it: \($0)")
    }
    return (own, notes)
  }

  private static func features(of source: SourceStore) throws -> [String] {
    var features: [String] = []
    if source.isWAL { features.append("WAL") }
    if source.identity.hasPendingChanges { features.append("rows in the WAL or journal") }
    if source.header.hasAutoVacuum { features.append("auto-vacuum") }
    if !source.historyKeys.isEmpty { features.append("persistent history or CloudKit") }
    if source.schemaObjects.contains(where: { $0.kind == .trigger }) { features.append("triggers") }
    if try source.hasCachedModel() { features.append("cached model") }
    if try FileKind(at: source.files.externalDataFolder) == .folder {
      features.append("external binary data")
    }
    if !source.metadata.applicationKeys.isEmpty { features.append("application metadata") }
    let foreign = try source.foreignTables()
    if !foreign.isEmpty {
      features.append("foreign tables: " + foreign.map(\.name).joined(separator: ", "))
    }
    return features
  }
}
