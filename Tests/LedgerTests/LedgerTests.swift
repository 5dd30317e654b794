import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `A ledger` {
  @Test func `gives back what was written, after it was closed`() throws {
    let folder = try LedgerFolder()
    do { try LedgerSample.write(to: try folder.open()) }
    let ledger = try #require(try Ledger(readingAt: folder.ledger))
    let run = try ledger.run(named: LedgerSample.run.name)
    #expect(run.options == LedgerSample.run.options)
    #expect((run.exitCode, run.ended, run.counts?.found) == (3, 1_004, 4))
    var attempts: [LedgerAttempt] = []
    try ledger.forEachStore(of: run.name) { attempt, tries in
      attempts.append(attempt)
      #expect(tries == 1)
    }
    #expect(attempts.first == LedgerSample.migrated)
    #expect(
      attempts.dropFirst() == [
        LedgerSample.failed("grace"), LedgerSample.failed("joan", at: 1_003),
      ])
    #expect(try ledger.backups(of: LedgerSample.migrated.store) == [LedgerSample.backup])
    #expect(try ledger.backupTotals() == (1, 65_536))
    #expect(
      try ledger.states(of: LedgerSample.migrated.store).last?.uuid == LedgerSample.migrated.uuid)
  }

  @Test func `counts an attempt once, however often it is added`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    for _ in 0..<3 {
      try ledger.writing {
        try ledger.add(LedgerSample.migrated)
        try ledger.add(LedgerSample.backup)
      }
    }
    // Found again by a later process, or run: the same commit, by the state that it has left.
    var again = LedgerSample.migrated
    (again.run, again.ended) = ("later", again.ended + 60)
    try ledger.writing { try ledger.add(again) }
    func count() throws -> Int {
      var count = 0
      try ledger.forEachAttempt(at: again.store) { _ in count += 1 }
      return count
    }
    #expect(try count() == 1)
    #expect(try ledger.backupTotals().count == 1)
    again.identity = String(repeating: "ef", count: 16)
    try ledger.writing { try ledger.add(again) }
    #expect(try count() == 2)
  }

  @Test func `of another kind of file is refused, and not waited for`() throws {
    let folder = try LedgerFolder()
    try #require(mkfifo(folder.ledger.string, 0o600) == 0)
    #expect(throws: DurabilityError.self) { try Ledger(readingAt: folder.ledger) }
    #expect(throws: DurabilityError.self) { try folder.open() }
  }

  @Test(arguments: [
    "CREATE TRIGGER t AFTER INSERT ON attempts BEGIN SELECT 1; END",
    "CREATE VIEW v AS SELECT 1",
    "DROP TABLE quarantine; CREATE VIEW quarantine AS SELECT 1",
  ])
  func `that computes is no ledger, and is set aside`(change: String) throws {
    let folder = try LedgerFolder()
    _ = try folder.open()
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute(change)
    try connection.close()
    #expect(throws: LedgerError.self) { try Ledger(readingAt: folder.ledger) }
    #expect(try folder.open().note?.contains("set aside") == true)
  }

  @Test(arguments: ["9e999", "-9e999", "1e300", "9223372036854775807", "-9223372036854775808"])
  func `with absurd numbers is read all the same`(number: String) throws {
    let folder = try LedgerFolder()
    do {
      let ledger = try folder.open()
      try ledger.writing {
        try ledger.begin(LedgerSample.run)
        try ledger.add(LedgerSample.migrated)
        try ledger.add(LedgerSample.backup)
        try ledger.end(LedgerSample.run.name, at: 2, exitCode: 0, .init(found: 3, migrated: 3))
      }
    }
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute(
      """
      UPDATE runs SET started = \(number), ended = \(number), found = \(number), migrated = \(number),
        failed = \(number), refused = \(number);
      UPDATE attempts SET started = \(number), ended = \(number), source_bytes = \(number),
        stages = '[{"stage":"copy","seconds":\(number),"rows":-5,"bytes":1,"shards":[
          {"worker":-1,"start":\(number),"end":\(number)},
          {"worker":0,"start":\(number),"end":\(number)},
          {"worker":9223372036854775807,"start":1,"end":2}]}]';
      UPDATE backups SET bytes = \(number), made = \(number);
      """)
    try connection.close()
    let ledger = try #require(try Ledger(readingAt: folder.ledger))
    for run in try ledger.runs() {
      let counts = try ledger.counts(of: run)
      #expect(abs(run.started) < 1e11 && counts.found - counts.migrated - counts.failed < 1 << 60)
    }
    #expect(try ledger.backupTotals().count == 1)
    try ledger.forEachAttempt(at: LedgerSample.migrated.store) { attempt in
      #expect(abs(attempt.started) < 1e11 && attempt.sourceBytes >= 0)
      for stage in attempt.stages {
        #expect((0..<1e11).contains(stage.seconds) && stage.rows >= 0)
        #expect((stage.shards ?? []).allSatisfy { $0.worker == 0 && (0..<1e11).contains($0.end) })
      }
    }
  }

  @Test func `keeps every run's backups when the next one begins`() throws {
    let folder = try LedgerFolder()
    for number in 1...3 {
      let ledger = try folder.open()
      var (run, backup) = (LedgerSample.run, LedgerSample.backup)
      (run.name, backup.run) = ("run-\(number)", "run-\(number)")
      backup.path = "\(backup.store).godwit-backup-\(number).sqlite"
      try ledger.writing {
        try ledger.begin(run)
        try ledger.add(backup)
      }
    }
    let ledger = try #require(try Ledger(readingAt: folder.ledger))
    #expect(
      try ledger.backups(of: LedgerSample.backup.store).map(\.run) == ["run-3", "run-2", "run-1"])
    #expect(try ledger.runs().map(\.name) == ["run-3", "run-2", "run-1"])
    #expect(try ledger.runsToRollBack().first?.name == "run-3")
  }

  @Test func `calls undone what a run made of a store once each of its migrations is`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    let (run, first) = (LedgerSample.run.name, LedgerSample.migrated)
    var (rollback, second) = (LedgerSample.run, first)
    (rollback.name, rollback.kind) = ("rollback", .rollback)
    (second.source, second.destination) = ("Recipes 2", "Recipes 3")
    (second.identity, second.ended) = ("second", first.ended + 1)
    var restored = LedgerAttempt(
      run: rollback.name, store: first.store, started: 1_010, ended: 1_010, verdict: "restored",
      sourceBytes: 1)
    restored.destination = "Recipes 2"
    try ledger.writing {
      try ledger.begin(LedgerSample.run)
      try ledger.add(first)
      try ledger.add(second)
      try ledger.add(LedgerSample.backup)
      try ledger.begin(rollback)
      try ledger.add(restored)
    }
    #expect(try !ledger.isUndone(run, of: first.store))
    #expect(try ledger.isUndone(run, of: first.store, leaving: "second"))
    (restored.destination, restored.ended) = ("Recipes", 1_011)
    try ledger.writing { try ledger.add(restored) }
    #expect(try ledger.isUndone(run, of: first.store))
  }

  /// Of the backups of runs that began at those times by their clocks.
  private func ages(
    _ runs: [(started: Double, made: [Double])], at now: Double
  ) throws -> [Double] {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    var count = 0
    try ledger.writing {
      for (number, entry) in runs.enumerated() {
        var run = LedgerSample.run
        (run.name, run.started) = ("run-\(number)", entry.started)
        try ledger.begin(run)
        for made in entry.made {
          var backup = LedgerSample.backup
          count += 1
          (backup.run, backup.made) = (run.name, made)
          backup.path = "\(backup.store).godwit-backup-\(count).sqlite"
          try ledger.add(backup)
        }
      }
    }
    var places: [LedgerBackup.Place] = []
    try ledger.forEachBackupPlace(at: now) { places.append($0) }
    return places.map { now - $0.made }
  }

  @Test func `has no backup that is older than its run`() throws {
    #expect(try ages([(900, [905, 100])], at: 1_000) == [95, 95])
  }

  @Test func `has no backup that is older than what was there before it`() throws {
    #expect(try ages([(900, [910]), (100, [120])], at: 1_000) == [90, 90])
    #expect(try ages([(900, []), (100, [120])], at: 1_000) == [100])
  }

  @Test func `takes a time that is still to come for none`() throws {
    #expect(try ages([(5_000, [5_001]), (900, [910])], at: 1_000) == [90, -4_001])
  }

  @Test func `counts the age of backups anew whose clock was put forward`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    var backup = LedgerSample.backup
    try ledger.writing {
      try ledger.begin(LedgerSample.run)
      try ledger.add(backup)
      (backup.path, backup.made) = ("\(backup.store).godwit-backup-2.sqlite", 9_000)
      try ledger.add(backup)
      try ledger.putForward(backupsOf: LedgerSample.run.name, madeWithin: 1_000...1_100, by: 7_000)
    }
    var places: [LedgerBackup.Place] = []
    try ledger.forEachBackupPlace(at: 10_000) { places.append($0) }
    #expect(places.map(\.made) == [8_001.25, 9_000])
  }

  @Test func `lists the runs of one pipeline file, wherever that was moved`() throws {
    let folder = try LedgerFolder()
    let files = ["a.yaml", "b.yaml"].map { folder.path.appending($0) }
    for file in files { try DurableFile.write([], to: file) }
    let ledger = try folder.open()
    // The last two are of earlier versions, and of a ledger that was lost.
    let owners = [
      ("a", files[0].string), ("b", files[1].string), ("a", "/gone/a.yaml"), ("b", "/gone/b.yaml"),
      ("a", "a.yaml"), ("", ""),
    ]
    try ledger.writing {
      for (number, owner) in owners.enumerated() {
        var (run, backup) = (LedgerSample.run, LedgerSample.backup)
        (run.name, run.pipeline, run.file) = ("run-\(number)", owner.0, owner.1)
        (backup.run, backup.path) = (run.name, "\(backup.store).godwit-backup-\(number).sqlite")
        try ledger.begin(run)
        try ledger.add(backup)
      }
    }
    #expect(try ledger.backupTotals().count == 6)
    try ledger.narrow(to: RunOwner(pipeline: "a", file: files[0].string))
    #expect(try ledger.runs().map(\.name) == ["run-5", "run-4", "run-2", "run-0"])
    #expect(try ledger.runsToRollBack().map(\.name) == ["run-5", "run-4", "run-2", "run-0"])
    #expect(try ledger.backupTotals().count == 4)
    #expect(throws: LedgerError.noRun(path: ledger.path, name: "run-1")) {
      try ledger.run(named: "run-1")
    }
  }

  @Test func `knows a resumed run by its name, and counts its starts`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    try ledger.writing { try ledger.begin(LedgerSample.run, isResumed: true) }
    let run = try ledger.run(named: LedgerSample.run.name)
    #expect((run.starts, run.ended, run.exitCode) == (2, nil, nil))
    #expect(
      try ledger.counts(of: run)
        == RunReport.Counts(
          found: 4, migrated: 1, failed: 2, pending: 1), "as far as it has come")
  }

  @Test func `gives no run the name of another one`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try LedgerSample.write(to: ledger)
    let taken = LedgerError.nameTaken(path: ledger.path, name: LedgerSample.run.name)
    func refuses(_ change: (inout LedgerRun) -> Void, isResumed: Bool) {
      var run = LedgerSample.run
      change(&run)
      #expect(throws: taken) { try ledger.writing { try ledger.begin(run, isResumed: isResumed) } }
    }
    refuses({ _ in }, isResumed: false)
    refuses({ $0.kind = .rollback }, isResumed: false)
    refuses({ $0.kind = .rollback }, isResumed: true)
    refuses({ ($0.pipeline, $0.file) = ("another", "/srv/another.yaml") }, isResumed: true)
    let run = try ledger.run(named: LedgerSample.run.name)
    #expect((run.kind, run.starts, run.exitCode) == (.run, 1, 3), "it stays as it was")
  }

  @Test(arguments: ["hello", "", "SQLite format 3\u{0} and no more"])
  func `that is no ledger is set aside, and a new one begun`(text: String) throws {
    let folder = try LedgerFolder()
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder.ledger.string))
    let ledger = try folder.open()
    #expect(try ledger.runs().isEmpty)
    // An empty file is an empty database.
    #expect((ledger.note == nil) == text.isEmpty)
    #expect(try folder.names.count == (text.isEmpty ? 1 : 2))
    if !text.isEmpty {
      let aside = try #require(try folder.names.last)
      #expect(
        try Data(contentsOf: URL(fileURLWithPath: folder.path.string + "/" + aside))
          == Data(text.utf8))
    }
  }

  @Test func `of another application is refused, and left as it is, with its log`() throws {
    let folder = try LedgerFolder()
    let other = try Connection(path: folder.ledger.string, mode: .create)
    try other.execute("PRAGMA journal_mode = WAL; CREATE TABLE mine (a)")
    // As after a crash: its log is still to be read.
    let names = [Ledger.fileName, Ledger.fileName + "-wal"]
    let copy = try LedgerFolder()
    for name in names {
      try FileManager.default.copyItem(
        atPath: folder.path.appending(name).string, toPath: copy.path.appending(name).string)
    }
    func contents() throws -> [Data] {
      try names.map {
        try Data(contentsOf: URL(fileURLWithPath: copy.path.appending($0).string))
      }
    }
    let before = try contents()
    #expect(throws: LedgerError.foreign(path: copy.ledger)) { try copy.open() }
    #expect(throws: LedgerError.foreign(path: copy.ledger)) { try Ledger(readingAt: copy.ledger) }
    #expect(try contents() == before && copy.names == names)
    try other.close()
  }

  @Test func `whose pages are damaged is set aside, and every other file is left alone`() throws {
    let folder = try LedgerFolder()
    do { try LedgerSample.write(to: try folder.open()) }
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: folder.ledger.string))
    try file.seek(toOffset: 4_096)
    try file.write(contentsOf: Data(repeating: 0xFF, count: 3 * 4_096))
    try file.close()
    #expect(throws: LedgerError.self) { try Ledger(readingAt: folder.ledger) }
    let ledger = try folder.open()
    #expect(ledger.note != nil)
    #expect(try ledger.runs().isEmpty)
  }

  @Test func `of a later version is refused, and left as it is`() throws {
    let folder = try LedgerFolder()
    do { try LedgerSample.write(to: try folder.open()) }
    do {
      let later = try Connection(path: folder.ledger.string, mode: .readWrite)
      try later.execute("PRAGMA user_version = 2")
      try later.close()
    }
    let before = try Data(contentsOf: URL(fileURLWithPath: folder.ledger.string))
    let error = LedgerError.newerVersion(path: folder.ledger, found: 2, known: 1)
    #expect(throws: error) { try folder.open() }
    #expect(throws: error) { try Ledger(readingAt: folder.ledger) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: folder.ledger.string)) == before)
    #expect(try folder.names == [Ledger.fileName])
  }

  @Test func `that others may write to is not trusted`() throws {
    let folder = try LedgerFolder()
    do { try LedgerSample.write(to: try folder.open()) }
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o666], ofItemAtPath: folder.ledger.string)
    #expect(throws: DurabilityError.self) { try folder.open() }
  }

  @Test func `reads a file of format version 1 that an earlier build wrote`() throws {
    let folder = try LedgerFolder()
    let golden = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Golden/ledger-1.sqlite")
    if !FileManager.default.fileExists(atPath: golden.path) {
      Issue.record("the golden file is missing")
    }
    try FileManager.default.copyItem(
      at: golden, to: URL(fileURLWithPath: folder.ledger.string))
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: folder.ledger.string)
    let ledger = try folder.open()
    #expect(ledger.note == nil)
    var attempts: [LedgerAttempt] = []
    try ledger.forEachStore(of: LedgerSample.run.name) { attempt, _ in attempts.append(attempt) }
    #expect(attempts.count == 3)
    #expect(attempts.first == LedgerSample.migrated)
    #expect(try ledger.backups(of: LedgerSample.backup.store) == [LedgerSample.backup])
    #expect(try ledger.quarantine(all: true).map(\.reason) == ["damaged"])
  }

  @Test func `stays quick with many stores and runs`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    for number in 1...5 {
      var run = LedgerSample.run
      run.name = "run-\(number)"
      try ledger.writing {
        try ledger.begin(run)
        for store in 0..<2_000 {
          var attempt = LedgerSample.failed("\(store)")
          attempt.run = run.name
          try ledger.add(attempt)
        }
      }
    }
    // What a look-up of one store reads does not grow with the ledger.
    let connection = try Connection(path: folder.ledger.string, mode: .readOnly)
    for sql in [
      "SELECT * FROM attempts WHERE store = 7 ORDER BY id",
      "SELECT max(id) FROM attempts WHERE run = 3 GROUP BY store",
      "SELECT * FROM backups WHERE store = 7 ORDER BY id DESC",
      "SELECT id FROM stores WHERE path = '/srv'",
    ] {
      let plan = try connection.rows("EXPLAIN QUERY PLAN " + sql).compactMap { $0.last?.text }
      #expect(plan.allSatisfy { $0.hasPrefix("SEARCH") }, "\(sql): \(plan)")
    }
  }
}
