import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

// Stores that are not there any more. Nothing is replaced, so no journal is needed: every step finds what
// an earlier call has done, and the main file gets its name last.
extension Rollback {
  /// Why a backup cannot be put where no store is; nil where it can.
  ///
  /// What is left of the store that is gone would be taken for a part of the one that is put back. A log
  /// that is byte for byte the backup's is one that a call which was cut off has put there.
  func remains(_ backup: StoreFiles, _ store: StoreFiles) throws -> RunReport.Reason? {
    var left: [FilePath] = []
    let places: [(FilePath, FilePath?)] = [
      (store.store, nil), (store.wal, backup.wal), (store.journal, backup.journal),
      (store.shm, nil),
    ]
    for (path, own) in places where try FileKind(at: path) != .none {
      if let own, try Self.areEqual(path, own) { continue }
      left.append(path)
    }
    for name in try ExternalDataFolder.names(in: backup.externalDataFolder) {
      let path = store.externalDataFolder.appending(name)
      guard try FileKind(at: path) != .none else { continue }
      if try !Self.areEqual(path, backup.externalDataFolder.appending(name)) { left.append(path) }
    }
    guard !left.isEmpty else { return nil }
    let names = left.prefix(5).map(\.string).joined(separator: ", ")
    return RunReport.Reason(
      reason: "remains",
      message:
        "The store at \(store.store) is gone, and this is left of it: \(names)"
        + (left.count > 5 ? ", and \(left.count - 5) more" : "")
        + ". Beside the backup it would be taken for a part of that. Nothing was put back. Move it away, "
        + "and roll back again. " + backup.handCopy(to: store))
  }

  /// Puts all of a backup where no store is: external data and logs first, since a main file without
  /// them would be another store.
  func putBackWhole(_ task: RestoreTask) throws -> End {
    let (backup, store) = (StoreFiles(FilePath(task.backup)), StoreFiles(FilePath(task.store)))
    if let reason = try remains(backup, store) {
      return End(item: Item(store: task.store, verdict: .refused, reasons: [reason]))
    }
    try backup.checkKinds()
    try backup.checkExternalDataKinds()
    for name in try ExternalDataFolder.names(in: backup.externalDataFolder) {
      let path = store.externalDataFolder.appending(name)
      try DurableFile.removeUnfinished([path])
      guard try FileKind(at: path) == .none else { continue }
      try ExternalDataFolder.make(
        store.externalDataFolder, like: backup.externalDataFolder, of: backup.store)
      try DurableFile.copy(backup.externalDataFolder.appending(name), to: path)
    }
    // No search takes a name like this for a store's.
    let folder = store.store.removingLastComponent()
    let waiting = folder.appending(
      ".\(store.store.lastComponent?.string ?? "").godwit-\(task.name)")
    try DurableFile.removeIfPresent(waiting)
    try DurableFile.removeUnfinished([waiting, store.wal, store.journal])
    let lost = try DurableFile.copy(backup.store, to: waiting)
    for (log, path) in [(backup.wal, store.wal), (backup.journal, store.journal)] {
      guard let mark = try FileMark(log), mark.size > 0, try FileMark(path) == nil else { continue }
      try DurableFile.copy(log, to: path)
    }
    try leases.requireCurrent(store: store.store)
    do {
      try DurableFile.renameNew(waiting, to: store.store)
    } catch DurabilityError.alreadyExists {
      try DurableFile.removeIfPresent(waiting)
      throw CommitError.sourceChanged(store: store.store)
    }
    var end = try end(task)
    end.item.reasons += lost.notes(of: task.store, source: "The backup").map {
      RunReport.Reason(reason: RunReport.Reason.note, message: $0)
    }
    return end
  }

  /// Goes on where ``putBackWhole(_:)`` was cut off.
  ///
  /// - Returns: Nil where a store is there that is not the backup, or the backup is not as it was.
  func finishWhole(_ task: RestoreTask, _ known: LedgerBackup) throws -> End? {
    let (backup, store) = (StoreFiles(FilePath(task.backup)), StoreFiles(FilePath(task.store)))
    guard let found = try backup.backupMark(), found.mark.matches(known.marks),
      try backup.holds(known.marks)
    else { return nil }
    guard try FilePresence.isThere(store.store) else { return try putBackWhole(task) }
    guard try Self.areEqual(store.store, backup.store), try Self.areEqual(store.wal, backup.wal)
    else { return nil }
    return try end(task)
  }

  /// Whether two files hold the same bytes, or hold none. One that is empty says as much as none.
  private static func areEqual(_ a: FilePath, _ b: FilePath) throws -> Bool {
    func size(_ path: FilePath) throws -> Int64 {
      if try FileKind(at: path) == .none { return 0 }
      // What is no regular file is like nothing else.
      return try FileMark(path)?.size ?? -1
    }
    let (first, second) = (try size(a), try size(b))
    guard first == second, first >= 0 else { return false }
    return try first == 0 || ExternalDataFolder.areEqual(a, b)
  }
}
