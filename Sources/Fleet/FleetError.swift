import GodwitPlanning
import GodwitWorker
import SystemPackage

/// Why the coordinator could not bring a store to its end.
///
/// In every case the source store is as it was.
package enum FleetError: Error, Sendable, Equatable {
  /// A worker reported that a task failed.
  case task(FailedTask)
  /// One task has ended ``RetryPolicy/attempts`` workers.
  ///
  /// - Parameter rows: Which rows the task is about, by the plan; nil while only the pool knows of it.
  case workersLost(WorkerTask, rows: String? = nil, how: String)
  /// Workers end without doing anything.
  case workersDie(executable: String, how: String)
  case noStore(path: String)
  /// The file system has no place for the name, or for those that are made of it.
  case nameTooLong(path: String, limitBytes: Int, of: NamedFile)
  case pathTooLong(path: String, limitBytes: Int)
  /// A store lies in a sticky folder and belongs to another user.
  case heldByOwner(path: String, user: UInt32)
  case outputExists(path: String)
  /// What lies at the output's path is a store, and not the one that the migration makes.
  case outputDiffers(path: String)
  case noFolder(path: String)
  case notEnoughSpace(folder: String, neededBytes: Int64, freeBytes: Int64)
  /// There is no room for temporary files.
  case noTemporaryFolder(parent: String, message: String)
  /// The table of object URIs cannot go where it is wanted.
  case uriTable(path: String, message: String)
  /// A staged migration was asked for, and nobody registered stages.
  case noStages
  /// The process that coordinated a store of a pipeline ended.
  case coordinationLost(store: String, how: String, attempts: Int = 1)
  /// A process in which policies run found a store damaged that is sound.
  case disturbed(store: String)
  /// A store took longer than the pipeline lets one.
  case timeout(store: String, seconds: Double)
  /// What became of a store could not be written down.
  case ledger(message: String, isOutOfSpace: Bool = false)
  /// The limits of this process are too small to work in.
  case limits(message: String)
  /// The run directory's own files cannot be read or written.
  case runDirectory(path: String, message: String)
  /// What a pipeline's runs would replace in its state folder is another program's.
  case stateFolder(path: String, message: String)

  /// Whose name it is that is too long.
  package enum NamedFile: Sendable {
    case store, replacedStore, output, runDirectory
  }
}

extension FleetError: CustomStringConvertible {
  /// Where the words are of a process that ended before its time.
  static let outputAbove = "See its output above"
  private static let fileAdvice =
    "Look for policies and handlers that leave files open, or raise `ulimit -n`, and run again"

