import Foundation
import GodwitFleet
import GodwitPlanning
import Synchronization

/// The two streams. Results go to standard output, everything else to standard error.
enum Output {
  private static let lock = Mutex(())

  /// A line of the result.
  static func result(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }

  static func result(json value: some Encodable) { result(JSONLine.text(of: value)) }

  /// A line for a person: what happened, where, what to do next.
  static func say(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

  /// Text that moves the cursor itself, for a progress bar.
  static func draw(_ text: String) { write(text, to: STDERR_FILENO) }

  /// Whole lines, so that those of two threads do not mix. A reader that is gone ends nothing.
  private static func write(_ text: String, to descriptor: Int32) {
    lock.withLock { _ in
      var text = text
      text.withUTF8 { bytes in
        var rest = UnsafeRawBufferPointer(bytes)
        while !rest.isEmpty {
          let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
          if count < 0, errno == EINTR { continue }
          guard count > 0 else { return }
          rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
      }
    }
  }
}

/// The last line of a command that failed before it had a result, in the form of one.
struct FailureLine: Encodable {
  var event = "result"
  var verdict = "failed"
  var store: String?
  var reasons: [Reason]

  init(store: String? = nil, reason: String, message: String) {
    self.store = store
    reasons = [Reason(reason: reason, message: message)]
  }
}

/// An error of a command itself, with how it ends.
struct CommandError: Error, CustomStringConvertible {
  var ending: MigrationResult.Ending
  /// One word for `reasons`.
  var reason: String
  var description: String

  init(_ ending: MigrationResult.Ending, _ reason: String, _ message: String) {
    self.ending = ending
    self.reason = reason
    description = message
  }
}

/// What an error comes to: a command's own, or one of the rooms below.
func ending(
  of error: any Error
) -> (ending: MigrationResult.Ending, reason: String, message: String) {
  guard let own = error as? CommandError else { return RetryPolicy.ending(of: error) }
  return (own.ending, own.reason, own.description)
}
