import GodwitDigests
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Makes a sound store out of what can be read of a damaged one, and accounts for the rest.
///
/// The source is opened for reading only. The output is published whole, or not at all.
package struct StoreRepair {
  private let source: FilePath
  private let output: FilePath
  private let models: GivenModels

  /// - Parameter models: Those among whose versions, and their mergers, the store's own is found, before
  ///   its cached model.
  package init(_ source: FilePath, output: FilePath, models: GivenModels = .none) {
    (self.source, self.output, self.models) = (source, output, models)
  }

  /// - Throws: ``RepairError``; `StoreError`, `DurabilityError` and `SQLiteError` for what has
  ///   nothing to do with the damage.
  package func run() throws -> RepairReport {
    let place = try OutputPlace(output, source: source)
    defer { place.removeDraft() }
    let salvage = try StoreSalvage.read(source, models: models, in: place.draft)
    let template = try template(salvage.model.hierarchy, in: place.draft)
    let store = try OutputStore(salvage.model.hierarchy, at: place.file)
    let doubted = try DoubtedRows(salvage, in: store)
    let repeated = try store.copyRows(from: salvage.binding, doubted)
    let mender = Mender(store.connection, template)
    try mender.mend()
    var external = ExternalFiles(of: source)
    try external.carry(
      to: StoreFiles(place.file).externalDataFolder, store.connection, template, mender)

    var account = RepairAccount(
      salvage, mender, store: source.string, output: place.output.string)
    try account.count(in: store)
    for join in salvage.binding.joinTables where repeated.contains(NameKey(join.name)) {
      try account.addRepeatedPairs(join, in: store)
    }
    account.addRecords()
    account.addUnlisted()
    account.addColumns()
    try account.addMissingColumns(in: store)
    account.report.keptExternalFiles = external.copied
    account.report.lost += external.lost
    // Tables that are none of the model's are carried; columns of its own tables are not.
    for unknown in try salvage.binding.unknownContents() {
      guard let column = unknown.column else { continue }
      account.report.lost.append(
        .init(
          .schema, entity: unknown.table, property: column, count: unknown.count,
          "is a column that is none of the model's"))
    }
    account.report.doubtful += external.doubtful
    account.settleDoubts()
    if account.isNothingLeft { throw RepairError.nothingLeft(source, account.report) }
    let metadata = salvage.binding.store.metadata
    try store.finish(
      highestKeys: account.highestKeys, carrying: account.historyRows(),
      metadata: metadata, uuid: try account.uuid(of: metadata, image: salvage.image.path),
      caching: salvage.model.whole)
    if let header = account.soundHeader { try store.setNumbers(of: header) }
    try account.carryForeignTables(into: store, doubted)
    try store.connection.execute("DETACH salvage")
    try store.close()
    try judge(place, salvage.model.hierarchy)
    try place.publish()
    return account.report
  }

  /// A store of the model without rows: tells where each property lies.
  private func template(
    _ hierarchy: EntityHierarchy, in folder: FilePath
  ) throws -> StoreBinding {
    let path = folder.appending("template.sqlite")
    let store = try OutputStore(hierarchy, at: path)
    try store.finish(
      highestKeys: [:], carrying: [], metadata: StoreMetadata(uuid: nil, plist: [:]), uuid: "",
      caching: hierarchy)
    try store.close()
    return StoreBinding(try SourceStore(path: path, snapshotFolder: folder), hierarchy)
  }

  /// What is published keeps every rule of `verify`.
  private func judge(_ place: borrowing OutputPlace, _ hierarchy: EntityHierarchy) throws {
    let source = try SourceStore(path: place.file, snapshotFolder: place.draft)
    let findings = try StoreSoundness.check(StoreBinding(source, hierarchy))
      .filter(\.kind.isFailure)
    if !findings.isEmpty { throw RepairError.notSound(self.source, findings) }
  }
}

/// Where the output goes, and the folder beside it in which it is made.
struct OutputPlace: ~Copyable {
  let output: FilePath
  let draft: FilePath
  /// Held for as long as the draft is somebody's.
  private let lock: FileLock
  /// The output while it is being made: of the name that it will have, which its external data goes
  /// by.
  let file: FilePath

  init(_ path: FilePath, source: FilePath) throws {
    let path = path.resolvingFolders
    guard let name = path.lastComponent else {
      throw RepairError.badOutput(path, reason: "it is not the name of a file")
    }
    try NewFilePlace(path, beside: [source]).checkForStore()
    let parent = path.removingLastComponent()
    let folder = parent.isEmpty ? "." : parent
    guard try FileKind(following: folder) == .folder else {
      throw RepairError.badOutput(path, reason: "\(folder) is not a folder")
    }
    let files = StoreFiles(path)
    for file in [files.store, files.wal, files.shm, files.journal, files.supportFolder] {
      if try DurableFile.exists(file) { throw RepairError.outputExists(file) }
    }
    var random = SystemRandomNumberGenerator()
    let prefix = ".\(name).repair-"
    try Self.removeLeftovers(prefix, in: folder)
    let draft = folder.appending(prefix + String(random.next() as UInt64, radix: 36))
    TemporaryFolders.add(draft)
    try DurableFile.makeFolder(draft.appending("output"), surviving: .processCrash)
    lock = try FileLock(acquiring: draft.appending(Self.lockName))
    (output, self.draft) = (path, draft)
    file = draft.appending("output").appending(name)
  }

  private static let lockName = "lock"

  /// Drafts of repairs that were killed, which hold copies of rows.
  private static func removeLeftovers(_ prefix: String, in folder: FilePath) throws {
    for name in try DurableFile.names(in: folder) where name.begins(with: prefix) {
      let draft = folder.appending(name)
      let lock = draft.appending(lockName)
      guard try FileKind(at: draft) == .folder, try FileKind(at: lock) == .regular,
        try !FileLock.isHeld(at: lock)
      else { continue }
      try DurableFile.removeTree(draft, surviving: .processCrash)
    }
  }

  func removeDraft() {
    try? DurableFile.removeTree(draft, surviving: .processCrash)
    TemporaryFolders.forget(draft)
  }

  /// External data first, so that whoever sees the store sees all of it.
  func publish() throws {
    try DurableFile.syncFile(file)
    let (made, wanted) = (StoreFiles(file), StoreFiles(output))
    var moved: FilePath?
    if try DurableFile.exists(made.supportFolder) {
      try DurableFile.renameNew(made.supportFolder, to: wanted.supportFolder)
      moved = wanted.supportFolder
    }
    do {
      try DurableFile.renameNew(file, to: output)
    } catch {
      if let moved { try? DurableFile.removeTree(moved) }
      throw error
    }
  }
}
