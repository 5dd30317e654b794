import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitWorker
import SystemPackage

// Private copies of stores that were in use, where the process that made one ended before it could remove it.
extension PipelineRun {
  static let snapshotSuffix = "-snapshot"

  /// Where a snapshot of a store is migrated.
  func snapshotFolder(of store: FoundStore) -> FilePath {
    FilePath(directory(of: store).path.string + Self.snapshotSuffix)
  }

  /// Removes the private copies that no start goes on with: a copy of a store is worth something only while the
  /// store is pending. For the end of a start, once nobody works on a store. What is in the way is said, and is in
  /// the way of nothing else.
  func removeLeftSnapshots(_ findings: StoreSearch.Findings, _ setting: Setting) async {
    let stores = state.appending("stores")
    do {
      let left = try DurableFile.names(in: stores).filter {
        $0.hasSuffix(Self.snapshotSuffix) && StateFolder.isOwn($0)
      }
      if left.isEmpty { return }
      let isGoneKnown = findings.unreadable.isEmpty
      let ended = Set(
        setting.outcomes.standings.lazy.filter { $0.verdict != "pending" }.map {
          FilePath($0.store)
        })
      var kept: Set<String> = []
      var known: Set<String> = []
      for store in findings.all {
        let name = snapshotFolder(of: store).lastComponent?.string ?? ""
        known.insert(name)
        if !ended.contains(store.path) { kept.insert(name) }
      }
      for name in left where !kept.contains(name) && (isGoneKnown || known.contains(name)) {
        await removeSnapshot(stores.appending(name), setting)
      }
    } catch {
      observe(.warning("\(stores) cannot be looked through for copies of stores: \(error)"))
    }
  }

  private func removeSnapshot(_ folder: FilePath, _ setting: Setting) async {
    let directory = RunDirectory(folder.appending("run"))
    do {
      if try FileLock.isHeld(at: directory.lock) { return }
      // What it has put beside the store becomes whole, or goes.
      if let journal = try CommitJournal.read(in: directory) {
        let clone = try StoreClone.store(of: journal, in: folder)
        try await finishCommit(of: journal, clone, in: directory, [setting.lease.token]) { _ in }
      }
      try DurableFile.removeTree(folder)
    } catch {
      observe(
        .warning(
          "\(folder) has a private copy of a store and is needed no more. It could not be removed: \(error) "
            + "The next run tries again."))
    }
  }

  /// Brings the commit of a snapshot to its end.
  ///
  /// - Parameter record: Called with what the commit did, unless it was taken back.
  func finishCommit(
    of journal: CommitJournal, _ clone: FilePath, in directory: RunDirectory,
    _ leases: [LeaseToken], record: (MigrationResult) throws -> Void
  ) async throws {
    var request = template
    (request.store, request.output) = (clone, FilePath(journal.store))
    var settings = StoreRun.Settings(pool: pool)
    settings.leases = leases
    // A process that was killed may be about to end.
    settings.lockPatienceSeconds = 10
    _ = try await StoreRun(request, directory: directory, settings: settings)
      .finishCommit(record: record)
  }
}
