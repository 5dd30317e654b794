import GodwitPersistentStore
import SystemPackage

/// Why a store cannot be repaired. The source is as it was, and there is no output.
package enum RepairError: Error, Sendable {
  /// Not a page of a database is in the file.
  case notADatabase(FilePath)
  /// No table of Core Data's can be found in it.
  case notCoreData(FilePath)
  /// Neither the store nor the models given tell what the rows mean. Entities that the store names
  /// and the model that comes closest does not have as the store has them; whether the list of its
  /// tables, `sqlite_schema`, could be read whole.
  case noModel(
    FilePath, givenModels: Bool, unknownEntities: [String], isTableListWhole: Bool)
  /// The model is known, and not a single object can be read.
  case nothingLeft(FilePath, RepairReport)
  case outputExists(FilePath)
  case badOutput(FilePath, reason: String)
  /// What was made does not keep the rules of `verify`: a mistake of this package's.
  case notSound(FilePath, [StoreFinding])
}

extension RepairError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notADatabase(let path):
      "\(path) holds no page of an SQLite database, so nothing can be saved. Restore it from a "
        + "backup."
    case .notCoreData(let path):
      "\(path) holds none of Core Data's tables, so nothing can be saved. Give the path of a store, "
        + "or restore it from a backup."
    case .noModel(let path, _, let unknown, _) where !unknown.isEmpty:
      "The model of \(path) is lost, and none of the models given has its entities as the store numbers "
        + "them: \(unknown.prefix(10).joined(separator: ", ")). Give the version that wrote it with "
        + "--models."
    case .noModel(let path, true, _, isTableListWhole: false):
      "The list of tables of \(path) is damaged, and what is left of it fits none of the models given, so "
        + "nothing tells which rows are whose. Give the version that wrote it with --models if it is not "
        + "among them; else restore the store from a backup."
    case .noModel(let path, let givenModels, _, _):
      givenModels
        ? "The model of \(path) is lost, and none of the models given has its tables. Give the "
          + "version that wrote it with --models."
        : "The model of \(path) is lost with its metadata or model cache. Give the version that "
          + "wrote it with --models."
    case .nothingLeft(let path, _):
      "No object of \(path) can be read, so nothing can be saved. Restore it from a backup."
    case .outputExists(let path):
      "\(path) exists already, and is not overwritten. Give another path with --output."
    case .badOutput(let path, let reason):
      "\(path) cannot be written: \(reason). Give another path with --output."
    case .notSound(let path, let findings):
      "What was made of \(path) does not keep the rules of a store, so it is not published: "
        + findings.prefix(3).map(\.description).joined(separator: "; ")
        + ". This is a mistake of Godwit's; please report it."
    }
  }
}
