import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

// Putting back.
extension Rollback {
  /// What became of a store, and what the ledger is to know of it.
  struct End: Sendable {
    var item: Item
    /// The path of the backup that was tried; empty for none.
    var attemptedBackup = ""
    var started = 0.0
    var sourceBytes: Int64 = 0
    /// Of the store as it is now.
    var identity: String?
    var digest: String?
    var uuid: String?
    /// What was put aside.
    var kept: LedgerBackup?
    /// Another pipeline's rollback that was cut off, and that this is the end of.
    var ofOther: LedgerRun?
  }

  /// `restore.json`: which backup is put back.
  struct RestoreTask: Codable, Sendable {
    var store: String
    var backup: String
    var run: String
    var name: String
    /// As the ledger has it, which may be lost before the rollback is finished.
    var known: LedgerBackup?
    /// True where there was no store: see ``putBackWhole(_:)``.
    var isMissing: Bool?
    /// The copy of a backup with logs that was about to be put where no store was.
    var copy: FileMark?
    /// What a rollback had put aside that was cut off, of a store that somebody has removed since.
    var aside: LedgerBackup?

    /// A part of the names of files that this makes. Those of what was put aside are taken.
    var fileName: String { aside == nil ? name : name + "-2" }
  }

  func putBack(_ stores: [Undoing], name: String) async throws -> [End] {
    await withTaskGroup(of: (Int, End).self) { group in
      for (place, store) in stores.enumerated() {
        group.addTask {
          let (start, begin) = (Date().timeIntervalSince1970, ContinuousClock.now)
          let backup = store.oldest
          var end: End
          do {
            end = try await onOwnThread { try self.putBack(store, name) }
          } catch {
            end = End(item: Self.refusal(of: backup, error))
            if (try? Self.isUnderWay(of: FilePath(backup.store), in: places.state)) == true {
              end.item.reasons.append(Self.underWay(backup.store))
            }
          }
          end.attemptedBackup = backup.path
          end.started = start
          end.item.run = backup.run
          end.item.backup = backup.path
          end.item.seconds = (ContinuousClock.now - begin).inSeconds
          return (place, end)
        }
      }
      var ends: [(Int, End)] = []
      for await end in group { ends.append(end) }
      return ends.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  private static func reasonForLack(of backup: LedgerBackup) -> String {
    if backup.state == .restored { return "The backup of \(backup.store) was restored already." }
    if backup.state == .unreadable {
      return
        "What the ledger says of \(backup.path), the backup of \(backup.store) that run \(backup.run) made, "
        + "cannot be read: it is damaged, or of a later version. Nothing was replaced. "
        + StoreFiles(FilePath(backup.path)).handCopy(to: StoreFiles(FilePath(backup.store)))
    }
    return "The backup of \(backup.store) that run \(backup.run) made "
      + (backup.state == .missing
        ? "was gone, or lacked its log, when it was looked for, and the ledger does not say who removed it."
        : "was removed by `backups prune`, or by a run that keeps to `backups`.")
      + " Nothing was replaced. Take the store from another copy."
  }

  /// A store that a rollback was stopped before.
  static func pending(_ backup: LedgerBackup) -> End {
    var item = Item(store: backup.store, verdict: .pending)
    (item.run, item.backup) = (backup.run, backup.path)
    item.reasons = [
      RunReport.Reason(
        reason: LedgerStanding.notBegunReason,
        message:
          "The rollback was stopped before it came to \(backup.store). Run the same command again.")
    ]
    return End(item: item)
  }

  static func refusal(of backup: LedgerBackup, _ error: any Error) -> Item {
    let path = FilePath(backup.store)
    // Whatever else failed, failed for that.
    if let obstacle = FilePresence(of: path).obstacle {
      let unreachable = DurabilityError.unreachable(path, obstacle: obstacle)
      return refusal(of: backup, "unreachable", "\(unreachable)")
    }
    if case CommitError.sourceChanged(let store) = error {
      return refusal(of: backup, "changed-since", changedMessage(store.string))
    }
    let (_, reason, message) = RetryPolicy.ending(of: error)
    return refusal(of: backup, reason, message)
  }

  private static func changedMessage(_ store: String) -> String {
    "\(store) was changed after the migration, so putting the backup back would lose the change. "
      + "Nothing was replaced. If a later run migrated it again, roll that back first; else decide which "
      + "of the two to keep."
  }

  static func refusal(of backup: LedgerBackup, _ reason: String, _ message: String) -> Item {
    Item(
      store: backup.store, verdict: .refused,
      reasons: [RunReport.Reason(reason: reason, message: message)])
  }

  private func putBack(_ undoing: Undoing, _ name: String) throws -> End {
    let backup = undoing.oldest
    func refused(_ reason: String, _ message: String) -> End {
      End(item: Self.refusal(of: backup, reason, message))
    }
    let (store, files) = (StoreFiles(FilePath(backup.store)), StoreFiles(FilePath(backup.path)))
    if let reason = reach.refusal(of: store.store) { return refused(reason.reason, reason.message) }
    guard backup.isToPutBack else {
      return refused(
        backup.state == .unreadable ? "ledger" : "no-backup", Self.reasonForLack(of: backup))
    }
    for path in [files.store, store.store] {
      guard let obstacle = FilePresence(of: path).obstacle else { continue }
      return refused(
        "unreachable", "\(path) cannot be looked at: \(obstacle). Nothing was replaced.")
    }
    guard backup.hasOwnName, let found = try files.backupMark(), found.mark.matches(backup.marks)
    else {
      let written = try files.externalFiles(writtenAfter: backup.made).prefix(3)
      return refused(
        "backup-changed",
        "\(files.store) is missing, or is not as the run left it. "
          + (written.isEmpty
            ? "" : "Written to since: \(written.map(\.string).joined(separator: ", ")). ")
          + "Check it. " + files.handCopy(to: store))
    }
    guard try files.holds(backup.marks) else {
      return refused(
        "backup-changed",
        "\(files.store) does not hold what the run wrote, and nobody wrote to it by its times: look at the disk. "
          + "Nothing was replaced. Take the store from another copy, or save what the backup still has with "
          + "`godwit repair`.")
    }
    let isMissing = try FileMark(reachable: store.store) == nil
    let identity = try isMissing ? nil : store.identity()
    if let identity {
      guard try isAsLeft(store, identity, by: undoing.newest) else {
        return refused("changed-since", Self.changedMessage(store.store.string))
      }
    } else if !undoing.isLast {
      return refused(
        "changed-since",
        "There is no file at \(store.store), and a later run put another backup of it aside. Nothing was "
          + "put back. Roll that run back first.")
    } else if let reason = try remains(files, store) {
      return End(item: Item(store: backup.store, verdict: .refused, reasons: [reason]))
    }
    if let breach = try breach(undoing) {
      return End(item: Item(store: backup.store, verdict: .refused, reasons: [breach]))
    }
    var restored = Item(store: backup.store, verdict: .restored)
    if undoing.isCutShort {
      restored.reasons = [
        RunReport.Reason(
          reason: "note",
          message:
            "Run \(backup.run) migrated \(store.store) more than once, and the backup of before the "
            + "first time was removed: the store goes back to what it was in between.")
      ]
    }
    if isDry {
      // A commit of another run that is brought to its end first.
      let commit = RunDirectory(
        places.state.appending("stores").appending(PipelineRun.name(of: store.store)))
      if let journal = try CommitJournal.read(in: commit),
        journal.backup.store.string != undoing.newest.path,
        try StoreSwap.isCutOff(in: commit, of: store.store)
      {
        return refused("changed-since", Self.changedMessage(store.store.string))
      }
      return End(item: restored)
    }
    let directory = Self.directory(of: store.store, in: places.state)
    try DurableFile.makeFolder(directory.snapshot)
    try directory.checkPrivate()
    var task = RestoreTask(
      store: backup.store, backup: backup.path, run: backup.run, name: name, known: backup)
    if isMissing { task.isMissing = true }
    try task.write(in: directory)
    guard let identity else {
      // What is cut off, or fails, is finished by the next call.
      var end = try putBackWhole(task)
      if end.item.verdict != .restored { try forget(task) }
      end.item.reasons += restored.reasons
      return end
    }
    do {
      let journal = try StoreSwap.restore(
        files, to: store, identity: identity, run: directory, name: name,
        isStoreOffline: pipeline.stores.inUse == .offline, leases: leases)
      var end = try end(journal, task)
      end.item.reasons += restored.reasons
      return end
    } catch {
      // What a journal is left of is finished by the next call.
      if try !DurableFile.exists(directory.journal) {
        try StoreSwap.removeAssembled(by: directory, for: store.store, name: name)
        try directory.remove()
      }
      throw error
    }
  }

  /// Of a store that is what its backup is.
  ///
  /// - Throws: `DurabilityError` where the store cannot be looked at: the next call finishes it.
  func end(_ task: RestoreTask) throws -> End {
    let store = StoreFiles(FilePath(task.store))
    var end = End(item: Item(store: task.store, verdict: .restored))
    end.item.backup = task.backup
    end.item.run = task.run
    end.attemptedBackup = task.backup
    end.identity = try? store.whileReachable { try store.identity().name }
    end.digest = try? store.whileReachable { try store.digest(inState: end.identity) }
    end.uuid = store.storedUUID
    end.sourceBytes = try FileMark(reachable: store.store)?.size ?? 0
    if var aside = task.aside {
      (aside.identity, aside.digest) = (end.identity, end.digest)
      (end.kept, end.item.kept) = (aside, aside.path)
    }
    return end
  }

  /// Likewise, with what the rollback has put aside.
  func end(_ journal: CommitJournal, _ task: RestoreTask) throws -> End {
    let aside = journal.backup
    let isThere = try journal.isBackupThere()
    var end = try end(task)
    let found = isThere ? try KeptBackup(aside, beside: FilePath(task.store)) : nil
    if found == nil {
      end.item.reasons.append(
        RunReport.Reason(
          reason: "note",
          message: "\(aside.store) was removed before the rollback was finished: "
            + "nothing is kept of what the store was."))
    } else {
      end.item.kept = aside.store.string
    }
    end.item.reasons += journal.notes.map { RunReport.Reason(reason: "note", message: $0) }
    var kept = found ?? KeptBackup(journal)
    kept.marks.isExternalInStore = nil
    end.kept = LedgerBackup(
      path: kept.path, folder: kept.folder, store: task.store, run: task.name, kind: .replaced,
      bytes: kept.bytes, made: Date().timeIntervalSince1970, marks: kept.marks,
      identity: end.identity, digest: end.digest, state: found == nil ? .missing : .kept)
    return end
  }

  /// Adds what the migrations that are undone said of owners, groups and attributes: backups are without them, too.
  func addNotes(to ends: [End], _ ledger: Ledger) throws -> [End] {
    try ends.map { end in
      guard end.item.verdict == .restored, let run = end.item.run else { return end }
      var end = end
      try ledger.forEachAttempt(at: end.item.store) { attempt in
        guard attempt.run == run, attempt.verdict == MigrationResult.Verdict.migrated.rawValue
        else {
          return
        }
        end.item.reasons += attempt.reasons.filter { $0.reason == RunReport.Reason.note }.map {
          RunReport.Reason(
            reason: RunReport.Reason.note,
            message:
              "Run \(run), which is undone, noted: \($0.message) A rollback gives none of it back."
          )
        }
      }
      return end
    }
  }

  /// Writes down what became of stores, and removes their run directories.
  func record(_ ends: [End], in ledger: Ledger, rollback: String) throws {
    let now = Date().timeIntervalSince1970
    guard !ends.isEmpty else { return }
    try ledger.writing {
      for end in ends {
        // It stays open: that pipeline's next rollback goes on with it, and undoes no earlier run.
        if let other = end.ofOther, try !ledger.hasRun(named: other.name) {
          try ledger.begin(other)
        }
        let rollback = end.ofOther?.name ?? rollback
        let started = end.started > 0 ? end.started : now
        var attempt = LedgerAttempt(
          run: rollback, store: end.item.store, started: started,
          ended: end.item.seconds.map { started + $0 } ?? now, verdict: end.item.verdict.rawValue,
          sourceBytes: end.sourceBytes,
          reasons: end.item.reasons)
        attempt.identity = end.identity
        attempt.digest = end.digest
        attempt.host = MachineName.text
        if end.item.verdict == .restored {
          attempt.uuid = end.uuid
          attempt.destination = try ledger.backups(of: end.item.store)
            .first { $0.path == end.attemptedBackup }.flatMap { try ledger.sourceVersion(of: $0) }
        }
        try ledger.add(attempt)
        guard end.item.verdict == .restored else { continue }
        if var kept = end.kept {
          kept.run = rollback
          try ledger.add(kept)
        }
        try ledger.setRestored(end.attemptedBackup, at: now)
      }
    }
    for end in ends where end.item.verdict == .restored {
      let directory = Self.directory(of: FilePath(end.item.store), in: places.state)
      if try directory.exists { try directory.remove() }
    }
  }
}
