import GodwitFleet
import Synchronization

/// What is known of a rehearsal while it lasts, for one that a second signal ends.
final class RehearsalProgress: Sendable {
  private struct State {
    var summary: PipelineSummary
    var ended = 0
    /// How it ended, once that is told.
    var end: Result<ExitStatus, any Error>?
  }

  private let state: Mutex<State>

  init(name: String) { state = Mutex(State(summary: PipelineSummary(pipeline: name))) }

  /// How many stores have a result.
  var ended: Int { state.withLock { $0.ended } }

  func begin(_ found: PipelineStart) {
    state.withLock { $0.summary.found = found.stores }
  }

  /// Takes a result; nothing once the end is told.
  ///
  /// - Parameters:
  ///   - isStore: False for a folder that cannot be read.
  ///   - tell: Says it. Nothing else is told meanwhile.
  func add(_ result: MigrationResult, isStore: Bool, tell: () -> Void) {
    state.withLock { state in
      guard state.end == nil else { return }
      if isStore { state.ended += 1 } else { state.summary.found += 1 }
      state.summary.count(result)
      tell()
    }
  }

  /// Tells the end. The first call counts, and any other waits for it: a rehearsal that comes to its end while
  /// a signal ends it has one summary.
  ///
  /// - Parameter tell: Is given what is known, all other stores as pending.
  /// - Returns: How the first call ended.
  func end(_ tell: (PipelineSummary) throws -> ExitStatus) -> Result<ExitStatus, any Error> {
    state.withLock { state in
      if let end = state.end { return end }
      var summary = state.summary
      summary.countTheRest()
      let end = Result { try tell(summary) }
      state.end = end
      return end
    }
  }
}
