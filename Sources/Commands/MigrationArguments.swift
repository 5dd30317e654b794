import ArgumentParser
import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitObjectModel
import GodwitPlanning
import SystemPackage

extension Chain: ExpressibleByArgument {}
extension LossPolicy: ExpressibleByArgument {}
extension InvalidPolicy: ExpressibleByArgument {}

extension LossPolicy {
  static let help: ArgumentHelp =
    """
    Rows, values and references that the destination has no place for: allow counts them; warn \
    reports them, too, and refuses references that several objects would have to share, unless a \
    mapping model gives them; refuse \
    refuses a migration that loses anything. Default: what the pipeline says, else warn; a pipeline that does not say \
    so refuses every loss of a version that is not among its models.
    """
}

/// What `plan` and `migrate` are told: the same words, so that one rehearses the other.
struct MigrationArguments: ParsableArguments {
  @Argument(help: "The store's main SQLite file.", completion: .file())
  var store: String

  @Option(
    help: ArgumentHelp(
      "Versions among which the store's own and the destination are found; may repeat.",
      valueName: "model"), completion: .file())
  var models: [String] = []

  @Option(
    help: ArgumentHelp(
      "The destination: a version's name, or any MODEL. Default: the current version.",
      valueName: "version"))
  var to: String?

  @Option(
    help: ArgumentHelp(
      "A mapping model; may repeat. Those that are for the two versions win over inference, and "
        + "several are run one after the other.",
      valueName: "file"), completion: .file())
  var mapping: [String] = []

  @Flag(help: "With a mapping model: gives new keys everywhere, as Core Data does.")
  var renumber = false

  @Option(
    help: ArgumentHelp(
      "direct, in one step; progressive, by the cheapest safe path through the versions between "
        + "(in the order of --models); or staged, through the stages that the executable registers. "
        + "Default: staged where there are stages, else direct.",
      valueName: "chain"))
  var chain: Chain?

  @Option(help: LossPolicy.help)
  var losses: LossPolicy?

  @Option(
    help: ArgumentHelp(
      "With a mapping model, rows that the destination's rules refuse: fail refuses the migration, the "
        + "default; default gives attributes their default values; set-aside leaves the rows out and "
        + "notes them in NAME.godwit-rejects-MOMENT.sqlite beside the result. Uniqueness constraints are "
        + "none of these rules.",
      valueName: "invalid"))
  var invalid: InvalidPolicy = .fail

  @Option(
    help: ArgumentHelp("Writes the destination here and leaves the source.", valueName: "file"),
    completion: .file())
  var output: String?

  @Option(
    help: ArgumentHelp(
      "The run directory. Default: OUTPUT.godwit with --output, else STORE.godwit.",
      valueName: "dir"), completion: .directory)
  var state: String?

  @Option(
    help: ArgumentHelp(
      "Writes what every source object became: tab-separated, the entity mapping and two object URIs a line.",
      valueName: "file"), completion: .file())
  var uriTable: String?

  @Option(help: "Worker processes. Default: one a processor, at most 8.")
  var workers: Int?

  @Option(help: ArgumentHelp("Row bytes of a shard at most, such as 16MiB.", valueName: "bytes"))
  var shardBytes = ByteSize(bytes: MigrationRequest.defaultShardBytes)

  @Flag(help: "Never infers a mapping model (Core Data's 134140 where none is given).")
  var noInfer = false

  @Flag(help: "Never migrates (Core Data's 134100 where the store is of another version).")
  var noMigrate = false

  @Flag(help: "JSON Lines on standard output; the last one is the result.")
  var json = false

  @Flag(help: "Silent on success, but for losses, which --losses allow silences, too.")
  var quiet = false

  @Flag(
    help: "Migrates a damaged store: rebuilds what can be rebuilt, carries the rest and reports it."
  )
  var acceptDamage = false

  @Flag(
    help: ArgumentHelp(
      "Asserts that no other process has the store open. Counts only where that cannot be found out: "
        + "on volumes without file leases that tell, as FUSE, and for files of other users."))
  var storeIsOffline = false

  @Flag(help: "Keeps the run directory of a finished store.")
  var keepState = false

  func validate() throws {
    if let workers, !(1...256).contains(workers) {
      throw ValidationError("--workers is a number from 1 to 256.")
    }
    _ = try chosenChain()
    if store.isEmpty || store.utf8.contains(0) {
      throw ValidationError("STORE is the path of a file.")
    }
    if output?.isEmpty == true || state?.isEmpty == true {
      throw ValidationError("--output and --state are paths.")
    }
    if let uriTable, uriTable.isEmpty || uriTable.utf8.contains(0) {
      throw ValidationError("--uri-table is the path of a file.")
    }
  }

  /// Whether anything was said that a pipeline says itself, or that is for one store.
  var isMoreThanAStore: Bool {
    !models.isEmpty || to != nil || !mapping.isEmpty || renumber || chain != nil
      || output != nil || workers != nil
      || shardBytes.bytes != MigrationRequest.defaultShardBytes || noInfer || noMigrate
      || invalid != .fail || acceptDamage || keepState || storeIsOffline || uriTable != nil
  }

  var runDirectoryPath: FilePath {
    if let state { return FilePath(state).resolved ?? FilePath(state) }
    // Without the separator that a shell completes a folder's name with.
    return FilePath(FilePath(output ?? store).string + ".godwit")
  }

  var workerCount: Int { workers ?? Executable.suggestedWorkers }

  /// - Throws: ``ModelError``, `CommandError` for a version that none of the models has.
  func request(snapshotFolder: FilePath) throws -> MigrationRequest {
    let catalog = try ModelCatalog(models)
    var request = catalog.request(
      for: FilePath(store), named: try to.map { try catalog.destinations(named: $0) } ?? [])
    request.infersMapping = !noInfer
    request.migrates = !noMigrate
    request.output = output.map { FilePath($0) }
    request.snapshotFolder = snapshotFolder
    request.shardBytes = shardBytes.bytes
    request.acceptsDamage = acceptDamage
    request.mappings = try MappingFile.read(mapping)
    request.renumbersKeys = renumber
    request.chain = try chosenChain()
    request.losses = losses ?? .warn
    request.invalid = invalid
    request.isStoreOffline = storeIsOffline
    CommandLineTool.code.bring(to: &request)
    return request
  }
}

extension MigrationArguments {
  /// - Throws: `ValidationError`.
  fileprivate func chosenChain() throws -> Chain {
    try CommandLineTool.code.chain(ofOptions: chain, mappings: mapping.count)
  }
}
