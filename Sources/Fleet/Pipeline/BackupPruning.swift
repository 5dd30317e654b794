import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Removes backups that are older, or together larger, than they may be.
///
/// A backup goes only where it is not needed and certain to be ours:
///
/// - its files are those that the ledger names, by inode, size and modification time;
/// - its store lies at its path, and is as godwit left it; or an application wrote to it since, its
///   metadata name the same store, and its structure is sound. What is missing, damaged, in use or
///   another store keeps its backup;
/// - no rollback of its store is under way.
package struct BackupPruning: Sendable {
  /// What became of a backup that was to go: a line of `--json`.
  package struct Item: Codable, Sendable, Equatable {
    package private(set) var event = "backup"
    package var path: String
    package var store: String
    package var run: String
    package var bytes: Int64
    /// Seconds since 1970-01-01 UTC.
    package var made: Double
    /// Whether it was removed, or would be.
    package var pruned: Bool
    /// Why it was kept: `backup-changed`, `store-missing`, `store-damaged`, `store-in-use`,
    /// `other-store`, `rollback`.
    package var reason: String?
    package var message: String?
  }

  /// The last line of `--json`.
  package struct Summary: Codable, Sendable, Equatable {
    package private(set) var event = "summary"
    package var pruned = 0
    package var prunedBytes: Int64 = 0
    /// To go by their age or size, and kept.
    package var kept = 0
    /// That are left, those included.
    package var left = 0
    package var leftBytes: Int64 = 0

    package init() {}
  }

  let retention: BackupRetention
  let places: PipelinePlaces
  let now: Double
  let isDry: Bool

  /// - Parameter now: Seconds since 1970-01-01 UTC.
  package init(
    _ retention: BackupRetention, places: PipelinePlaces, now: Double, isDry: Bool = false
  ) {
    self.retention = retention
    self.places = places
    self.now = now
    self.isDry = isDry
  }

  /// For the holder of the state folder's lock.
  package func run(_ ledger: Ledger, observe: (Item) -> Void) throws -> Summary {
    var summary = Summary()
    let all = try ledger.backupTotals()
    (summary.left, summary.leftBytes) = (all.count, all.bytes)
    // Only those that may go are kept in memory.
    var candidates: [LedgerBackup] = []
    var bytes = all.bytes
    try ledger.forEachBackup { backup in
      let isOld = retention.keepSeconds.map { backup.made < now - $0 } ?? false
      let isTooMuch = retention.maxBytes.map { bytes > $0 } ?? false
      guard isOld || isTooMuch || backup.state == .pruning else { return }
      candidates.append(backup)
      bytes -= backup.bytes
    }
    var start = 0
    while start < candidates.count {
      let group = candidates[start..<min(candidates.count, start + Self.groupSize)]
      start += group.count
      try prune(group, ledger, &summary, observe)
    }
    return summary
  }

  /// 256: what is written to the ledger at once.
  private static let groupSize = 256

  private func prune(
    _ group: ArraySlice<LedgerBackup>, _ ledger: Ledger, _ summary: inout Summary,
    _ observe: (Item) -> Void
  ) throws {
    var removed: [LedgerBackup] = []
    for backup in group {
      var item = Item(
        path: backup.path, store: backup.store, run: backup.run, bytes: backup.bytes,
        made: backup.made, pruned: true)
      if let (reason, message) = try reasonToKeep(backup, ledger) {
        (item.pruned, item.reason, item.message) = (false, reason, message)
        summary.kept += 1
      } else {
        removed.append(backup)
        summary.pruned += 1
        summary.prunedBytes += backup.bytes
        summary.left -= 1
        summary.leftBytes -= backup.bytes
      }
      observe(item)
    }
    guard !isDry, !removed.isEmpty else { return }
    // A crash from here on leaves backups of which a part is gone: the next call removes the rest.
    try ledger.writing {
      for backup in removed { try ledger.set(.pruning, ofBackup: backup.path, at: now) }
    }
    for backup in removed { try Self.remove(backup) }
    try ledger.writing {
      for backup in removed { try ledger.set(.pruned, ofBackup: backup.path, at: now) }
    }
  }

  static func remove(_ backup: LedgerBackup) throws {
    let files = StoreFiles(FilePath(backup.path))
    if try FileKind(at: files.externalDataFolder) == .folder {
      for name in try DurableFile.names(in: files.externalDataFolder) {
        let path = files.externalDataFolder.appending(name)
        guard try FileMark(path) != nil else { continue }
        try DurableFile.remove(path, surviving: .processCrash)
      }
      for folder in [files.externalDataFolder, files.supportFolder]
      where try FileKind(at: folder) == .folder && DurableFile.names(in: folder).isEmpty {
        try DurableFile.removeTree(folder, surviving: .processCrash)
      }
    }
    for path in [files.wal, files.journal, files.shm, files.store] {
      try DurableFile.removeIfPresent(path, surviving: .processCrash)
    }
    let folder = files.store.removingLastComponent()
    if try FileKind(at: folder) == .folder { try DurableFile.syncFolder(folder) }
  }
}

