import GodwitLedger
import GodwitReport
import Testing

@Suite struct `The metric of a run's duration` {
  @Test func `has no pauses between its starts`() {
    var run = RunReport.Run(
      kind: "run", name: "r", started: 1_000, ended: 73_005, seconds: 72_005, exitCode: 0,
      starts: 2, host: "h")
    #expect(
      !Metrics.text(ofStart: run, pipeline: "p", now: 73_005).contains("duration"), "not known")
    run.workedSeconds = 15
    let text = Metrics.text(ofStart: run, pipeline: "p", now: 73_005)
    #expect(text.contains("godwit_run_duration_seconds{pipeline=\"p\"} 15"), "\(text)")
  }
}
