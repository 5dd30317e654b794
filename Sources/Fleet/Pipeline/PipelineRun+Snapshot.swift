import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// A store in use, of which a snapshot is migrated to a file beside it: the store is only read, and
// what an application commits meanwhile is in the store and not in the snapshot.
extension PipelineRun {
  /// The name of a snapshot's destination says what it is, and of which run: searches for stores
  /// leave it out, and no two runs mean the same file.
  static func snapshotPath(of store: FilePath, run: String) -> FilePath {
    let name = store.lastComponent
    let extended = name?.extension.map { "." + $0 } ?? ""
    return store.removingLastComponent()
      .appending((name?.stem ?? "") + LedgerStanding.snapshotMark + run + extended)
  }

  /// In the coordinator: has a snapshot of a store migrated.
  func migrateSnapshot(
    _ task: StoreTask, of store: FoundStore, _ setting: Setting
  ) async -> MigrationResult {
    let books = setting.books
    var task = task
    task.work = .snapshot
    let output = request(for: store).output
    task.output = (output ?? Self.snapshotPath(of: store.path, run: books.run)).string
    return await perform(task, of: store, setting) { result in
      guard result.verdict != .pending else { return }
      try await books.recordSnapshot(result, of: store)
    }
  }

  /// The store with the state of which a snapshot was migrated and is still there.
  func namingSnapshot(_ store: FoundStore, _ books: any StoreBooks) -> FoundStore {
    var store = store
    if pipeline.stores.inUse == .snapshot, let known = books.entry(of: store.path) {
      store.snapshotIdentity = try? snapshotIdentity(store, known, books.settings)
    }
    return store
  }

  private func snapshotIdentity(
    _ store: FoundStore, _ known: PipelineLedger.Entry, _ settings: String
  ) throws -> String? {
    guard known.settings == settings, known.verdict == .migrated, known.backup == nil,
      let output = known.output, output != store.path.string,
      try Self.isThere(FilePath(output))
    else { return nil }
    return known.identity
  }

  /// The snapshot that was made of a store as it is now; nil where there is none.
  func sameSnapshot(
    _ store: FoundStore, _ known: PipelineLedger.Entry?, _ books: any StoreBooks
  ) throws -> Outcome? {
    guard let known, let identity = try snapshotIdentity(store, known, books.settings),
      identity == (try StoreFiles(store.path).identity().name)
    else { return nil }
    return Outcome(
      store: store,
      result: earlier(
        known, "The store is in use. A snapshot of it as it is now was migrated before", books),
      isEarlier: true)
  }

  /// In the process that coordinates the store.
  func migrateSnapshot(
    _ store: FoundStore, _ task: StoreTask, output: FilePath, policies: PolicyRegistry,
    record: @escaping @Sendable (MigrationResult) throws -> Void,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    let folder = snapshotFolder(of: store)
    let clone: StoreClone
    do {
      clone = try await onOwnThread { try StoreClone(of: store.path, in: folder) }
    } catch {
      return MigrationResult(failing: store.path.string, with: error)
    }
    var request = request(for: store)
    (request.store, request.output) = (clone.store, output)
    @Sendable func named(_ result: MigrationResult) -> MigrationResult {
      var result = result
      result.store = store.path.string
      result.sourceIdentity = clone.identity
      result.finalIdentity = nil
      if result.verdict == .migrated {
        result.notes.append(
          "The store is in use and stays as it is. A snapshot of it was migrated to \(output).")
        if let lost = clone.lostGroup {
          result.notes += lost.notes(of: output.string)
          var rights = result.lostRights ?? LostRights()
          rights.group = lost.group
          result.lostRights = rights
        }
      }
      return result
    }
    let result = await StoreRun(
      request, directory: RunDirectory(folder.appending("run")),
      settings: settings(task, policies: policies) { try record(named($0)) },
      observe: observe
    ).run()
    if result.ending == .done || result.ending == .badInput {
      try? DurableFile.removeTree(folder)
    }
    return named(result)
  }
}

