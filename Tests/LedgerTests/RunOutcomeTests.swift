import GodwitLedger
import GodwitSQLite
import Testing

/// Each store of a run as its last start left it, whatever came after the run.
@Suite struct `The ledger's account of a run` {
  private static let file = LedgerSample.run.file
  private static let paths = ["/r/a", "/r/b", "/r/c"]

  private func begin(
    _ ledger: Ledger, _ name: String, _ kind: LedgerRun.Kind = .run, isResumed: Bool = false
  ) throws {
    var run = LedgerSample.run
    (run.name, run.kind) = (name, kind)
    try ledger.begin(run, isResumed: isResumed)
    try ledger.setFound(Self.paths.count, in: name)
    guard kind == .run else { return }
    try ledger.beginFleet(
      of: Self.file, run: name, found: Self.paths, taken: Self.paths, unseen: [])
  }

  private func attempt(
    _ run: String, _ store: String, _ verdict: String, from source: String? = nil,
    to destination: String? = nil, at time: Double
  ) -> LedgerAttempt {
    var attempt = LedgerAttempt(
      run: run, store: store, started: time, ended: time, verdict: verdict, sourceBytes: 1)
    (attempt.source, attempt.destination) = (source, destination)
    return attempt
  }

  private func backup(_ run: String, _ store: String) -> LedgerBackup {
    LedgerBackup(
      path: "\(store).godwit-backup-\(run)", store: store, run: run, bytes: 1, made: 1,
      marks: BackupMark(main: .init(inode: 7, size: 1, seconds: 1, nanoseconds: 5)))
  }

  private func settle(_ ledger: Ledger, _ run: String, _ verdict: String) throws {
    try ledger.settle(
      Self.paths.map { .init(store: $0, verdict: verdict) }, of: Self.file, run: run)
  }

