import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// Stores that are not there any more. Nothing is replaced, so no journal is needed: every step finds what
// an earlier call has done, and the main file gets its name last.
//
// A backup with logs is several files, and no one step puts them all there. A log that lies alone would be played
// into whatever file somebody puts beside it. So a copy of the backup with the logs' content in it comes first, and
// the backup takes its place as that of any store: at every moment the path has one whole store or none.
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

  /// Puts all of a backup where no store is: external data first, since a main file without it would be
  /// another store.
  func putBackWhole(_ task: RestoreTask) throws -> End {
    let (backup, store) = (task.backupFiles, task.storeFiles)
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
      ".\(store.store.lastComponent?.string ?? "").godwit-\(task.fileName)")
    try DurableFile.removeIfPresent(waiting)
    try DurableFile.removeUnfinished([waiting, store.wal, store.journal])
    let hasLogs = try backup.hasLogs
    let main = hasLogs ? try backup.clone(in: directory(of: task).snapshot).store : backup.store
    var lost = try DurableFile.copy(main, to: waiting)
    var task = task
    if hasLogs {
      lost = try DurableFile.copyAttributes(from: backup.store, to: waiting)
      task.copy = try FileMark(waiting)
      try task.write(in: directory(of: task))
      // The backup's own, as ``remains(_:_:)`` has seen.
      for log in [store.wal, store.journal] { try DurableFile.removeIfPresent(log) }
    }
    try leases.requireCurrent(store: store.store)
    do {
      try DurableFile.renameNew(waiting, to: store.store)
    } catch DurabilityError.alreadyExists {
      try DurableFile.removeIfPresent(waiting)
      throw CommitError.sourceChanged(store: store.store)
    }
    if hasLogs { return try replaceCopy(task) ?? changedCopy(task) }
    var end = try end(task)
    end.item.reasons += lost.notes(of: task.store, source: "The backup").map {
      RunReport.Reason(reason: RunReport.Reason.note, message: $0)
    }
    return end
  }

  /// Lets a backup with logs take the place of the copy that ``putBackWhole(_:)`` has put there.
  ///
  /// - Returns: Nil where the store is not that copy, or not any more.
  private func replaceCopy(_ task: RestoreTask) throws -> End? {
    let (backup, store, directory) = (task.backupFiles, task.storeFiles, directory(of: task))
    // Whoever writes from here on changes it.
    let identity = try store.identity()
    let copy = try backup.clone(in: directory.snapshot).store
    guard try !identity.hasPendingChanges && Self.areEqual(store.store, copy) else { return nil }
    do {
      return try endOfCopy(
        task,
        StoreSwap.restore(
          backup, to: store, identity: identity, run: directory, name: task.fileName,
          isOfCopy: true,
          isStoreOffline: pipeline.stores.inUse == .offline, leases: leases))
    } catch {
      // What a journal is left of is finished by the next call.
      if try !DurableFile.exists(directory.journal) {
        // Whoever has taken the work over has files of the same names.
        try leases.requireCurrent(store: store.store)
        try StoreSwap.removeAssembled(by: directory, for: store.store, name: task.fileName)
      }
      throw error
    }
  }

  private func endOfCopy(_ task: RestoreTask, _ journal: CommitJournal) throws -> End {
    var end = try end(task)
    end.item.reasons += journal.notes.map {
      RunReport.Reason(reason: RunReport.Reason.note, message: $0)
    }
    return end
  }

  private func changedCopy(_ task: RestoreTask) -> End {
    End(
      item: Item(
        store: task.store, verdict: .refused, run: task.run, backup: task.backup,
        reasons: [
          RunReport.Reason(
            reason: "changed-since",
            message:
              "\(task.store) was gone, and the rollback has put a copy of \(task.backup) there, with the content of its "
              + "logs in it. Something has been written to the copy since, so it stays as it is. The backup stays, "
              + "too. Decide which of the two to keep.")
        ]))
  }

  /// Goes on where ``putBackWhole(_:)`` was cut off.
  ///
  /// - Returns: Nil where a store is there that is neither the backup nor a copy that the rollback made of it, or
  ///   the backup is not as it was.
  func finishWhole(_ task: RestoreTask, _ known: LedgerBackup) throws -> End? {
    let (backup, store, directory) = (task.backupFiles, task.storeFiles, directory(of: task))
    try DurableFile.removeUnfinished([store.externalDataFolder, store.supportFolder])
    do {
      let found = try StoreSwap.recoverRestoration(
        of: backup, to: store.store, run: directory,
        isStoreOffline: pipeline.stores.inUse == .offline, leases: leases)
      if case .committed(let journal) = found {
        if try FilePresence.isThere(store.store) { return try endOfCopy(task, journal) }
        throw CommitError.storeMissing(store: store.store, backup: journal.backup.store)
      }
    } catch CommitError.storeMissing {
      try StoreSwap.abandonRestoration(
        of: backup, to: store.store, run: directory, leases: leases)
    }
    guard let found = try backup.backupMark(), found.mark.matches(known.marks),
      try backup.holds(known.marks)
    else { return nil }
    guard try FilePresence.isThere(store.store) else { return try putBackWhole(task) }
    if try zip(store.databaseFiles, backup.databaseFiles).allSatisfy(Self.areEqual) {
      return try end(task)
    }
    guard try backup.hasLogs else { return nil }
    if let end = try replaceCopy(task) { return end }
    return try FileMark(store.store)?.isSameFile(as: task.copy) == true ? changedCopy(task) : nil
  }

  /// Goes on where the rollback of a store was cut off that somebody has removed since. What had been put aside of it
  /// stays, and is written down at the end of this rollback.
  ///
  /// - Parameter begun: The journal of that rollback. Its file may still be there: what ends it comes after what was
  ///   put aside is in `restore.json`.
  func finishGone(
    _ task: RestoreTask, _ known: LedgerBackup, _ begun: CommitJournal
  ) throws -> End? {
    var task = task
    task.isMissing = true
    let store = task.storeFiles.store
    let aside = try StoreSwap.completePutAside(
      begun, of: task.backupFiles, to: store, run: directory(of: task), leases: leases)
    if var kept = try KeptBackup(aside, beside: store) {
      kept.marks.isExternalInStore = nil
      task.aside = LedgerBackup(
        path: kept.path, folder: kept.folder, store: task.store, run: task.name, kind: .replaced,
        bytes: kept.bytes, made: Date().timeIntervalSince1970, marks: kept.marks)
    }
    try task.write(in: directory(of: task))
    return try finishWhole(task, known)
  }

  /// Removes what a rollback has made that ends without the backup in its place.
  func forget(_ task: RestoreTask) throws {
    let directory = directory(of: task)
    try StoreSwap.removeAssembled(by: directory, for: task.storeFiles.store, name: task.fileName)
    try directory.remove()
  }

  private func directory(of task: RestoreTask) -> RunDirectory {
    Self.directory(of: task.storeFiles.store, in: places.state)
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

extension StoreFiles {
  /// Those that SQLite reads.
  fileprivate var databaseFiles: [FilePath] { [store, wal, journal] }
}

extension Rollback.RestoreTask {
  fileprivate var storeFiles: StoreFiles { StoreFiles(FilePath(store)) }
  fileprivate var backupFiles: StoreFiles { StoreFiles(FilePath(backup)) }

  func write(in directory: RunDirectory) throws {
    try DurableFile.write(
      SealedJSON.bytes(of: self), to: Rollback.taskFile(in: directory))
  }
}
