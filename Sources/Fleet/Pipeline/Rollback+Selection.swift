import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

// Which backups.
extension Rollback {
  /// What is to be undone of a store: by one backup, or by several of one run, which migrated it once and,
  /// after its destination had changed, again.
  struct Undoing: Sendable {
    /// The oldest first, and at least one.
    var backups: [LedgerBackup]
    /// Whether one that is older was removed: no backup tells what the store was before the run.
    var isCutShort = false
    /// Whether no later backup of the store is still to be put back, whichever run's.
    var isLast = true

    /// What is put back.
    var oldest: LedgerBackup { backups[0] }
    /// Says in which state the store must be.
    var newest: LedgerBackup { backups[backups.count - 1] }
    var store: String { oldest.store }
  }

  /// - Parameter undone: The run that an interrupted rollback was undoing. Unless something is asked for by
  ///   name, that is brought to its end, and no earlier run is undone as well.
  /// - Returns: One for each store.
  /// - Throws: `LedgerError.noVersion` for a version that no store was of.
  func selected(
    _ ledger: Ledger, undoing undone: String?, _ summary: inout Summary
  ) throws -> (stores: [Undoing], missing: [End]) {
    if let version = selection.version, version != Selection.nothing.version {
      let versions = try ledger.sourceVersions()
      guard versions.contains(where: version.isSameBytes) else {
        throw LedgerError.noVersion(path: places.ledger, name: version, known: versions)
      }
    }
    var known: Set<FilePath> = []
    let wanted = selection.stores.filter { known.insert($0).inserted }
    let stores: [Undoing]
    if let name = selection.run {
      summary.run = try ledger.run(named: name).name
      stores = try undoings(of: name, wanted, ledger)
    } else if !wanted.isEmpty {
      let runs = Set(try ledger.runs().map(\.name))
      stores = try wanted.compactMap { try newest(of: $0.string, by: runs, ledger) }
    } else {
      (summary.run, stores) = try last(undone, ledger)
    }
    let found = Set(stores.map { FilePath($0.store) })
    let missing = selection.version == nil ? wanted.filter { !found.contains($0) } : []
    return (
      stores,
      missing.map { store in
        End(
          item: Item(
            store: store.string, verdict: .refused,
            reasons: [
              RunReport.Reason(
                reason: "no-backup", message: "The ledger names no backup of \(store).")
            ]))
      }
    )
  }

  /// The last run that is not undone, and what would undo it.
  private func last(_ undone: String?, _ ledger: Ledger) throws -> (run: String?, [Undoing]) {
    let runs = try undone.map { [$0] } ?? ledger.runsToRollBack().map(\.name)
    for run in runs {
      let stores = try undoings(of: run, [], ledger)
      if !stores.isEmpty { return (run, stores) }
    }
    return (undone, [])
  }

  /// What a run put aside and nobody has put back, also where it was removed, so that it is refused by
  /// name; or of these stores, whatever became of it.
  private func undoings(
    of run: String, _ wanted: [FilePath], _ ledger: Ledger
  ) throws -> [Undoing] {
    let wanted = Set(wanted)
    var known: Set<FilePath> = []
    var stores: [String] = []
    try ledger.forEachBackup(ofRun: run, all: true) { backup in
      guard backup.kind == .source,
        wanted.isEmpty ? backup.state != .restored : wanted.contains(FilePath(backup.store))
      else { return }
      if known.insert(FilePath(backup.store)).inserted { stores.append(backup.store) }
    }
    return try stores.compactMap { store in
      // In the order in which they were written down, which no clock changes.
      let known = try Array(ledger.backups(of: store).filter { $0.kind == .source }.reversed())
      let own = known.filter { $0.run == run }
      var backups = own.filter(\.isToPutBack)
      if backups.isEmpty {
        let isUndone = try ledger.isUndone(run, of: store)
        if wanted.isEmpty && isUndone { return nil }
        // One of two migrations may be undone: what is missing is the backup of the other.
        let last = isUndone ? nil : own.last { $0.state != .restored }
        backups = (last ?? own.last).map { [$0] } ?? []
      }
      // What is between those that can be read is not known.
      if let unreadable = own.first(where: { $0.state == .unreadable }) { backups = [unreadable] }
      guard let oldest = backups.first else { return nil }
      var undoing = Undoing(backups: backups)
      undoing.isLast = known.last(where: \.isToPutBack)?.path == undoing.newest.path
      let removed = own.prefix { $0.path != oldest.path }.filter(\.isGone)
      if !removed.isEmpty {
        // One that was put back before it was removed is of the same version.
        let version = try ledger.sourceVersion(of: oldest)
        undoing.isCutShort = try removed.contains {
          try ledger.sourceVersion(of: $0) != version
        }
      }
      return try ofVersion(undoing, ledger)
    }
  }

