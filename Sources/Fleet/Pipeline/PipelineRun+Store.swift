import Foundation
import Glibc
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// What becomes of one store.
extension PipelineRun {
  struct Outcome: Sendable {
    var store: FoundStore
    var result: MigrationResult
    /// Migrated before this start.
    var isEarlier = false
  }

  func migrate(_ store: FoundStore, workers: Int, _ setting: Setting) async -> Outcome {
    let books = setting.books
    if let outcome = settled(store, setting) {
      if outcome.result.verdict == .sameModel, !outcome.result.notes.isEmpty {
        books.add(
          outcome.result,
          StoreFacts(store: store, started: Date().timeIntervalSince1970, mark: ""))
      }
      return outcome
    }
    let known = books.entry(of: store.path)
    let lane = lanes.take()
    defer { lanes.giveBack(lane) }
    let facts = StoreFacts(
      store: store, started: Date().timeIntervalSince1970, lane: lane,
      mark: StoreFiles(store.path).markName)
    let isRecorded = StopFlag()
    let isMigratedByThisRun = known?.verdict == .migrated && known?.run == books.run
    var task = task(store, workers: workers, books.settings)
    (task.lease, task.permit, task.code) = (setting.lease.token, setting.permit, books.code)
    task.owner = CommitJournal.Owner(
      run: books.run, pipeline: places.owner.pipeline, file: places.owner.file)
    if workers == 0 { books.enter() }
    let kept = keptOutput(of: store, known, books)
    var result = await perform(task, of: store, setting) { result in
      if result.isOfEarlierCommit { return try await books.record(result, facts) }
      guard result.verdict != .pending, result.verdict != .sameModel || !isMigratedByThisRun,
        Self.gone(store, insteadOf: result) == nil,
        !result.differs(fromOutput: kept?.entry.output)
      else { return }
      try await books.record(result, facts)
      isRecorded.set()
    }
    if workers == 0 { books.leave() }
    result = Self.gone(store, insteadOf: result) ?? result
    if result.verdict == .sameModel, let known, isMigratedByThisRun {
      return Outcome(store: store, result: earlierStart(known, books), isEarlier: true)
    }
    if let kept, result.differs(fromOutput: kept.entry.output) {
      // Where it cannot be written down, the next start tries once more.
      try? await books.keep(kept.entry)
      return kept.outcome
    }
    if result.isInUse, pipeline.stores.inUse == .snapshot, !Task.isCancelled {
      if let earlier = try? sameSnapshot(store, known, books) { return earlier }
      let identity = store.snapshotIdentity
      // Who knows the snapshot looks again, and says what became of the store.
      if identity == nil || identity != (try? StoreFiles(store.path).identity().name) {
        result = await migrateSnapshot(task, of: store, setting)
      }
    }
    if !isRecorded.isSet { books.add(result, facts) }
    // A directory that stayed would be taken for a migration of the next run. The books of a task do not tell
    // what it wrote into them.
    let own =
      isRecorded.isSet
      ? PipelineLedger.Entry(result, of: store, run: books.run, books.settings) : nil
    try? clear(store, setting, own)
    return Outcome(store: store, result: result)
  }

  /// What became of a store for which nothing has to be done; nil where it has to be looked at.
  func settled(_ store: FoundStore, _ setting: Setting) -> Outcome? {
    let books = setting.books
    if let refusal = Self.refusal(of: store) {
      let facts = StoreFacts(
        store: store, started: Date().timeIntervalSince1970, mark: StoreFiles(store.path).markName)
      books.add(refusal, facts)
      return Outcome(store: store, result: refusal)
    }
    if let gone = Self.gone(store) {
      // A bundle is whole once each of its stores has a result.
      books.add(
        gone, StoreFacts(store: store, started: Date().timeIntervalSince1970, mark: ""))
      return Outcome(store: store, result: gone)
    }
    if let loss = setting.loss {
      let error =
        if case .lockGone(let lock) = loss {
          CommitError.lockGone(store: store.path, lock: lock)
        } else {
          CommitError.leaseLost(store: store.path)
        }
      return Outcome(store: store, result: MigrationResult(failing: store.path.string, with: error))
    }
    if !isForgotten(store, books), let known = books.entry(of: store.path) {
      if let outcome = try? unchanged(store, request(for: store).output, since: known, books) {
        return outcome
      }
      if options.engine != .local, let ended = ended(store, known, books) { return ended }
    }
    if let known = books.quarantine(of: store.path) {
      return Outcome(store: store, result: MigrationResult(quarantined: known))
    }
    return nil
  }

