import GodwitFleet
import GodwitLedger
import Testing

@testable import GodwitCommands

@Suite struct `A report as JSON` {
  @Test(arguments: [0, 1, 256, 257, 600])
  func `is the same text in pieces as in one`(count: Int) {
    let stores = (0..<count).map {
      RunReport.Store(
        path: "/\"stores\":[]/\($0)", verdict: "migrated", started: 1, seconds: 0.5,
        sourceBytes: 4_096, attempts: 1)
    }
    let spans = stores.indices.map {
      RunReport.Span(lane: 0, store: $0, start: 1, end: 2, verdict: "migrated")
    }
    let report = RunReport(
      pipeline: "\"spans\":[]", pipelineFile: "/p",
      run: RunReport.Run(kind: "run", name: "r", started: 1, starts: 1, host: "h"),
      stores: stores, spans: spans)
    #expect(ReportCommand.json(report).joined() == JSONLine.text(of: report) + "\n")
  }
}
