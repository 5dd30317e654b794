import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `The fleet in a ledger` {
  private static let file = LedgerSample.run.file
  private static let paths = ["/r/a", "/r/b", "/s/c"]

  private func begin(_ ledger: Ledger, _ name: String, _ taken: [String], unseen: [String] = [])
    throws
  {
    var run = LedgerSample.run
    run.name = name
    try ledger.begin(run)
    try ledger.beginFleet(
      of: Self.file, run: name,
      found: Self.paths.filter { path in
        !unseen.contains { path.hasPrefix($0 + "/") }
      }, taken: taken, unseen: unseen)
  }

  private func attempt(_ run: String, _ store: String, _ verdict: String, at time: Double)
    -> LedgerAttempt
  {
    LedgerAttempt(
      run: run, store: store, started: time, ended: time, verdict: verdict, sourceBytes: 1)
  }

  @Test func `is what the last run that took each store up says of it`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    #expect(try ledger.fleet(of: Self.file) == nil)
    try ledger.writing {
      try begin(ledger, "1", Self.paths)
      for (number, path) in Self.paths.enumerated() {
        try ledger.add(attempt("1", path, number == 0 ? "failed" : "migrated", at: 1))
      }
    }
    #expect(try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 2, failed: 1))
    try ledger.writing { try begin(ledger, "2", ["/r/b"]) }
    #expect(
      try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 2, failed: 1),
      "what is done is done until a start comes to it")
    #expect(try ledger.fleet(of: Self.file, run: "2") == .init(found: 1, migrated: 1))
    #expect(try ledger.counts(of: ledger.run(named: "2")) == .init(found: 1, migrated: 1))
    try ledger.writing {
      try ledger.settle([.init(store: "/r/b", verdict: "same-model")], of: Self.file, run: "2")
    }
    #expect(
      try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 1, sameModel: 1, failed: 1))
    #expect(try ledger.fleet(of: Self.file, run: "2") == .init(found: 1, sameModel: 1))
    #expect(try ledger.failures(ofFleet: Self.file).map(\.examples) == [["/r/a"]])
    #expect(try ledger.fleet(of: "/another/pipeline.yaml") == nil)
  }

  @Test func `stays until a start comes to the store, and is pending in that start's run`() throws {
    let folder = try LedgerFolder()
    do {
      let ledger = try folder.open()
      try ledger.writing {
        try begin(ledger, "1", Self.paths)
        try ledger.add(attempt("1", "/r/a", "failed", at: 1))
        try ledger.add(attempt("1", "/r/b", "migrated", at: 1))
      }
      #expect(
        try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 1, failed: 1, pending: 1))
    }
    // As an earlier version of the format has it.
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute("ALTER TABLE fleet DROP COLUMN waiting")
    try connection.close()
    let earlier = try #require(try Ledger(readingAt: folder.ledger))
    #expect(try earlier.fleet(of: Self.file) == .init(found: 3, migrated: 1, failed: 1, pending: 1))
    let ledger = try folder.open()
    try ledger.writing { try begin(ledger, "2", Self.paths) }
    let notBegun = LedgerStanding.notBegun("/r/a")
    for isEnded in [false, true] {
      if isEnded {
        try ledger.writing { try ledger.settle([notBegun], of: Self.file, run: "2") }
      }
      #expect(
        try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 1, failed: 1, pending: 1))
      #expect(try ledger.fleet(of: Self.file, run: "2") == .init(found: 3, migrated: 1, pending: 2))
      var known: [String] = []
      try ledger.forEachNotMigrated(of: Self.file, run: "2") {
        known.append("\($0.store) \($0.verdict)")
      }
      #expect(known == ["/r/a pending", "/s/c pending"])
    }
    try ledger.writing { try ledger.add(attempt("2", "/r/a", "failed", at: 2)) }
    #expect(
      try ledger.fleet(of: Self.file, run: "2")
        == .init(found: 3, migrated: 1, failed: 1, pending: 1))
  }

  @Test func `is in the report of a run as its last start left it`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1", Self.paths)
      try ledger.add(attempt("1", "/r/a", "migrated", at: 1))
      try ledger.add(attempt("1", "/r/b", "refused", at: 1))
      try ledger.add(attempt("1", "/s/c", "migrated", at: 1))
      // A later start has found the first one changed, and did not come to it.
      try ledger.settle(
        [
          .notBegun("/r/a"),
          .init(store: "/r/b", verdict: "quarantined", reason: "damaged", message: "m"),
          .init(store: "/s/c", verdict: "same-model"),
        ], of: Self.file, run: "1")
    }
    #expect(
      try ledger.fleet(of: Self.file)
        == .init(found: 3, migrated: 1, sameModel: 1, quarantined: 1))
    #expect(
      try ledger.fleet(of: Self.file, run: "1")
        == .init(found: 3, sameModel: 1, quarantined: 1, pending: 1))
    let report = try ledger.report(ofRun: "1")
    #expect(report.stores.map(\.verdict) == ["pending", "quarantined", "migrated"])
    #expect(report.stores.map(\.attempts) == [1, 1, 1])
    // A further start has found the first one as it had been left, although one before was stopped in it.
    try ledger.writing {
      try ledger.add(attempt("1", "/r/a", "pending", at: 2))
      try ledger.settle([.init(store: "/r/a", verdict: "migrated")], of: Self.file, run: "1")
    }
    #expect(
      try ledger.report(ofRun: "1").stores.map(\.verdict) == [
        "migrated", "quarantined", "migrated",
      ])
    #expect(
      Set(report.failures.map { "\($0.verdict) \($0.count)" }) == ["pending 1", "quarantined 1"])
  }

  @Test func `is not left behind in the report of a run that goes on`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1", Self.paths)
      try ledger.add(attempt("1", "/r/a", "failed", at: 1))
    }
    var report = try ledger.report(ofRun: "1")
    #expect(report.failures.map(\.verdict) == ["pending", "failed"])
    #expect(JUnitReport(report).text().contains(LedgerStanding.notBegunMessage))
    report.goOn()
    #expect(report.failures.map(\.verdict) == ["failed"])
    let text = JUnitReport(report).text()
    #expect(!text.contains(LedgerStanding.notBegunMessage))
    #expect(text.contains(LedgerStanding.toComeMessage) && text.contains("skipped=\"2\""))
  }

  @Test func `of an earlier ledger is what the last attempts say`() throws {
    let folder = try LedgerFolder()
    do {
      let ledger = try folder.open()
      try ledger.writing {
        try begin(ledger, "1", Self.paths)
        try ledger.add(attempt("1", "/r/a", "failed", at: 1))
        try ledger.add(attempt("1", "/r/b", "migrated", at: 1))
        try ledger.add(attempt("1", "/s/c", "refused", at: 1))
        try ledger.add(attempt("1", "/r/a", "migrated", at: 2))
      }
    }
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute("DROP TABLE fleet")
    try connection.close()
    let ledger = try folder.open()
    #expect(try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 2, refused: 1))
    // A run over some of the stores.
    try ledger.writing { try begin(ledger, "2", ["/r/b"]) }
    #expect(try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 2, refused: 1))
    #expect(try ledger.failures(ofFleet: Self.file).map(\.examples) == [["/s/c"]])
  }

  @Test func `tells snapshots and restored stores from stores that are migrated`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    var snapshot = attempt("1", "/r/a", "migrated", at: 1)
    snapshot.output = "/r/a.godwit-snapshot-1"
    var rollback = LedgerSample.run
    (rollback.name, rollback.kind) = ("2", .rollback)
    try ledger.writing {
      try begin(ledger, "1", Self.paths)
      try ledger.add(snapshot)
      try ledger.add(attempt("1", "/r/b", "migrated", at: 1))
      try ledger.add(attempt("1", "/s/c", "migrated", at: 1))
      try ledger.end("1", at: 2, exitCode: 0, .init(found: 3, migrated: 3))
    }
    #expect(try ledger.report(ofRun: "1").counts == .init(found: 3, migrated: 3, snapshots: 1))
    try ledger.writing {
      try ledger.begin(rollback)
      try ledger.add(attempt("2", "/r/b", "restored", at: 3))
    }
    #expect(
      try ledger.fleet(of: Self.file)
        == .init(found: 3, migrated: 2, restored: 1, snapshots: 1))
    #expect(try ledger.report(ofRun: "1").restored == 1)
  }

  @Test(arguments: [
    ("/r/a", "/r/a.godwit-snapshot-1", "snapshot"),
    ("/r/a.sqlite", "/r/a.sqlite.godwit-snapshot-1.sqlite", "snapshot"),
    ("/r/a\u{6DD}", "/r/a\u{6DD}.godwit-snapshot-1", "snapshot"),
    ("/r.godwit-snapshot-1/a", "/r.godwit-snapshot-1/a-2", "migrated"),
    ("/r/a", "/r/a", "migrated"),
  ])
  func `knows a snapshot by the name of its output`(store: String, output: String, verdict: String)
  {
    #expect(LedgerStanding.verdict("migrated", output: output, ofStore: store) == verdict)
  }

  @Test func `does not take an attempt that it knows for news`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    let failed = attempt("1", "/r/a", "failed", at: 1)
    try ledger.writing {
      try begin(ledger, "1", Self.paths)
      try ledger.add(failed)
      try begin(ledger, "2", ["/r/a"])
      try ledger.add(attempt("2", "/r/a", "migrated", at: 2))
      // As after a crash, from a progress file.
      try ledger.add(failed)
    }
    #expect(try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 1, pending: 2))
  }

  /// To Swift, a slash and the mark behind it are one Character.
  @Test func `keeps also stores whose folder's name begins with a combining mark`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    var run = LedgerSample.run
    for (name, unseen) in [("1", []), ("2", ["/r"]), ("3", ["/r"])] as [(String, [String])] {
      run.name = name
      try ledger.writing {
        try ledger.begin(run)
        try ledger.beginFleet(
          of: Self.file, run: name, found: unseen.isEmpty ? ["/r/\u{301}x/a"] : [], taken: [],
          unseen: unseen)
      }
      #expect(try ledger.knownStores(of: Self.file, below: "/r") == 1, "run \(name)")
    }
  }

  @Test func `keeps what is known below folders that cannot be seen`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing { try begin(ledger, "1", Self.paths) }
    try ledger.writing { try begin(ledger, "2", ["/s/c"], unseen: ["/r"]) }
    #expect(try ledger.fleet(of: Self.file)?.found == 3)
    #expect(try ledger.knownStores(of: Self.file, below: "/r") == 2)
    try ledger.writing {
      try ledger.beginFleet(
        of: Self.file, run: "2", found: ["/s/c"], taken: ["/s/c"], unseen: [])
    }
    #expect(try ledger.fleet(of: Self.file)?.found == 1)
  }
}
