import Foundation
import GodwitFleet
import GodwitPlanning
import Logging
import Testing

@testable import GodwitCommands

@Suite struct `A log line` {
  /// A value, and how it stands in logfmt.
  @Test(arguments: [
    ("plain", "plain"), ("/srv/a b.sqlite", #""/srv/a b.sqlite""#), ("", #""""#),
    ("a=b", #""a=b""#), ("say \"x\"", #""say \"x\"""#), ("two\nlines", #""two\nlines""#),
    ("名前", "名前"), ("a\u{1B}[31m", #""a\u001b[31m""#), ("a\u{2028}b", #""a\u2028b""#),
    ("a\u{9B}b\u{202E}c", #""a\u009bb\u202ec""#),
  ])
  func `in logfmt has one value a word, whatever it is`(value: String, text: String) {
    #expect(LogSink.line(.logfmt, [("store", value)]) == "store=\(text)")
  }

  @Test func `in JSON is an object`() throws {
    let line = LogSink.line(.json, [("message", "a\"\n\u{9B}\u{202E}"), ("store", "/x")])
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: String]
    #expect(object == ["message": "a\"\n\u{9B}\u{202E}", "store": "/x"])
    #expect(!line.contains { "\n\u{9B}\u{202E}".contains($0) })
  }

  @Test func `for the journal cannot bring a field of its own`() {
    let text = LogSink.datagram(
      .error, "x\nMESSAGE=y",
      [("exit-code", "1\nPRIORITY=0"), ("store", "a\r\nPRIORITY=0\n\u{301}b")])
    // By bytes, as the journal reads it: to Swift the two scalars that end a line are one Character.
    #expect(
      text.utf8.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        == [
          "PRIORITY=3", "SYSLOG_IDENTIFIER=godwit", "MESSAGE=x MESSAGE=y",
          "GODWIT_EXIT_CODE=1 PRIORITY=0", "GODWIT_STORE=a\r PRIORITY=0 \u{301}b",
        ])
  }
}

@Suite struct `The log of a run` {
  private let path = NSTemporaryDirectory() + "godwit-log-\(UUID().uuidString)"

  @Test func `has a line for each store, and appends to what is there`() throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    for _ in 0..<2 {
      let log = try RunLog(path: path, form: .logfmt, pipeline: "p")
      log.take(
        .result(
          nil,
          MigrationResult(
            store: "/srv/x", verdict: .failed, ending: .badInput,
            reasons: [Reason(reason: "damaged", message: "Two words.")])))
      #expect(log.failure == nil)
    }
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    #expect(lines.count == 2)
    for line in lines {
      #expect(line.contains(" level=error message=store "))
      #expect(line.contains(" pipeline=p "))
      #expect(line.hasSuffix(#" reason=damaged store=/srv/x verdict=failed"#))
      #expect(line.contains(#"detail="Two words.""#))
    }
  }

  @Test func `ends with counts that add up`() throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    let log = try RunLog(path: path, form: .logfmt, pipeline: "p")
    var summary = PipelineSummary(pipeline: "p")
    (summary.found, summary.migrated, summary.sameModel, summary.refused) = (28, 1, 2, 3)
    (summary.needsMapping, summary.quarantined, summary.failed, summary.pending) = (4, 5, 6, 7)
    log.end(summary, exitCode: 3)
    let line = try String(contentsOfFile: path, encoding: .utf8)
    var sum = 0
    for word in [
      "migrated", "same-model", "refused", "needs-mapping", "quarantined", "failed", "pending",
    ] {
      let part = try #require(line.split(separator: " ").first { $0.hasPrefix(word + "=") })
      sum += Int(part.dropFirst(word.count + 1).filter(\.isNumber)) ?? 0
    }
    #expect(line.contains("found=28") && sum == 28, "\(line)")
  }

  @Test(arguments: [
    "SQLite format 3\0", "stores: { roots: . }\n", "<?xml version", "t", "{\"run\":\"r\"}\n", "{\"",
    "{\"time\"",
  ])
  func `is not appended to what is no log`(text: String) throws {
    let bytes = Data(text.utf8)
    try bytes.write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(throws: CommandError.self) { try LogSink(path: path, form: .json) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
  }

  @Test(arguments: [LogForm.logfmt, .json])
  func `is appended to in whichever form it was begun`(form: LogForm) throws {
    defer { try? FileManager.default.removeItem(atPath: path) }
    for next in [form, .logfmt, .json] {
      try LogSink(path: path, form: next).write(.info, "run started", [])
    }
    #expect(try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").count == 3)
  }

  @Test(arguments: ["/dev/null", "/tmp"])
  func `is a regular file`(path: String) {
    #expect(throws: (any Error).self) { try LogSink(path: path, form: .json) }
  }
}
