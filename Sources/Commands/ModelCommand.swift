import ArgumentParser
import GodwitObjectModel
import GodwitPersistentStore
import GodwitReport

struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "model",
    abstract: "Managed object models: their versions and differences.",
    subcommands: [
      ListCommand.self, ShowCommand.self, DiffCommand.self, HashCommand.self,
      AddVersionCommand.self, SetCurrentCommand.self,
    ])
}

extension ModelCommand {
  struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "The versions of an .xcdatamodeld or .momd.")

    @Argument(help: "Bundles of versions, or any MODEL.", completion: .file())
    var models: [String]

    @Flag(help: "JSON Lines: one object a version.")
    var json = false

    func run() throws {
      let versions = try ModelCatalog(models).versions
      for version in versions {
        let record = try VersionRecord(version)
        if json {
          Output.result(json: record)
          continue
        }
        Output.result("\(version.isCurrent ? "*" : " ") \(record.name)  \(record.checksum)")
        if !record.identifiers.isEmpty {
          Output.result("    identifiers \(record.identifiers.joined(separator: ", "))")
        }
        Output.result(
          "    \(record.entities.count) \(record.entities.count == 1 ? "entity" : "entities")")
        for name in record.disagreements ?? [] {
          Output.result("    the recorded version hash of \(name) is not the computed one")
        }
      }
      for finding in RenamingLint.findings(in: versions.map { ($0.name, $0.model) }) {
        Output.say("warning: \(finding)")
      }
    }
  }

  struct HashCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "hash", abstract: "Entity version hashes and version checksum.")

    @Argument(help: "A MODEL.", completion: .file())
    var model: String

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
      let record = try VersionRecord(try ModelCatalog.version(at: model))
      if json {
        Output.result(json: record)
        return
      }
      for (name, hash) in record.entities.sorted(by: { $0.key.precedesInBytes($1.key) }) {
        Output.result("\(hash)  \(name)")
      }
      Output.result("checksum \(record.checksum)")
    }
  }

  struct ShowCommand: ParsableCommand {
    enum Format: String, ExpressibleByArgument, CaseIterable {
      case text, json, dot, svg
    }

    static let configuration = CommandConfiguration(
      commandName: "show", abstract: "One version: its entities and properties, or a diagram.")

    @Argument(help: "A MODEL.", completion: .file())
    var model: String

    @Option(help: "text, json, dot or svg. svg needs Graphviz.")
    var format = Format.text

    @Flag(help: "The same as --format json.")
    var json = false

    func run() throws {
      let version = try ModelCatalog.version(at: model)
      let hierarchy = try version.hierarchy()
      switch json ? .json : format {
      case .text: for line in ModelText.lines(hierarchy) { Output.result(line) }
      case .json: Output.result(json: ModelRecord(version, hierarchy))
      case .dot: Output.result(document: EntityDiagram(hierarchy).dot)
      case .svg: Output.result(document: try Self.svg(EntityDiagram(hierarchy)))
      }
    }

    /// Drawn by Graphviz.
    static func svg(_ diagram: EntityDiagram) throws -> String {
      do {
        return try Graphviz.svg(of: diagram)
      } catch let failure as Graphviz.Failure {
        throw CommandError(.engineUnavailable, "graphviz", "\(failure)")
      }
    }
  }

  struct DiffCommand: ParsableCommand {
    typealias Format = ShowCommand.Format

    static let configuration = CommandConfiguration(
      commandName: "diff",
      abstract: "What changed between two versions; lightweight or not, and why.",
      discussion: """
        With --check the exit code is 65 where a mapping model cannot be inferred, where any row of an \
        entity forbids the migration (it becomes abstract, or gets a required property without a \
        default value), or where a store with rows of every entity, or of every one of a configuration, would \
        lose objects, values, references or the order of members, or would be read wrongly, since version \
        hashes do not cover the change; else 0. Only the two models are judged: what depends on the \
        rows' values, such as numbers in a narrower type, is only noted.
        """)

    @Argument(help: ArgumentHelp("The source's MODEL.", valueName: "a"), completion: .file())
    var source: String

    @Argument(help: ArgumentHelp("The destination's MODEL.", valueName: "b"), completion: .file())
    var destination: String

    @Option(help: "text, json, dot or svg: a diagram of what changes. svg needs Graphviz.")
    var format = Format.text

    @Flag(help: "The same as --format json.")
    var json = false

    @Flag(
      help: "Exits with 65 where the change is not lightweight, loses something or is read wrongly."
    )
    var check = false

    func run() throws {
      let pair = try ModelPair(source, destination)
      let record = DifferenceRecord(pair)
      let diagram = EntityDiagram(
        source: pair.inference.source, destination: pair.inference.destination)
      switch json ? .json : format {
      case .text: for line in record.lines { Output.result(line) }
      case .json: Output.result(json: record)
      case .dot: Output.result(document: diagram.dot)
      case .svg: Output.result(document: try ShowCommand.svg(diagram))
      }
      // More columns than SQLite has room for: no store can be of the destination.
      try StoreLayout(pair.inference.destination).requireUsable()
      if check, record.fails { throw ExitStatus.badInput.exit }
    }
  }
}

/// What distinguishes versions.
struct VersionRecord: Encodable {
  var event = "version"
  var name: String
  var path: String
  var isCurrent: Bool
  var identifiers: [String]
  var checksum: String
  /// Entity → version hash in hexadecimal.
  var entities: [String: String]
  /// Entities whose recorded hash is not the computed one; nil where none is recorded.
  var disagreements: [String]?

  init(_ version: ModelVersion) throws {
    let hierarchy = try version.hierarchy()
    name = version.name
    path = version.path
    isCurrent = version.isCurrent
    identifiers = version.model.versionIdentifiers.filter { !$0.isEmpty }
    checksum = hierarchy.versionChecksum
    entities = Dictionary(
      hierarchy.versionHashes.map { ($0.key.rawValue, $0.value.hexadecimal) },
      uniquingKeysWith: { first, _ in first })
    disagreements = version.disagreements(with: hierarchy)?.map(\.rawValue)
  }
}
