import Foundation
import GodwitCheckpoints
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// Performs the tasks of one store on a thread of this process, one after the other.
///
/// For a store that is not worth a process of its own. The process that coordinates it is the unit
/// of crash isolation: a crash ends the attempt at this store and nothing else.
final class StageThread: StageWorkers {
  private typealias Batch = AsyncThrowingStream<FinishedTask, any Error>.Continuation

  private struct State {
    var waiting: [(tasks: [WorkerTask], stream: Batch)] = []
    /// Nil before there is one.
    var assembled: String?
    var isClosed = false
    var peakRSS: Int64 = 0
    var hasEnded = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)

  private init() {}

  /// Makes a thread for the length of `body`. It has ended when this returns, unless the task is
  /// cancelled: the process is about to end then.
  ///
  /// - Throws: What the body throws; `Errno` where the system allows no further thread.
  static func serving<Result: Sendable>(
    _ plan: MigrationPlan, _ run: RunDirectory, _ policies: PolicyRegistry,
    _ body: (StageThread) async throws -> Result
  ) async throws -> Result {
    let thread = StageThread()
    try BlockingThread.run { thread.serve(plan, run, policies) }
    do {
      let result = try await body(thread)
      await thread.close()
      return result
    } catch {
      await thread.close()
      throw error
    }
  }

  func perform(_ tasks: [WorkerTask]) -> AsyncThrowingStream<FinishedTask, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: FinishedTask.self)
    state.withLock { $0.waiting.append((tasks, continuation)) }
    work.signal()
    return stream
  }

  func open(assembled path: FilePath) { state.withLock { $0.assembled = path.string } }

  var peakRSS: Int64 { state.withLock { $0.peakRSS } }

  private func close() async {
    state.withLock { $0.isClosed = true }
    work.signal()
    if Task.isCancelled { return }
    await withCheckedContinuation { waiter in
      let isOver = state.withLock { state in
        if !state.hasEnded { state.waiter = waiter }
        return state.hasEnded
      }
      if isOver { waiter.resume() }
    }
  }
}

// The thread.
extension StageThread {
  private func serve(_ plan: MigrationPlan, _ run: RunDirectory, _ policies: PolicyRegistry) {
    serveBatches(TaskRunner(policies: policies), plan, run)
    let waiter = state.withLock { state in
      state.hasEnded = true
      return state.waiter
    }
    waiter?.resume()
  }

  /// On return nothing of the runner is left open.
  private func serveBatches(
    _ runner: consuming TaskRunner, _ plan: MigrationPlan, _ run: RunDirectory
  ) {
    runner.open(run, plan: plan, assembled: nil)
    var opened: String?
    while true {
      work.wait()
      let (next, assembled) = state.withLock { state in
        (
          state.isClosed || state.waiting.isEmpty ? nil : state.waiting.removeFirst(),
          state.assembled
        )
      }
      guard let (tasks, stream) = next else { return }
      if assembled != opened {
        runner.open(run, plan: plan, assembled: assembled)
        opened = assembled
      }
      do {
        for task in tasks { stream.yield(try perform(task, runner)) }
        stream.finish()
      } catch {
        stream.finish(throwing: error)
      }
    }
  }

  private func perform(_ task: WorkerTask, _ runner: TaskRunner) throws -> FinishedTask {
    var failures = 0
    while true {
      Pace.keep(until: { self.state.withLock { $0.isClosed } })
      if state.withLock({ $0.isClosed }) { throw CancellationError() }
      switch runner.perform(task) {
      case .success(let finished):
        state.withLock { $0.peakRSS = max($0.peakRSS, finished.peakRSS) }
        return finished
      case .failure(let failed):
        failures += 1
        guard RetryPolicy.allowsRetry(failed.error, failures: failures) else {
          throw FleetError.task(failed)
        }
      }
    }
  }
}
