import ArgumentParser
import GodwitMapping
import GodwitObjectModel
import GodwitPlanning

struct MappingCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mapping", abstract: "Mapping models.",
    subcommands: [
      InferCommand.self, NewCommand.self, CheckCommand.self, ConvertCommand.self,
    ])

  struct InferCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "infer",
      abstract: "The inferred mapping model, or why there is none (exit code 65).")

    @Argument(help: ArgumentHelp("The source's MODEL.", valueName: "a"), completion: .file())
    var source: String

    @Argument(help: ArgumentHelp("The destination's MODEL.", valueName: "b"), completion: .file())
    var destination: String

    @Option(
      name: [.short, .customLong("output")],
      help: "Writes the mapping model to a new file, as YAML.", completion: .file())
    var output: String?

    @Flag(help: "JSON Lines; the last one is the result.")
    var json = false

    func validate() throws {
      if let output { try MappingDocument.validate(output: output) }
    }

    func run() throws {
      let inference = try ModelPair(source, destination).inference
      for note in inference.notes { Output.say("note: \(note.message)") }
      guard inference.isPossible else {
        for refusal in inference.refusals { Output.say("\(refusal.place): \(refusal.text)") }
        if json { Output.result(json: InferenceLine(inference)) }
        throw ExitStatus.badInput.exit
      }
      let text = try MappingDocument(inference.mappingModel).text()
      if let output { try NewFile.write(text, to: output) }
      if json {
        Output.result(json: InferenceLine(inference))
      } else if output == nil {
        Output.result(document: text)
      }
    }
  }
}

/// Two versions and what inference makes of them.
struct ModelPair {
  var source: ModelVersion
  var destination: ModelVersion
  var inference: InferredMapping

  init(_ source: String, _ destination: String) throws {
    try self.init(ModelCatalog.version(at: source), ModelCatalog.version(at: destination))
  }

  init(_ source: ModelVersion, _ destination: ModelVersion) throws {
    self.source = source
    self.destination = destination
    inference = InferredMapping(
      source: try source.hierarchy(), destination: try destination.hierarchy())
  }

  /// Two versions with equal hashes open each other's stores.
  var isCompatible: Bool {
    inference.source.versionHashes == inference.destination.versionHashes
  }
}

/// The result of `mapping infer --json`.
struct InferenceLine: Encodable {
  struct Mapping: Encodable {
    var name: String
    var source: String?
    var destination: String?
  }

  var event = "result"
  var isPossible: Bool
  var code: Int?
  var reasons: [Refusal]
  var notes: [InferenceNote]
  var mappings: [Mapping]

  init(_ inference: InferredMapping) {
    isPossible = inference.isPossible
    code = inference.isPossible ? nil : 134_190
    reasons = inference.refusals
    notes = inference.notes
    mappings =
      inference.isPossible
      ? inference.mappingModel.entityMappings.map {
        Mapping(
          name: $0.name, source: $0.sourceEntity?.rawValue,
          destination: $0.destinationEntity?.rawValue)
      } : []
  }
}
