import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// Rollbacks that were cut off.
extension Rollback {
  /// Whether a store's rollback was cut off after it had begun to change something: one that found the
  /// volume full, say, has not.
  static func isUnderWay(of store: FilePath, in state: FilePath) throws -> Bool {
    try isUnderWay(directory(of: store, in: state))
  }

  private static func isUnderWay(_ directory: RunDirectory) throws -> Bool {
    if try mayHaveBegun(directory) { return true }
    // A store that is not there is copied back without a journal.
    return try task(in: directory)?.isMissing == true
  }

  /// Whether there is a journal, or there may be none since nothing can be known of the task.
  private static func mayHaveBegun(_ directory: RunDirectory) throws -> Bool {
    try DurableFile.exists(directory.journal)
      || DurableFile.exists(taskFile(in: directory)) && task(in: directory) == nil
  }

  static func taskFile(in directory: RunDirectory) -> FilePath {
    directory.path.appending("restore.json")
  }

  /// Stores whose rollback was cut off, or could not be finished.
  static func underWay(in state: FilePath) throws -> [String] {
    let folder = folder(in: state)
    guard try FileKind(at: folder) == .folder else { return [] }
    return try DurableFile.names(in: folder).compactMap { name in
      let directory = RunDirectory(folder.appending(name))
      guard try FileKind(at: directory.path) == .folder, try isUnderWay(directory) else {
        return nil
      }
      return try task(in: directory)?.store ?? (try? CommitJournal.read(in: directory))?.store
        ?? directory.path.string
    }
  }

  static func underWay(_ store: String) -> RunReport.Reason {
    RunReport.Reason(
      reason: "rollback",
      message:
        "The rollback of \(store) is under way. The next `godwit rollback` or `godwit run` of the "
        + "pipeline brings it to its end, whatever stores that is over.")
  }

  /// What the rollback of that run directory is to do; nil where that is not written down.
  private static func task(in directory: RunDirectory) throws -> RestoreTask? {
    let bytes = try RegularFile.bytesIfPresent(
      of: taskFile(in: directory), limit: 1 << 20, isPrivate: true)
    return bytes.flatMap { try? SealedJSON.value(ofSealedOrPlain: $0) }
  }

  /// The same by the journal, where `restore.json` is gone or damaged: the backup is the one whose copy gets the
  /// store's name, or has it.
  private static func task(
    byJournalIn directory: RunDirectory, _ ledger: Ledger
  ) throws -> RestoreTask? {
    guard let journal = try? CommitJournal.read(in: directory), journal.kind == .restore,
      PipelineRun.name(of: FilePath(journal.store)) == directory.path.lastComponent?.string,
      let copy = try [journal.assembled, journal.store].map({ FilePath($0) })
        .first(where: { try FileMark($0)?.isSameFile(as: journal.assembledMark) == true })
    else { return nil }
    let found = try ledger.backups(of: journal.store)
      .filter { try ExternalDataFolder.areEqual(FilePath($0.path), copy) }
    guard let backup = found.first(where: \.isToPutBack) ?? found.first else { return nil }
    return RestoreTask(
      store: backup.store, backup: backup.path, run: backup.run, name: journal.run,
      known: backup, isMissing: journal.isOfCopy)
  }

  /// Brings rollbacks that were cut off to their end; where nothing is to be changed, says which those are.
  func finishInterrupted(_ ledger: Ledger) async throws -> [End] {
    let folder = Self.folder(in: places.state)
    guard try FileKind(at: folder) == .folder else { return [] }
    var ends: [End] = []
    for name in try DurableFile.names(in: folder) {
      let directory = RunDirectory(folder.appending(name))
      guard try FileKind(at: directory.path) == .folder else { continue }
      guard
        let task = try Self.task(in: directory) ?? Self.task(byJournalIn: directory, ledger),
        let backup = try self.backup(of: task, ledger)
      else {
        if try Self.mayHaveBegun(directory) {
          ends.append(try Self.unknown(directory))
        } else if !isDry {
          try directory.remove()  // nothing was begun
        }
        continue
      }
      let start = Date().timeIntervalSince1970
      let other = try ledger.otherOwner(ofRun: task.run).map {
        LedgerRun(
          name: task.name, kind: .rollback, pipeline: $0.pipeline, file: $0.file, started: start,
          host: MachineName.text)
      }
      if let reason = reach.refusal(of: FilePath(task.store)) {
        ends.append(End(item: Self.refusal(of: backup, reason.reason, reason.message)))
        continue
      }
      // It was cut off after its record, and before its run directory went.
      if backup.state == .restored {
        if !isDry { try directory.remove() }
        continue
      }
      do {
        if isDry {
          // One that has not begun, or is taken back, is done from its start.
          guard
            try task.isMissing == true
              || StoreSwap.isCutOff(
                in: directory, of: FilePath(task.store),
                restoring: StoreFiles(FilePath(task.backup)))
          else { continue }
          var item = Item(store: task.store, verdict: .restored)
          (item.run, item.backup) = (task.run, task.backup)
          item.reasons = [
            RunReport.Reason(
              reason: RunReport.Reason.note,
              message:
                "A rollback of \(task.store) was cut off. It is brought to its end first.")
          ]
          ends.append(End(item: item, ofOther: other))
          continue
        }
        var end = try await onOwnThread {
          try task.isMissing == true
            ? self.finishWhole(task, backup) : self.finish(task, backup, in: directory)
        }
        end?.started = start
        end?.ofOther = other
        if end?.item.verdict != .restored {
          // As it is written down by now: with what was put aside, which nothing else names.
          let left = try Self.task(in: directory) ?? task
          try keepAside(of: left, other, ledger)
          try forget(left)
        }
        if let end { ends.append(end) }
      } catch {
        var end = End(item: Self.refusal(of: backup, error))
        (end.item.backup, end.item.run) = (task.backup, task.run)
        (end.attemptedBackup, end.started, end.ofOther) = (task.backup, start, other)
        ends.append(end)
      }
    }
    return ends
  }

