import GodwitLedger
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `The states in which a store was left` {
  private static let store = LedgerSample.migrated.store

  /// An attempt, such as `1 A > 2 A` for a migration from version 1 to 2 of a store with the UUID A, and
  /// `1 A` for a rollback to version 1; `?` for what is not known.
  private func attempt(_ number: Int, _ text: String) -> LedgerAttempt {
    let words = text.split(separator: " ").map { $0 == "?" ? nil : String($0) }
    var attempt = LedgerAttempt(
      run: "run-\(number)", store: Self.store, started: Double(number), ended: Double(number) + 0.5,
      verdict: words.count > 2 ? "migrated" : "restored", sourceBytes: 1)
    if words.count > 2 { (attempt.source, attempt.sourceUUID) = (words[0], words[1]) }
    (attempt.destination, attempt.uuid) = (words[words.count - 2], words[words.count - 1])
    attempt.identity = "state-\(number)"
    return attempt
  }

  private func states(_ attempts: [String]) throws -> LedgerStates {
    let folder = try LedgerFolder()
    defer { withExtendedLifetime(folder) {} }
    let ledger = try folder.open()
    try ledger.writing {
      for (number, text) in attempts.enumerated() { try ledger.add(attempt(number, text)) }
    }
    return try ledger.states(of: Self.store)
  }

  private func backup(_ number: Int) -> LedgerBackup {
    var backup = LedgerBackup(
      path: "\(Self.store).godwit-backup-\(number).sqlite", store: Self.store,
      run: "run-\(number)", bytes: 1, made: Double(number), marks: LedgerSample.backup.marks)
    backup.identity = "state-\(number)"
    return backup
  }

  @Test(arguments: [
    ["1 A > 2 A"], ["1 A > 2 A", "2 A > 3 A"], ["1 A > 2 B", "2 B > 3 C"],
    // An application may have migrated it on.
    ["1 A > 2 A", "3 A > 4 A"],
    // Rolled back, and migrated again.
    ["1 A > 2 A", "1 A", "1 A > 2 A"], ["1 A > 2 B", "1 A", "1 A > 2 B"],
    ["1 A > 2 A", "2 A > 3 A", "2 A", "2 A > 3 A"], ["1 A > 2 A", "2 A > 3 A", "1 A", "2 A > 3 A"],
    // To an older version on purpose.
    ["1 A > 2 A", "2 A > 1 A", "1 A > 2 A"],
    // Of which earlier versions said less.
    ["1 ? > 2 ?", "2 B > 3 B"], ["1 A > 2 ?", "2 B > 3 B"], ["1 A > 2 A", "? ?", "1 A > 2 A"],
  ])
  func `come out of each other where nobody exchanged it`(attempts: [String]) throws {
    let states = try states(attempts)
    for number in attempts.indices { #expect(states.exchange(since: backup(number)) == nil) }
  }

  @Test(arguments: [
    (["1 A > 2 A", "1 B > 2 B"], 1, nil), (["1 A > 2 A", "2 B > 3 B"], 1, nil),
    (["1 A > 2 A", "1 A > 2 A"], 1, "1"), (["1 A > 2 B", "1 A > 2 B"], 1, "1"),
    (["1 ? > 2 ?", "1 A > 2 A"], 1, "1"),
    (["1 A > 2 A", "2 A > 3 A", "1 A > 3 A", "3 A > 4 A"], 2, "1"),
    (["1 A > 2 A", "2 A > 3 A", "2 A", "1 A > 3 A"], 3, "1"),
    (["1 A > 2 A", "1 A", "1 B > 2 B"], 2, nil),
  ])
  func `tell which backups are of a store that another one was put in the place of`(
    attempts: [String], place: Int, older: String?
  ) throws {
    let states = try states(attempts)
    let expected =
      older.map { LedgerStates.Exchange.otherVersion($0, run: "run-\(place)") }
      ?? .otherStore(run: "run-\(place)")
    for number in attempts.indices {
      #expect(states.exchange(since: backup(number)) == (number < place ? expected : nil))
    }
    var unknown = backup(0)
    (unknown.identity, unknown.run) = (nil, "of a ledger that was lost")
    #expect(states.exchange(since: unknown) == expected)
  }

  @Test func `are not those of files that were written elsewhere`() throws {
    let folder = try LedgerFolder()
    defer { withExtendedLifetime(folder) {} }
    let ledger = try folder.open()
    var beside = attempt(1, "2 A > 3 B")
    (beside.output, beside.identity) = (Self.store + "-next", nil)
    var failed = attempt(2, "2 C > 3 D")
    failed.verdict = "failed"
    try ledger.writing {
      try ledger.add(attempt(0, "1 A > 2 A"))
      try ledger.add(beside)
      try ledger.add(failed)
    }
    let states = try ledger.states(of: Self.store)
    #expect(states.last?.identity == "state-0" && states.last?.uuid == "A")
    #expect(states.olderVersions == ["1"])
    var left: [String?] = []
    try ledger.forEachLeft { left.append($0.output) }
    #expect(left == [nil, Self.store + "-next"])
    // What was put back is the store again, and nobody asks for what was beside it before.
    try ledger.writing { try ledger.add(attempt(3, "1 A")) }
    var verdicts: [String] = []
    try ledger.forEachLeft { verdicts.append($0.verdict) }
    #expect(verdicts == ["restored"])
  }

  @Test func `are told once of a file that is a store and another one's output`() throws {
    let folder = try LedgerFolder()
    defer { withExtendedLifetime(folder) {} }
    let ledger = try folder.open()
    let file = Self.store + "-next"
    func left() throws -> [String] {
      var files: [String] = []
      try ledger.forEachLeft { files.append("\($0.run) \($0.output ?? $0.store)") }
      return files
    }
    func add(_ number: Int, _ text: String, isOutput: Bool) throws {
      var next = attempt(number, text)
      if isOutput { next.output = file } else { next.store = file }
      try ledger.writing { try ledger.add(next) }
    }
    try add(0, "1 A > 2 A", isOutput: true)
    #expect(try left() == ["run-0 \(file)"])
    try add(1, "2 A > 3 A", isOutput: false)
    #expect(try left() == ["run-1 \(file)"])
    try add(2, "2 A", isOutput: false)
    #expect(try left() == ["run-2 \(file)"])
    // The run finds what it would write.
    try add(3, "1 A > 2 A", isOutput: true)
    #expect(try left() == ["run-3 \(file)"])
  }

  @Test func `are known of ledgers whose attempts have no UUIDs`() throws {
    let folder = try LedgerFolder()
    do {
      let ledger = try folder.open()
      try ledger.writing {
        try ledger.add(attempt(0, "1 A > 2 A"))
        var other = attempt(1, "1 B > 2 B")
        other.store = "/b"
        try ledger.add(other)
        (other.verdict, other.run, other.ended) = ("failed", "run-2", 3)
        try ledger.add(other)
      }
    }
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute(
      "ALTER TABLE attempts DROP COLUMN uuid; ALTER TABLE attempts DROP COLUMN source_uuid")
    try connection.close()
    let reader = try #require(try Ledger(readingAt: folder.ledger))
    #expect(try reader.states(of: Self.store).last?.uuid == "A")
    let writer = try folder.open()
    var uuids: [String?] = []
    for store in [Self.store, "/b"] {
      try writer.forEachAttempt(at: store) { uuids.append($0.uuid) }
    }
    #expect(uuids == ["A", nil, nil], "what is known is of the last attempt")
    #expect(try writer.states(of: "/b").last?.uuid == "B")
  }

  @Test(arguments: [
    // A name of its own goes anywhere; the folder's is that of every file there.
    (pipeline: "p", old: "old.yaml", new: "new.yaml", isSame: true),
    ("p", "old.yaml", "elsewhere/new.yaml", true), ("fleet", "a.yaml", "b.yaml", false),
    ("fleet", "a.yaml", "moved/fleet/a.yaml", true),
    ("fleet", "a.yaml", "moved/fleet/b.yaml", false),
    // Two files, which Unicode normalisation alone tells apart.
    ("fleet", "caf\u{E9}.yaml", "cafe\u{301}.yaml", false),
  ])
  func `are of a file that was moved, by its name`(
    pipeline: String, old: String, new: String, isSame: Bool
  ) throws {
    let folder = try LedgerFolder().path.appending("fleet")
    let owner = RunOwner(pipeline: pipeline, file: folder.pushing(FilePath(new)).string)
    #expect(owner.owns(pipeline: pipeline, file: folder.appending(old).string) == isSame)
    #expect(!owner.owns(pipeline: "another", file: folder.appending(old).string))
  }

  @Test func `and its pipeline go along where its file is moved`() throws {
    let folder = try LedgerFolder()
    let old = RunOwner(pipeline: "p", file: folder.path.appending("old.yaml").string)
    let new = RunOwner(pipeline: "p", file: folder.path.appending("new.yaml").string)
    let other = RunOwner(pipeline: "q", file: folder.path.appending("new.yaml").string)
    var run = LedgerSample.run
    (run.pipeline, run.file) = (old.pipeline, old.file)
    let ledger = try folder.open()
    try ledger.writing {
      try ledger.begin(run)
      try ledger.beginFleet(
        of: old.file, run: run.name, found: ["/s/a"], taken: ["/s/a"], unseen: [])
    }
    func known(_ ledger: Ledger?, by owner: RunOwner) throws -> Int? {
      try ledger?.fleet(of: owner.file)?.found
    }
    let reader = try Ledger(readingAt: folder.ledger)
    try reader?.narrow(to: new)
    #expect(try known(reader, by: new) == 1)
    #expect(try reader?.knownStores(of: new.file, below: "/s") == 1)
    try reader?.narrow(to: other)
    #expect(try known(reader, by: other) == nil)
    func isUnder(_ owner: RunOwner) throws -> Bool {
      try known(Ledger(readingAt: folder.ledger), by: owner) == 1
    }
    try ledger.adoptFleet(of: other)
    #expect(try isUnder(old) && !isUnder(new))
    try ledger.adoptFleet(of: new)
    #expect(try isUnder(new) && !isUnder(old))
    #expect(try ledger.report(ofRun: run.name).fleet?.found == 1, "of a run at the old path, too")
    // What that run did becomes known after its file was moved, as after a crash.
    let migrated = LedgerAttempt(
      run: run.name, store: "/s/a", started: 1, ended: 2, verdict: "migrated", sourceBytes: 1)
    try ledger.writing {
      try ledger.add(migrated)
      try ledger.beginFleet(
        of: old.file, run: run.name, found: ["/s/a", "/s/b"], taken: ["/s/a", "/s/b"], unseen: [])
      try ledger.settle(
        [LedgerStanding(store: "/s/b", verdict: "refused")], of: old.file, run: run.name)
    }
    #expect(try ledger.fleet(of: new.file) == .init(found: 2, migrated: 1, refused: 1))
    #expect(try Ledger(readingAt: folder.ledger)?.fleet(of: old.file) == nil)
    // A run that is resumed is where its pipeline is.
    run.file = new.file
    try ledger.writing { try ledger.begin(run, isResumed: true) }
    #expect(try ledger.run(named: run.name).file == new.file)
  }
}
