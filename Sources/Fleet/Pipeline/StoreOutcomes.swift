import GodwitLedger
import GodwitPlanning
import Synchronization
import SystemPackage

/// What became of the stores of a start of a run, so that each of them has one result.
final class StoreOutcomes: Sendable {
  private struct State {
    var ended: [FilePath: LedgerStanding] = [:]
    var later: [FilePath: MigrationResult] = [:]
  }

  private let state = Mutex(State())

  /// A store has its result.
  func add(_ store: FoundStore, _ result: MigrationResult) {
    let standing = LedgerStanding(store: store.path.string, result)
    state.withLock {
      $0.ended[store.path] = standing
      $0.later[store.path] = nil
    }
  }

  /// A store is to be tried again.
  func addLater(_ store: FoundStore, _ result: MigrationResult) {
    state.withLock { $0.later[store.path] = result }
  }

  func hasResult(of store: FoundStore) -> Bool {
    state.withLock { $0.ended[store.path] != nil }
  }

  /// What is known of all stores that have a result.
  var standings: [LedgerStanding] { state.withLock { Array($0.ended.values) } }

  /// The stores that have no result yet, when nothing further begins, each with what it was when it was to
  /// be tried again; nil where this start has not come to it.
  func rest(of stores: [FoundStore]) -> [(store: FoundStore, later: MigrationResult?)] {
    state.withLock { state in
      stores.compactMap { state.ended[$0.path] == nil ? ($0, state.later[$0.path]) : nil }
    }
  }
}

extension MigrationResult {
  /// A store that a run has not come to before it ended.
  init(notBegun store: String) {
    self.init(
      store: store, verdict: .pending, ending: .resumable,
      reasons: [
        Reason(
          reason: LedgerStanding.notBegunReason,
          message: LedgerStanding.notBegunMessage + " Run the same command again.")
      ])
  }

  /// Whether the store was under way when a run was stopped, or the run had not come to it.
  package var isStopped: Bool { reasons.first?.reason == LedgerStanding.notBegunReason }

  /// The same of a plan and a rehearsal: of a store that they were stopped in, nothing is kept.
  var keepingNothing: MigrationResult {
    guard isStopped else { return self }
    var result = self
    result.reasons = MigrationResult(notBegun: store).reasons
    return result
  }
}

extension MigrationResult {
  /// Whether the store was in use and stays as it is, and a snapshot of it was migrated.
  package var isSnapshot: Bool {
    LedgerStanding.verdict(verdict.rawValue, output: output, ofStore: store)
      == LedgerStanding.snapshot
  }
}

extension LedgerStanding {
  init(store: String, _ result: MigrationResult) {
    let first = result.reasons.first
    self.init(
      store: store, verdict: result.verdict.rawValue, output: result.output, code: result.code,
      reason: first?.reason, message: first?.message)
  }
}