  /// The newest backup of a store that was not put back yet; else the newest, which says what became of
  /// it.
  private func newest(
    of store: String, by runs: Set<String>, _ ledger: Ledger
  ) throws -> Undoing? {
    let known = try ledger.backups(of: store).filter { $0.kind == .source }
    let backups = try known.filter { runs.contains($0.run) }.map { backup in
      var backup = backup
      // It was put back before it was removed.
      if backup.isGone, try ledger.isUndone(backup.run, of: store, leaving: backup.identity) {
        backup.state = .restored
      }
      return backup
    }
    guard let newest = backups.first(where: { $0.state != .restored }) ?? backups.first else {
      return nil
    }
    var undoing = Undoing(backups: [newest])
    undoing.isLast = known.first(where: \.isToPutBack)?.path == newest.path
    return try ofVersion(undoing, ledger)
  }

  /// Nil for a store that was not of the selection's version before.
  private func ofVersion(_ undoing: Undoing, _ ledger: Ledger) throws -> Undoing? {
    guard let version = selection.version else { return undoing }
    let source = try ledger.sourceVersion(of: undoing.oldest)
    return source?.isSameBytes(as: version) == true ? undoing : nil
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

  /// Why the oldest of several backups must not take the place of what the newest led to; nil where
  /// nobody wrote to the store between them.
  func breach(_ undoing: Undoing) throws -> RunReport.Reason? {
    for (earlier, later) in zip(undoing.backups, undoing.backups.dropFirst()) {
      let files = StoreFiles(FilePath(later.path))
      guard later.hasOwnName, let found = try files.backupMark(), found.mark.matches(later.marks)
      else {
        return RunReport.Reason(
          reason: "backup-changed",
          message:
            "Run \(undoing.oldest.run) migrated \(undoing.store) more than once, and \(files.store) "
            + "is missing, or is not as the run left it: nobody can tell whether an application wrote to "
            + "the store in between. Nothing was replaced. "
            + StoreFiles(FilePath(earlier.path)).handCopy(to: StoreFiles(FilePath(undoing.store))))
      }
      guard try isAsLeft(files, files.identity(), by: earlier) else {
        return RunReport.Reason(
          reason: "changed-since",
          message:
            "Run \(undoing.oldest.run) migrated \(undoing.store) more than once, and an application "
            + "wrote to it in between, so putting \(earlier.path) back would lose the change. Nothing "
            + "was replaced. `godwit rollback PIPELINE --store \(undoing.store)` goes back to "
            + "\(undoing.newest.path).")
      }
    }
    return nil
  }
}

extension LedgerBackup {
  /// Whether it may still be put back. Of one that a removal was killed in, the mark says whether it is
  /// whole.
  var isToPutBack: Bool { state == .kept || state == .pruning }
  /// Whether its files are not there any more.
  var isGone: Bool { state == .pruned || state == .missing }
}

extension StoreFiles {
  /// How a person puts a backup back: all of it that is there, each file under its new name.
  func handCopy(to store: StoreFiles) -> String {
    var copies: [String] = []
    if (try? Self.isDatabase(self.store)) == false {
      return "\(self.store) is not a database any more."
    }
    for (from, to) in [(self.store, store.store), (wal, store.wal), (journal, store.journal)]
    where FilePresence(of: from) == .there {
      copies.append("\(from) to \(to)")
    }
    if FilePresence(of: externalDataFolder) == .there {
      copies.append("what is in \(externalDataFolder) to \(store.externalDataFolder)")
    }
    return copies.isEmpty
      ? "Nothing of it is there."
      : "To restore it by hand, copy \(copies.joined(separator: ", and "))."
  }
}
