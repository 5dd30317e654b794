import ArgumentParser
import GodwitMapping
import GodwitObjectModel
import GodwitReport
import SystemPackage

extension MappingCommand {
  struct NewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "new",
      abstract: "A default mapping model to edit; what can be inferred is filled in.",
      discussion: """
        What is left to write goes to standard error and into comments of the file: source entities \
        whose objects are dropped, destination entities without a source, and properties without a \
        value that need one, or whose name the source has, too.
        """)

    @Argument(help: ArgumentHelp("The source's MODEL.", valueName: "a"), completion: .file())
    var source: String

    @Argument(help: ArgumentHelp("The destination's MODEL.", valueName: "b"), completion: .file())
    var destination: String

    @Option(
      name: [.short, .customLong("output")], help: "The file to write, as YAML; it must be new.",
      completion: .file())
    var output: String

    @Flag(help: "One JSON object.")
    var json = false

    func validate() throws { try MappingDocument.validate(output: output) }

    func run() throws {
      let pair = try ModelPair(source, destination).inference
      let document = MappingDocument(defaultFor: pair.source, to: pair.destination)
      let gaps = document.gaps(source: pair.source, destination: pair.destination)
      try NewFile.write(Self.text(try document.text(), gaps), to: output)
      for gap in gaps { Output.say("to write: \(gap)") }
      if json {
        Output.result(json: MappingFileLine(document, path: output))
      }
    }

    /// The file, with what is left to write below its first line, which names the schema.
    private static func text(_ body: String, _ gaps: [String]) -> String {
      guard !gaps.isEmpty, let end = body.firstIndex(of: "\n") else { return body }
      // Names may hold line breaks, which would end a comment.
      let lines = gaps.map { "#   " + VisibleText.line($0) }
      return body[...end] + (["# To write:"] + lines).joined(separator: "\n") + "\n"
        + body[body.index(after: end)...]
    }
  }

  struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "convert",
      abstract: "Writes an .xcmappingmodel, .cdm or text file as YAML.",
      discussion: """
        Nothing is lost. With the two models, rows that say what would happen anyway are left out.
        """)

    @Argument(help: "A mapping model.", completion: .file())
    var file: String

    @Argument(
      help: ArgumentHelp("The source's MODEL, then the destination's.", valueName: "a b"),
      completion: .file())
    var models: [String] = []

    @Option(
      name: [.short, .customLong("output")], help: "The file to write, as YAML; it must be new.",
      completion: .file())
    var output: String

    @Flag(help: "One JSON object.")
    var json = false

    func validate() throws {
      try ModelPair.validate(models)
      try MappingDocument.validate(output: output)
    }

    func run() throws {
      var document = try MappingDocument(path: file)
      if !models.isEmpty {
        let pair = try ModelPair(models[0], models[1]).inference
        document = document.simplified(source: pair.source, destination: pair.destination)
      }
      try NewFile.write(try document.text(), to: output)
      if json {
        Output.result(json: MappingFileLine(document, path: output))
      }
    }
  }
}

extension ModelPair {
  /// A pair of models is two or none.
  static func validate(_ models: [String]) throws {
    guard models.isEmpty || models.count == 2 else {
      throw ValidationError("Give both models, the source's and the destination's, or none.")
    }
  }
}

extension MappingDocument {
  /// Mapping models are written as YAML alone. A name of Xcode's forms would be read as something that
  /// the file is not.
  static func validate(output: String) throws {
    guard let ending = FilePath(output).extension, ["xcmappingmodel", "cdm"].contains(ending) else {
      return
    }
    throw ValidationError(
      "Mapping models are written as YAML, not as .\(ending). Give --output a name such as "
        + "\(FilePath(output).stem ?? "new").mapping.yaml.")
  }
}

/// The result of a command that wrote a mapping model.
struct MappingFileLine: Encodable {
  var event = "result"
  var path: String
  var entityMappings: Int
  /// Class names of the policies that it needs.
  var policies: [String]

  init(_ document: MappingDocument, path: String) {
    self.path = path
    entityMappings = document.entityMappings.count
    policies = Set(document.entityMappings.compactMap(\.policy)).sorted {
      $0.precedesInBytes($1)
    }
  }
}
