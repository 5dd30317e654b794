import GodwitFleet
import Synchronization

/// What is known of a rehearsal while it lasts, for one that a second signal ends.
final class RehearsalProgress: Sendable {
  private struct State {
    var summary: PipelineSummary
    var ended = 0
    var isReported = false
  }

  private let state: Mutex<State>

  init(name: String) { state = Mutex(State(summary: PipelineSummary(pipeline: name))) }

  /// How many stores have a result.
  var ended: Int { state.withLock { $0.ended } }

  func begin(_ found: PipelineStart) {
    state.withLock { $0.summary.found = found.stores }
  }

  /// - Parameter isStore: False for a folder that cannot be read.
  func add(_ result: MigrationResult, isStore: Bool) {
    state.withLock {
      if isStore { $0.ended += 1 } else { $0.summary.found += 1 }
      $0.summary.count(result)
    }
  }

  /// - Returns: What is known, all other stores as pending; nil for every call but the first: a rehearsal that
  ///   comes to its end while a signal ends it has one summary.
  func end() -> PipelineSummary? {
    state.withLock { state in
      defer { state.isReported = true }
      guard !state.isReported else { return nil }
      var summary = state.summary
      summary.countTheRest()
      return summary
    }
  }
}
