import Foundation
import GodwitFleet
import GodwitLedger
import SystemPackage
import Testing

@testable import GodwitCommands

@Suite struct `The page and the metrics of a run` {
  private static let models =
    URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
    + "/Fixtures/Recipes.xcdatamodeld"

  /// Long before the process began, by a clock that was set back since; and of another start.
  @Test(arguments: [(2.0, true), (1.0, false)])
  func `are written where the ledger has the end of this start`(
    ended: Double, isThisStart: Bool
  ) throws {
    let folder = FilePath(NSTemporaryDirectory() + "godwit-outputs-\(UUID().uuidString)")
    let files = FileManager.default
    try files.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? files.removeItem(atPath: folder.string) }
    let file = folder.appending("pipeline.yaml")
    try """
    name: p
    stores: { roots: . }
    models: "\(Self.models)"
    report: { html: page.html, metrics: m.prom }
    """.write(toFile: file.string, atomically: true, encoding: .utf8)
    let pipeline = try Pipeline(file: file)
    let places = PipelinePlaces(pipeline)
    let ledger = try Ledger(writingAt: places.ledger, now: 1)
    try ledger.writing {
      try ledger.begin(
        LedgerRun(
          name: "r", pipeline: places.owner.pipeline, file: places.owner.file, started: 5, host: "")
      )
      try ledger.end("r", at: 2, exitCode: 0, RunReport.Counts(found: 1, sameModel: 1))
    }
    var summary = PipelineSummary(pipeline: "p")
    (summary.run, summary.ended) = ("r", ended)
    let notes = try RunOutputs(pipeline, places).end(summary, .success, PipelineJob(pipeline))
    #expect(notes.isEmpty == isThisStart, "\(notes)")
    #expect(files.fileExists(atPath: folder.appending("page.html").string) == isThisStart)
    let metrics = try String(contentsOfFile: folder.appending("m.prom").string, encoding: .utf8)
    #expect(metrics.contains("godwit_stores{") == isThisStart)
    #expect(metrics.contains("godwit_run_duration_seconds{") && !metrics.contains("} -"))
  }

  /// Words of why it would not be written.
  static let places: [(path: String, reason: String?)] = [
    ("page", nil), ("old", nil), ("empty", nil),
    // The folder that a run makes, and no other one.
    ("state/page", nil), ("./sub/../state/page", nil), ("state/sub/page", "there is no folder"),
    ("missing/page", "there is no folder"),
    ("mine", "is not a"), ("folder", "is a folder"), ("link", "is a symbolic link"),
    (".a_SUPPORT/page", "external data"),
    (String(repeating: "n", count: 245), "a name there may have"),
  ]

  @Test(arguments: Self.places)
  func `are looked at before they are written as when they are`(
    place: String, reason: String?
  ) throws {
    let folder = FilePath(NSTemporaryDirectory() + "godwit-outputs-\(UUID().uuidString)")
    let files = FileManager.default
    for name in ["sub", ".a_SUPPORT", "folder.html", "folder.prom"] {
      try files.createDirectory(
        atPath: folder.appending(name).string, withIntermediateDirectories: true)
    }
    defer { try? files.removeItem(atPath: folder.string) }
    let old = [
      "html": #"<!DOCTYPE html><meta name="generator" content="godwit">"#,
      "prom": "# HELP godwit_stores",
    ]
    for (ending, text) in old {
      for (name, text) in [("old", text), ("empty", ""), ("mine", "mine")] {
        try text.write(
          toFile: folder.appending("\(name).\(ending)").string, atomically: true, encoding: .utf8)
      }
      try files.createSymbolicLink(
        atPath: folder.appending("link.\(ending)").string, withDestinationPath: "old.\(ending)")
    }
    var pipeline = try Pipeline(
      bytes: Array("stores: { roots: . }\nmodels: a.mom".utf8),
      file: folder.appending("pipeline.yaml"))
    pipeline.report = ReportSettings(
      html: FilePath("\(folder)/\(place).html"), metrics: FilePath("\(folder)/\(place).prom"))
    let places = PipelinePlaces(pipeline)
    let found = RunOutputs.files(pipeline, places)
    #expect(found.map { $0.key } == ["report.html", "report.metrics"])
    for file in found {
      #expect((file.problem == nil) == (reason == nil), "\(file.problem ?? "")")
      if let reason { #expect(file.problem?.contains(reason) == true, "\(file.problem ?? "")") }
    }
    #expect(try RunOutputs(pipeline, places).check() == found.compactMap { $0.problem })
  }
}
