import Foundation
import GodwitPrograms
import SystemPackage

/// Who starts the tasks of arrays. What it says is a hint: when to look again, and what to submit again.
/// Whether a bundle is finished, its folder says.
protocol ArrayScheduler: Sendable {
  /// What it allows.
  func limits() async throws -> SchedulerLimits

  /// Starts tasks of an array.
  ///
  /// - Parameters:
  ///   - indices: In ascending order.
  ///   - after: Names of arrays that must have ended before.
  ///   - isOfLargeStore: Whether others should give way to it: the steps of a store take their time
  ///     one after the other.
  /// - Returns: The scheduler's name for it.
  /// - Throws: ``ClusterError/scheduler(message:)``; ``ClusterError/unanswered(message:)`` and
  ///   ``ClusterError/full(message:)``, and the tasks may have been submitted all the same.
  func submit(
    _ array: BundleFolder, _ indices: [Int], after: [String], isOfLargeStore: Bool
  ) async throws -> String

  /// The tasks that are not over, by the names of their arrays; nil where nobody can be asked.
  ///
  /// - Throws: ``ClusterError`` where it does not answer, which says nothing of any task.
  func tasks(of arrays: [String]) async throws -> [String: [Int: TaskState]]?

  /// Ends the tasks of arrays, or keeps them from beginning.
  func cancel(_ arrays: [String]) async

  /// Ends single tasks, by the scheduler's names of them.
  func cancel(tasks: [String]) async

  /// Submits the next start of the run itself, after arrays have ended.
  ///
  /// - Parameter isLater: Whether it waits some minutes, too.
  func submitFollower(
    _ command: [String], name: String, in state: FilePath, after: [String], isLater: Bool
  ) async throws -> String?
}

/// What a scheduler allows.
struct SchedulerLimits: Sendable, Equatable {
  /// The most tasks of an array.
  var arrayTasks = ClusterSettings.mostTasks
  /// The most tasks that should wait or run at a time.
  var tasks = 5_000
  /// How many tasks can run at a time.
  var slots: Int
}

/// What a scheduler says of a task.
struct TaskState: Sendable, Equatable {
  enum Phase: Sendable, Equatable {
    case waiting, running
    /// It waits, and will not begin unless somebody does something.
    case held
  }

  var phase: Phase
  /// The scheduler's name of the task.
  var name = ""
  /// The scheduler's words for why it waits.
  var reason: String
  var node: String?
}

/// No scheduler at all: somebody runs the manifests, see `godwit worker --manifest`.
struct ManualScheduler: ArrayScheduler {
  let slots: Int

  func limits() async throws -> SchedulerLimits {
    SchedulerLimits(tasks: .max, slots: slots)
  }

  func submit(
    _ array: BundleFolder, _ indices: [Int], after: [String], isOfLargeStore: Bool
  ) async throws -> String { "" }

  /// Nobody knows; only leases tell.
  func tasks(of arrays: [String]) async -> [String: [Int: TaskState]]? { nil }
  func cancel(_ arrays: [String]) async {}
  func cancel(tasks: [String]) async {}
  func submitFollower(
    _ command: [String], name: String, in state: FilePath, after: [String], isLater: Bool
  ) async throws -> String? { nil }
}
