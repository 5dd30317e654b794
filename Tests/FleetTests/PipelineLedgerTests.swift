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
    _ scratch: borrowing Scratch, now: Double, of pipeline: String = "/p/pipeline.yaml"
  ) throws -> PipelineLedger {
    try PipelineLedger(
      folder: scratch.path, now: now, owner: RunOwner(pipeline: pipeline, file: pipeline),
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
}
