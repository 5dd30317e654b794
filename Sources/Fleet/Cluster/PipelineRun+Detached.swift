import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// What the starts of a detached run leave to one another: on a cluster they are one start, that comes to its end once.
extension PipelineRun {
  /// What a store came to in an earlier start, where that one was detached or killed: on a cluster such
  /// starts are one, and each store has one result. Once a start has come to its end, by its failure budget or
  /// otherwise, every store is looked at again.
  func ended(
    _ store: FoundStore, _ known: PipelineLedger.Entry, _ books: any StoreBooks
  ) -> Outcome? {
    if let reasons = tries(known, books)?.end {
      if reasons.isEmpty { return try? sameSnapshot(store, known, books) }
      return Outcome(
        store: store,
        result: MigrationResult(
          store: store.path.string, verdict: .pending, ending: .resumable, reasons: reasons))
    }
    guard hasEnded(known, books), SettingsDigest.areSame(known.settings, books.settings) else {
      return nil
    }
    switch known.verdict {
    case .sameModel: return Outcome(store: store, result: sameModel(known))
    case .migrated:
      if let output = known.output, !isPlace(output, of: store) { return nil }
      // It may have been put back.
      if let trace = known.backup ?? known.output,
        (try? FileKind(at: FilePath(trace))) != .regular
      {
        return nil
      }
      return Outcome(store: store, result: earlierStart(known, books), isEarlier: true)
    case .failed, .refused, .needsMapping:
      guard let failure = failure(known, books) else { return nil }
      books.recall(failure, known)
      return Outcome(store: store, result: failure)
    case .pending, .quarantined: return nil
    }
  }

  /// Whether a store has its result, whatever an application makes of it until a start comes to its end.
  private func hasEnded(_ known: PipelineLedger.Entry, _ books: any StoreBooks) -> Bool {
    known.run == books.run && known.ended == books.ended
      && !books.isForgotten(FilePath(known.store))
  }

  /// What earlier starts of a run that is asked the same have come to with a pending store.
  func tries(
    _ known: PipelineLedger.Entry, _ books: any StoreBooks
  ) -> PipelineLedger.Entry.Tries? {
    guard !books.isForgotten(FilePath(known.store)), let tries = known.tries,
      tries.run == books.run, tries.ended == books.ended,
      tries.request == requestDigest(books.settings)
    else { return nil }
    return tries
  }

  /// A failure counts once. The store is tried again, as often as in one start, where it is another since, or where
  /// the failure may pass.
  private func failure(
    _ known: PipelineLedger.Entry, _ books: any StoreBooks
  ) -> MigrationResult? {
    var result = MigrationResult(store: known.store, verdict: known.verdict, ending: .badInput)
    if (known.failures ?? 1) < RetryPolicy.attempts,
      RetryPolicy.mayPass(known.reason)
        || known.mark != StoreFiles(FilePath(known.store)).markName
    {
      return nil
    }
    result.reasons = [Reason(reason: known.reason ?? "failed", message: known.message ?? "")]
    result.code = known.code
    result.take(known, books)
    return result
  }

  /// Takes what became of stores. Of those that stay as they are it is written down how often they were tried: each
  /// start would have them tried from the beginning otherwise, and a run of several waves would never end.
  func take(
    _ outcomes: [Outcome], _ flow: inout RunFlow, _ setting: Setting,
    _ summary: inout PipelineSummary
  ) async throws {
    let books = setting.books
    var pending: [PipelineLedger.Entry] = []
    for outcome in outcomes {
      let (store, result) = (outcome.store, outcome.result)
      let before = flow.attempts[store.path]
      let isEnd = take(outcome, &flow, setting, &summary)
      guard result.verdict == .pending || (outcome.isEarlier && result.isSnapshot) else { continue }
      let isNew = books.isForgotten(store.path) && result.verdict == .pending
      let known = isNew ? nil : books.entry(of: store.path)
      if let known, tries(known, books)?.end != nil || (outcome.isEarlier && hasEnded(known, books))
      {
        continue
      }
      let now = SteadyClock.seconds
      let (count, since) = flow.attempts[store.path] ?? before ?? (0, now)
      var entry = known ?? .init(pending: store, run: books.run)
      entry.tries = .init(
        run: books.run, ended: books.ended, request: requestDigest(books.settings), count: count,
        since: Date().timeIntervalSince1970 - (now - since),
        end: isEnd ? result.verdict == .pending ? result.reasons : [] : nil)
      pending.append(entry)
    }
    guard !pending.isEmpty, !setting.isLost else { return }
    try setting.lease.requireCurrent()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for entry in pending { group.addTask { try await books.keep(entry) } }
      try await group.waitForAll()
    }
  }
}
