import GodwitFleet
import GodwitLedger
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitCommands

@Suite struct `What a run shows` {
  private static func store(_ name: String, bytes: Int64 = 1 << 20) -> FoundStore {
    FoundStore(path: FilePath("/r/" + name), root: "/r", bytes: bytes)
  }

  private static func result(
    _ store: FoundStore, _ verdict: MigrationResult.Verdict, _ reason: String? = nil
  ) -> MigrationResult {
    var result = MigrationResult(
      store: store.path.string, verdict: verdict, ending: .done,
      reasons: reason.map { [Reason(reason: $0, message: "why")] } ?? [])
    (result.rows, result.seconds) = (1_000, 1)
    return result
  }

  @Test func `is how many stores, rows and bytes are done, and the time left`() {
    let start = ContinuousClock.now
    var view = RunView(start: start)
    #expect(view.line("p") == "p: looking for stores")
    let stores = (1...4).map { Self.store("\($0)") }
    view.take(
      .found(PipelineStart(pipeline: "p", stores: 4, bytes: 4 << 20, links: 0)), at: start)
    let later = start.advanced(by: .seconds(10))
    #expect(view.line("p", at: later) == "p: 0 of 4 stores", "nothing is known of the time yet")
    view.take(.result(stores[0], Self.result(stores[0], .migrated)), at: later)
    #expect(
      view.line("p", at: later)
        == "p: 1 of 4 stores, 100 rows/s, 102 KiB/s, 30 s left")
    view.take(.result(stores[1], Self.result(stores[1], .failed)), at: later)
    #expect(view.line("p", at: later).contains("2 of 4 stores, 1 not migrated"))
    #expect(view.line("p", at: later).hasSuffix("10 s left"))
  }

  @Test func `does not count what was done before as speed`() {
    let start = ContinuousClock.now
    var view = RunView(start: start)
    let stores = (1...4).map { Self.store("\($0)") }
    view.take(.found(PipelineStart(pipeline: "p", stores: 4, bytes: 4 << 20, links: 0)))
    for store in stores.prefix(2) {
      view.take(
        .result(
          store, MigrationResult(store: store.path.string, verdict: .sameModel, ending: .done)))
    }
    let later = start.advanced(by: .seconds(10))
    view.take(.result(stores[2], Self.result(stores[2], .migrated)), at: later)
    #expect(view.line("p", at: later).hasSuffix("10 s left"), "half of what is to do is done")
  }

  @Test func `are the stores under way with their stages, in the terminal's width`() {
    let start = ContinuousClock.now
    var view = RunView(start: start)
    let stores = (1...10).map { Self.store("a/long/folder/\($0).sqlite") }
    view.take(.found(PipelineStart(pipeline: "p", stores: 10, bytes: 10 << 20, links: 0)))
    for (number, store) in stores.enumerated() {
      var event = RunEvent(.stage)
      event.stage = "assemble"
      view.take(.store(store, event), at: start.advanced(by: .milliseconds(number)))
    }
    let lines = view.lines("p", width: 44, at: start.advanced(by: .seconds(3)))
    #expect(lines.count == 10 && lines.last == "  and 2 more")
    #expect(lines.allSatisfy { $0.count < 44 })
    #expect(lines[1].contains("1.sqlite  assemble, 1 MiB, 3.0 s"), "\(lines[1])")
    #expect(lines[1].contains("…"))
  }

  @Test func `is at the end what was wrong, by reason, with what to do`() {
    var groups = ReasonGroups()
    for number in 1...5 {
      let store = Self.store("\(number)")
      groups.add(Self.result(store, .failed, "timeout"))
    }
    groups.add(Self.result(Self.store("x"), .refused, "unknown"))
    groups.add(Self.result(Self.store("y"), .migrated))
    #expect(
      PipelineReport.lines(groups.all) == [
        "5 stores failed: timeout", "  /r/1", "  /r/2", "  /r/3", "  and 2 more",
        "  → Raise `limits.store-timeout`, or look for a volume that is slow.",
        "1 store refused: unknown", "  /r/x",
        "  → \(FailureAdvice.text(verdict: "failed", reason: "unknown"))",
      ])
  }

  @Test(arguments: [
    (MigrationResult.Ending.done, 0), (.fatal, 1), (.locked, 11), (.usage, 64), (.badInput, 65),
    (.engineUnavailable, 69), (.cannotCreateOutput, 73), (.inputOutput, 74), (.resumable, 75),
    (.configuration, 78),
  ])
  func `gives each way to end its number`(ending: MigrationResult.Ending, number: Int) {
    #expect(ExitStatus(ending).rawValue == Int32(number))
  }

  @Test func `ends with the exit code of the contract`() {
    var summary = PipelineSummary(pipeline: "p")
    #expect(ExitStatus(summary) == .success)
    summary.failed = 1
    #expect(ExitStatus(summary) == .someFailed)
    summary.pending = 1
    #expect(ExitStatus(summary) == .resumable)
    summary.stopped = "window"
    #expect(ExitStatus(summary) == .resumable)
    summary.stopped = "failure-budget"
    #expect(ExitStatus(summary) == .failureBudget)
    summary.stopped = "lease"
    #expect(ExitStatus(summary) == .locked)
    summary.lacksWorkers = true
    #expect(ExitStatus(summary) == .engineUnavailable)
    var plan = PipelineSummary(pipeline: "p")
    (plan.found, plan.migrated) = (2, 2)
    #expect(ExitStatus(planned: plan) == .success)
    plan.found = 3
    #expect(ExitStatus(planned: plan) == .someFailed)
  }
}
