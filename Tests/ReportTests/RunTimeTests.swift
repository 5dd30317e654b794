import GodwitLedger
import GodwitReport
import Testing

@Suite struct `The metrics of a pipeline` {
  /// A pipeline's name, and how it stands between quotation marks.
  @Test(arguments: [
    ("p", "p"), (#"a"b\c"#, #"a\"b\\c"#), ("a\nb", #"a\nb"#), ("a\r\nb", "a\r\\nb"),
    ("\"\u{301}", "\\\"\u{301}"), ("\\\u{301}", "\\\\\u{301}"),
    ("\u{6DD}\"", "\u{6DD}\\\""),
  ])
  func `have a name with its quotation marks and ends of lines escaped`(name: String, text: String)
  {
    let run = RunReport.Run(
      kind: "run", name: "r", started: 1, ended: nil, seconds: 1, exitCode: 0, starts: 1, host: "h")
    let metrics = Metrics.text(ofStart: run, pipeline: name, now: 2)
    #expect(metrics.utf8.contains("{pipeline=\"\(text)\"} 1\n".utf8), "\(metrics)")
  }
}

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
