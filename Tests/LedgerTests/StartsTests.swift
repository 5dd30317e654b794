import GodwitLedger
import GodwitSQLite
import Testing

@Suite struct `The age of a backup` {
  private static let day = 86_400.0

  /// What starts show, in days: each start's clock, and whether it made a backup; the last one asks.
  struct Night: Sendable, CustomTestStringConvertible {
    var clock: Double
    var makesBackup = false

    init(_ clock: Double, makesBackup: Bool = false) {
      (self.clock, self.makesBackup) = (clock, makesBackup)
    }

    var testDescription: String { makesBackup ? "\(clock) made" : "\(clock)" }
  }

  /// In days, of the first backup; nil where nothing shows it.
  private func age(_ nights: [Night]) throws -> Double? {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    let asks = try #require(nights.last).clock * Self.day
    try ledger.writing {
      for (number, night) in nights.enumerated() {
        var run = LedgerSample.run
        (run.name, run.started) = ("run-\(number)", night.clock * Self.day)
        try ledger.begin(run)
        guard night.makesBackup else { continue }
        var backup = LedgerSample.backup
        (backup.run, backup.made) = (run.name, run.started + 60)
        backup.path = "\(backup.store).godwit-backup-\(number).sqlite"
        try ledger.add(backup)
      }
    }
    let ages = try ledger.backupAges(at: asks + 3_600, begun: asks, keep: 14 * Self.day)
    var places: [LedgerBackup.Place] = []
    try ledger.forEachBackupPlace(at: asks + 3_600) { places.append($0) }
    let first = try #require(places.min { $0.key < $1.key })
    return ages.seconds(of: first).map { ($0 / Self.day * 10).rounded() / 10 }
  }

  private static let made = Night(1_000, makesBackup: true)

  private static let shown: [(nights: [Night], days: Double?)] = [
    // One hour into the start that asks.
    ([made], 0),
    ([made, Night(1_001)], 1),
    ([made, Night(1_001), Night(1_017)], 17),
    ([made, Night(1_055)], 55),
    // A year without a start: nothing yet, then from the start after it.
    ([made, Night(1_365)], nil),
    ([made, Night(1_365), Night(1_366)], 1),
    // Of what was there before, the next start knows.
    ([made, Night(1_001), Night(1_365)], 1),
    ([made, Night(1_001), Night(1_365), Night(1_366)], 366),
  ]

  @Test(arguments: shown)
  func `is the time since it was made, without a jump over it`(
    nights: [Night], days: Double?
  ) throws {
    #expect(try age(nights) == days)
  }

  private static let wrong: [(clock: String, nights: [Night], days: Double?)] = [
    ("the one that asks, ahead", [made, Night(1_001), Night(1_002), Night(1_367)], 2),
    ("the one that asks, behind", [made, Night(1_001), Night(1_002), Night(637)], nil),
    (
      "the one that made it, behind",
      [Night(635, makesBackup: true), Night(1_001), Night(1_002)], 1
    ),
    (
      "the one that made it, ahead",
      [Night(1_365, makesBackup: true), Night(1_001), Night(1_002), Night(1_003)], 2
    ),
    ("the one after, behind", [made, Night(636), Night(1_002), Night(1_003), Night(1_004)], 4),
    ("the one after, ahead", [made, Night(1_366), Night(1_002), Night(1_003), Night(1_004)], 4),
    ("the one before, ahead", [made, Night(1_001), Night(1_002), Night(1_368), Night(1_004)], 4),
    ("the one before, behind", [made, Night(1_001), Night(1_002), Night(638), Night(1_004)], 4),
  ]

  @Test(arguments: wrong)
  func `is not too great, whichever clock is wrong`(
    clock: String, nights: [Night], days: Double?
  ) throws {
    #expect(try age(nights) == days, "\(clock)")
  }

  private static let pauses: [(keep: Double, days: Double, isJump: Bool)] = [
    (1 / 24, 8, false), (1 / 24, 8.1, true), (2, 8, false), (2, 8.1, true), (3, 12, false),
    (3, 12.1, true), (14, 56, false), (14, 56.1, true), (15, 60, false), (15, 60.1, true),
    (365, 60, false), (365, 60.1, true),
  ]

