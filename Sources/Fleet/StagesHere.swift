import GodwitCheckpoints
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// Performs the tasks of one store on its ``StoreThread``, one after the other.
///
/// For a store that is not worth a process of its own. The process that coordinates it is the unit
/// of crash isolation: a crash ends the attempt at this store and nothing else.
///
/// Unchecked, since nobody but that thread uses it.
final class StagesHere: StageWorkers, @unchecked Sendable {
  private let plan: MigrationPlan
  private let run: RunDirectory
  private let opened: OpenedStores
  private var runner: TaskRunner?
  private let stop = StopFlag()
  /// Of the process, and asked for once a store: to tell it costs more than a small task.
  var peakRSS: Int64 { ProcessMemory.peakResidentBytes }

  private init(
    _ plan: MigrationPlan, _ run: RunDirectory, _ policies: PolicyRegistry, _ opened: OpenedStores
  ) {
    (self.plan, self.run, self.opened) = (plan, run, opened)
    let runner = TaskRunner(policies: policies)
    runner.open(run, plan: plan, source: opened.source?.connection, assembled: nil)
    self.runner = runner
  }

  /// Makes one for the length of `body`. Nothing of the store is left open when this returns.
  static func serving<Result: Sendable>(
    _ plan: MigrationPlan, _ run: RunDirectory, _ policies: PolicyRegistry, _ opened: OpenedStores,
    _ body: (StagesHere) async throws -> Result
  ) async throws -> Result {
    let stages = StagesHere(plan, run, policies, opened)
    defer {
      stages.runner = nil
      opened.close()
    }
    return try await withTaskCancellationHandler {
      try await body(stages)
    } onCancel: {
      stages.stop.set()
    }
  }

  /// All tasks are done when this returns.
  func perform(_ tasks: [WorkerTask]) -> AsyncThrowingStream<FinishedTask, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: FinishedTask.self)
    do {
      for task in tasks { continuation.yield(try perform(task)) }
      continuation.finish()
    } catch {
      continuation.finish(throwing: error)
    }
    return stream
  }

  func open(assembled path: FilePath) {
    runner?.open { try AssembledFile(path, plan, run, opened).open() }
  }

  private func perform(_ task: WorkerTask) throws -> FinishedTask {
    var failures = 0
    while true {
      Pace.keep(until: { stop.isSet })
      guard !stop.isSet, let runner else { throw CancellationError() }
      switch runner.perform(task) {
      case .success(let finished): return finished
      case .failure(let failed):
        failures += 1
        guard RetryPolicy.allowsRetry(failed.error, failures: failures) else {
          throw FleetError.task(failed)
        }
      }
    }
  }
}
