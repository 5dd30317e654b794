import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Removes backups that are older, or together larger, than they may be.
///
/// A backup goes only where it is not needed and certain to be ours:
///
/// - its files are those that the ledger names, by inode, size and modification time;
/// - its store lies at its path in a root of the pipeline, and is as godwit left it; or an application
///   wrote to it since, its metadata name the same store, and its structure is sound. Every file of
///   external data that its rows refer to is there, and the one that the backup has under its name. What is
///   missing, damaged, being written to, another store or an older one keeps its backup;
/// - what is there came out of what the backup holds: no run since then has migrated another store, or an
///   older one, that somebody put in the store's place, see `LedgerStates`;
/// - no rollback of its store is under way.
///
/// What cannot be looked at is neither removed nor forgotten.
package struct BackupPruning: Sendable {
  /// What became of a backup that was to go: a line of `--json`.
  package struct Item: Codable, Sendable, Equatable {
    package private(set) var event = "backup"
    package var path: String
    package var store: String
    package var run: String
    package var bytes: Int64
    /// When it was made, in seconds since 1970-01-01 UTC.
    package var made: Double
    /// Whether it was removed, or would be.
    package var pruned: Bool
    /// Why it was kept: `backup-changed`, `backup-unreachable`, `store-missing`, `store-damaged`,
    /// `store-in-use`, `other-store`, `other-version`, `outside-roots`, `link`, `rollback`, `disk-full`;
    /// or `backup-missing`: somebody removed it, and it is no longer listed.
    package var reason: String?
    package var message: String?
  }

  /// The last line of `--json`.
  package struct Summary: Codable, Sendable, Equatable {
    package private(set) var event = "summary"
    package var pruned = 0
    package var prunedBytes: Int64 = 0
    /// How many were to go by their age or size, and are kept for another reason.
    package var kept = 0
    /// How many somebody else had removed: they are no longer listed.
    package var missing = 0
    /// How many are left, those that are kept included.
    package var left = 0
    package var leftBytes: Int64 = 0
    /// How many look too old by the clock, and stay until later starts have shown it.
    package var waiting = 0

    package init() {}
  }

  let retention: BackupRetention
  let places: PipelinePlaces
  let reach: StoreReach
  let models: GivenModels
  let now: Double
  /// When the start began that removes them.
  let begun: Double
  let isDry: Bool

  /// - Parameters:
  ///   - pipeline: Whose stores may be looked at.
  ///   - models: Those among which that of a store is found.
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - begun: When the start began that removes them; nil for now.
  package init(
    _ retention: BackupRetention, _ pipeline: Pipeline, models: GivenModels,
    places: PipelinePlaces, now: Double, begun: Double? = nil, isDry: Bool = false
  ) {
    self.models = models
    self.retention = retention
    self.places = places
    reach = StoreReach(pipeline)
    self.now = now
    self.begun = begun ?? now
    self.isDry = isDry
  }

  /// For the holder of the state folder's lock.
  package func run(_ ledger: Ledger, observe: (Item) -> Void) throws -> Summary {
    var summary = Summary()
    let all = try ledger.backupTotals()
    (summary.left, summary.leftBytes) = (all.count, all.bytes)
    // There may be a great many, of which only those that may go are read.
    var places: [LedgerBackup.Place] = []
    try ledger.forEachBackupPlace(at: now) { places.append($0) }
    // Nothing goes for bytes that somebody has removed.
    var gone: Set<Int64> = []
    if let most = retention.maxBytes, all.bytes > most {
      for place in places {
        guard let backup = try ledger.backup(place.key),
          FilePresence(of: FilePath(backup.path)) == .absent
        else { continue }
        gone.insert(place.key)
        summary.leftBytes = summary.leftBytes.added(-backup.bytes)
      }
    }
    var group: [LedgerBackup] = []
    // What is left where all of the group can go.
    var expected = summary.leftBytes
    func decideGroup() throws {
      try prune(group, ledger, &summary, observe)
      group = []
      expected = summary.leftBytes
    }
    let ages = try ledger.backupAges(
      at: now, begun: begun, keep: retention.keepSeconds ?? 0)
    for place in places {
      let looksOld = looksOld(place)
      let isOld = looksOld && isShown(place, ages)
      var isToGo: Bool {
        isOld || place.isBeingRemoved || retention.maxBytes.map { expected > $0 } ?? false
      }
      // What was to go may have to stay, and others go for it.
      if !isToGo, !group.isEmpty { try decideGroup() }
      if looksOld, !isToGo { summary.waiting += 1 }
      guard isToGo, var backup = try ledger.backup(place.key) else { continue }
      if gone.contains(place.key) { backup.bytes = 0 }
      group.append(backup)
      expected = expected.added(-backup.bytes)
      if group.count == Self.groupSize { try decideGroup() }
    }
    if !group.isEmpty { try decideGroup() }
    return summary
  }

  /// By the clock of this machine, and that of the start that made it.
  private func looksOld(_ place: LedgerBackup.Place) -> Bool {
    // One of a time that is still to come is of a clock that was ahead.
    retention.keepSeconds.map { place.made < now - $0 || place.made > now } ?? false
  }

  /// Whether the time has passed, and no clock has jumped over it. Where backups are not kept at all there is
  /// nothing to be shown.
  private func isShown(_ place: LedgerBackup.Place, _ ages: BackupAges) -> Bool {
    guard let keep = retention.keepSeconds, keep > 0 else { return true }
    return ages.seconds(of: place).map { $0 > keep } ?? false
  }

  /// 256: what is written to the ledger at once.
  private static let groupSize = 256

  /// What becomes of a backup that is to go.
  enum Decision {
    case remove
    /// It stays.
    case keep(reason: String, message: String)
    /// Nothing of it is there.
    case forget(message: String)

    var isRemoval: Bool {
      if case .remove = self { true } else { false }
    }
  }

  private func prune(
    _ group: [LedgerBackup], _ ledger: Ledger, _ summary: inout Summary,
    _ observe: (Item) -> Void
  ) throws {
    var decisions = try group.map { backup in
      do {
        return (backup, try decide(backup, ledger))
      } catch let error as DurabilityError {
        return (
          backup,
          .keep(
            reason: "backup-unreachable", message: "\(backup.path) cannot be looked at: \(error)")
        )
      }
    }
    let failure = try isDry ? nil : carryOut(&decisions, ledger)
    for (backup, decision) in decisions {
      var item = Item(
        path: backup.path, store: backup.store, run: backup.run, bytes: backup.bytes,
        made: backup.made, pruned: false)
      switch decision {
      case .remove:
        item.pruned = true
        summary.pruned += 1
        summary.prunedBytes = summary.prunedBytes.added(backup.bytes)
      case .keep(let reason, let message):
        (item.reason, item.message) = (reason, message)
        summary.kept += 1
      case .forget(let message):
        (item.reason, item.message) = ("backup-missing", message)
        summary.missing += 1
      }
      if case .keep = decision {
      } else {
        summary.left -= 1
        summary.leftBytes = summary.leftBytes.added(-backup.bytes)
      }
      observe(item)
    }
    if let failure { throw failure }
  }

  /// - Returns: Why those that were to go and stay could not be removed; nil where nothing failed.
  private func carryOut(
    _ decisions: inout [(LedgerBackup, Decision)], _ ledger: Ledger
  ) throws -> (any Error)? {
    let all = decisions.indices.filter { decisions[$0].1.isRemoval }
    let full = DurabilityError.failed(call: "write", path: ledger.path, .noSpace)
    var going = all[...]
    // A crash from here on leaves backups of which a part is gone: the next call removes the rest.
    var room = Self.mostUnnoted
    while !going.isEmpty {
      do {
        try ledger.writing {
          for place in going {
            try ledger.set(.pruning, ofBackup: decisions[place].0.path, at: now)
          }
        }
        break
      } catch let error as SQLiteError where error.isOutOfSpace {
        // The volume has no room for the note, and what goes makes some. A crash here leaves a backup that
        // is not whole, and is neither put back nor removed by itself.
        guard room > 0, let first = going.popFirst() else {
          for place in going {
            decisions[place].1 = .keep(
              reason: "disk-full",
              message:
                "\(decisions[place].0.path) stays: \(ledger.path) cannot be written, since its volume is "
                + "full.")
          }
          return full
        }
        room -= 1
        remove(&decisions[first])
      }
    }
    for place in going { remove(&decisions[place]) }
    let tried = Set(all)
    let noted = decisions.indices.filter { place in
      if case .forget = decisions[place].1 { true } else { tried.contains(place) }
    }
    guard !noted.isEmpty else { return nil }
    do {
      try ledger.writing {
        for (backup, decision) in noted.map({ decisions[$0] }) {
          if case .keep = decision {
            // Where nothing of it is gone, it can still be put back.
            if backup.state != .pruning, (try? Self.isWhole(backup)) == true {
              try ledger.set(backup.state, ofBackup: backup.path, at: backup.changed)
            }
          } else {
            try ledger.set(
              decision.isRemoval ? .pruned : .missing, ofBackup: backup.path, at: now)
          }
        }
      }
    } catch let error as SQLiteError where error.isOutOfSpace {
      // The next call finds them gone.
      return full
    }
    return nil
  }

  /// 16: so many are removed without a note on a full volume, before it is taken for one of which nothing
  /// that goes makes room.
  private static let mostUnnoted = 16

  private func remove(_ decision: inout (LedgerBackup, Decision)) {
    do {
      try Self.remove(decision.0)
    } catch {
      decision.1 = .keep(
        reason: "backup-unreachable",
        message: "\(decision.0.path) could not be removed: \(error)")
    }
  }

  private static func isWhole(_ backup: LedgerBackup) throws -> Bool {
    try StoreFiles(FilePath(backup.path)).backupMark()?.mark.matches(backup.marks) ?? false
  }

  /// - Parameter jumped: Seconds between this start and the one before, where that is why.
  package static func waitingNote(_ count: Int, jumped: Double? = nil) -> String {
    (count == 1 ? "1 backup looks too old and stays" : "\(count) backups look too old and stay")
      + ", since a clock may have been wrong"
      + (jumped.map { ": the start before this one was \(Int($0 / 86_400)) d ago" } ?? "")
      + ". Later starts show how old they are. Set the clock if it is wrong."
  }

  static func remove(_ backup: LedgerBackup) throws {
    let files = StoreFiles(FilePath(backup.path))
    for path in [files.supportFolder, files.externalDataFolder] {
      if case .unreachable(let error) = FilePresence(of: path) {
        throw DurabilityError.failed(call: "lstat", path: path, error)
      }
    }
    _ = try FilePresence.isThere(files.store)
    if try FileKind(at: files.externalDataFolder) == .folder {
      for name in try DurableFile.names(in: files.externalDataFolder) {
        let path = files.externalDataFolder.appending(name)
        guard try FileMark(path) != nil else { continue }
        try DurableFile.remove(path, surviving: .processCrash)
      }
    }
    // A removal that was killed may have left the second without the first.
    for folder in [files.externalDataFolder, files.supportFolder]
    where try FileKind(at: folder) == .folder && DurableFile.allNames(in: folder).isEmpty {
      try DurableFile.removeTree(folder, surviving: .processCrash)
    }
    for path in [files.wal, files.journal, files.shm, files.store] {
      try DurableFile.removeIfPresent(path, surviving: .processCrash)
    }
    let folder = files.store.removingLastComponent()
    // Where the folder was away, nothing was removed.
    guard try !FilePresence.isThere(files.store) else {
      throw DurabilityError.unreachable(files.store, obstacle: "its folder was away for a moment")
    }
    try DurableFile.syncFolder(folder)
  }
}
