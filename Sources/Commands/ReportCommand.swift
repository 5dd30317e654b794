import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitLedger
import SystemPackage

struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Writes what a run did: a page to look at, JSON, or JUnit XML.",
    discussion: """
      html is one page that needs nothing else. Its diagram of what changed in the model is drawn by \
      Graphviz where that is installed.
      """)

  /// The forms that a report is written in.
  enum Format: String, CaseIterable, ExpressibleByArgument {
    case html, json, junit
  }

  @OptionGroup var arguments: PipelineArguments

  @Option(
    name: .customLong("run"), help: "The run, as `history` names it. Default: the last one.")
  var runName: String?

  @Option(help: "html, json or junit.")
  var format: Format

  @Option(help: ArgumentHelp("Where to write it. Default: standard output.", valueName: "file"))
  var output: String?

  func run() throws {
    let places = try arguments.read().places
    let report = try arguments.ledger(places).report(ofRun: runName)
    let text =
      switch format {
      case .html:
        try ReportDocument.html(report, try? PipelineJob(path: arguments.pipeline)) + "\n"
      case .json: JSONLine.text(of: report) + "\n"
      case .junit: JUnitReport(report).text()
      }
    guard let output else { return Output.result(String(text.dropLast())) }
    try DurableFile.write(
      Array(text.utf8), to: FilePath(output).resolvingFolders,
      permissions: [.ownerReadWrite, .groupRead, .otherRead])
  }
}
