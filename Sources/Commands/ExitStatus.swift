import ArgumentParser
import GodwitFleet

/// The numbers a command may end with. They are an interface: a number never changes its meaning.
///
/// Where sysexits(3) has a number for it, that one is taken.
package enum ExitStatus: Int32, Sendable, CaseIterable {
  /// All done, or nothing to do.
  case success = 0
  /// A mistake of ours.
  case fatal = 1
  /// Finished, and some stores failed or are quarantined.
  case someFailed = 3
  /// Stopped by the failure budget.
  case failureBudget = 4
  /// Another run holds the lock.
  case locked = 11
  case usage = 64
  /// Store, model or mapping are not good enough.
  case badInput = 65
  case engineUnavailable = 69
  case cannotCreateOutput = 73
  case inputOutput = 74
  /// Stopped early by a signal, a window or a full disk; running again resumes.
  case resumable = 75
  case configuration = 78

  package init(_ ending: MigrationResult.Ending) {
    self =
      switch ending {
      case .done: .success
      case .badInput: .badInput
      case .cannotCreateOutput: .cannotCreateOutput
      case .inputOutput: .inputOutput
      case .resumable: .resumable
      case .locked: .locked
      case .engineUnavailable: .engineUnavailable
      case .usage: .usage
      case .configuration: .configuration
      case .fatal: .fatal
      }
  }

  /// What a command throws when it has said everything itself.
  var exit: ExitCode { ExitCode(rawValue) }
}
