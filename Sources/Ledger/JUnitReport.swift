import GodwitDurableFiles

/// A run as JUnit XML, which continuous integration shows: a test case for each store that the run
/// tried, and for each that it found as an earlier one had left it. A store that was not migrated is a
/// failure, one that failed an error, and one that is pending or quarantined is skipped. What a store lost,
/// and notes of it, are in its output. A start that failed before it had a result is an error of its own.
///
/// The form is what Jenkins and GitLab read: https://github.com/testmoapp/junitxml.
package struct JUnitReport: Sendable {
  private let report: RunReport

  /// - Parameter done: Paths of stores that are counted, and are none of the report's.
  package init(_ report: RunReport, done: [String] = []) {
    var report = report
    report.stores += done.map {
      RunReport.Store(
        path: $0, verdict: "same-model", started: report.run.started, seconds: 0, sourceBytes: 0,
        attempts: 0)
    }
    report.stores.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    self.report = report
  }

  /// The whole file.
  package func text() -> String {
    let failures = report.stores.count { ["refused", "needs-mapping"].contains($0.verdict) }
    let failure = failedStart
    let (own, errors) = (
      failure.isEmpty ? 0 : 1, report.stores.count { $0.verdict == "failed" }
    )
    let skipped = report.stores.count { ["pending", "quarantined"].contains($0.verdict) }
    let counts =
      "tests=\"\(report.stores.count + own)\" failures=\"\(failures)\" errors=\"\(errors + own)\" "
      + "skipped=\"\(skipped)\" time=\"\(Self.seconds(report.run.workedSeconds ?? 0))\""
    let name = Self.escaped("\(report.pipeline) \(report.run.name)")
    var lines = [
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
      "<testsuites name=\"godwit\" \(counts)>",
      "  <testsuite name=\"\(name)\" \(counts)>",
    ]
    lines += failure
    for store in report.stores { lines += testCase(store) }
    lines += ["  </testsuite>", "</testsuites>", ""]
    return lines.joined(separator: "\n")
  }

  /// 75: one that was stopped goes on when it is begun again.
  private var failedStart: [String] {
    guard let message = report.run.message, let code = report.run.exitCode, code != 75 else {
      return []
    }
    return [
      "    <testcase classname=\"\(Self.escaped(report.pipeline))\" "
        + "name=\"\(Self.escaped(report.run.name))\" time=\"0.000\">",
      "      <error type=\"exit \(code)\" message=\"\(Self.escaped(message))\"></error>",
      "    </testcase>",
    ]
  }

  private func testCase(_ store: RunReport.Store) -> [String] {
    let start =
      "    <testcase classname=\"\(Self.escaped(report.pipeline))\" "
      + "name=\"\(Self.escaped(store.path))\" time=\"\(Self.seconds(store.seconds))\""
    let notes = store.reasons.filter { $0.reason == RunReport.Reason.note }
    let words =
      store.losses.map { Self.escaped("loss: \($0.message)") }
      + notes.map { Self.escaped("note: \($0.message)") }
    let output =
      words.isEmpty
      ? [] : ["      <system-out>\(words.joined(separator: "&#10;"))</system-out>"]
    guard !RunReport.goodVerdicts.contains(store.verdict) else {
      return words.isEmpty ? [start + "/>"] : [start + ">"] + output + ["    </testcase>"]
    }
    let element =
      switch store.verdict {
      case "failed": "error"
      case "pending", "quarantined": "skipped"
      default: "failure"
      }
    let reason = store.reasons.first
    let type = reason?.reason ?? store.verdict
    let message = Self.escaped(reason?.message ?? store.verdict)
    let text = store.reasons.dropFirst().map { Self.escaped($0.message) }.joined(separator: "\n")
    let kind = element == "skipped" ? "" : " type=\"\(Self.escaped(type))\""
    return [
      start + ">",
      "      <\(element)\(kind) message=\"\(message)\">\(text)</\(element)>",
    ] + output + ["    </testcase>"]
  }

  /// With three decimals.
  private static func seconds(_ seconds: Double) -> String {
    let thousandths = Int64((min(max(0, seconds.isFinite ? seconds : 0), 1e11) * 1_000).rounded())
    let rest = String(thousandths % 1_000)
    return "\(thousandths / 1_000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }

  /// As XML has it in attributes and text; characters that it cannot have are written as Swift has them,
  /// `\u{01}`: two names stay two.
  static func escaped(_ text: String) -> String {
    text.replacingSigns { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      case "\n": "&#10;"
      case "\t": "&#9;"
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": scalar.escaped(asASCII: true)
      default: nil
      }
    }
  }
}
