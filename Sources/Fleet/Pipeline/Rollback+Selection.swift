import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

// Which backups.
extension Rollback {
  /// - Parameter undone: The run that an interrupted rollback was undoing. Unless something is asked for by
  ///   name, that is brought to its end, and no earlier run is undone as well.
  func selected(
    _ ledger: Ledger, undoing undone: String?, _ summary: inout Summary
  ) throws -> (backups: [LedgerBackup], missing: [End]) {
    let wanted = selection.stores.map(\.string)
    let backups: [LedgerBackup]
    if let name = selection.run {
      summary.run = try ledger.run(named: name).name
      backups = try self.backups(of: name, wanted, ledger)
    } else if !wanted.isEmpty {
      let runs = Set(try ledger.runs().map(\.name))
      backups = try wanted.compactMap { try newestBackup(of: $0, by: runs, ledger) }
    } else {
      (summary.run, backups) = try lastBackups(undone, ledger)
    }
    let found = Set(backups.map(\.store))
    let missing = selection.version == nil ? wanted.filter { !found.contains($0) } : []
    return (
      backups,
      missing.map { store in
        End(
          item: Item(
            store: store, verdict: .refused,
            reasons: [
              RunReport.Reason(
                reason: "no-backup", message: "The ledger names no backup of \(store).")
            ]))
      }
    )
  }

  /// The last run that has something to put back, and what.
  private func lastBackups(
    _ undone: String?, _ ledger: Ledger
  ) throws -> (run: String?, [LedgerBackup]) {
    let runs = try undone.map { [$0] } ?? ledger.runsToRollBack().map(\.name)
    for run in runs {
      let backups = try backups(of: run, [], ledger)
      if !backups.isEmpty { return (run, backups) }
    }
    return (undone, [])
  }

  /// What a run put aside and nobody has put back, or of these stores, whatever became of it.
  private func backups(
    of run: String, _ wanted: [String], _ ledger: Ledger
  ) throws -> [LedgerBackup] {
    let stores = Set(wanted)
    var backups: [LedgerBackup] = []
    try ledger.forEachBackup(ofRun: run) { backup in
      guard backup.kind == .source,
        stores.isEmpty ? backup.state != .restored : stores.contains(backup.store)
      else { return }
      backups.append(backup)
    }
    return try ofVersion(backups, ledger)
  }

  /// The newest backup of a store that was not put back yet; else the newest, which says what became of
  /// it.
  private func newestBackup(
    of store: String, by runs: Set<String>, _ ledger: Ledger
  ) throws -> LedgerBackup? {
    let backups = try ledger.backups(of: store)
      .filter { $0.kind == .source && runs.contains($0.run) }
    let newest = backups.first { $0.state != .restored } ?? backups.first
    return try ofVersion(newest.map { [$0] } ?? [], ledger).first
  }

  /// Of these backups, those of stores that were of the selection's version before.
  private func ofVersion(_ backups: [LedgerBackup], _ ledger: Ledger) throws -> [LedgerBackup] {
    guard let version = selection.version else { return backups }
    let versions = try versions(of: Set(backups.map(\.run)), ledger)
    return backups.filter { versions[$0.run + "\n" + $0.store] == version }
  }

  /// The versions that stores were of before, by run and store.
  private func versions(of runs: Set<String>, _ ledger: Ledger) throws -> [String: String] {
    var versions: [String: String] = [:]
    for run in runs {
      try ledger.forEachStore(of: run) { attempt, _ in
        versions[run + "\n" + attempt.store] = attempt.source
      }
    }
    return versions
  }

  /// Whether a store is in the state in which the commit left it: by its files, or byte for byte, as it
  /// is after a later run was rolled back.
  func isAsLeft(
    _ store: StoreFiles, _ identity: StoreIdentity, by backup: LedgerBackup
  ) throws -> Bool {
    if identity.name == backup.identity { return true }
    guard let left = backup.digest, !identity.hasPendingChanges else { return false }
    return try store.digest(inState: identity.name) == left
  }
}