  /// Whether what earlier runs came to with a store does not count.
  func isForgotten(_ store: FoundStore, _ books: any StoreBooks) -> Bool {
    books.isForgotten(store.path) || (options.isFresh && options.engine == .local)
  }

  /// Has a store done within the time that one may take.
  func perform(
    _ task: StoreTask, of store: FoundStore, _ setting: Setting,
    record: @escaping @Sendable (MigrationResult) async throws -> Void
  ) async -> MigrationResult {
    let observe = observe
    let perform: @Sendable () async -> MigrationResult = {
      await setting.hosts.perform(task, record: record, observe: { observe(.store(store, $0)) })
    }
    guard let limit = pipeline.limits.storeTimeoutSeconds else { return await perform() }
    let isOver = StopFlag()
    let result = await withTaskGroup(of: MigrationResult?.self) { group in
      group.addTask { await perform() }
      group.addTask {
        // A run that stands still takes no time.
        var left = limit
        while left > 0, !Task.isCancelled {
          let wait = min(left, 0.5)
          try? await Task.sleep(for: .seconds(wait))
          if !setting.isPaused.isSet { left -= wait }
        }
        if !Task.isCancelled { isOver.set() }
        return nil
      }
      var result: MigrationResult?
      for await next in group {
        result = result ?? next
        group.cancelAll()
      }
      return result
    }
    guard let result else { return MigrationResult(failing: task.store, with: CancellationError()) }
    guard isOver.isSet, result.verdict == .pending else { return result }
    let late = MigrationResult(
      failing: task.store, with: FleetError.timeout(store: task.store, seconds: limit))
    try? await record(late)
    return late
  }

  /// Removes the run directory of a finished store, where who worked in it ended between the store's
  /// result and its own end, or could not remove it. One that tells of another commit than the recorded one
  /// stays: that commit is still to be brought to its end.
  func clear(
    _ store: FoundStore, _ setting: Setting, _ own: PipelineLedger.Entry? = nil
  ) throws {
    let directory = directory(of: store)
    guard let known = setting.books.entry(of: store.path) ?? own, known.run == setting.books.run,
      known.verdict == .migrated || known.verdict == .sameModel, try directory.exists,
      try !FileLock.isHeld(at: directory.lock)
    else { return }
    guard try Self.holdsNoOther(commit: known, directory) else { return }
    try directory.remove()
  }

  private static func holdsNoOther(
    commit known: PipelineLedger.Entry, _ directory: RunDirectory
  ) throws -> Bool {
    do {
      guard let journal = try CommitJournal.read(in: directory) else { return true }
      return journal.kind == .replace
        ? journal.backup.store.string == known.backup : journal.store == known.output
    } catch is CommitError {
      return false
    }
  }

  /// What became of a store that is as the ledger says it was left; nil where it has to be looked at.
  func unchanged(
    _ store: FoundStore, _ output: FilePath?, since known: PipelineLedger.Entry,
    _ books: any StoreBooks
  ) throws -> Outcome? {
    guard known.verdict == .migrated || known.verdict == .sameModel else { return nil }
    // A run that was killed between the record and the end leaves its directory.
    let directory = directory(of: store)
    if let output {
      guard let outcome = try written(output, of: store, by: known, under: books.settings, books)
      else { return nil }
      if try directory.exists { try directory.remove() }
      return outcome
    }
    guard SettingsDigest.areSame(known.settings, books.settings), let final = known.finalIdentity,
      final == (try StoreFiles(store.path).identity().name), try !directory.exists
    else { return nil }
    if known.verdict == .migrated, known.run == books.run {
      return Outcome(store: store, result: earlierStart(known, books), isEarlier: true)
    }
    return Outcome(store: store, result: sameModel(known))
  }

