import Foundation
import GodwitFleet
import GodwitLedger
import GodwitReport
import SystemPackage

/// What a run leaves for others at its end, as the pipeline's key `report` says: a page, metrics, and the
/// call of a dead man's switch. Nothing that goes wrong here changes how the run ends.
struct RunOutputs {
  private let job: PipelineJob
  private let places: PipelinePlaces
  private let deadManSwitch: DeadManSwitch?

  /// - Throws: `CommandError` for an address that is none.
  init(_ job: PipelineJob, _ places: PipelinePlaces) throws {
    self.job = job
    self.places = places
    deadManSwitch = try job.pipeline.report.ping.map { address in
      guard let found = DeadManSwitch(address: address) else {
        throw CommandError(
          .configuration, "pipeline",
          "\(job.pipeline.file): report.ping is not an address of the web. Write it as in "
            + "https://hc-ping.com/UUID.")
      }
      return found
    }
  }

  /// The run begins.
  ///
  /// - Returns: What a person should know.
  func begin() -> [String] { deadManSwitch?.send(.start).map { [$0] } ?? [] }

  /// The run failed before it had a result.
  func fail() -> [String] { deadManSwitch?.send(.failure).map { [$0] } ?? [] }

  /// The run has ended.
  ///
  /// - Parameter run: Its name; nil leaves only the call.
  /// - Returns: What could not be done, and why.
  func end(run: String?, isSuccess: Bool) -> [String] {
    var notes: [String] = []
    let settings = job.pipeline.report
    if let run, settings.html != nil || settings.metrics != nil {
      do {
        guard let report = try PipelineHistory.reading(places)?.report(ofRun: run) else {
          throw PipelineArguments.noLedger(places)
        }
        if let path = settings.html {
          notes += Self.write(try ReportDocument.html(report, job), to: path)
        }
        if let path = settings.metrics {
          let text = Metrics.text(of: report, now: Date().timeIntervalSince1970)
          notes += Self.write(text, to: path)
        }
      } catch {
        notes.append("The report of this run was not written: \(error)")
      }
    }
    return notes + (deadManSwitch?.send(isSuccess ? .success : .failure).map { [$0] } ?? [])
  }

  private static func write(_ text: String, to path: FilePath) -> [String] {
    do {
      try ReportFile.write(text, to: path)
      return []
    } catch {
      return ["\(path) could not be written: \(error)"]
    }
  }
}
