import Foundation
import GodwitFleet
import GodwitLedger
import GodwitReport
import Synchronization
import SystemPackage

/// What a run leaves for others at its end, as the pipeline's key `report` says: a page, metrics, and the
/// call of a dead man's switch. Nothing that goes wrong here changes how the run ends.
final class RunOutputs: Sendable {
  private let pipeline: Pipeline
  private let places: PipelinePlaces
  private let deadManSwitch: DeadManSwitch?
  /// Seconds since 1970-01-01 UTC.
  private let started = Date().timeIntervalSince1970
  private let begun = ContinuousClock.now
  private let hasBegun = Atomic(false)
  private let endStatus = Atomic<Int32>(-1)

  /// How the run has ended; nil before. Others are still being told.
  var ended: ExitStatus? { ExitStatus(rawValue: endStatus.load(ordering: .acquiring)) }

  /// - Throws: `CommandError` for an address that is none.
  init(_ pipeline: Pipeline, _ places: PipelinePlaces) throws {
    self.pipeline = pipeline
    self.places = places
    deadManSwitch = try pipeline.report.ping.map { address in
      guard let found = DeadManSwitch(address: address) else {
        throw CommandError(
          .configuration, "pipeline",
          "\(pipeline.file): report.ping is not an address of the web. Write it as in "
            + "https://hc-ping.com/UUID.")
      }
      return found
    }
  }

  /// What a person should know of the outputs before anything is done.
  func check() -> [String] { Self.files(pipeline, places).compactMap { $0.problem } }

  /// The files that a run writes at its end, each with why it would not be written; nil where nothing is known
  /// against it. A run makes the state folder first.
  static func files(
    _ pipeline: Pipeline, _ places: PipelinePlaces
  ) -> [(key: String, path: FilePath, problem: String?)] {
    var files: [(key: String, path: FilePath, problem: String?)] = []
    for (key, path, kind) in [
      ("report.html", pipeline.report.html, OutputFile.Kind.html),
      ("report.metrics", pipeline.report.metrics, OutputFile.Kind.metrics),
    ] {
      guard let path else { continue }
      do {
        _ = try OutputFile(path, kind, afterMaking: places.state)
        files.append((key, path, nil))
      } catch {
        files.append((key, path, "\(error)"))
      }
    }
    return files
  }

  /// The run begins: nobody else works in its state folder.
  ///
  /// - Returns: What a person should know.
  func begin() -> [String] {
    guard !hasBegun.exchange(true, ordering: .relaxed) else { return [] }
    return send(.start)
  }

  private func send(_ signal: DeadManSwitch.Signal) -> [String] {
    deadManSwitch?.send(signal).map { [$0] } ?? []
  }

  /// The run failed before it had a result: the ledger, the metrics and the dead man's switch say so. Where
  /// another run is going on, they are that one's, and nothing is said.
  ///
  /// - Returns: What could not be done, and why.
  func fail(_ error: any Error) -> [String] {
    let status = CommandLineTool.status(of: error)
    endStatus.store(status.rawValue, ordering: .releasing)
    guard status != .locked else { return [] }
    var notes = begin()
    var run: String?
    do {
      run = try PipelineHistory.addFailedStart(
        of: pipeline, places, at: started, exitCode: Int(status.rawValue),
        message: CommandLineTool.message(of: error),
        options: Array(CommandLine.arguments.dropFirst()), warn: { notes.append($0) })
    } catch {
      notes.append(
        "The ledger does not know of this start, and `godwit status` tells of the one before it: \(error)"
      )
    }
    if let path = pipeline.report.metrics { notes += metrics(of: run, status, to: path) }
    return notes + send(.failure)
  }

  /// The run has ended. Where another one has taken it over, nothing is said: that one goes on.
  ///
  /// - Returns: What could not be done, and why.
  func end(_ summary: PipelineSummary, _ status: ExitStatus, _ job: PipelineJob) -> [String] {
    endStatus.store(status.rawValue, ordering: .releasing)
    guard status != .locked else { return [] }
    var notes: [String] = []
    let settings = pipeline.report
    if let run = summary.run, settings.html != nil || settings.metrics != nil {
      do {
        guard let report = try PipelineHistory.reading(places)?.report(ofRun: run) else {
          throw PipelineArguments.noLedger(places)
        }
        guard let ended = report.run.ended, ended == summary.ended else {
          throw CommandError(
            .inputOutput, "ledger",
            "\(places.ledger) does not have the end of this run yet. Write the report with `godwit "
              + "report` once the ledger can be written.")
        }
        if let path = settings.html {
          notes += Self.write(try ReportDocument.html(report, job), to: path, .html)
        }
        if let path = settings.metrics {
          let text = Metrics.text(of: report, now: Date().timeIntervalSince1970)
          notes += Self.write(text, to: path, .metrics)
        }
      } catch {
        notes.append("The report of this run was not written: \(error)")
        // How it ended is known without the ledger.
        if let path = settings.metrics { notes += metrics(of: nil, status, to: path) }
      }
    }
    return notes + send(status == .success ? .success : .failure)
  }

  /// Writes the metrics of a start that the ledger may not know, with what it knows of the stores.
  private func metrics(of run: String?, _ status: ExitStatus, to path: FilePath) -> [String] {
    let now = Date().timeIntervalSince1970
    let start = RunReport.Run(
      kind: "run", name: "", started: started, ended: now,
      seconds: (ContinuousClock.now - begun).inSeconds,
      exitCode: Int(status.rawValue), starts: 1, host: "")
    let report = run.flatMap { name in
      try? PipelineHistory.reading(places)?.report(ofRun: name)
    }
    return Self.write(
      report.map { Metrics.text(of: $0, now: now) }
        ?? Metrics.text(ofStart: start, pipeline: pipeline.name, now: now), to: path, .metrics)
  }

  private static func write(_ text: String, to path: FilePath, _ kind: OutputFile.Kind) -> [String]
  {
    do {
      try OutputFile(path, kind).write(text)
      return []
    } catch {
      return ["\(path) could not be written: \(error)"]
    }
  }
}