  /// Writes down what a rollback that is given up had put aside, as of the rollback that did so: it may have been
  /// killed before it was written down itself.
  ///
  /// - Parameter other: That rollback, where it is another pipeline's.
  private func keepAside(of task: RestoreTask, _ other: LedgerRun?, _ ledger: Ledger) throws {
    guard let aside = task.aside, try FileMark(reachable: FilePath(aside.path)) != nil else {
      return
    }
    let now = Date().timeIntervalSince1970
    let killed =
      other
      ?? LedgerRun(
        name: task.name, kind: .rollback, pipeline: places.owner.pipeline,
        file: places.owner.file, started: now, host: MachineName.text)
    try ledger.writing {
      if try !ledger.hasRun(named: killed.name) {
        try ledger.begin(killed)
        try ledger.end(killed.name, at: now, exitCode: nil, nil, wasKilled: true)
      }
      try ledger.add(aside)
    }
  }

  /// Goes on where the rollback of a store was cut off that was there.
  ///
  /// - Returns: Nil where the store is as it was.
  private func finish(
    _ task: RestoreTask, _ known: LedgerBackup, in directory: RunDirectory
  ) throws -> End? {
    let store = FilePath(task.store)
    let begun = try CommitJournal.read(in: directory)
    // Before the journal goes, which alone names what was put aside.
    if let begun, try !FilePresence.isThere(store) { return try finishGone(task, known, begun) }
    let found = try StoreSwap.recoverRestoration(
      of: StoreFiles(FilePath(task.backup)), to: store, run: directory,
      isStoreOffline: pipeline.stores.inUse == .offline, leases: leases)
    // It may have gone meanwhile.
    if let begun, try !FilePresence.isThere(store) { return try finishGone(task, known, begun) }
    if case .committed(let journal) = found { return try end(journal, task) }
    guard let aside = begun?.backup.store, try FileMark(reachable: aside) != nil else { return nil }
    return End(item: Self.refusal(of: known, "changed-since", Self.changed(task, aside)))
  }

  /// What a rollback that was cut off puts back. A ledger that was lost since has it again from here on.
  private func backup(of task: RestoreTask, _ ledger: Ledger) throws -> LedgerBackup? {
    func isOwn(_ backup: LedgerBackup) -> Bool {
      backup.path == task.backup && backup.store == task.store && backup.hasOwnName
    }
    if let listed = try ledger.backups(of: task.store).first(where: isOwn) { return listed }
    guard let known = task.known, isOwn(known) else { return nil }
    if !isDry { try ledger.writing { try ledger.add(known) } }
    return known
  }

  /// Of a rollback of which nothing says any more what it was to put back.
  private static func unknown(_ directory: RunDirectory) throws -> End {
    let journal = try? CommitJournal.read(in: directory)
    let store = journal?.store ?? directory.path.string
    let aside = try journal.flatMap { try FileMark($0.backup.store) == nil ? nil : $0.backup.store }
    return End(
      item: Item(
        store: store, verdict: .refused,
        reasons: [
          RunReport.Reason(
            reason: "rollback",
            message:
              "A rollback of \(store) was cut off, and nothing says which backup it was to put back: "
              + "\(directory.path)/restore.json is gone or damaged, or the ledger does not have the backup. A whole copy of the backup may lie "
              + "beside the store as .NAME.godwit-RUN. "
              + (aside.map { "What the store was then is kept as \($0). " } ?? "")
              + "Nothing was changed. Once the store is as you want it, remove \(directory.path).")
        ]))
  }

  private static func changed(_ task: RestoreTask, _ aside: FilePath) -> String {
    "The rollback of \(task.store) to \(task.backup) was cut off, and the store has changed since: an application "
      + "wrote to it, or the disk damaged it. What it was when the rollback began is kept as \(aside). Decide which "
      + "of the two to keep."
  }

  /// Finishes what an earlier rollback left, before a run looks at stores.
  ///
  /// - Returns: How many stores were put back, and what keeps others from it.
  static func finishInterrupted(
    _ pipeline: Pipeline, _ places: PipelinePlaces, _ lease: HeldLease
  ) async throws -> (finished: Int, problems: [String]) {
    guard try FileKind(at: folder(in: places.state)) == .folder,
      try !DurableFile.names(in: folder(in: places.state)).isEmpty
    else { return (0, []) }
    var rollback = Rollback(pipeline, places: places, .nothing, isDry: false, lease)
    rollback.finishesCommits = false
    var problems: [String] = []
    let summary = try await rollback.run { item in
      problems += item.reasons.map(\.message)
    }
    return (summary.restored, problems)
  }
}
