import ArgumentParser
import GodwitDurableFiles
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage

extension MappingCommand {
  struct NewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "new",
      abstract: "A default mapping model to edit; what can be inferred is filled in.")

    @Argument(help: ArgumentHelp("The source's MODEL.", valueName: "a"))
    var source: String

    @Argument(help: ArgumentHelp("The destination's MODEL.", valueName: "b"))
    var destination: String

    @Option(name: [.short, .customLong("output")], help: "The file to write; it must be new.")
    var output: String

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
      let pair = try ModelPair(source, destination).inference
      let document = MappingDocument(defaultFor: pair.source, to: pair.destination)
      try NewFile.write(try document.text(), to: output)
      if json {
        Output.result(json: MappingFileLine(document, path: output))
      }
    }
  }

  struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "convert",
      abstract: "Writes an .xcmappingmodel, .cdm or text file in the text form.",
      discussion: """
        Nothing is lost. With the two models, rows that say what would happen anyway are left out.
        """)

    @Argument(help: "A mapping model.")
    var file: String

    @Argument(help: ArgumentHelp("The source's MODEL, then the destination's.", valueName: "a b"))
    var models: [String] = []

    @Option(name: [.short, .customLong("output")], help: "The file to write; it must be new.")
    var output: String

    @Flag(help: "One JSON object.")
    var json = false

    func validate() throws { try ModelPair.validate(models) }

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

/// A file that a command makes and never overwrites.
enum NewFile {
  /// - Throws: `DurabilityError`: already there, or not to be made; `PlaceError` for a part of a store.
  static func write(_ text: String, to path: String) throws {
    try NewFilePlace(FilePath(path)).check()
    try DurableFile.create(
      Array(text.utf8), at: FilePath(path).resolvingFolders,
      permissions: [.ownerReadWrite, .groupRead, .otherRead])
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
