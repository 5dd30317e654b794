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
  /// leave it out, and no two runs mean the same file. It has the whole name of the store, as backups have: no other
  /// store's snapshot, and no store, has external data in the same folder.
  static func snapshotPath(of store: FilePath, run: String) -> FilePath {
    FilePath("\(store)\(LedgerStanding.snapshotMark)\(run)\(snapshotEnd)")
  }

  private static let snapshotEnd = ".sqlite"

  /// An earlier start of the run may have made one of another state, which stays: the next one gets a number.
  private static func unusedPath(_ path: FilePath) throws -> FilePath {
    var (unused, number) = (path, 1)
    while try FileKind(at: unused) != .none {
      number += 1
      unused = FilePath(path.string.dropLast(snapshotEnd.count) + "-\(number)" + snapshotEnd)
    }
    return unused
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
    if pipeline.stores.inUse == .snapshot, !isForgotten(store, books),
      let known = books.entry(of: store.path)
    {
      store.snapshotIdentity = try? snapshotIdentity(store, known, books.settings)
    }
    return store
  }

  private func snapshotIdentity(
    _ store: FoundStore, _ known: PipelineLedger.Entry, _ settings: String
  ) throws -> String? {
    guard SettingsDigest.areSame(known.settings, settings), known.verdict == .migrated,
      known.backup == nil, let output = known.output, output != store.path.string,
      isPlace(output, of: store), try Self.isThere(FilePath(output), of: known)
    else { return nil }
    return known.identity
  }

  /// Whether what was made of a store lies where this pipeline has it, or a snapshot, written: the key `commit` may have
  /// been another one then, or another pipeline's.
  func isPlace(_ output: String, of store: FoundStore) -> Bool {
    if let place = pipeline.output(of: store.path) { return output == place.string }
    return output == store.path.string
      || LedgerStanding.verdict("migrated", output: output, ofStore: store.path.string)
        == LedgerStanding.snapshot
  }

  /// The snapshot that was made of a store as it is now; nil where there is none.
  func sameSnapshot(
    _ store: FoundStore, _ known: PipelineLedger.Entry?, _ books: any StoreBooks
  ) throws -> Outcome? {
    guard !isForgotten(store, books), let known,
      let identity = try snapshotIdentity(store, known, books.settings),
      identity == (try StoreFiles(store.path).identity().name)
    else { return nil }
    return Outcome(
      store: store,
      result: earlier(
        known, "The store is in use. A snapshot of it as it is now was migrated before", books),
      isEarlier: true)
  }

  /// In the process that coordinates the store.
  ///
  /// A commit that was cut off comes to its end first, with the clone and the output that it began with. Of the
  /// state that the store still has it is the result; else it is told of, and a further snapshot is made.
  func migrateSnapshot(
    _ store: FoundStore, _ task: StoreTask, output: FilePath, policies: PolicyRegistry,
    record: @escaping @Sendable (MigrationResult) throws -> Void,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    let folder = snapshotFolder(of: store)
    let directory = RunDirectory(folder.appending("run"))
    var request = request(for: store)
    var place = output
    var earlier: [String] = []
    let clone: StoreClone
    do {
      clone = try await onOwnThread { try StoreClone(of: store.path, in: folder) }
      let isFixed = request.output != nil
      let journal = try CommitJournal.read(in: directory)
      let begun = try journal.map { try clone.begun($0, in: folder) }
      if let journal, begun?.store == clone.store,
        !isFixed || FilePath(journal.store).isSamePlace(as: output)
      {
        place = FilePath(journal.store)
      } else {
        if let journal, let begun {
          let leases = [task.lease, task.permit].compactMap { $0 }
          try await finishCommit(of: journal, begun.store, in: directory, leases) { result in
            var result = begun.named(result, of: store.path, at: FilePath(journal.store))
            result.isOfEarlierCommit = true
            try record(result)
            earlier = result.earlierCommitNotes
          }
        }
        if !isFixed { place = try Self.unusedPath(output) }
      }
      try clone.removeOthers(in: folder)
    } catch {
      return MigrationResult(failing: store.path.string, with: error)
    }
    (request.store, request.output) = (clone.store, place)
    let (snapshot, earlierNotes) = (place, earlier)
    @Sendable func named(_ result: MigrationResult) -> MigrationResult {
      var result = clone.named(result, of: store.path, at: snapshot)
      result.notes = earlierNotes + result.notes
      return result
    }
    let result = await StoreRun(
      request, directory: directory,
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

  /// Clones a store, or takes the clone of this state that is there already.
  init(of original: FilePath, in folder: FilePath) throws {
    let files = StoreFiles(original)
    try DurableFile.makeFolder(folder)
    try Folder(folder).checkPrivate()
    let links = folder.appending("external")
    let (store, identity) = try Self.clone(files, in: folder, externalTo: links)
    // What is made of the clone takes its rights: the folder keeps others out meanwhile.
    let lost = try DurableFile.copyRights(ofFile: original, toWritable: store)
    let target = StoreFiles(store).externalDataFolder
    try Self.link(links, into: target)
    (self.store, self.identity) = (store, identity.name)
    // What somebody makes beside the store is their own.
    lostGroup = LostRights(group: lost.group).ifAny
  }

  /// Clones of other states go, once no commit is of one of them.
  func removeOthers(in folder: FilePath) throws {
    for name in try DurableFile.names(in: folder)
    where name.hasPrefix(Self.prefix) && folder.appending(name) != store {
      try DurableFile.removeTree(folder.appending(name))
    }
  }

  private static let prefix = "store-"

  /// The clone that a commit began with: the one that it takes external data from, which may be gone. Where it takes
  /// none, nothing of the commit depends on it.
  ///
  /// - Parameter new: One that may be newer than the commit.
  static func store(
    of journal: CommitJournal, in folder: FilePath, new: FilePath? = nil
  ) throws -> FilePath {
    // .store-STATE_SUPPORT/_EXTERNAL_DATA
    let end = "_SUPPORT"
    for source in journal.externalSources {
      let support = FilePath(source).removingLastComponent().lastComponent?.string ?? ""
      if support.hasPrefix("." + prefix), support.hasSuffix(end) {
        return folder.appending(support.dropFirst().dropLast(end.count) + ".sqlite")
      }
    }
    let others = try DurableFile.names(in: folder).filter {
      $0.hasPrefix(prefix) && $0.hasSuffix(".sqlite") && folder.appending($0) != new
    }
    return others.min().map { folder.appending($0) } ?? new ?? folder.appending(prefix)
  }

  /// The clone that a commit began with, where this one may be of a later state.
  func begun(_ journal: CommitJournal, in folder: FilePath) throws -> StoreClone {
    var clone = self
    clone.store = try Self.store(of: journal, in: folder, new: store)
    clone.identity = String((clone.store.stem ?? "").dropFirst(Self.prefix.count))
    return clone
  }

  /// What is known of the clone's migration, as that of the store.
  func named(
    _ result: MigrationResult, of original: FilePath, at output: FilePath
  ) -> MigrationResult {
    var result = result
    result.store = original.string
    result.sourceIdentity = identity
    result.finalIdentity = nil
    guard result.verdict == .migrated else { return result }
    result.notes.append(
      "The store is in use and stays as it is. A snapshot of it was migrated to \(output).")
    if let lostGroup {
      result.notes += lostGroup.notes(of: output.string)
      var rights = result.lostRights ?? LostRights()
      rights.group = lostGroup.group
      result.lostRights = rights
    }
    return result
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
