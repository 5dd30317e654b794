import ArgumentParser
import Foundation

/// Measures parts of Godwit and prints the seconds as JSON; `scripts/bench` makes tables of them.
@main
struct GodwitBenchmarks: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "godwit-benchmarks",
    abstract: "Measures parts of Godwit; results are JSON.",
    subcommands: [BucketCommand.self])
}

struct BucketCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bucket",
    abstract: "What a property costs in a bucket, and in an attribute of its own.")

  @Option(help: "Things that are added, updated and read.")
  var items = 1_000

  @Option(help: "Rounds; native and bucket take turns in each.")
  var rounds = 41

  @Option(help: "Other keys in each bucket.")
  var otherKeys = 0

  @Option(help: ArgumentHelp("The second version of the model of Things.", valueName: "model"))
  var model: String

  func validate() throws {
    guard items > 0, rounds > 0, (0...1_000).contains(otherKeys) else {
      throw ValidationError("Numbers of items, rounds and keys are positive.")
    }
  }

  func run() throws {
    let cost = try BucketCost(model: model, items: items, otherKeys: otherKeys)
    var seconds: [String: [Double]] = [:]
    // The first round warms caches and is not counted.
    for round in 0...rounds {
      for (name, value) in try cost.round(round) where round > 0 {
        seconds[name, default: []].append(value)
      }
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let line = try encoder.encode(seconds)
    FileHandle.standardOutput.write(line + Data("\n".utf8))
  }
}