/// One state of a store, with all of its files, in a folder of its own.
struct StoreClone: Sendable {
  var store: FilePath
  /// The name of the state of the store that this is a clone of.
  var identity: String
  /// The group of the store, where neither the clone nor what is made of it can have it.
  private(set) var lostGroup: LostRights?

  /// Clones a store, or takes the clone of this state that is there already. Clones of other states
  /// go.
  init(of original: FilePath, in folder: FilePath) throws {
    let files = StoreFiles(original)
    try DurableFile.makeFolder(folder)
    try Folder(folder).checkPrivate()
    let links = folder.appending("external")
    let (store, identity) = try Self.clone(files, in: folder, externalTo: links)
    // What is made of the clone takes its rights: the folder keeps others out meanwhile.
    let lost = try DurableFile.copyRights(ofFile: original, toWritable: store)
    for name in try DurableFile.names(in: folder)
    where name.hasPrefix("store-") && folder.appending(name) != store {
      try DurableFile.removeTree(folder.appending(name))
    }
    let target = StoreFiles(store).externalDataFolder
    try Self.link(links, into: target)
    (self.store, self.identity) = (store, identity.name)
    // What somebody makes beside the store is their own.
    lostGroup = LostRights(group: lost.group).ifAny
  }

  /// An application adds a file before the row that refers to it, and removes it after: together, the looks
  /// before and after hold what the clone refers to. A file that came and went between them the next clone does
  /// not need; what no clone finds the store itself lacks.
  private static func clone(
    _ files: StoreFiles, in folder: FilePath, externalTo links: FilePath
  ) throws -> (store: FilePath, identity: StoreIdentity) {
    var (missing, tries): (Set<String>?, Int) = (nil, 0)
    while true {
      try link(files.externalDataFolder, into: links)
      let clone = try files.clone(in: folder)
      try link(files.externalDataFolder, into: links)
      tries += 1
      guard try FileKind(at: links) == .folder else { return clone }
      let lacking = try ExternalDataFolder.missing(
        among: Set(DurableFile.names(in: links)), referredToBy: clone.store)
      if lacking.isEmpty || lacking == missing { return clone }
      guard tries < mostTries else { throw StoreError.changed(files.store) }
      missing = lacking
    }
  }

  /// 20. An application that replaces its files faster than they are linked leaves none to find.
  private static let mostTries = 20

  private static func link(_ source: FilePath, into target: FilePath) throws {
    guard try FileKind(at: source) == .folder else { return }
    try DurableFile.makeFolder(target, surviving: .processCrash)
    for name in try DurableFile.names(in: source)
    where try FileKind(at: source.appending(name)) == .regular
      && !DurableFile.exists(target.appending(name))
    {
      do {
        try DurableFile.link(
          source.appending(name), to: target.appending(name), syncingFolder: false)
      } catch let error as DurabilityError where error.errno?.rawValue == 18 {  // EXDEV
        try DurableFile.copy(source.appending(name), to: target.appending(name))
      } catch let error as DurabilityError where error.isNotFound {
        continue  // removed since
      }
    }
  }
}

extension MigrationResult {
  /// Whether another process kept the store from being migrated.
  var isInUse: Bool {
    verdict == .pending
      && reasons.contains {
        $0.reason == "in-use" || ($0.reason == "changed" && $0.message != Self.changedMessage)
      }
  }

  private static let changedMessage =
    "The pipeline's file, a model or a mapping model changed during the run. Run again."

  /// Policies or stages of another build would make other stores than the run began to make.
  ///
  /// - Parameter executable: Of this machine, with the other build.
  init(ofOtherBuild executable: FilePath, _ store: String) {
    self.init(
      store: store, verdict: .pending, ending: .resumable,
      reasons: [
        Reason(
          reason: "other-build",
          message:
            "\(executable) on \(MachineName.text) is another build than the one that began the run, whose "
            + "policies or stages decide what becomes of stores. \(store) is as it was. Install one build on "
            + "every machine, not while a run is under way, and run again.")
      ])
  }

  /// What a run reads is no longer what it began with.
  init(changingUnder store: String) {
    self.init(
      store: store, verdict: .pending, ending: .resumable,
      reasons: [Reason(reason: "changed", message: Self.changedMessage)])
  }
}