  @Test func `names nothing as pending that its last start found as an earlier run left it`()
    throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    let counts = RunReport.Counts(found: 3, sameModel: 3)
    try ledger.writing {
      try begin(ledger, "1")
      for path in Self.paths { try ledger.add(attempt("1", path, "migrated", at: 1)) }
      // Two starts of one run, of which the first was stopped.
      try begin(ledger, "2")
      try ledger.add(attempt("2", "/r/a", "pending", at: 2))
      try ledger.add(attempt("2", "/r/b", "pending", at: 2))
      try ledger.add(attempt("2", "/r/c", "refused", at: 2))
      try ledger.settle([.notBegun("/r/a"), .notBegun("/r/b")], of: Self.file, run: "2")
      try ledger.end("2", at: 3, exitCode: 75, .init(found: 3, refused: 1, pending: 2))
      try begin(ledger, "2", isResumed: true)
    }
    // As it stays where that start is killed.
    let killed = try ledger.report(ofRun: "2")
    #expect(killed.counts == .init(found: 3, migrated: 2, pending: 1))
    #expect(killed.stores.map(\.verdict) == ["migrated", "migrated", "pending"])
    #expect(killed.failures.map(\.count) == [1])
    try ledger.writing {
      try settle(ledger, "2", "same-model")
      try ledger.end("2", at: 4, exitCode: 0, counts)
    }
    for later in ["", "a run", "a rollback"] {
      try ledger.writing {
        if later == "a run" { try begin(ledger, "3") }
        if later == "a rollback" {
          try begin(ledger, "4", .rollback)
          for path in Self.paths { try ledger.add(attempt("4", path, "restored", at: 5)) }
        }
      }
      let report = try ledger.report(ofRun: "2")
      #expect(report.counts == counts, "\(later)")
      #expect(
        report.stores.map(\.verdict) == ["same-model", "same-model", "same-model"], "\(later)")
      #expect(report.stores.map(\.attempts) == [1, 1, 1], "\(later)")
      #expect(report.failures.isEmpty, "\(later)")
      #expect(try ledger.failures(of: "2").isEmpty, "\(later)")
      #expect(
        JUnitReport(report).text().contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"0\"")
      )
    }
  }

  @Test func `has the verdicts with which its last start ended, although it tried none of them`()
    throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1")
      try ledger.add(attempt("1", "/r/a", "migrated", at: 1))
      try ledger.add(attempt("1", "/r/b", "refused", at: 1))
      // The first one was found changed, and the others were quarantined.
      try ledger.settle(
        [.notBegun("/r/a")]
          + ["/r/b", "/r/c"].map {
            .init(store: $0, verdict: "quarantined", reason: "damaged", message: "m")
          }, of: Self.file, run: "1")
      try ledger.end("1", at: 2, exitCode: 75, .init(found: 3, quarantined: 2, pending: 1))
    }
    for isLater in [false, true] {
      try ledger.writing {
        guard isLater else { return }
        try begin(ledger, "2")
        for path in Self.paths { try ledger.add(attempt("2", path, "migrated", at: 3)) }
      }
      let report = try ledger.report(ofRun: "1")
      #expect(report.stores.map(\.verdict) == ["pending", "quarantined", "quarantined"])
      #expect(report.stores.map(\.attempts) == [1, 1, 0])
      #expect(
        report.failures.map { "\($0.verdict) \($0.reason) \($0.count)" }
          == ["quarantined damaged 2", "pending stopped 1"])
      #expect(
        JUnitReport(report).text().contains("tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"3\"")
      )
      var tried: [String] = []
      try ledger.forEachAttempt(at: "/r/b") { tried.append($0.verdict) }
      #expect(tried == (isLater ? ["refused", "migrated"] : ["refused"]))
    }
  }

  @Test func `that was killed stays when a store of an earlier run is put back`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1")
      try ledger.add(attempt("1", "/r/a", "migrated", at: 1))
      try ledger.add(attempt("1", "/r/b", "migrated", at: 1))
      try ledger.add(attempt("1", "/r/c", "failed", at: 1))
      try ledger.end("1", at: 2, exitCode: 3, .init(found: 3, migrated: 2, failed: 1))
      try begin(ledger, "2")
    }
    for isBefore in [true, false] {
      if !isBefore {
        try ledger.writing {
          try begin(ledger, "3", .rollback)
          try ledger.add(attempt("3", "/r/a", "restored", at: 3))
        }
        #expect(
          try ledger.fleet(of: Self.file) == .init(found: 3, migrated: 1, failed: 1, restored: 1))
      }
      let report = try ledger.report(ofRun: "2")
      #expect(report.counts == .init(found: 3, migrated: 2, pending: 1), "\(isBefore)")
      #expect(report.stores.map { "\($0.path) \($0.verdict)" } == ["/r/c pending"], "\(isBefore)")
      #expect(report.failures.map(\.count) == [1], "\(isBefore)")
      #expect(
        try ledger.storesFoundDone(of: Self.file, run: "2") == ["/r/a", "/r/b"], "\(isBefore)")
    }
  }

  @Test func `counts the snapshots that it found, also when the stores are migrated since`() throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    var snapshot = attempt("1", "/r/a", "migrated", at: 1)
    snapshot.output = "/r/a.godwit-snapshot-1"
    try ledger.writing {
      try begin(ledger, "1")
      try ledger.add(snapshot)
      try begin(ledger, "2")
      try ledger.settle(
        [
          .init(store: "/r/a", verdict: LedgerStanding.snapshot),
          .init(store: "/r/b", verdict: "same-model"), .init(store: "/r/c", verdict: "same-model"),
        ], of: Self.file, run: "2")
      try ledger.end("2", at: 2, exitCode: 0, .init(found: 3, migrated: 1, sameModel: 2))
    }
    #expect(try ledger.storesFoundDone(of: Self.file, run: "2") == Self.paths)
    for isLater in [false, true] {
      try ledger.writing {
        guard isLater else { return }
        try begin(ledger, "3")
        try ledger.add(attempt("3", "/r/a", "migrated", at: 3))
      }
      let report = try ledger.report(ofRun: "2")
      #expect(report.counts == .init(found: 3, migrated: 1, sameModel: 2, snapshots: 1))
      #expect(report.stores.isEmpty, "what was found is only counted")
    }
  }

  @Test
  func `follows from what is known of the stores, where an earlier version noted no verdicts`()
    throws
  {
    let folder = try LedgerFolder()
    let counts = RunReport.Counts(found: 3, migrated: 1, sameModel: 2, snapshots: 1)
    do {
      let ledger = try folder.open()
      var snapshot = attempt("1", "/r/a", "migrated", at: 1)
      snapshot.output = "/r/a.godwit-snapshot-1"
      try ledger.writing {
        try begin(ledger, "1")
        try ledger.add(snapshot)
        try ledger.add(attempt("1", "/r/b", "migrated", at: 1))
        try begin(ledger, "2")
        try ledger.add(attempt("2", "/r/b", "pending", at: 2))
        try ledger.settle([.notBegun("/r/b")], of: Self.file, run: "2")
        try begin(ledger, "2", isResumed: true)
        try ledger.settle(
          [
            .init(store: "/r/a", verdict: LedgerStanding.snapshot),
            .init(store: "/r/b", verdict: "same-model"),
            .init(store: "/r/c", verdict: "same-model"),
          ], of: Self.file, run: "2")
        try ledger.end("2", at: 3, exitCode: 0, counts)
      }
    }
    let connection = try Connection(path: folder.ledger.string, mode: .readWrite)
    try connection.execute("DELETE FROM attempts WHERE verdict = 'untried'")
    #expect(connection.changes == 2)
    try connection.close()
    for isPutBack in [false, true] {
      if isPutBack {
        let ledger = try folder.open()
        try ledger.writing { try putBack(ledger, "3", at: 4) }
      }
      let ledger = try #require(try Ledger(readingAt: folder.ledger))
      let report = try ledger.report(ofRun: "2")
      #expect(report.counts == counts, "\(isPutBack)")
      #expect(report.stores.map { "\($0.path) \($0.verdict)" } == ["/r/b same-model"])
      #expect(try report.failures.isEmpty && ledger.failures(of: "2").isEmpty, "\(isPutBack)")
    }
  }

  @Test func `calls a store restored once what the run itself made of it is undone`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      for (run, source, destination) in [("1", "A", "B"), ("2", "B", "A")] {
        try begin(ledger, run)
        try ledger.add(attempt(run, "/r/a", "migrated", from: source, to: destination, at: 1))
        try ledger.add(backup(run, "/r/a"))
        try ledger.end(run, at: 2, exitCode: 0, .init(found: 3, migrated: 1, sameModel: 2))
      }
    }
    for (rollback, version, restored) in [("3", "B", [nil, 1]), ("4", "A", [1, 1])]
      as [(String, String, [Int?])]
    {
      try ledger.writing {
        try begin(ledger, rollback, .rollback)
        try ledger.add(attempt(rollback, "/r/a", "restored", to: version, at: 3))
      }
      #expect(try ["1", "2"].map { try ledger.report(ofRun: $0).restored } == restored)
    }
  }

  private func migrate(_ ledger: Ledger, _ run: String, _ store: String, at time: Double) throws {
    try ledger.add(attempt(run, store, "migrated", from: "A", to: "B", at: time))
    try ledger.add(backup(run, store))
  }

  private func putBack(_ ledger: Ledger, _ rollback: String, at time: Double) throws {
    try begin(ledger, rollback, .rollback)
    for path in Self.paths {
      try ledger.add(attempt(rollback, path, "restored", to: "A", at: time))
    }
  }

  @Test func `calls stores restored until they are migrated again, whatever runs have found since`()
    throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1")
      for path in Self.paths { try migrate(ledger, "1", path, at: 1) }
      try ledger.end("1", at: 2, exitCode: 0, .init(found: 3, migrated: 3))
      try putBack(ledger, "2", at: 3)
      try begin(ledger, "3")
      for path in Self.paths { try ledger.add(attempt("3", path, "refused", at: 4)) }
      try ledger.end("3", at: 5, exitCode: 3, .init(found: 3, refused: 3))
    }
    #expect(try ledger.report(ofRun: "1").restored == 3)
    try ledger.writing {
      try begin(ledger, "4")
      try migrate(ledger, "4", "/r/a", at: 6)
    }
    #expect(try ["1", "3", "4"].map { try ledger.report(ofRun: $0).restored } == [2, nil, nil])
  }

  @Test func `calls no store restored that its last start left otherwise, or did not find`() throws
  {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    let left = ["/r/b", "/r/c"]
    try ledger.writing {
      try begin(ledger, "1")
      for path in Self.paths { try migrate(ledger, "1", path, at: 1) }
      try begin(ledger, "1", isResumed: true)
      try ledger.beginFleet(of: Self.file, run: "1", found: left, taken: left, unseen: [])
      try ledger.add(attempt("1", "/r/c", "refused", at: 2))
      try ledger.end("1", at: 3, exitCode: 3, .init(found: 2, migrated: 1, refused: 1))
      try putBack(ledger, "2", at: 4)
    }
    let report = try ledger.report(ofRun: "1")
    #expect(report.stores.map(\.verdict) == ["migrated", "refused"])
    #expect(report.restored == 1)
  }

  @Test func `of a rollback that was killed has the stores that it did not come to`() throws {
    let folder = try LedgerFolder()
    let ledger = try folder.open()
    try ledger.writing {
      try begin(ledger, "1", .rollback)
      try ledger.add(attempt("1", "/r/a", "restored", at: 1))
    }
    let report = try ledger.report(ofRun: "1")
    #expect(report.counts == .init(found: 3, pending: 2, restored: 1))
    #expect(report.failures.map(\.count) == [2])
  }
}