// What may go.
extension BackupPruning {
  /// Why a backup stays; nil for one that may go.
  private func reasonToKeep(
    _ backup: LedgerBackup, _ ledger: Ledger
  ) throws -> (reason: String, message: String)? {
    guard backup.hasOwnName else {
      return ("backup-changed", "\(backup.path) is not the name of a backup of \(backup.store).")
    }
    let files = StoreFiles(FilePath(backup.path))
    if backup.state != .pruning {
      guard let found = try files.backupMark() else {
        // One that somebody removed only has to be written down.
        let rest = [files.wal, files.journal, files.externalDataFolder]
        guard try rest.contains(where: { try FileKind(at: $0) != .none }) else { return nil }
        return (
          "backup-changed",
          "\(backup.path) is missing, and other files of it are there. Remove them by hand."
        )
      }
      guard found.mark == backup.marks else {
        return ("backup-changed", "\(backup.path) is not as the run left it. Remove it by hand.")
      }
    } else if let found = try files.backupMark(), found.mark.main != backup.marks.main {
      return ("backup-changed", "\(backup.path) is not as the run left it. Remove it by hand.")
    }
    let rollback = Rollback.directory(of: FilePath(backup.store), in: places.state)
    if try rollback.exists {
      return (
        "rollback", "A rollback of \(backup.store) is under way. Run `godwit rollback` again."
      )
    }
    return try Self.reasonToDistrust(FilePath(backup.store), try ledger.lastState(of: backup.store))
  }

  /// Why a store is not a good copy by itself; nil for one that is.
  static func reasonToDistrust(
    _ store: FilePath, _ last: (identity: String?, digest: String?, uuid: String?)?
  ) throws -> (reason: String, message: String)? {
    let files = StoreFiles(store)
    guard try FileMark(store) != nil else {
      return ("store-missing", "\(store) is missing: this backup may be the only copy.")
    }
    do {
      if let identity = last?.identity, try files.identity().name == identity { return nil }
      // An application's later writing: the same store, and whole.
      let inspection = try TemporaryPlace.with { folder in
        try StoreInspection(store, models: [], snapshotFolder: folder, readsRows: false)
      }
      guard inspection.isSound else {
        return ("store-damaged", "\(store) is not sound: this backup may be the only good copy.")
      }
      guard let uuid = last?.uuid, inspection.uuid == uuid else {
        return ("other-store", "\(store) is another store than the one that was backed up.")
      }
      return nil
    } catch let error as StoreError {
      if case .inUse = error {
        return ("store-in-use", "\(store) is being written to. Run again later.")
      }
      return ("store-damaged", "\(store) cannot be read: \(error)")
    } catch let error as SQLiteError {
      return ("store-damaged", "\(store) cannot be read: \(error)")
    }
  }
}

extension LedgerBackup {
  /// Whether the path is one that a commit, or a rollback, gives to a backup of the store: nothing else
  /// is ever removed or put back.
  var hasOwnName: Bool {
    let prefixes = [".godwit-backup-", ".godwit-rolled-back-"].map { store + $0 }
    guard let prefix = prefixes.first(where: path.hasPrefix), path.hasSuffix(".sqlite") else {
      return false
    }
    return !path.dropFirst(prefix.count).utf8.contains(UInt8(ascii: "/"))
  }
}

/// A private folder for the length of a look.
enum TemporaryPlace {
  static func with<Result>(_ body: (FilePath) throws -> Result) throws -> Result {
    let place = FilePath(FileManager.default.temporaryDirectory.path)
    let folder = (place.resolved ?? place).appending("godwit-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: false,
      attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    return try body(folder)
  }
}

extension PipelineRun {
  /// Removes what the pipeline's file says may go. A run does not fail because of it.
  func keepRetention(_ history: RunHistory, _ summary: inout PipelineSummary) throws {
    guard backupRetention.isLimited else { return }
    do {
      let pruned = try history.using { ledger in
        try BackupPruning(backupRetention, places: places, now: Date().timeIntervalSince1970)
          .run(ledger) { item in
            if let message = item.message { observe(.note("A backup was kept. \(message)")) }
          }
      }
      summary.prunedBackups = pruned?.pruned
    } catch {
      observe(.note("Backups could not be pruned: \(error)"))
    }
  }
}
