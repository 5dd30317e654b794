import Foundation
import GodwitLedger
import GodwitObjectModel
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A pipeline's ledger` {
  private func entry(
    _ store: FilePath, run: String, _ verdict: MigrationResult.Verdict = .migrated,
    final: String? = nil, backup: String? = nil
  ) -> PipelineLedger.Entry {
    PipelineLedger.Entry(
      run: run, store: store.string, verdict: verdict, time: 1, settings: "s", identity: "i",
      finalIdentity: final, backup: backup)
  }

  private func open(
    _ scratch: borrowing Scratch, now: Double, of pipeline: String = "/p/pipeline.yaml",
    stores: StoreSelection = .all
  ) throws -> PipelineLedger {
    try PipelineLedger(
      folder: scratch.path, now: now, owner: RunOwner(pipeline: pipeline, file: pipeline),
      stores: stores,
      history: try RunHistory(
        at: scratch.path.appending("ledger.sqlite"),
        of: RunOwner(pipeline: pipeline, file: pipeline),
        now: now, quarantineLimit: 3))
  }

  @Test func `goes on with a run that has not finished, under its name`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1_800_000_000)
    #expect(!first.isResumed)
    try await first.record(entry("/a", run: first.run, backup: "/a.backup"))
    let second = try open(scratch, now: 1_900_000_000)
    #expect(second.isResumed && second.run == first.run)
    #expect(second.entry(of: "/a") == entry("/a", run: first.run, backup: "/a.backup"))
    try second.end(isFinished: true, isInHistory: true)
    let third = try open(scratch, now: 1_900_000_000)
    #expect(!third.isResumed && third.run != first.run)
  }

  @Test func `forgets what came before for all starts over the same stores, until one ends`()
    async throws
  {
    let scratch = try Scratch()
    func forgotten(_ ledger: PipelineLedger) -> [Bool] {
      ["/a", "/b"].map { ledger.isForgotten(FilePath($0)) }
    }
    let first = try open(scratch, now: 1)
    try await first.record(entry("/a", run: first.run, backup: "/a.backup"))
    try first.forget()
    try await first.record(entry("/b", run: first.run, backup: "/b.backup"))
    #expect(forgotten(first) == [true, false])
    let second = try open(scratch, now: 2)
    #expect(second.isResumed && second.isFresh && forgotten(second) == [true, false])
    #expect(second.entry(of: "/a") != nil, "what a commit has left is known as ever")
    let owner = RunOwner(pipeline: "/p/pipeline.yaml", file: "/p/pipeline.yaml")
    func read() throws -> Set<FilePath> {
      Set(try PipelineLedger.entries(in: scratch.path, of: owner).keys)
    }
    #expect(try read() == ["/b"])
    let other = try open(
      scratch, now: 3, stores: StoreSelection(patterns: ["b*"], paths: nil))
    #expect(other.isResumed && !other.isFresh && forgotten(other) == [false, false])
    try second.end(isFinished: false, isInHistory: true)
    let third = try open(scratch, now: 4)
    #expect(third.isResumed && !third.isFresh && forgotten(third) == [false, false])
    #expect(try read() == ["/a", "/b"])
  }

  @Test func `goes on with no run of another pipeline that shares the folder`() throws {
    let scratch = try Scratch()
    let (one, two) = (scratch.path.appending("one.yaml"), scratch.path.appending("two.yaml"))
    for file in [one, two] { try Data().write(to: URL(fileURLWithPath: file.string)) }
    let first = try open(scratch, now: 1_800_000_000, of: one.string)
    let second = try open(scratch, now: 1_900_000_000, of: two.string)
    #expect(!second.isResumed && second.run != first.run)
    #expect(try open(scratch, now: 1_950_000_000, of: two.string).run == second.run)
  }

  @Test func `takes a name that neither a run nor a rollback has`() throws {
    let scratch = try Scratch()
    let now = 1_800_000_000.0
    func rollback(_ name: String) throws {
      let ledger = try Ledger(writingAt: scratch.path.appending("ledger.sqlite"), now: now)
      try ledger.writing {
        try ledger.begin(
          LedgerRun(
            name: name, kind: .rollback, pipeline: "/p/pipeline.yaml", file: "/p/pipeline.yaml",
            started: now, host: ""))
      }
    }
    try rollback(RunFolder.timestamp(now))
    let first = try open(scratch, now: now)
    #expect(first.run != RunFolder.timestamp(now))
    try first.end(isFinished: true, isInHistory: true)
    let second = try open(scratch, now: now)
    #expect(![first.run, RunFolder.timestamp(now)].contains(second.run))
    // A run that an earlier version gave the name of a rollback.
    try rollback(second.run)
    let third = try open(scratch, now: now + 60)
    #expect(!third.isResumed && third.run != second.run)
  }

  @Test func `keeps for the next run what that need not look at again`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    let names = ["beside", "replaced", "same", "gone", "unknown", "failed"]
    let stores = Dictionary(
      uniqueKeysWithValues: names.map {
        ($0, $0 == "gone" ? scratch.path.appending($0) : scratch.file($0))
      })
    let (run, path) = (first.run, { (name: String) in stores[name] ?? "" })
    for entry in [
      entry(path("beside"), run: run),
      entry(path("replaced"), run: run, final: "f", backup: "/b"),
      entry(path("same"), run: run, .sameModel, final: "f"),
      entry(path("gone"), run: run, .sameModel, final: "f"),
      // A line of an earlier build.
      entry(path("unknown"), run: run, backup: "/b"),
      entry(path("failed"), run: run, .failed),
    ] {
      try await first.record(entry)
    }
    try first.end(isFinished: true, isInHistory: true)
    let second = try open(scratch, now: 2)
    let kept = names.filter { second.entry(of: path($0)) != nil }
    #expect(kept == ["beside", "replaced", "same"])
  }

  @Test func `has every result on the disk that came at the same time`() async throws {
    let scratch = try Scratch()
    let ledger = try open(scratch, now: 1)
    let entries = (0..<50).map { entry(FilePath("/\($0)"), run: ledger.run) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for entry in entries { group.addTask { try await ledger.record(entry) } }
      try await group.waitForAll()
    }
    let again = try open(scratch, now: 2)
    #expect(entries.allSatisfy { again.entry(of: FilePath($0.store)) == $0 })
  }

  @Test func `reads past a line that a crash cut, and begins a new one`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    try await first.record(entry("/a", run: first.run))
    let path = scratch.path.appending("ledger.jsonl").string
    var data = try #require(FileManager.default.contents(atPath: path))
    data.append(Data(#"{"run":"x","store":"/b","verd"#.utf8))
    try data.write(to: URL(fileURLWithPath: path))
    let second = try open(scratch, now: 2)
    #expect(second.entry(of: "/a") != nil && second.entry(of: "/b") == nil)
    try await second.record(entry("/c", run: second.run))
    let third = try open(scratch, now: 3)
    #expect(third.entry(of: "/a") != nil && third.entry(of: "/c") != nil)
  }

  @Test func `says how many lines a disk has changed, whether they are JSON or not`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    for name in ["/a", "/b", "/c"] {
      try await first.record(entry(FilePath(name), run: first.run, backup: "\(name).backup"))
    }
    first.close()
    let path = scratch.path.appending("ledger.jsonl")
    let whole = try String(contentsOfFile: path.string, encoding: .utf8)
    for (lines, places) in [(0, [""]), (1, ["backup\":\"/a"]), (2, ["{", "verdict"])] {
      var text = whole
      for (place, found) in zip(places, whole.split(separator: "\n")) where !place.isEmpty {
        // Another letter of a key that may be missing, or of what makes it JSON.
        text = text.replacing(found, with: found.replacing(place, with: "z" + place.dropFirst()))
      }
      try text.write(toFile: path.string, atomically: false, encoding: .utf8)
      let owner = RunOwner(pipeline: "/p/pipeline.yaml", file: "/p/pipeline.yaml")
      let history = try RunHistory(
        at: scratch.path.appending("ledger.sqlite"), of: owner, now: 2, quarantineLimit: 3)
      let ledger = try PipelineLedger(
        folder: scratch.path, now: 2, owner: owner, history: history)
      #expect(["/a", "/b", "/c"].count { ledger.entry(of: FilePath($0)) != nil } == 3 - lines)
      let notes = history.takeNotes().filter { $0.contains("not as written") }
      #expect(notes.map { $0.prefix(1) } == (lines == 0 ? [] : ["\(lines)"]))
    }
  }

  @Test func `begins another run where a disk has changed a key of the name of the last one`()
    throws
  {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    first.close()
    let path = scratch.path.appending("run.json").string
    let whole = try String(contentsOfFile: path, encoding: .utf8)
    for (key, isResumed) in [("ended", true), ("xnded", false)] {
      let text = whole.replacing(#""ended":"#, with: #""\#(key)":"#)
      try #require((text == whole) == isResumed)
      try text.write(toFile: path, atomically: false, encoding: .utf8)
      let next = try open(scratch, now: 2)
      #expect(next.isResumed == isResumed)
      next.close()
    }
  }

  private func detail(_ note: String) -> PipelineLedger.Detail? {
    var result = MigrationResult(store: "/a", verdict: .migrated, ending: .done, notes: [note])
    result.counts = ["Order": 3, "Ordér": 4]
    return PipelineLedger.Detail(result)
  }

  @Test func `gives the rest of what was said of a store to whoever asks, in any start of the run`()
    async throws
  {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<50 {
        group.addTask {
          try? await first.record(
            entry(FilePath("/\(number)"), run: first.run, backup: "/b"), detail("note \(number)"))
        }
      }
    }
    try await first.record(entry("/none", run: first.run, .failed))
    func expectAll(_ ledger: PipelineLedger) {
      for number in 0..<50 {
        #expect(ledger.detail(of: FilePath("/\(number)")) == detail("note \(number)"))
      }
      #expect(ledger.detail(of: "/none") == nil && ledger.detail(of: "/nobody") == nil)
    }
    expectAll(first)
    first.close()
    let path = scratch.path.appending("ledger.jsonl").string
    var data = try #require(FileManager.default.contents(atPath: path))
    data.append(Data(#"{"run":"x","store":"/b","verd"#.utf8))
    try data.write(to: URL(fileURLWithPath: path))
    let second = try open(scratch, now: 2)
    expectAll(second)
    try await second.record(entry("/1", run: second.run, backup: "/b"), detail("another"))
    #expect(second.detail(of: "/1") == detail("another"))
    #expect(second.detail(of: "/2") == detail("note 2"))
  }

  @Test func `keeps the rest for the next run of outputs alone`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    let (beside, replaced) = (scratch.file("beside"), scratch.file("replaced"))
    try await first.record(entry(replaced, run: first.run, final: "f", backup: "/b"), detail("r"))
    try await first.record(entry(beside, run: first.run), detail("o"))
    try first.end(isFinished: true, isInHistory: true)
    first.close()
    for now in [2.0, 3.0] {
      let next = try open(scratch, now: now)
      #expect(next.entry(of: replaced) != nil && next.detail(of: replaced) == nil)
      #expect(next.detail(of: beside) == detail("o"))
      try next.end(isFinished: true, isInHistory: true)
      next.close()
    }
  }

  /// Of a start that was killed, before a ledger that somebody read could be written.
  @Test func `tells of a start that did not come to its end, once`() throws {
    let scratch = try Scratch()
    let pipeline = RunOwner(pipeline: "p", file: "/p/pipeline.yaml")
    let ledger = try open(scratch, now: 10, of: pipeline.file)
    let run = LedgerRun(
      name: ledger.run, pipeline: "p", file: pipeline.file, started: 10, host: "")
    try ledger.begin(
      PipelineLedger.Start(
        run: run, fleet: .init(found: ["/a", "/b"], taken: ["/a", "/b"], unseen: []),
        isPartOfRun: false))
    let history = try Ledger(writingAt: scratch.path.appending("ledger.sqlite"), now: 10)
    for _ in 0..<2 {
      try history.writing { try PipelineLedger.add(inState: scratch.path, to: history) }
      #expect(try history.fleet(of: pipeline.file, run: run.name)?.pending == 2)
      let known = try history.run(named: run.name)
      #expect(known.starts == 1 && known.counts?.found == 2 && known.ended == nil)
    }
    // The next start takes up one of them, and cannot write the ledger either.
    var next = PipelineLedger.Start(
      run: run, fleet: .init(found: ["/a", "/b"], taken: ["/a"], unseen: []), isPartOfRun: true)
    next.run.started = 20
    try ledger.begin(next)
    (next.run.ended, next.run.exitCode) = (30, 0)
    next.run.counts = RunReport.Counts(found: 1, migrated: 1)
    let a = LedgerStanding(store: "/a", verdict: "migrated")
    try ledger.end(
      isFinished: false, isInHistory: false, PipelineLedger.Ending(next, [a]))
    for _ in 0..<2 {
      try history.writing { try PipelineLedger.add(inState: scratch.path, to: history) }
      let known = try history.run(named: run.name)
      #expect(known.starts == 2 && known.ended == 30 && known.exitCode == 0)
      #expect(known.counts == RunReport.Counts(found: 2, migrated: 1, pending: 1))
    }
  }
  /// The first start ended by a clock that was ahead; the second one could not write the ledger.
  @Test func `tells of a start whose clock was set back since the one before, once`() throws {
    let scratch = try Scratch()
    let file = "/p/pipeline.yaml"
    let ledger = try open(scratch, now: 100, of: file)
    var run = LedgerRun(name: ledger.run, pipeline: "p", file: file, started: 100, host: "")
    let history = try Ledger(writingAt: scratch.path.appending("ledger.sqlite"), now: 100)
    try history.writing {
      try history.begin(run)
      try history.end(run.name, at: 110, exitCode: 75, .init(found: 2, migrated: 1, pending: 1))
    }
    (run.started, run.ended, run.exitCode) = (20, 30, 0)
    run.counts = RunReport.Counts(found: 2, migrated: 2)
    let start = PipelineLedger.Start(
      run: run, fleet: .init(found: ["/a", "/b"], taken: ["/a", "/b"], unseen: []),
      isPartOfRun: false)
    try ledger.end(isFinished: true, isInHistory: false, PipelineLedger.Ending(start))
    for _ in 0..<2 {
      try history.writing { try PipelineLedger.add(inState: scratch.path, to: history) }
      let known = try history.run(named: run.name)
      #expect(known.starts == 2 && known.ended == 30 && known.exitCode == 0)
      #expect(known.counts == run.counts)
    }
    // A later start, by whatever clock, is not undone by what is still in the state folder.
    run.started = 5
    try history.writing {
      try history.begin(run, isResumed: true)
      try history.end(run.name, at: 6, exitCode: 65, nil)
      try PipelineLedger.add(inState: scratch.path, to: history)
    }
    let known = try history.run(named: run.name)
    #expect(known.starts == 3 && known.ended == 6 && known.exitCode == 65)
  }
}
