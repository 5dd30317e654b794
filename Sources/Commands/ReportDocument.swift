import Foundation
import GodwitLedger
import GodwitObjectModel
import GodwitPlanning
import GodwitReport

/// The page of a run, with what changed between the version that most stores had and the destination.
enum ReportDocument {
  /// - Parameter job: The pipeline with its models; nil where they cannot be read any more, which
  ///   leaves the change out.
  /// - Throws: Mustache's error.
  static func html(_ report: RunReport, _ job: PipelineJob?) throws -> String {
    try ReportPage.html(
      report, change: job.flatMap { change(report, $0) }, now: Date().timeIntervalSince1970)
  }

  private static func change(_ report: RunReport, _ job: PipelineJob) -> ReportPage.Change? {
    guard let destination = job.request.destination else { return nil }
    // Versions of another model may have the same names.
    let models = (try? job.request.given.family(of: destination)) ?? job.request.models
    let source = report.sourceVersions.lazy.compactMap { version in
      version.name.isSameName(as: destination.name)
        ? nil : models.last { $0.name.isSameName(as: version.name) }
    }.first
    guard let source, let before = try? source.hierarchy(),
      let after = try? destination.hierarchy()
    else { return nil }
    let difference = ModelDifference(source: before, destination: after)
    guard !difference.isEmpty else { return nil }
    let diagram = EntityDiagram(source: before, destination: after)
    return ReportPage.Change(
      title: "\(source.name) → \(destination.name)", svg: try? Graphviz.svg(of: diagram),
      omittedCount: diagram.omittedCount, text: difference.description)
  }
}
