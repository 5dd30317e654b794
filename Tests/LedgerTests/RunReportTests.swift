import Foundation
import GodwitLedger
import Testing

@Suite struct `A run's report` {
  private func report() throws -> (LedgerFolder, RunReport) {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    return (folder, try ledger.report())
  }

  @Test func `tells every store, and sums up`() throws {
    let (_, report) = try report()
    #expect(report.run.name == LedgerSample.run.name)
    #expect(report.stores.map(\.verdict) == ["migrated", "failed", "failed"])
    #expect(report.stores[0].backup == LedgerSample.backup.path)
    #expect(report.counts.found == 4)
    #expect(report.totals.rows == 20)
    #expect((report.totals.backups, report.totals.backupBytes) == (1, 65_536))
    #expect(report.sourceVersions == [.init(name: "Recipes", stores: 1, bytes: 65_536)])
    #expect(report.destinationVersion == "Recipes 2")
    #expect(report.losses.map(\.count) == [3])
    #expect(report.stages.map(\.stage) == ["copy", "commit"])
    #expect(report.largest.first == 0)
    #expect(report.slowest.first == 0)
    #expect(report.spans.map(\.lane) == [0, 0, 1])
  }

  @Test func `takes nothing for lost that a store would lose and has not`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    var pending = LedgerSample.failed("pending", at: 1_003)
    (pending.verdict, pending.losses, pending.rows) = ("pending", LedgerSample.migrated.losses, 9)
    try ledger.writing { try ledger.add(pending) }
    let report = try ledger.report()
    #expect(report.stores.count { !$0.losses.isEmpty } == 2)
    #expect(report.totals.storesWithLosses == 1 && report.totals.rows == 20)
    #expect(report.losses.map(\.count) == [3])
  }

  @Test func `groups failures by reason, with examples and what to do`() throws {
    let (_, report) = try report()
    let failure = try #require(report.failures.first)
    #expect(report.failures.count == 1)
    #expect((failure.reason, failure.code, failure.count) == ("damaged", 134_150, 2))
    #expect(failure.examples.count == 2)
    #expect(failure.advice == FailureAdvice.text(verdict: "failed", reason: "damaged"))
  }

  @Test func `names the stores that a run did not come to`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    try ledger.writing {
      try ledger.end(
        LedgerSample.run.name, at: 1_005, exitCode: 75,
        RunReport.Counts(found: 9, migrated: 1, failed: 2, pending: 6))
    }
    let pending = try ledger.report().failures.filter { $0.verdict == "pending" }
    #expect(pending.map(\.count) == [6])
    #expect(pending.first?.reason == "stopped")
    #expect(try ledger.failures(of: LedgerSample.run.name).map(\.count) == [2, 6])
  }

  @Test func `says of a loss of several stores how much it is in all of them`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    var other = LedgerSample.migrated
    other.store = "/srv/recipes/bea/Recipes.sqlite"
    other.losses[0].count = 4
    other.losses[0].message = "Recipe.isFavorite has no successor: 4 values are dropped."
    // The same in another way, as of a second table: still one store.
    other.losses.append(other.losses[0])
    other.losses[1].count = 1
    try ledger.writing { try ledger.add(other) }
    let loss = try #require(try ledger.report().losses.first)
    #expect((loss.count, loss.stores) == (8, 2))
    #expect(loss.message == "Recipe.isFavorite: 8 values in 2 stores.")
    let one = try report().1.losses.first?.message
    #expect(one == "Recipe.isFavorite has no successor: 3 values are dropped.", "its own")
  }

  @Test func `survives JSON`() throws {
    let (_, report) = try report()
    let data = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(RunReport.self, from: data) == report)
  }

  @Test func `as JUnit is well-formed, whatever names and messages hold`() throws {
    var (_, report) = try report()
    report.pipeline = "a <b> & \"c\"\u{1}"
    report.stores[1].reasons[0].message = "]]> <&\"' line\nbreak \u{FFFF}"
    for place in report.stores.indices {
      report.stores[place].losses = [
        RunReport.Loss(kind: "attribute", count: 1, message: "]]> <&\"' \u{1}")
      ]
    }
    let text = JUnitReport(report).text()
    let parser = XMLChecker(text)
    #expect(parser.elements["system-out"] == 3)
    #expect(parser.isWellFormed, "\(text)")
    #expect(parser.elements["testcase"] == 3)
    #expect(parser.elements["error"] == 2)
    #expect(text.contains("tests=\"3\" failures=\"0\" errors=\"2\" skipped=\"0\""))
  }

  /// Continuous integration shows what is an error in the file, and nothing else.
  @Test(arguments: [(65, 1), (78, 1), (75, 0)])
  func `as JUnit has an error for a start that came to nothing, unless it was stopped`(
    code: Int, errors: Int
  ) throws {
    var (_, report) = try report()
    report.stores = []
    (report.run.message, report.run.exitCode) = ("There is no model <here>.", code)
    let parser = XMLChecker(JUnitReport(report).text())
    #expect(parser.isWellFormed)
    #expect((parser.elements["error"] ?? 0) == errors)
    #expect((parser.elements["testcase"] ?? 0) == errors)
    report.run.message = nil
    #expect(XMLChecker(JUnitReport(report).text()).elements["error"] == nil)
  }

  @Test func `says what to do about every reason, known or not`() {
    for reason in ["in-use", "damaged", "lost-entity", "of-a-later-version"] {
      #expect(FailureAdvice.text(verdict: "failed", reason: reason).hasSuffix("."))
    }
    #expect(
      FailureAdvice.text(verdict: "failed", reason: "lost-entity")
        == FailureAdvice.text(verdict: "failed", reason: "losses"))
  }
}

/// Python's own parser: Foundation's XML is a module of its own on Linux.
private struct XMLChecker {
  var isWellFormed = false
  var elements: [String: Int] = [:]

  init(_ text: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "python3", "-c",
      "import sys, xml.etree.ElementTree as e\nfor n in e.fromstring(sys.stdin.buffer.read()).iter(): print(n.tag)",
    ]
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    guard (try? process.run()) != nil else { return }
    input.fileHandleForWriting.write(Data(text.utf8))
    try? input.fileHandleForWriting.close()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    isWellFormed = process.terminationStatus == 0
    for name in String(decoding: data, as: UTF8.self).split(separator: "\n") {
      elements[String(name), default: 0] += 1
    }
  }
}
