import ArgumentParser
import GodwitDurableFiles
import GodwitFleet
import GodwitObjectModel
import SystemPackage

struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Describes stores: version, entities, rows, features, and whether they are sound.")

  @Argument(help: "Stores: their main SQLite files.", completion: .file())
  var stores: [String]

  @Option(
    help: ArgumentHelp(
      "Versions among which the store's own is found; may repeat.", valueName: "model"),
    completion: .file())
  var models: [String] = []

  @Flag(help: "JSON Lines: one object a store.")
  var json = false

  func run() throws {
    let catalog = try ModelCatalog(models)
    var status = ExitStatus.success
    for store in stores {
      do {
        let inspection = try StoreInspector.inspect(store, catalog.models)
        if json {
          Output.result(json: inspection)
        } else {
          for line in StoreInspector.lines(inspection) { Output.result(line) }
        }
      } catch {
        status = StoreInspector.report(error, store: store, asJSON: json)
      }
    }
    if status != .success { throw status.exit }
  }
}

/// What `inspect` and `verify` have in common.
enum StoreInspector {
  static func inspect(_ store: String, _ models: GivenModels) throws -> StoreInspection {
    try TemporaryFolder.with { folder in
      try StoreInspection(
        FilePath(store).resolvingFolders, models: models, snapshotFolder: folder, readsRows: true)
    }
  }

  static func report(_ error: any Error, store: String, asJSON: Bool) -> ExitStatus {
    let (ending, reason, message) = GodwitCommands.ending(of: error)
    Output.say(text: "godwit: \(message)")
    if asJSON { Output.result(json: FailureLine(store: store, reason: reason, message: message)) }
    return ExitStatus(ending)
  }

  static func lines(_ inspection: StoreInspection) -> [String] {
    var lines = [inspection.store]
    func add(_ name: String, _ value: String?) {
      guard let value, !value.isEmpty else { return }
      lines.append("  " + name + String(repeating: " ", count: max(1, 12 - name.count)) + value)
    }
    if let version = inspection.version {
      add("version", version)
    } else if let nearest = inspection.nearest {
      add(
        "version",
        "not found; \(nearest) differs in \(inspection.differing.joined(separator: ", "))")
    } else {
      add("version", "not found; give models with --models")
    }
    add("identifiers", inspection.identifiers.filter { !$0.isEmpty }.joined(separator: ", "))
    add("checksum", inspection.checksum)
    add("framework", inspection.frameworkVersion.map(String.init))
    add("uuid", inspection.uuid)
    add("size", ByteSize.text(inspection.bytes))
    add("features", inspection.features.joined(separator: ", "))
    let width = inspection.entities.map(\.name.count).max() ?? 0
    for entity in inspection.entities {
      let name = entity.name + String(repeating: " ", count: width - entity.name.count)
      let rows = entity.rows.map { "  \(grouped($0)) rows" } ?? ""
      lines.append("  \(entity.number)  \(name)\(rows)")
    }
    for finding in inspection.findings { add("found", finding.description) }
    add("sound", verdict(inspection, yes: "yes", no: "no"))
    return lines
  }

  /// Whether a store is sound, and what could not be checked.
  static func verdict(
    _ inspection: StoreInspection, yes: String = "sound", no: String = "not sound"
  ) -> String {
    guard !inspection.unchecked.isEmpty else { return inspection.isSound ? yes : no }
    let isDamaged = inspection.findings.contains(where: \.kind.isFailure)
    let isFileDamaged = inspection.findings.contains { $0.kind == .file }
    return (isDamaged ? no : "not known") + "; not checked, since "
      + (isFileDamaged ? "the file is damaged" : "no model fits the store") + ": "
      + inspection.unchecked.joined(separator: ", ")
      + (isFileDamaged ? "" : ". Give the store's model with --models.")
  }
}
