import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitLedger
import SystemPackage

/// What the commands have in common that ask what a pipeline's runs have done.
struct PipelineArguments: ParsableArguments {
  @Argument(help: "The pipeline's file, or its folder.", completion: .file())
  var pipeline: String

  @Option(
    help: ArgumentHelp("The folder that was given to `run --state`, if one was.", valueName: "dir"),
    completion: .directory)
  var state: String?

  @Flag(help: "JSON Lines on standard output.")
  var json = false

  func validate() throws {
    if pipeline.isEmpty || state?.isEmpty == true {
      throw ValidationError("PIPELINE and --state are paths.")
    }
  }

  /// - Throws: ``PipelineError``; `DurabilityError` where the state folder is none.
  func read() throws -> (pipeline: Pipeline, places: PipelinePlaces) {
    let read = try Pipeline(file: Pipeline.requiredFile(at: pipeline))
    let places = PipelinePlaces(read, state: state.map { FilePath($0) })
    try places.checkState()
    return (read, places)
  }

  /// The ledger for reading.
  ///
  /// - Throws: `CommandError` where there is none.
  func ledger(_ places: PipelinePlaces) throws -> Ledger {
    guard let ledger = try PipelineHistory.reading(places, warn: { Output.say($0) }) else {
      throw Self.noLedger(places)
    }
    return ledger
  }

  /// What is wrong where options that are for a pipeline only stand beside a path that is none.
  static func noPipeline(at path: String, _ words: String) throws -> any Error {
    try FileKind(following: FilePath(path)) == .none
      ? CommandError(.usage, "usage", "\(path) does not exist.")
      : ValidationError(words)
  }

  static func noLedger(_ places: PipelinePlaces) -> CommandError {
    CommandError(
      .configuration, "ledger",
      "There is no ledger at \(places.ledger): no run of this pipeline is known. Run it first, or "
        + "give the folder of its --state.")
  }
}

/// How times are written for people: `2026-11-21 01:02:03`, in UTC.
enum Clock {
  static func text(_ seconds: Double) -> String {
    var whole = time_t(Int64(nearest: seconds))
    var parts = tm()
    // A file may have a time in no year that has a number.
    guard gmtime_r(&whole, &parts) != nil else { return "-" }
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
      + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
  }
}

/// Text in columns: the first ones to the left, numbers to the right.
struct TextTable {
  private var rows: [[String]] = []

  mutating func add(_ row: [String]) { rows.append(row) }

  /// - Parameter numbers: Columns whose texts stand at the right.
  func lines(numbers: Set<Int> = []) -> [String] {
    let count = rows.map(\.count).max() ?? 0
    let widths = (0..<count).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = ""
      for (column, text) in row.enumerated() {
        let space = String(repeating: " ", count: widths[column] - text.count)
        line += numbers.contains(column) ? space + text : text + space
        if column < row.count - 1 { line += "  " }
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}
