import Foundation
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// What tasks of a cluster have done and no start of the run has taken over, for a command that is not a
/// run: nobody follows them yet, the start that did died, or was stopped while they still ended.
///
/// The ledger is told what became of their stores, so far. The folders stay, and the next start of the run
/// takes them over as ever: what the ledger has it is not told again.
struct LeftResults {
  private let folders: [BundleFolder]
  private let places: PipelinePlaces

  /// Those of the pipeline's own arrays, for whoever holds the lock of the state folder: no coordinator is
  /// there, and tasks may still be at work.
  init(of places: PipelinePlaces) throws {
    self.places = places
    let file = FilePath(places.owner.file)
    folders = try BundleFolder.folders(in: places.state.absolute).filter { folder in
      try !folder.markers().results.isEmpty && folder.otherPipeline(than: file) == nil
    }
  }

  var isEmpty: Bool { folders.isEmpty }

  /// - Throws: ``ClusterError/underWay(state:arrays:)`` where a task may still be about to say what it has
  ///   committed.
  func requireEnded() throws {
    let alive = try folders.filter { try $0.isAlive() }.map(\.name)
    guard alive.isEmpty else {
      throw ClusterError.underWay(state: BundleFolder.all(in: places.state).string, arrays: alive)
    }
  }

  /// - Throws: ``ClusterError/badResults(path:offset:)``; ``ClusterError/unownedResults(state:array:)`` where
  ///   nobody can tell which run they are of.
  func add(to ledger: Ledger) throws {
    for folder in folders {
      let results = try folder.lastingResults()
      if results.isEmpty { continue }
      guard let array = try? ClusterArray(at: folder) else {
        throw ClusterError.unownedResults(
          state: BundleFolder.all(in: places.state).string, array: folder.name)
      }
      let known = array.storesByPath
      var migrated: Set<String> = []
      if results.contains(where: { $0.end.whole.verdict == .sameModel }) {
        try ledger.forEachStore(of: array.header.run) { attempt, _ in
          if attempt.verdict == MigrationResult.Verdict.migrated.rawValue {
            migrated.insert(attempt.store)
          }
        }
      }
      for said in results {
        let line = array.header.placed(said)
        guard let store = known[FilePath(line.store)] else { continue }
        let result = line.end.whole
        // The run has migrated it, and an application has written to it since.
        if result.verdict == .sameModel, migrated.contains(store.path.string) { continue }
        let facts = StoreFacts(
          store: store, started: line.started, mark: line.mark, host: line.host)
        let run = result.committingRun(array.header.run, of: places.owner)
        try ledger.add(LedgerAttempt(result, facts, run: run, ended: line.ended))
        if let backup = try LedgerBackup(result, of: store, run: run, at: line.ended) {
          try ledger.add(backup.notLater(than: Date().timeIntervalSince1970))
        }
      }
    }
  }

  /// The states in which tasks have left the pipeline's stores. What cannot be read has left none.
  ///
  /// - Parameter settings: ``PipelineRun/settingsDigest()``.
  func finalIdentities(settings: String) -> [FilePath: String] {
    var identities: [FilePath: String] = [:]
    for folder in folders {
      guard let array = try? ClusterArray(at: folder),
        SettingsDigest.areSame(array.header.settings, settings),
        let results = try? folder.lastingResults()
      else { continue }
      for line in results.map(array.header.placed) {
        identities[FilePath(line.store)] = line.end.finalIdentity
      }
    }
    return identities
  }
}
