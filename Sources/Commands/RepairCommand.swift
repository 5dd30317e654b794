import ArgumentParser
import GodwitDurableFiles
import GodwitFleet
import GodwitRepair
import SystemPackage

struct RepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract: "Saves what can be saved of a damaged store into a sound one, and accounts for it.",
    discussion: """
      Reads the store page by page, its WAL included, and never writes to it. What can be read becomes \
      a store of the same version that keeps every rule of `verify`. The account names what was kept, \
      what was rebuilt, what is lost and what may be wrong, by entity and Z_PK.

      Exits with 0 when the output is sound, whatever was lost, and with 65 when nothing could be \
      saved. An existing file is never overwritten: exit code 73.
      """)

  @Argument(help: "The store's main SQLite file.", completion: .file())
  var store: String

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The store to write; it must be new.", valueName: "store"),
    completion: .file())
  var output: String

  @Option(
    help: ArgumentHelp(
      "Versions among which the store's own is found; may repeat. Needed where the store has lost its "
        + "metadata or its model cache.", valueName: "model"), completion: .file())
  var models: [String] = []

  @Flag(help: "One JSON object, which lists every key.")
  var json = false

  func validate() throws {
    for path in [store, output] where path.isEmpty || path.utf8.contains(0) {
      throw ValidationError("STORE and --output are paths of files.")
    }
  }

  func run() throws {
    let models = try ModelCatalog(models).models
    let report = try StoreRepair(
      FilePath(store).resolvingFolders, output: FilePath(output), models: models
    ).run()
    guard !json else { return Output.result(json: report) }
    for line in Self.lines(report) { Output.result(line) }
  }

  static func lines(_ report: RepairReport) -> [String] {
    var lines = ["\(report.output): repaired by \(report.version)"]
    let width = report.kept.map(\.entity.count).max() ?? 0
    for kept in report.kept {
      let name = kept.entity + String(repeating: " ", count: width - kept.entity.count)
      lines.append("  kept      \(name)  \(grouped(kept.count))")
    }
    for (count, words) in [
      (report.keptPairs, "pairs of many-to-many relationships"),
      (report.keptForeignRows, "rows of other tables"),
      (Int64(report.keptExternalFiles), "external data files"),
    ] where count > 0 {
      lines.append("  kept      \(grouped(count)) \(words)")
    }
    for item in report.rebuilt { lines.append("  rebuilt   \(item)") }
    for item in report.doubtful { lines.append("  doubtful  \(item)") }
    for item in report.lost { lines.append("  lost      \(item)") }
    let total = grouped(report.keptObjects) + (report.keptObjects == 1 ? " object" : " objects")
    lines.append(
      "\(total) kept; " + (report.lost.isEmpty ? "nothing lost" : "see above for what is lost"))
    return lines
  }
}

extension RepairError {
  /// How a command ends that could not repair.
  var ending: CommandError {
    switch self {
    case .notADatabase, .notCoreData: CommandError(.badInput, "not-a-store", "\(self)")
    case .noModel: CommandError(.badInput, "model", "\(self)")
    case .nothingLeft: CommandError(.badInput, "nothing-left", "\(self)")
    case .outputExists, .badOutput: CommandError(.cannotCreateOutput, "output", "\(self)")
    case .notSound: CommandError(.fatal, "not-sound", "\(self)")
    }
  }
}
