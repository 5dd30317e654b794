import ArgumentParser
import Foundation
import GodwitFleet
import GodwitLedger

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

    var file: OutputFile.Kind {
      switch self {
      case .html: .html
      case .json: .json
      case .junit: .junit
      }
    }
  }

  @OptionGroup var arguments: PipelineArguments

  @Option(
    name: .customLong("run"), help: "The run, as `history` names it. Default: the last one.")
  var runName: String?

  @Option(help: "Required: html, json or junit; --json stands for json.")
  var format: Format?

  @Option(
    help: ArgumentHelp(
      "Where to write it. Replaces an earlier report of the same form, and no other file. Default, and for -: "
        + "standard output.",
      valueName: "file"), completion: .file())
  var output: String?

  func validate() throws {
    if format == nil, !arguments.json {
      throw ValidationError("Give --format html, json or junit.")
    }
    if let format, format != .json, arguments.json {
      throw ValidationError("--json is --format json. Give one of the two.")
    }
    if output?.isEmpty == true { throw ValidationError("--output is the path of a file.") }
  }

  func run() throws {
    let format = format ?? .json
    let file = try output.flatMap { try $0 == "-" ? nil : OutputFile($0, format.file) }
    let places = try arguments.read().places
    let ledger = try arguments.ledger(places)
    let goesOn = try PipelineStatus.goesOn(places)
    var report = try ledger.report(ofRun: runName)
    if goesOn, report.run.ended == nil, try ledger.lastRun()?.name == report.run.name {
      report.goOn()
    }
    let text =
      switch format {
      case .html:
        try ReportDocument.html(report, try? PipelineJob(path: arguments.pipeline)) + "\n"
      case .json: Self.json(report) + "\n"
      case .junit:
        JUnitReport(
          report,
          done: try ledger.storesFoundDone(of: report.pipelineFile, run: report.run.name)
        ).text()
      }
    guard let file else { return Output.result(document: text) }
    try file.write(text)
  }

  /// The same text as of the whole value. A value is several times as large while it is encoded, so
  /// long lists are encoded in pieces.
  static func json(_ report: RunReport) -> String {
    var rest = report
    (rest.spans, rest.stores) = ([], [])
    var text = JSONLine.text(of: rest)
    // No string holds an unescaped quotation mark, and no other member has an empty list of this name.
    for (name, list) in [
      ("spans", pieces(of: report.spans)), ("stores", pieces(of: report.stores)),
    ] {
      guard let place = text.range(of: "\"\(name)\":[]") else { continue }
      text.replaceSubrange(place, with: "\"\(name)\":[\(list)]")
    }
    return text
  }

  private static func pieces(of list: [some Encodable]) -> String {
    stride(from: 0, to: list.count, by: 256)
      .map { start in
        let piece = Array(list[start..<min(list.count, start + 256)])
        return String(JSONLine.text(of: piece).dropFirst().dropLast())
      }
      .joined(separator: ",")
  }
}
