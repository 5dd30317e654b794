import Foundation
import GodwitLedger
import Testing

@testable import GodwitReport

/// An executable file with these lines.
func shellScript(_ text: String) throws -> String {
  let path = NSTemporaryDirectory() + "godwit-script-\(UUID().uuidString)"
  try "#!/bin/sh\n\(text)\n".write(toFile: path, atomically: true, encoding: .utf8)
  try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
  return path
}

@Suite struct `The address of a dead man's switch` {
  @Test(arguments: [
    ("https://hc-ping.com/5e1f", true), ("http://monitor:8000/ping/x?rid=1", true),
    ("ftp://host/x", false), ("file:///etc/passwd", false), ("hc-ping.com/5e1f", false),
    ("https://", false), ("https://user:word@host/x", false), ("https://host/x#y", false),
    ("https://host/\"\noutput = \"/tmp/x", false), ("https://host/a b", false), ("", false),
  ])
  func `is one of the web, and nothing else`(text: String, isAddress: Bool) {
    #expect(DeadManSwitch.isAddress(text) == isAddress)
    #expect((DeadManSwitch(address: text) != nil) == isAddress)
  }
}

@Suite struct `A dead man's switch` {
  /// The address that each signal is sent to.
  @Test(arguments: [
    ("https://host/x", DeadManSwitch.Signal.start, "https://host/x/start"),
    ("https://host/x", .success, "https://host/x"),
    ("https://host/x/", .failure, "https://host/x/fail"),
    ("https://host/x?rid=1", .start, "https://host/x/start?rid=1"),
    // What is encoded stays so: it would be another address.
    ("https://host/team%2Fa%3Fb", .failure, "https://host/team%2Fa%3Fb/fail"),
  ])
  func `is called at the address of its signal`(
    address: String, signal: DeadManSwitch.Signal, called: String
  ) throws {
    let seen = NSTemporaryDirectory() + "godwit-seen-\(UUID().uuidString)"
    let program = try shellScript("echo \"$@\" >\(seen); cat >>\(seen)")
    defer { for path in [program, seen] { try? FileManager.default.removeItem(atPath: path) } }
    #expect(
      try #require(
        DeadManSwitch(address: address, program: program, timeoutSeconds: 120)
      ).send(signal) == nil)
    let text = try String(contentsOfFile: seen, encoding: .utf8)
    let lines = text.split(separator: "\n")
    #expect(lines.first == "--disable --config -")  // and so not the address
    #expect(lines.contains("url = \"\(called)\""))
  }

  @Test func `that fails or is not there is said, and nothing is thrown`() throws {
    let program = try shellScript("echo 'could not resolve host' >&2; exit 6")
    defer { try? FileManager.default.removeItem(atPath: program) }
    let failing = try #require(
      DeadManSwitch(address: "https://host/x", program: program, timeoutSeconds: 120))
    #expect(failing.send(.success) == "The ping failed: could not resolve host.")
    let missing = try #require(DeadManSwitch(address: "https://host/x", program: nil))
    #expect(missing.send(.success)?.contains("curl") == true)
  }
}

@Suite struct `Metrics of a run` {
  private var text: String {
    let report = RunReport(
      pipeline: "a\"b\\c", pipelineFile: "/p",
      run: .init(
        kind: "run", name: "r", started: 1.5, ended: 3.5, seconds: 2, exitCode: 3, starts: 1,
        host: "h"),
      counts: .init(found: 3, migrated: 2, failed: 1),
      stores: [
        .init(path: "/s", verdict: "failed", started: 1, seconds: 1, sourceBytes: 1, attempts: 1)
      ],
      stages: [.init(stage: "copy", seconds: 0.25, rows: 1, bytes: 1)])
    return Metrics.text(of: report, now: 10)
  }

  @Test func `have a help and a type for each name, and values of one form`() {
    var known: Set<Substring> = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("# HELP ") {
        #expect(known.insert(line.split(separator: " ")[2]).inserted)
      } else if !line.hasPrefix("# TYPE ") {
        let match = line.wholeMatch(
          of: /([a-z_]+)\{pipeline="a\\"b\\\\c"(,[a-z]+="[a-z-]+")?\} [-0-9.]+/)
        #expect(match.map { known.contains($0.output.1) } == true, "\(line)")
      }
    }
    #expect(known.count == 12)
  }

  @Test func `have no label a store`() {
    #expect(!text.contains("/s"))
    #expect(text.contains("godwit_stores{pipeline=\"a\\\"b\\\\c\",verdict=\"failed\"} 1\n"))
  }

  @Test func `count every store of the pipeline, whatever the last run took up`() {
    var report = RunReport(
      pipeline: "p", pipelineFile: "/p",
      run: .init(kind: "run", name: "r", started: 1, starts: 1, host: "h"),
      counts: .init(found: 1, sameModel: 1))
    report.fleet = .init(found: 3, migrated: 1, sameModel: 1, failed: 1)
    #expect(
      Metrics.text(of: report, now: 10).contains(
        "godwit_stores{pipeline=\"p\",verdict=\"failed\"} 1\n"))
  }

  @Test func `of a start that failed early are its times and its exit code`() {
    let run = RunReport.Run(
      kind: "run", name: "", started: 1, ended: 3, seconds: 2, exitCode: 78, starts: 1, host: "")
    let text = Metrics.text(ofStart: run, pipeline: "p", now: 10)
    #expect(text.contains("godwit_run_exit_code{pipeline=\"p\"} 78\n"))
    #expect(text.contains("godwit_run_end_timestamp_seconds{pipeline=\"p\"} 3\n"))
    #expect(!text.contains("godwit_stores"))
  }
}
