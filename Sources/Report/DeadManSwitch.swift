import Foundation
import GodwitPrograms

/// A service that raises an alarm when a run does not report: it is called when the run starts, and
/// when it ends, well or badly. Nothing that goes wrong with it ends or delays a run.
///
/// The addresses are those of Healthchecks (https://healthchecks.io/docs/http_api/) and what imitates
/// it: the address itself for success, with `/start` and `/fail` for the others. The program `curl`
/// calls it, found on the `PATH` when it is needed.
package struct DeadManSwitch: Sendable {
  package enum Signal: String, Sendable, CaseIterable {
    case start = "/start"
    case success = ""
    case failure = "/fail"
  }

  private let address: String
  private let program: String?
  private let timeoutSeconds: Int

  /// - Parameters:
  ///   - address: Of the web: `http` or `https`, without user or fragment.
  ///   - program: The path of `curl`.
  ///   - timeoutSeconds: How long a call may hold up the run.
  /// - Returns: Nil for an address that is none.
  package init?(
    address: String, program: String? = DeadManSwitch.program, timeoutSeconds: Int = 10
  ) {
    guard Self.isAddress(address) else { return nil }
    self.address = address
    self.program = program
    self.timeoutSeconds = timeoutSeconds
  }

  /// The path of `curl`; nil where it is not installed.
  package static var program: String? { HelperProgram(named: "curl")?.path }

  /// Tells whether a pipeline may name this address.
  package static func isAddress(_ text: String) -> Bool {
    guard let url = URLComponents(string: text), let host = url.host, !host.isEmpty,
      url.scheme == "https" || url.scheme == "http", url.user == nil, url.fragment == nil
    else { return false }
    // It stands between quotation marks in what curl reads.
    return text.unicodeScalars.allSatisfy {
      $0.value > 0x20 && $0.value < 0x7F && $0 != "\"" && $0 != "\\"
    }
  }

  /// Calls the address, and waits for it at most until the time is over.
  ///
  /// - Returns: Why it could not be called, for the log; nil where it was.
  package func send(_ signal: Signal) -> String? {
    guard let program else {
      return "The ping needs curl, and there is none on the PATH. Install Debian's package curl."
    }
    // The path may be followed by a query.
    var url = URLComponents(string: address)
    if let path = url?.percentEncodedPath, !signal.rawValue.isEmpty {
      url?.percentEncodedPath =
        (path.hasSuffix("/") ? String(path.dropLast()) : path) + signal.rawValue
    }
    guard let text = url?.string else { return "The ping's address cannot be used." }
    do {
      // By its input, since everyone on the machine may read arguments, and the address is a secret.
      let ending = try HelperProgram(path: program).run(
        ["--disable", "--config", "-"],
        input: """
          url = "\(text)"
          silent
          show-error
          fail
          location
          proto = "=http,https"
          proto-redir = "=http,https"
          max-time = \(max(1, timeoutSeconds - 1))
          output = "/dev/null"

          """, timeoutSeconds: timeoutSeconds)
      if ending.status == 0 { return nil }
      return ending.tookTooLong
        ? "The ping was not answered within \(timeoutSeconds) s."
        : "The ping failed: \(ending.message)."
    } catch {
      return "The ping failed: \(error)."
    }
  }
}
