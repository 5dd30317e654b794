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

  /// The results of the stores that have none yet, when nothing further begins: each is as it was when it
  /// was to be tried again, or as no start has come to it.
  func results(ofRest stores: [FoundStore]) -> [(store: FoundStore, result: MigrationResult)] {
    state.withLock { state in
      stores.compactMap { store in
        guard state.ended[store.path] == nil else { return nil }
        return (store, state.later[store.path] ?? MigrationResult(notBegun: store.path.string))
      }
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
          message: LedgerStanding.notBegunMessage + " Run the same command again to resume.")
      ])
  }
}

extension LedgerStanding {
  init(store: String, _ result: MigrationResult) {
    let isGood = result.verdict == .migrated || result.verdict == .sameModel
    let first = isGood ? nil : result.reasons.first
    self.init(
      store: store, verdict: result.verdict.rawValue, code: isGood ? nil : result.code,
      reason: first?.reason, message: first?.message)
  }
}
