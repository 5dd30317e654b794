import Foundation
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
    let (books, ledger, settings) = (setting.books, setting.ledger, setting.settings)
    let start = Date().timeIntervalSince1970
    if let refusal = Self.refusal(of: store) {
      books.add(
        refusal, of: store, from: start, lane: nil, mark: StoreFiles(store.path).markName)
      return Outcome(store: store, result: refusal)
    }
    guard setting.lease.isCurrent else {
      let error = CommitError.leaseLost(store: store.path)
      return Outcome(store: store, result: MigrationResult(failing: store.path.string, with: error))
    }
    let request = request(for: store)
    let known = ledger.entry(of: store.path)
    if let known, known.settings == settings,
      let result = try? unchanged(store, request.output, since: known, run: ledger.run)
    {
      return result
    }
    let mark = StoreFiles(store.path).markName
    if let known = books.quarantined[store.path.string], known.mark == mark,
      known.settings == settings
    {
      return Outcome(store: store, result: MigrationResult(quarantined: known))
    }
    let lane = lanes.take()
    defer { lanes.giveBack(lane) }
    let isRecorded = StopFlag()
    let isMigratedByThisRun = known?.verdict == .migrated && known?.run == ledger.run
    var task = task(store, workers: workers, settings)
    task.lease = setting.lease.token
    var result = await perform(task, of: store, setting) { result in
      guard result.verdict != .pending, result.verdict != .sameModel || !isMigratedByThisRun
      else { return }
      var entry = PipelineLedger.Entry(result, of: store, run: ledger.run, settings)
      entry.attempt = LedgerAttempt(
        result, of: store, run: ledger.run, started: start, ended: entry.time, lane: lane)
      entry.backupRecord = LedgerBackup(result, of: store, run: ledger.run, at: entry.time)
      try await ledger.record(entry)
      books.add(entry, mark: mark, result)
      isRecorded.set()
    }
    if result.verdict == .sameModel, let known, isMigratedByThisRun {
      return Outcome(
        store: store, result: Self.earlier(known, "An earlier start of this run migrated it"),
        isEarlier: true)
    }
    if result.isInUse, pipeline.stores.inUse == .snapshot, !Task.isCancelled {
      if let known, let earlier = try? sameSnapshot(store, known, settings) { return earlier }
      result = await migrateSnapshot(task, of: store, setting)
    }
    if !isRecorded.isSet { books.add(result, of: store, from: start, lane: lane, mark: mark) }
    return Outcome(store: store, result: result)
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

  /// What became of a store that is as the ledger says it was left; nil where it has to be looked at.
  func unchanged(
    _ store: FoundStore, _ output: FilePath?, since known: PipelineLedger.Entry, run: String
  ) throws -> Outcome? {
    guard known.verdict == .migrated || known.verdict == .sameModel else { return nil }
    if let output {
      guard known.verdict == .migrated, try FileKind(at: output) == .regular,
        known.output == output.string,
        known.identity == (try StoreFiles(store.path).identity().name)
      else { return nil }
    } else {
      guard let final = known.finalIdentity,
        final == (try StoreFiles(store.path).identity().name)
      else { return nil }
    }
    // A run that was killed between the record and the end leaves its directory.
    let directory = directory(of: store)
    if try directory.exists {
      guard output != nil else { return nil }
      try directory.remove()
    }
    if known.verdict == .migrated, output != nil || known.run == run {
      let words =
        output == nil ? "An earlier start of this run migrated it" : "Its output was written before"
      return Outcome(store: store, result: Self.earlier(known, words), isEarlier: true)
    }
    return Outcome(
      store: store,
      result: MigrationResult(store: store.path.string, verdict: .sameModel, ending: .done))
  }

  static func earlier(_ known: PipelineLedger.Entry, _ words: String) -> MigrationResult {
    var result = MigrationResult(
      store: known.store, verdict: .migrated, ending: .done, notes: ["\(words)."])
    result.source = known.source
    result.destination = known.destination
    result.output = known.output
    result.backup = known.backup
    result.rows = known.rows
    result.losses = known.losses ?? []
    return result
  }

  static func refusal(of store: FoundStore) -> MigrationResult? {
    guard let link = store.escapingSymlink else { return nil }
    return MigrationResult(
      store: store.path.string, verdict: .failed, ending: .badInput,
      reasons: [
        Reason(
          reason: "link",
          message:
            "\(link) is a symbolic link, and may lead out of the root \(store.root). Put the "
            + "file or folder itself there, or exclude the store.")
      ])
  }
}

extension PipelineLedger.Entry {
  init(
    _ result: MigrationResult, of store: FoundStore, run: String, _ settings: String
  ) {
    self.init(
      run: run, store: store.path.string, verdict: result.verdict,
      time: Date().timeIntervalSince1970, settings: settings,
      identity: result.sourceIdentity, finalIdentity: result.finalIdentity, source: result.source,
      destination: result.destination, output: result.output,
      backup: result.backup, rows: result.rows,
      losses: result.losses.isEmpty ? nil : result.losses, code: result.code,
      message: result.reasons.first?.message)
  }
}
