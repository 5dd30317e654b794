import GodwitDurableFiles
import GodwitLedger
import SystemPackage

// Which backups.
extension Rollback {
  func selected(
    _ ledger: Ledger, _ summary: inout Summary
  ) throws -> (backups: [LedgerBackup], missing: [End]) {
    var backups: [LedgerBackup] = []
    if !selection.stores.isEmpty, selection.run == nil {
      for store in selection.stores {
        let path = store.resolvingFolders.string
        if let backup = try ledger.backups(of: path).first(where: { $0.kind == .source }) {
          backups.append(backup)
        }
      }
    } else {
      let run = try selection.run.map { try ledger.run(named: $0) } ?? ledger.lastRunThatMigrated()
      guard let run else { return ([], []) }
      summary.run = run.name
      let wanted = Set(selection.stores.map(\.resolvingFolders.string))
      try ledger.forEachBackup(ofRun: run.name) { backup in
        // One that was put back before needs nothing more, unless it is asked for by name.
        guard backup.kind == .source,
          wanted.isEmpty ? backup.state == .kept : wanted.contains(backup.store)
        else { return }
        backups.append(backup)
      }
    }
    if let version = selection.version {
      let versions = try versions(of: Set(backups.map(\.run)), ledger)
      backups.removeAll { versions[$0.run + "\n" + $0.store] != version }
    }
    let found = Set(backups.map(\.store))
    let missing = selection.version == nil ? selection.stores.map(\.resolvingFolders.string) : []
    return (
      backups,
      missing.filter { !found.contains($0) }.map { store in
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
}
