import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What is at the output's path before a run.
///
/// It is never overwritten. Where an earlier run of the same command wrote it, there is nothing
/// left to do, and nothing beside it says so: the migration is done again in the run directory, and
/// the two stores are compared, byte for byte. A look at the metadata tells most other files apart
/// before any row is read.
struct EarlierOutput {
  let path: FilePath

  /// - Returns: Nil where there is nothing at the output's path.
  /// - Throws: ``FleetError/outputExists(path:)`` for something that no migration wrote.
  init?(_ request: MigrationRequest) throws {
    guard let output = request.output, try FileKind(at: output) != .none else { return nil }
    path = output
    guard try metadata() != nil else { throw FleetError.outputExists(path: path.string) }
  }

  /// The error for a store that is not what the migration would write.
  var isAnother: FleetError { .outputDiffers(path: path.string) }

  /// Compares the metadata with what a plan would write. It is in nobody's way where nothing would be
  /// written: the store is of the destination's version already.
  ///
  /// - Parameter isDry: The plan is of a dry run, which reads in a folder of its own: the store UUID
  ///   that follows from a plan with mapping models is another then.
  /// - Throws: ``FleetError/outputDiffers(path:)``; ``FleetError/outputExists(path:)`` where nobody knows what the
  ///   migration would write, or somebody is using the output.
  func check(against outcome: PlanOutcome, isDry: Bool = false) throws {
    if outcome.isSameModel { return }
    guard case .migrate(let plan) = outcome, let found = try metadata() else {
      throw FleetError.outputExists(path: path.string)
    }
    guard found.list == plan.control.metadata,
      found.uuid == plan.control.storeUUID || (isDry && !plan.isLightweight)
    else { throw isAnother }
  }

  /// Store UUID and property list; nil for anything but a store that nobody is using.
  private func metadata() throws -> (uuid: String, list: [UInt8])? {
    guard try FileMark(path) != nil else { return nil }
    let files = StoreFiles(path)
    guard try !files.hasLogs,
      let row = try SQLiteError.nilByContent({ () throws -> [SQLiteValue]? in
        let connection = try Connection(path: path.string, mode: .immutable)
        guard try connection.holds(["Z_UUID", "Z_PLIST"], in: "Z_METADATA") else { return nil }
        return try connection.rows("SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1").first
      }),
      case .text(let uuid) = row[0], case .blob(let list) = row[1]
    else { return nil }
    return (uuid, list)
  }
}

extension StoreFiles {
  /// Whether its log or its rollback journal has something. Beside an output that is of whoever uses it: a migration
  /// leaves neither.
  var hasLogs: Bool {
    get throws { try [wal, journal].contains { try FileMark($0)?.size ?? 0 > 0 } }
  }
}

extension MigrationResult {
  /// The output is there, and is what this run would have written.
  mutating func keep(_ output: EarlierOutput) {
    verdict = .migrated
    ending = .done
    reasons = []
    self.output = output.path.string
    notes.append(
      "\(output.path) exists already and is what this migration writes, byte for byte. Nothing was "
        + "written.")
  }
}
