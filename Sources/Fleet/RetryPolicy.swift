import GodwitPlanning
import GodwitWorker

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Which errors are worth another try, and how a run ends with those that are not.
///
/// The rule: only proof that a checkpoint is unusable discards it. A full disk, a busy store or a
/// killed worker costs a retry, never finished work.
package enum RetryPolicy {
  /// 3. A worker that was killed by chance is killed once; a task that kills three is to blame.
  package static let attempts = 3
  /// The reason of a store that another start has taken over.
  static let leaseLost = "lease"
  /// The reason of objects that break a uniqueness constraint.
  static let uniqueness = "uniqueness"

  /// Whether a worker's task is given out again. A damaged store stays damaged and a full disk
  /// full; a read that failed may succeed.
  static func allowsRetry(_ failure: WorkerFailure, failures: Int) -> Bool {
    failure.kind == .io && failures < attempts
  }

  /// Whether a store is tried again whose coordinating process was lost. A signal from outside may
  /// not come again, and what other stores left open is closed; a crash and a planning without end do come again.
  ///
  /// - Parameter performedStages: The process was at the stages, too: it is tried again whatever
  ///   became of it, as a worker process is.
  static func allowsRetry(
    ofLostProcess how: String, performedStages: Bool, failures: Int
  ) -> Bool {
    (performedStages || how.hasSuffix("signal 9") || how.hasPrefix(WorkerProcess.stopped)
      || how == WorkerProcess.withoutFiles)
      && failures < attempts
  }

  /// How long to wait before a store is tried again in the same run, in seconds; nil where it is
  /// not. Only what passes is worth it: another process that uses the store, where the pipeline says
  /// to wait for it, and a read or write that failed.
  ///
  /// - Parameters:
  ///   - attempts: How often it was tried.
  ///   - waited: Since the first of them began, in seconds.
  static func secondsBeforeRetry(
    of result: MigrationResult, attempts: Int, waited: Double, inUse: InUsePolicy
  ) -> Double? {
    let pause = min(30, pow(2, Double(attempts - 1)))
    if result.isInUse, case .wait(let limit) = inUse {
      return waited < limit ? min(pause, limit - waited) : nil
    }
    guard result.verdict == .failed, result.ending == .inputOutput,
      result.reasons.first?.reason == "io", attempts < Self.attempts
    else { return nil }
    return pause
  }

  /// Whether the rows that a reason names are of the store that was being made.
  static func areKeysOfDestination(_ reason: String) -> Bool {
    reason == uniqueness || reason == "validation"
  }

  /// Whether a store that failed for a reason may succeed in the next start though nothing was changed.
  static func mayPass(_ reason: String?) -> Bool {
    ["io", "timeout", "ledger"].contains(reason)
  }

  /// What an error means for a command's end, in a word and a sentence.
  package static func ending(
    of error: any Error
  ) -> (ending: MigrationResult.Ending, reason: String, message: String) {
    let judgement = judgement(of: error)
    let first = judgement.reasons.first ?? Reason(reason: "internal", message: "\(error)")
    return (
      judgement.ending, first.reason, judgement.reasons.map(\.message).joined(separator: "\n")
    )
  }
}
