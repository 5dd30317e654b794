@preconcurrency import Foundation
import GodwitFixtures
import GodwitFleet
import GodwitPlanning
import GodwitRepair
import GodwitReport
import Synchronization
import SystemPackage

/// The two streams. Results go to standard output, everything else to standard error.
///
/// A result that cannot be written ends nothing: the command goes on, and ends with
/// ``ExitStatus/inputOutput``.
enum Output {
  /// Guards the streams, and holds why standard output could not be written.
  private static let state = Mutex<Errno?>(nil)

  /// Where results go: standard output, or a descriptor of its own for it.
  nonisolated(unsafe) private static var results = STDOUT_FILENO

  /// Keeps standard output for results, where code of a team's own runs in this process: what that prints
  /// goes to standard error. To be called once, before there is a second thread.
  static func keepForResults() {
    let own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
    guard own >= 0, dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 else { return }
    results = own
    setvbuf(stdout, nil, _IOLBF, 0)
  }

  /// Why a line of the result is lost; nil where none is.
  static var failure: Errno? { state.withLock { $0 } }

  /// A line of the result for a person.
  static func result(_ line: String) { result(raw: VisibleText.line(line)) }

  /// A result of several lines.
  static func result(text: String) { result(raw: VisibleText.lines(text)) }

  /// A result that is what a file would hold: as it is, but on a terminal.
  ///
  /// - Parameter text: Ends with a line break or without one, which is the same.
  static func result(document text: String) { result(document: [text]) }

  /// - Parameter parts: The text.
  static func result(document parts: some Sequence<String>) {
    var isEnded = false
    for part in parts {
      isEnded = part.hasSuffix("\n")
      result(raw: isatty(results) == 1 ? VisibleText.lines(part) : part, end: "")
    }
    if !isEnded { result(raw: "") }
  }

  static func result(json value: some Encodable) { result(jsonLine: JSONLine.text(of: value)) }

  /// A result that is JSON already, and escapes what it must.
  static func result(jsonLine: String) { result(raw: jsonLine) }

  private static func result(raw text: String, end: String = "\n") {
    state.withLock { failure in
      // After one lost line the rest would read as if it were all.
      guard failure == nil else { return }
      failure = write(text + end, to: results)
    }
  }

  /// A line for a person: what happened, where, what to do next.
  static func say(_ line: String) { draw(VisibleText.line(line) + "\n") }

  /// Several lines for a person.
  static func say(text: String) { draw(VisibleText.lines(text) + "\n") }

  /// Text that moves the cursor itself, for a progress bar. Names in it went through ``VisibleText``.
  static func draw(_ text: String) { state.withLock { _ in _ = write(text, to: STDERR_FILENO) } }

  /// Makes the streams safe, before anything is opened.
  ///
  /// A reader that goes away ends nothing. A stream that is closed keeps its number: the next file
  /// to be opened, a store perhaps, would get it otherwise, and lines would be written into it.
  static func prepare() {
    signal(SIGPIPE, SIG_IGN)
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest free number, which is this one. Writing to it fails as it did before.
      _ = open("/dev/null", O_RDONLY)
    }
  }

  /// Whole lines, so that those of two threads do not mix.
  ///
  /// - Returns: Why not everything was written; nil where it was.
  private static func write(_ text: String, to descriptor: Int32) -> Errno? {
    var text = text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count == 0 ? .ioError : Errno(rawValue: errno) }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return nil
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

/// What an error means: a command's own, or a target's below.
func ending(
  of error: any Error
) -> (ending: MigrationResult.Ending, reason: String, message: String) {
  let own =
    error as? CommandError ?? (error as? FixtureError)?.ending ?? (error as? RepairError)?.ending
  guard let own else { return RetryPolicy.ending(of: error) }
  return (own.ending, own.reason, own.description)
}