  package var description: String {
    switch self {
    case .task(let failed):
      failed.error.message
    case .workersLost(let task, let rows, let how):
      "\(RetryPolicy.attempts) workers in a row were lost at \(task.stage) unit \(task.unit)"
        + (rows.map { " (\($0))" } ?? "") + "; the last one \(how). Nothing was changed. "
        // SIGKILL comes from outside; anything else is code that stopped, and says where.
        + (how.hasSuffix("signal 9")
          ? "Look for the kernel's out-of-memory killer, then run again; "
          : how.hasPrefix(WorkerProcess.silence)
            ? "Look for a volume that does not answer, or policies that wait, then run again; "
            : how == WorkerProcess.withoutFiles
              ? Self.fileAdvice + "; " : "\(Self.outputAbove), fix the cause, and run again; ")
        + "finished work is kept."
    case .workersDie(let executable, let how):
      "\(executable) does not work as a worker: it \(how). Check the installation with "
        + "`godwit doctor` and run again; finished work is kept."
    case .noStore(let path):
      "\(path) does not exist. Give the path of a store's main SQLite file."
    case .nameTooLong(let path, let limit, let file):
      "The name of \(path) has \(FilePath(path).lastComponent?.string.utf8.count ?? 0) bytes, and "
        + file.advice(limit)
    case .pathTooLong(let path, let limit):
      "The path \(path) has \(path.utf8.count) bytes, and SQLite opens what is needed there only where it has "
        + "at most \(limit). Shorten the names of its folders, or keep the run's own files elsewhere (--state)."
    case .heldByOwner(let path, let user):
      "\(path) belongs to user \(user) and lies in a sticky folder, where nobody but its owner may replace it. "
        + "Run as its owner or as root, or write the destination beside it (--output; in a pipeline the key "
        + "commit)."
    case .outputExists(let path):
      "\(path) already exists and is not overwritten. Move it away, or give another --output (in a "
        + "pipeline: another suffix in the key commit)."
    case .outputDiffers(let path):
      "\(path) already exists, is not what this migration makes and is not overwritten. Move it away, or give "
        + "another --output (in a pipeline: another suffix in the key commit)."
    case .noFolder(let path):
      "\(path) is not a folder. Make it, or give another path."
    case .notEnoughSpace(let folder, let needed, let free):
      "\(folder) has \(free) bytes free and the migration needs about \(needed). "
        + "Free \(needed - free) bytes and run again; finished work is kept."
    case .noTemporaryFolder(let parent, let message):
      "No folder can be made in \(parent): \(message). Point TMPDIR to a folder that this user may write to."
    case .uriTable(let path, let message):
      "The table of object URIs cannot be written to \(path): \(message). "
        + "Give another path with --uri-table."
    case .noStages:
      "This executable registers no stages. Run the executable that registers them, or "
        + "use --chain direct (in a pipeline: chain: direct)."
    case .coordinationLost(let store, let how, _):
      "The process that planned and assembled \(store) \(how). The store is whole, old or new. "
        + (how.hasPrefix(WorkerProcess.silence)
          ? "Look for a volume that does not answer, or policies that wait, then run again."
          : how == WorkerProcess.withoutFiles
            ? Self.fileAdvice + "."
            : "\(Self.outputAbove). Run `godwit migrate` with this store alone to see more.")
    case .disturbed(let store):
      "A process in which policies run could not read \(store), which is sound. Look for a policy that closes a file "
        + "descriptor which is not its own, closes one twice, or writes to one, and run again."
    case .timeout(let store, let seconds):
      "\(store) was not migrated within \(Int(seconds.rounded(.up))) s. It is as it was, and "
        + "its finished work is kept. Raise limits.store-timeout, or look for a volume that is slow."
    case .ledger(let message, let isOutOfSpace):
      "The ledger of the run cannot be written: \(message)"
        + (isOutOfSpace
          ? " What was done with the store is not lost: the next start finds it, and writes it down."
          : "")
    case .limits(let message): message
    case .runDirectory(let path, let message):
      "The run directory \(path) cannot be used: \(message). Give another with --state."
    case .stateFolder(let path, let message):
      "The state folder \(path) cannot be used: \(message), which a run would take for its own. Give another "
        + "with --state, or move that away."
    }
  }
}

extension FleetError.NamedFile {
  fileprivate func advice(_ limit: Int) -> String {
    switch self {
    case .store: "a store may have \(limit): files beside it have longer names. Rename it."
    case .replacedStore:
      "a store that is replaced may have \(limit): what is kept beside it has longer names. Rename it, or write "
        + "the destination beside it (--output; in a pipeline the key commit)."
    case .output:
      "this output may have \(limit): what is made beside it has longer names. Give it a shorter one (in a pipeline: "
        + "rename the store, or shorten the suffix in the key commit)."
    case .runDirectory:
      "a run directory there may have \(limit). Give another with --state, or shorten the name that it is made of."
    }
  }
}

extension FleetError {
  /// The same, with the rows by their name where a task is all that is known.
  func naming(rowsOf plan: MigrationPlan) -> FleetError {
    guard case .workersLost(let task, nil, let how) = self, task.stage.isOfShards else {
      return self
    }
    return .workersLost(task, rows: plan.rows(of: task.unit), how: how)
  }
}

extension MigrationPlan {
  /// Which rows a unit is about, for a message.
  fileprivate func rows(of unit: Int) -> String? {
    guard units.indices.contains(unit) else { return nil }
    let subject = units[unit].subject
    if case .mapping(let index) = subject {
      return (mapped?.mappings[index].name).map { "entity mapping \($0)" }
    }
    return tableName(of: subject).map { "table \($0)" }
  }
}
