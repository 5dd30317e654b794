import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `A store that fails` {
  private func fail(
    _ ledger: Ledger, reason: String = "damaged", mark: String = "m", settings: String = "s",
    in pipeline: String = "/p.yaml", at time: Double
  ) throws {
    try ledger.writing {
      try ledger.countFailure(
        of: "/a", in: pipeline, reason: reason, mark: mark, settings: settings, at: time, limit: 3)
    }
  }

  @Test func `three times in the same way is quarantined until it is released`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    for time in 1...2 {
      try fail(ledger, at: Double(time))
      #expect(try ledger.quarantine().isEmpty)
    }
    try fail(ledger, at: 3)
    let found = try #require(try ledger.quarantine().first)
    #expect((found.attempts, found.since, found.first) == (3, 3, 1))
    #expect(try ledger.writing { try ledger.release("/a", at: 4) })
    #expect(try ledger.quarantine().isEmpty)
    #expect(try ledger.quarantine(all: true).first?.released == 4)
    #expect(try !ledger.writing { try ledger.release("/a", at: 5) }, "once")
    try fail(ledger, at: 6)
    #expect(try ledger.quarantine(all: true).first?.attempts == 1, "it counts anew")
  }

  @Test(arguments: [("io", "m", "s"), ("damaged", "n", "s"), ("damaged", "m", "t")])
  func `for another reason, in another state or under other models counts anew`(
    reason: String, mark: String, settings: String
  ) throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try fail(ledger, at: 1)
    try fail(ledger, at: 2)
    try fail(ledger, reason: reason, mark: mark, settings: settings, at: 3)
    #expect(try ledger.quarantine().isEmpty)
    #expect(try ledger.quarantine(all: true).first?.attempts == 1)
  }

  @Test func `and then ends well is forgotten`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    for time in 1...3 { try fail(ledger, at: Double(time)) }
    try ledger.writing { try ledger.forgetFailures(of: "/a", in: "/p.yaml") }
    #expect(try ledger.quarantine(all: true).isEmpty)
  }

  @Test func `in one pipeline is nothing to another one of the folder`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    for time in 1...3 {
      try fail(ledger, at: Double(time))
      try fail(ledger, settings: "t", in: "/q.yaml", at: Double(time))
    }
    #expect(try ledger.quarantine().map(\.settings) == ["s", "t"])
    try ledger.writing { try ledger.forgetFailures(of: "/a", in: "/q.yaml") }
    #expect(try ledger.quarantine(of: "/p.yaml").map(\.settings) == ["s"])
    #expect(try ledger.quarantine(of: "/q.yaml").isEmpty)
    try ledger.narrow(to: RunOwner(pipeline: "q", file: "/q.yaml"))
    #expect(try ledger.quarantine().isEmpty)
    #expect(try ledger.writing { try !ledger.release("/a", at: 4) }, "it is the other one's")
    try ledger.narrow(to: RunOwner(pipeline: "p", file: "/p.yaml"))
    #expect(try ledger.writing { try ledger.release("/a", at: 4) })
  }

  @Test func `was quarantined by an earlier version for the pipeline that came last`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    for time in 1...3 { try fail(ledger, in: "", at: Double(time)) }
    try Connection(path: folder.ledger.string, mode: .readWrite).execute(
      """
      CREATE TABLE old (
        store INTEGER PRIMARY KEY, reason TEXT, mark TEXT, settings TEXT, attempts INTEGER,
        first REAL, last REAL, since REAL, released REAL);
      INSERT INTO old
      SELECT store, reason, mark, settings, attempts, first, last, since, released FROM quarantine;
      DROP TABLE quarantine;
      ALTER TABLE old RENAME TO quarantine
      """)
    let reading = try #require(try Ledger(readingAt: ledger.path))
    try reading.narrow(to: RunOwner(pipeline: "other", file: "/other.yaml"))
    #expect(try reading.quarantine(all: true).count == 2, "nobody knows whose they are")
    let later = try folder.open()
    #expect(
      try later.quarantine(all: true, of: LedgerSample.run.file).map(\.store)
        == ["/a", LedgerSample.failed("grace").store])
    #expect(try later.quarantine(all: true, of: "/other.yaml").map(\.store) == ["/a"])
  }
}
