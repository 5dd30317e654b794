import Foundation
import GodwitPlanning
import GodwitWorker
import Synchronization
import SystemPackage

/// The ``StoreHost`` processes of a pipeline's run, each with one store at a time. One that ends
/// while it has a store is replaced when the next store needs one.
final class StoreHosts: Sendable {
  private let executable: FilePath
  private let arguments: [String]
  private let idle = Mutex<[WorkerProcess]>([])

  /// How long a process may be stopped by a signal before it is replaced, in seconds.
  private let stallLimit: Double

  init(
    executable: FilePath, arguments: [String], stallLimit: Double = WorkerTimeout.seconds
  ) {
    self.stallLimit = stallLimit
    self.executable = executable
    self.arguments = arguments
  }

  /// How long a store that is stopped may take for it before its process is ended.
  private static let graceSeconds = 10.0

  /// How long planning may take before it is ended: ten times what a worker may be silent, and the
  /// time to read the store at 4 MiB a second. After that a small store's process says that it gets on,
  /// and of a large store the workers have limits of their own.
  static func planningLimit(_ task: StoreTask) -> Double {
    WorkerTimeout.seconds * 10 + Double(task.bytes) / Double(4 << 20)
  }

  /// How long the process may be silent once there is a plan, in seconds; nil for as long as it likes.
  private static func silenceLimit(_ task: StoreTask) -> Double? {
    task.workers == 0 ? WorkerTimeout.seconds : nil
  }

  /// Has a store done. Cancelling the task stops it, resumable.
  ///
  /// - Parameters:
  ///   - record: Called with the result before the store's run directory goes.
  ///   - observe: Called with every event.
  func perform(
    _ task: StoreTask,
    record: @escaping @Sendable (MigrationResult) async throws -> Void = { _ in },
    observe: @escaping @Sendable (RunEvent) -> Void = { _ in }
  ) async -> MigrationResult {
    var failures = 0
    // What is written down of the store, by a process that was lost after it.
    var written: MigrationResult?
    while true {
      let host: WorkerProcess
      do {
        host =
          try idle.withLock { $0.popLast() }
          ?? WorkerProcess(
            executable: executable, arguments: arguments, stallLimit: stallLimit)
      } catch {
        return MigrationResult(
          failing: task.store,
          with: FleetError.workersDie(
            executable: executable.string, how: "could not be started: \(error)"))
      }
      host.expectWords(within: Self.planningLimit(task))
      host.send(StoreMessage.start(task).line)
      let end = await withTaskCancellationHandler {
        await follow(host, task, record, observe)
      } onCancel: {
        host.send(StoreMessage.stop.line)
        host.limitLife(to: Self.graceSeconds)
      }
      switch end {
      case .result(let result):
        host.limitLife(to: nil)
        idle.withLock { $0.append(host) }
        return result
      case .lost(let how, let isPlanned, let recorded):
        failures += 1
        written = recorded ?? written
        // Another process would find the store as that one left it, and say that nothing was to be done.
        if let written, written.verdict == .migrated || Task.isCancelled { return written }
        if Task.isCancelled {
          return MigrationResult(failing: task.store, with: CancellationError())
        }
        guard
          RetryPolicy.allowsRetry(
            ofLostProcess: how, performedStages: isPlanned && task.workers == 0,
            failures: failures)
        else {
          return written
            ?? MigrationResult(
              failing: task.store,
              with: FleetError.coordinationLost(
                store: task.store, how: how, attempts: failures))
        }
      }
    }
  }

  private enum End: Sendable {
    case result(MigrationResult)
    /// - Parameter recorded: What was written down of the store by then.
    case lost(String, isPlanned: Bool, recorded: MigrationResult? = nil)
  }

  /// Takes what a host says of a store. Not stopped by cancellation: the result of a store that is
  /// stopped is still to come.
  private func follow(
    _ host: WorkerProcess, _ task: StoreTask,
    _ record: @escaping @Sendable (MigrationResult) async throws -> Void,
    _ observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> End {
    await Task {
      var isPlanned = false
      var recorded: MigrationResult?
      for await event in host.events {
        switch event {
        case .ended(let how): return .lost(how, isPlanned: isPlanned, recorded: recorded)
        case .line(let line):
          switch StoreMessage(line: line) {
          case .event(let event): observe(event)
          case .planned:
            isPlanned = true
            host.expectWords(within: Self.silenceLimit(task))
          case .beat: break
          case .record(let end):
            // Now it waits for us.
            host.expectWords(within: nil)
            var failure: StoreMessage.Unrecorded?
            let result = end.whole
            do {
              try await record(result)
              if !result.isOfEarlierCommit { recorded = result }
            } catch {
              failure = StoreMessage.Unrecorded(error)
            }
            host.send(StoreMessage.recorded(failure: failure).line)
            host.expectWords(within: Self.silenceLimit(task))
          case .result(let end):
            host.expectWords(within: nil)
            return .result(end.whole)
          case .done(let cost):
            host.expectWords(within: nil)
            guard let recorded else {
              return .lost("ended a result that it had not given", isPlanned: isPlanned)
            }
            return .result(cost.added(to: recorded))
          case .start, .recorded, .stop, nil: host.stop()
          }
        }
      }
      return .lost("was stopped", isPlanned: isPlanned, recorded: recorded)
    }.value
  }

  /// Ends the processes; all of them have ended when this returns.
  func close() async {
    let hosts = idle.withLock { hosts in
      defer { hosts = [] }
      return hosts
    }
    for host in hosts { host.end() }
    for host in hosts { await host.waitForEnd() }
  }
}