  func sameModel(_ known: PipelineLedger.Entry) -> MigrationResult {
    var result = MigrationResult(store: known.store, verdict: .sameModel, ending: .done)
    if known.verdict == .sameModel {
      (result.source, result.destination) = (known.source, known.destination)
      result.notes = known.notes ?? []
    }
    return result
  }

  func earlierStart(_ known: PipelineLedger.Entry, _ books: any StoreBooks) -> MigrationResult {
    earlier(known, "An earlier start of this run migrated it", books)
  }

  /// What is said of a store that was migrated before: what was said of it then.
  func earlier(
    _ known: PipelineLedger.Entry, _ words: String, _ books: (any StoreBooks)?
  ) -> MigrationResult {
    var result = MigrationResult(
      store: known.store, verdict: .migrated, ending: .done, notes: ["\(words)."])
    result.take(known, books)
    return result
  }

  static func refusal(of store: FoundStore) -> MigrationResult? {
    guard let link = store.escapingSymlink else { return nil }
    return MigrationResult(
      store: store.path.string, verdict: .refused, ending: .badInput,
      reasons: [
        Reason(
          reason: "link",
          message:
            "\(link) is a symbolic link, and may lead out of the root \(store.root). Put the "
            + "file or folder itself there, or exclude the store.")
      ])
  }
}

extension MigrationResult {
  /// Says again what an earlier start has said of the store.
  mutating func take(_ known: PipelineLedger.Entry, _ books: (any StoreBooks)?) {
    (source, destination) = (known.source, known.destination)
    (output, backup, rows) = (known.output, known.backup, known.rows)
    losses = known.losses ?? []
    (setAside, rejects) = (known.setAside, known.rejects)
    if let path = known.rejects, (try? known.lacksRejects) == true {
      rejects = nil
      notes.append("Its store of rejects, \(path), is gone.")
    }
    guard let detail = books?.detail(of: FilePath(known.store)) else { return }
    reasons = detail.reasons ?? reasons
    (counts, path) = (detail.counts, detail.path)
    findings = detail.findings ?? []
    notes += detail.notes ?? []
    lostRights = detail.lostRights
  }
}

extension PipelineLedger.Entry {
  /// Of a store of which nothing else is known.
  init(pending store: FoundStore, run: String) {
    self.init(
      MigrationResult(store: store.path.string, verdict: .pending, ending: .resumable), of: store,
      run: run, "")
  }

  init(
    _ result: MigrationResult, of store: FoundStore, run: String, _ settings: String
  ) {
    self.init(
      run: run, store: store.path.string, verdict: result.verdict,
      time: Date().timeIntervalSince1970, settings: settings,
      identity: result.sourceIdentity, finalIdentity: result.finalIdentity, source: result.source,
      destination: result.destination, output: result.output,
      backup: result.backup, rows: result.rows,
      losses: result.losses.isEmpty ? nil : result.losses, setAside: result.setAside,
      rejects: result.rejects, code: result.code,
      reason: result.reasons.first?.reason, message: result.reasons.first?.message,
      notes: result.verdict == .sameModel && !result.notes.isEmpty ? result.notes : nil,
      outputMark: result.verdict == .migrated && result.backup == nil
        ? result.output.flatMap { .init(FilePath($0)) } : nil)
    guard outputMark != nil, let output else { return }
    let files = StoreFiles(FilePath(output)).externalDataFolder
    outputHasFiles = (try? FileKind(at: files)).map { $0 == .folder }
  }
}
