import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitWorker
import SystemPackage

/// Puts the backups of a run back.
///
/// A store is only put back while it is in the state in which the commit left it, and while nobody has
/// it open. What it was is kept beside it. Each store is a swap of its own with a journal in
/// `state/rollbacks/ID/`; one that was interrupted is finished by the next `rollback`, or by the next
/// run, whatever that is asked for.
package struct Rollback: Sendable {
  /// What is rolled back.
  package struct Selection: Sendable {
    /// Nil: the last run of which a store is still to be put back; with ``stores``, of each.
    package var run: String?
    /// None: every store of the run.
    package var stores: [FilePath]
    /// Only stores that were of this version before.
    package var version: String?

    package init(run: String? = nil, stores: [FilePath] = [], version: String? = nil) {
      self.run = run
      self.stores = stores
      self.version = version
    }
  }

  /// What became of a store: a line of `--json`.
  package struct Item: Codable, Sendable {
    package enum Verdict: String, Codable, Sendable {
      case restored, refused
    }

    package private(set) var event = "result"
    package var store: String
    package var verdict: Verdict
    /// The run whose migration is undone.
    package var run: String?
    package var backup: String?
    /// Where the store that was replaced is kept.
    package var kept: String?
    package var reasons: [RunReport.Reason] = []
    package var seconds: Double?
  }

  /// The last line of `--json`: found = restored + refused.
  package struct Summary: Codable, Sendable, Equatable {
    package private(set) var event = "summary"
    /// The rollback's own name in the history.
    package var rollback: String
    package var run: String?
    package var found = 0
    package var restored = 0
    package var refused = 0

    package init(rollback: String) { self.rollback = rollback }
  }

  let pipeline: Pipeline
  let places: PipelinePlaces
  let selection: Selection
  let isDry: Bool
  let reach: StoreReach
  var options: [String]
  let leases: [LeaseToken]

  package init(
    _ pipeline: Pipeline, places: PipelinePlaces, _ selection: Selection, isDry: Bool,
    lock: PipelineLock, options: [String] = []
  ) {
    self.init(pipeline, places: places, selection, isDry: isDry, lock.lease, options)
  }

  init(
    _ pipeline: Pipeline, places: PipelinePlaces, _ selection: Selection, isDry: Bool,
    _ lease: HeldLease, _ options: [String] = []
  ) {
    leases = [lease.token]
    self.pipeline = pipeline
    self.places = places
    self.selection = selection
    self.isDry = isDry
    reach = StoreReach(pipeline)
    self.options = options
  }

  static func folder(in state: FilePath) -> FilePath { state.appending("rollbacks") }

  /// The run directory of a store's rollback.
  static func directory(of store: FilePath, in state: FilePath) -> RunDirectory {
    RunDirectory(folder(in: state).appending(PipelineRun.name(of: store)))
  }

  /// 16 stores are put back at a time, and written down together.
  private static let groupSize = 16

  /// For the holder of the state folder's lock.
  package func run(observe: (Item) -> Void) async throws -> Summary {
    let now = Date().timeIntervalSince1970
    let ledger =
      try PipelineHistory.writing(places) ?? Ledger(writingAt: places.ledger, now: now)
    let interrupted = try ledger.interruptedRollback()
    let name = try RunFolder.timestamp(now) { name in
      try ledger.hasRun(named: name) || PipelineLedger.names(name, in: places.state)
    }
    var summary = Summary(rollback: name)
    var isBegun = false
    func begin() throws {
      guard !isBegun, !isDry else { return }
      isBegun = true
      try ledger.writing {
        try ledger.begin(
          LedgerRun(
            name: summary.rollback, kind: .rollback, pipeline: places.owner.pipeline,
            file: places.owner.file, started: now, host: MachineName.text, options: options))
      }
    }
    func take(_ ends: [End]) throws {
      if ends.contains(where: { $0.item.verdict == .restored || !$0.attemptedBackup.isEmpty }) {
        try begin()
      }
      if !isDry { try record(ends, in: ledger, rollback: summary.rollback) }
      for end in ends {
        summary.found += 1
        if end.item.verdict == .restored { summary.restored += 1 } else { summary.refused += 1 }
        observe(end.item)
      }
    }
    var finished: Set<String> = []
    var undone = interrupted?.undone.name
    if !isDry {
      let ends = try await finishInterrupted(ledger)
      finished = Set(ends.map(\.item.store))
      undone = undone ?? ends.first?.item.run
      try take(ends)
    }
    let (backups, missing) = try selected(ledger, undoing: undone, &summary)
    try take(missing.filter { !finished.contains($0.item.store) })
    var rest = backups.filter { !finished.contains($0.store) }[...]
    while !rest.isEmpty, !Task.isCancelled {
      let group = rest.prefix(Self.groupSize)
      rest = rest.dropFirst(Self.groupSize)
      try take(try await putBack(Array(group), name: summary.rollback))
    }
    if let interrupted, !isDry, !Task.isCancelled {
      let rollback = interrupted.rollback
      try ledger.writing {
        try ledger.end(
          rollback.name, at: Date().timeIntervalSince1970, exitCode: 75,
          ledger.counts(of: rollback))
      }
    }
    if isBegun {
      try ledger.writing {
        try ledger.end(
          summary.rollback, at: Date().timeIntervalSince1970,
          exitCode: summary.refused > 0 ? 3 : 0,
          RunReport.Counts(
            found: summary.found, migrated: summary.restored, refused: summary.refused))
      }
    }
    try Task.checkCancellation()
    return summary
  }
}

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
    /// What was put aside.
    var kept: LedgerBackup?
  }

  /// `restore.json`: which backup is put back.
  struct RestoreTask: Codable, Sendable {
    var store: String
    var backup: String
    var run: String
    var name: String
  }

  private func putBack(_ backups: [LedgerBackup], name: String) async throws -> [End] {
    await withTaskGroup(of: (Int, End).self) { group in
      for (place, backup) in backups.enumerated() {
        group.addTask {
          let start = Date().timeIntervalSince1970
          var end: End
          do {
            end = try await onOwnThread { try self.putBack(backup, name) }
          } catch {
            end = End(item: Self.refusal(of: backup, error))
          }
          end.attemptedBackup = backup.path
          end.started = start
          end.item.run = backup.run
          end.item.backup = backup.path
          end.item.seconds = Date().timeIntervalSince1970 - start
          return (place, end)
        }
      }
      var ends: [(Int, End)] = []
      for await end in group { ends.append(end) }
      return ends.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  static func refusal(of backup: LedgerBackup, _ error: any Error) -> Item {
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

  private func putBack(_ backup: LedgerBackup, _ name: String) throws -> End {
    func refused(_ reason: String, _ message: String) -> End {
      End(item: Self.refusal(of: backup, reason, message))
    }
    let (store, files) = (StoreFiles(FilePath(backup.store)), StoreFiles(FilePath(backup.path)))
    if let reason = reach.refusal(of: store.store) { return refused(reason.reason, reason.message) }
    // Of one that a removal was killed in, the mark says whether it is whole.
    guard backup.state == .kept || backup.state == .pruning else {
      return refused(
        "no-backup", "The backup of \(store.store) was \(backup.state.rawValue) already.")
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
          + "Check it, and restore by hand.")
    }
    guard try FileMark(store.store) != nil else {
      return refused(
        "store", "There is no file at \(store.store). Copy \(files.store) there by hand.")
    }
    let identity = try store.identity()
    guard try isAsLeft(store, identity, by: backup) else {
      return refused("changed-since", Self.changedMessage(store.store.string))
    }
    if isDry { return End(item: Item(store: backup.store, verdict: .restored)) }
    let directory = Self.directory(of: store.store, in: places.state)
    try DurableFile.makeFolder(directory.snapshot)
    try directory.checkPrivate()
    let task = RestoreTask(store: backup.store, backup: backup.path, run: backup.run, name: name)
    try DurableFile.write(
      Array(JSONLine.text(of: task).utf8), to: directory.path.appending("restore.json"))
    do {
      let journal = try StoreSwap.restore(
        files, to: store, identity: identity, run: directory, name: name,
        isStoreOffline: pipeline.stores.inUse == .offline, leases: leases)
      return try end(journal, task)
    } catch {
      // What a journal is left of is finished by the next call.
      if try !DurableFile.exists(directory.journal) { try directory.remove() }
      throw error
    }
  }

  func end(_ journal: CommitJournal, _ task: RestoreTask) throws -> End {
    let store = StoreFiles(FilePath(task.store))
    var end = End(item: Item(store: task.store, verdict: .restored))
    end.item.backup = task.backup
    end.item.run = task.run
    end.item.kept = journal.backup.store.string
    end.attemptedBackup = task.backup
    end.identity = try? store.identity().name
    end.digest = try? store.digest(inState: end.identity)
    end.sourceBytes = try FileMark(store.store)?.size ?? 0
    if let found = try journal.backup.backupMark() {
      let hasFolder = try FileKind(at: journal.backup.supportFolder) == .folder
      end.kept = LedgerBackup(
        path: journal.backup.store.string,
        folder: hasFolder ? journal.backup.supportFolder.string : nil, store: task.store,
        run: task.name, kind: .replaced, bytes: found.ownBytes,
        made: Date().timeIntervalSince1970, marks: found.mark, identity: end.identity,
        digest: end.digest)
    }
    return end
  }

  /// Writes down what became of stores, and removes their run directories.
  private func record(_ ends: [End], in ledger: Ledger, rollback: String) throws {
    let now = Date().timeIntervalSince1970
    let tried = ends.filter { !$0.attemptedBackup.isEmpty }
    guard !tried.isEmpty else { return }
    try ledger.writing {
      for end in tried {
        var attempt = LedgerAttempt(
          run: rollback, store: end.item.store, started: end.started > 0 ? end.started : now,
          ended: now, verdict: end.item.verdict.rawValue, sourceBytes: end.sourceBytes,
          reasons: end.item.reasons)
        attempt.identity = end.identity
        attempt.digest = end.digest
        attempt.host = MachineName.text
        try ledger.add(attempt)
        guard end.item.verdict == .restored else { continue }
        if var kept = end.kept {
          kept.run = rollback
          try ledger.add(kept)
        }
        try ledger.set(.restored, ofBackup: end.attemptedBackup, at: now)
      }
    }
    for end in tried where end.item.verdict == .restored {
      let directory = Self.directory(of: FilePath(end.item.store), in: places.state)
      if try directory.exists { try directory.remove() }
    }
  }
}