  @Test(arguments: pauses)
  func `has a jump over it after four times as long as it is kept, 8 days at least and 60 at most`(
    keep: Double, days: Double, isJump: Bool
  ) throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing { try ledger.noteStart(at: 1_000 * Self.day) }
    let asks = (1_000 + days) * Self.day
    let ages = try ledger.backupAges(at: asks, begun: asks, keep: keep * Self.day)
    #expect((ages.jumped != nil) == isJump)
  }

  @Test func `follows from runs in a ledger of an earlier version, too`() throws {
    let folder = try LedgerFolder()
    do {
      let ledger = try folder.open()
      try ledger.writing {
        for number in 0..<4 {
          var (run, backup) = (LedgerSample.run, LedgerSample.backup)
          (run.name, run.started) = ("run-\(number)", Double(number * 20) * Self.day)
          try ledger.begin(run)
          (backup.run, backup.made) = (run.name, run.started)
          backup.path = "\(backup.store).godwit-backup-\(number).sqlite"
          try ledger.add(backup)
          try ledger.end(run.name, at: run.started + 7, exitCode: 0, nil)
        }
      }
    }
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute(
      """
      DROP TABLE starts; ALTER TABLE runs DROP COLUMN worked; ALTER TABLE runs DROP COLUMN resumed;
      ALTER TABLE runs DROP COLUMN message
      """)
    try connection.close()
    do {
      let old = try #require(try Ledger(readingAt: folder.ledger))
      #expect(try old.runs().map(\.workedSeconds) == [7, 7, 7, 7])
    }
    let ledger = try folder.open()
    #expect(try ledger.runs().map(\.workedSeconds) == [7, 7, 7, 7])
    let ages = try ledger.backupAges(
      at: 61 * Self.day, begun: 61 * Self.day, keep: 14 * Self.day)
    var places: [LedgerBackup.Place] = []
    try ledger.forEachBackupPlace(at: 61 * Self.day) { places.append($0) }
    #expect(
      places.map { ages.seconds(of: $0).map { $0 / Self.day } } == [61, 41, 21, 1])
    try ledger.writing {
      try ledger.end("run-3", at: 61 * Self.day, exitCode: 65, nil, message: "Make the plan again.")
    }
    #expect(try ledger.run(named: "run-3").message == "Make the plan again.")
    #expect(try ledger.run(named: "run-2").message == nil)
  }
}

@Suite struct `The time of a run` {
  private func begin(_ ledger: Ledger, at time: Double, isResumed: Bool = true) throws {
    var run = LedgerSample.run
    run.started = time
    try ledger.writing { try ledger.begin(run, isResumed: isResumed) }
  }

  private func worked(_ ledger: Ledger) throws -> Double? {
    try ledger.run(named: LedgerSample.run.name).workedSeconds
  }

  private func end(_ ledger: Ledger, at time: Double, wasKilled: Bool = false) throws {
    try ledger.writing {
      try ledger.end(
        LedgerSample.run.name, at: time, exitCode: wasKilled ? nil : 75, nil, wasKilled: wasKilled)
    }
  }

  @Test func `has no part of the day between a start that was stopped and the next one`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try begin(ledger, at: 1_000, isResumed: false)
    try end(ledger, at: 1_010)
    try begin(ledger, at: 73_000)
    try end(ledger, at: 73_005)
    #expect(try worked(ledger) == 15)
    let run = try ledger.report().run
    #expect((run.seconds, run.workedSeconds) == (72_005, 15))
    // Whoever writes an end down again adds nothing.
    try end(ledger, at: 90_000)
    #expect(try worked(ledger) == 15)
  }

  @Test func `of a start that was killed goes to its last store`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try begin(ledger, at: 1_000, isResumed: false)
    try ledger.writing { try ledger.add(LedgerSample.failed("ada", at: 1_020)) }
    try begin(ledger, at: 73_000)
    try end(ledger, at: 73_005)
    #expect(try worked(ledger) == 25.5)
    // One that came to no store, and whose end is written down a day later.
    try begin(ledger, at: 160_000)
    try end(ledger, at: 250_000, wasKilled: true)
    #expect(try worked(ledger) == 25.5)
    let run = try ledger.report().run
    #expect(run.ended == 250_000 && run.exitCode == nil)
  }

  /// Tasks of a cluster end stores in between, and no start is at work.
  @Test func `of a start that left the run to others goes to when it did`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try begin(ledger, at: 1_000, isResumed: false)
    try ledger.writing { try ledger.leave(LedgerSample.run.name, at: 1_002) }
    #expect(try worked(ledger) == 2)
    try ledger.writing { try ledger.add(LedgerSample.failed("ada", at: 40_000)) }
    #expect(try worked(ledger) == 2)
    try begin(ledger, at: 73_000)
    #expect(try worked(ledger) == nil)
    try end(ledger, at: 73_005)
    #expect(try worked(ledger) == 7)
  }

  /// Another pipeline of the folder runs next, by a clock that was set back.
  @Test
  func `of a start that was killed counts once another one begins, although nobody resumes it`()
    throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try begin(ledger, at: 1_000, isResumed: false)
    try ledger.writing { try ledger.add(LedgerSample.failed("ada", at: 1_020)) }
    #expect(try worked(ledger) == nil, "it may be at work")
    var other = LedgerSample.run
    (other.name, other.pipeline, other.file) = ("other", "other", "/srv/other.yaml")
    other.started = 990
    try ledger.writing { try ledger.begin(other) }
    #expect(try worked(ledger) == 20.5)
    #expect(try ledger.report(ofRun: LedgerSample.run.name).run.workedSeconds == 20.5)
    #expect(try ledger.run(named: other.name).workedSeconds == nil)
    try begin(ledger, at: 2_000)
    #expect(try worked(ledger) == nil)
    try end(ledger, at: 2_005)
    #expect(try worked(ledger) == 25.5)
  }

  @Test func `is not negative where the clock was set back meanwhile`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try begin(ledger, at: 1_000, isResumed: false)
    var attempt = LedgerSample.failed("grace", at: 1_001)
    attempt.ended = 399
    try ledger.writing { try ledger.add(attempt) }
    try end(ledger, at: 400)
    #expect(try worked(ledger) == 0)
    let report = try ledger.report()
    #expect(report.run.seconds == 0 && report.stores.map(\.seconds) == [0])
  }
}
