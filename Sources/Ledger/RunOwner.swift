import GodwitDurableFiles
import SystemPackage

/// Whose runs are meant: the pipelines of a folder share its ledger and its state.
///
/// A pipeline is its file. One that was moved or renamed is known by its name, as long as nothing lies
/// at its old path.
package struct RunOwner: Sendable, Equatable {
  /// The pipeline's name.
  package var pipeline: String
  /// The whole path of its file.
  package var file: String

  package init(pipeline: String, file: String) {
    (self.pipeline, self.file) = (pipeline, file)
  }

  /// Whether a run is of this pipeline. One of which neither is known is anybody's: its ledger was lost.
  package func owns(pipeline other: String, file path: String) -> Bool {
    if path.isEmpty || path == file { return true }
    guard other == pipeline else { return false }
    let path = FilePath(path)
    // Runs of earlier versions have the path as it was given.
    if path.isRelative { return path.lastComponent == FilePath(file).lastComponent }
    return switch FilePresence(of: path) {
    case .absent, .noFolder: true
    case .there, .unreachable: false
    }
  }
}

extension Ledger {
  /// From here on only the runs of one pipeline are listed, with their backups and stores. What became of
  /// a store that is asked for by its path is told of all.
  package func narrow(to owner: RunOwner) throws {
    var files: Set<String> = ["", owner.file]
    try forEach("SELECT DISTINCT pipeline, file FROM runs") { row in
      let (pipeline, file) = (row.value(0).text ?? "", row.value(1).text ?? "")
      if owner.owns(pipeline: pipeline, file: file) { files.insert(file) }
    }
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS own_files (file TEXT PRIMARY KEY);
      DELETE FROM own_files
      """)
    for file in files { try perform("INSERT INTO own_files VALUES (?1)", [.text(file)]) }
    ownRuns = "runs.file IN (SELECT file FROM own_files)"
  }
}
