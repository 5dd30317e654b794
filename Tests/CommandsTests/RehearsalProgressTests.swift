import GodwitFleet
import Testing

@testable import GodwitCommands

@Suite struct `The end of a rehearsal` {
  private static let result = MigrationResult(store: "/r/a", verdict: .migrated, ending: .done)

  private static func begun() -> RehearsalProgress {
    let progress = RehearsalProgress(name: "rehearsal")
    progress.begin(PipelineStart(pipeline: "rehearsal", stores: 3, bytes: 0, links: 0))
    return progress
  }

  @Test func `counts what was told, and nothing is told after it`() throws {
    let progress = Self.begun()
    var told = 0
    var summaries: [PipelineSummary] = []
    progress.add(Self.result, isStore: true) { told += 1 }
    _ = progress.end { summary in
      summaries.append(summary)
      return .resumable
    }
    progress.add(Self.result, isStore: true) { told += 1 }
    #expect(told == 1 && progress.ended == 1)
    let summary = try #require(summaries.first)
    #expect((summary.found, summary.migrated, summary.pending) == (3, 1, 2))
  }

  @Test(arguments: [GodwitCommands.ExitStatus.success, .someFailed, .resumable])
  func `is told once, and is the same for whoever ends it`(status: GodwitCommands.ExitStatus) throws
  {
    let progress = Self.begun()
    var told = 0
    for end in [status, GodwitCommands.ExitStatus.success, .resumable] {
      let known = try progress.end { _ in
        told += 1
        return end
      }.get()
      #expect(known == status && told == 1)
    }
  }
}
