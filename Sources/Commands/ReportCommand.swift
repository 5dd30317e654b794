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
    let parts =
      switch format {
      case .html:
        AnySequence([
          try ReportDocument.html(report, try? PipelineJob(path: arguments.pipeline)) + "\n"
        ])
      case .json: Self.json(report)
      case .junit:
        AnySequence([
          JUnitReport(
            report,
            done: try ledger.storesFoundDone(of: report.pipelineFile, run: report.run.name)
          ).text()
        ])
      }
    guard let file else { return Output.result(document: parts) }
    try file.write(parts)
  }

  /// The same text as of the whole value, and a line break, in parts that are made as they are asked for: a value is several times as
  /// large while it is encoded, and the text of 40 000 stores is larger than the stores.
  static func json(_ report: RunReport) -> AnySequence<String> {
    var rest = report
    (rest.spans, rest.stores) = ([], [])
    let text = JSONLine.text(of: rest)
    var parts: [AnySequence<String>] = []
    var start = text.startIndex
    // No string holds an unescaped quotation mark, and no other member has an empty list of this name.
    for (name, list) in [
      ("spans", pieces(of: report.spans)), ("stores", pieces(of: report.stores)),
    ] {
      guard let place = text.range(of: "\"\(name)\":[]", range: start..<text.endIndex) else {
        continue
      }
      let end = text.index(before: place.upperBound)
      parts += [AnySequence([String(text[start..<end])]), list]
      start = end
    }
    return AnySequence((parts + [AnySequence([text[start...] + "\n"])]).lazy.joined())
  }

  private static func pieces(of list: [some Encodable]) -> AnySequence<String> {
    AnySequence(
      stride(from: 0, to: list.count, by: 256).lazy.map { start in
        let piece = JSONLine.text(of: Array(list[start..<min(list.count, start + 256)]))
        return (start > 0 ? "," : "") + piece.dropFirst().dropLast()
      })
  }
}
