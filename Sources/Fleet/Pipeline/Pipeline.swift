import GodwitPlanning
import SystemPackage

/// What a pipeline file says: which stores are brought to which version of their model, and how.
///
/// Paths are whole or begin where the process stands: those of the file are relative to the file.
package struct Pipeline: Sendable, Equatable {
  /// Where the destination of each store goes.
  package enum Commit: Sendable, Equatable {
    /// Into the source's place; the source is kept as a backup.
    case replace
    /// Beside the source, under its name with `suffix` before the extension. The source stays.
    case beside(suffix: String)
  }

  /// Which stores there are.
  package struct Stores: Sendable, Equatable {
    /// Nothing outside of these folders is ever opened.
    package var roots: [FilePath]
    /// Relative to each root.
    package var include: [PathPattern]
    package var exclude: [PathPattern]
    /// What is done about one that another process has open.
    package var inUse = InUsePolicy.skip
  }

  package var file: FilePath
  /// SHA-256 of the file's content, in hexadecimal.
  package var digest = ""
  package var name: String
  package var stores: Stores
  /// Each is a MODEL.
  package var models: [String]
  /// As it is written: a version's name, or a MODEL relative to the file. Nil: the current version.
  package var destination: String?
  package var mappings: [String] = []
  /// Core Data's `NSMigratePersistentStoresAutomaticallyOption`.
  package var migrates = true
  /// Core Data's `NSInferMappingModelAutomaticallyOption`.
  package var infersMapping = true
  /// Nil: through the stages that the executable registers, else direct.
  package var chain: Chain?
  /// What is done about rows, values and references that would be dropped. Nil: `warn`, and `refuse` for
  /// a store whose version is not among the models.
  package var losses: LossPolicy?
  /// What is done about rows that the destination's validation refuses.
  package var invalid = InvalidPolicy.fail
  /// Worker processes of all stores together; nil: as many as the machine suggests.
  package var workers: Int?
  /// Row bytes that one shard should hold.
  package var shardBytes = MigrationRequest.defaultShardBytes
  package var commit = Commit.replace
  /// What is written, and who is called, at the end of each run.
  package var report = ReportSettings()
  /// What becomes of backups at the end of a run.
  package var backups = BackupRetention()
  /// Failures in a row after which a store is no longer tried; 0 for never.
  package var quarantineAfter = 3
  package var limits = RunLimits()
  /// The waves of a run; none for all stores at once.
  package var canary: [WaveSize] = []
  /// Where the work is done.
  package var engine = Engine.local
  /// How it is cut and submitted where that is elsewhere.
  package var cluster = ClusterSettings()

  /// The folder of the file, from which its paths lead.
  package var folder: FilePath {
    let folder = file.removingLastComponent()
    return folder.isEmpty ? "." : folder
  }

  /// The whole path of the file, without a link among its folders: what names the pipeline.
  package var wholeFile: FilePath {
    guard let name = file.lastComponent, let folder = folder.resolved else { return file }
    return folder.appending(name)
  }

  /// A path as the file has it, from where the process stands.
  package func resolve(_ path: String) -> String {
    let path = FilePath(path)
    return path.isAbsolute ? path.string : folder.pushing(path).string
  }

  /// Where a run keeps its state, unless stated otherwise.
  package var stateFolder: FilePath { folder.appending("state") }
}

/// What is done about a store that another process has open or writes to: the key `stores.in-use`.
package enum InUsePolicy: Sendable, Equatable {
  /// It stays as it is, and is pending.
  case skip
  /// The operator's word that no other process has one of them open.
  case offline
  /// It is tried again for so long, and then skipped.
  case wait(seconds: Double)
  /// A snapshot of it is migrated to a file beside it.
  case snapshot
}

/// Why a pipeline cannot be run. No store was opened.
package enum PipelineError: Error, Sendable, Equatable {
  case unreadable(file: String, reason: String)
  /// A key or value that pipeline files do not have.
  case badText(file: String, line: Int, problem: String, suggestion: String?)
  case noRoot(file: String, path: String, reason: String)
}

extension PipelineError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .unreadable(let file, let reason):
      "\(file) cannot be read as a pipeline: \(reason)."
    case .badText(let file, let line, let problem, let suggestion):
      "\(file), line \(line): \(problem)." + (suggestion.map { " Did you mean \($0)?" } ?? "")
    case .noRoot(let file, let path, let reason):
      "\(path), a root of \(file), cannot be searched: \(reason). Make it, or correct the path."
    }
  }
}
