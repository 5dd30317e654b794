import GodwitDurableFiles
import SystemPackage

/// Whose runs are meant: the pipelines of a folder share its ledger and its state.
///
/// A pipeline is its file. One that was moved or renamed is known by its name, as long as nothing lies
/// at its old path. The name of the folder is that of every file there without one of its own: it tells
/// files of one name only.
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
    if path.isEmpty || path.isSameBytes(as: file) { return true }
    guard other.isSameBytes(as: pipeline) else { return false }
    let path = FilePath(path)
    // Runs of earlier versions have the path as it was given.
    let own = FilePath(file)
    let isSameName = path.lastComponent == own.lastComponent
    if path.isRelative || own.removingLastComponent().lastComponent?.string == pipeline,
      !isSameName
    {
      return false
    }
    if path.isRelative { return true }
    return switch FilePresence(of: path) {
    case .absent, .noFolder: true
    case .there, .unreachable: false
    }
  }
}

extension Ledger {
  /// From here on only the runs of one pipeline are listed, with their backups and stores. What became of
  /// a store that is asked for by its path is told of all. Whatever is added of its stores is of its fleet, also by runs
  /// of a path at which its file was before.
  package func narrow(to owner: RunOwner) throws {
    let own = try ownFiles(of: owner)
    ownFleet = (own, try fleetFile(of: owner, own))
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS own_files (file TEXT PRIMARY KEY);
      DELETE FROM own_files
      """)
    for file in own { try perform("INSERT INTO own_files VALUES (?1)", [.text(file)]) }
    ownRuns = "runs.file IN (SELECT file FROM own_files)"
  }

  /// Takes the fleet of a pipeline that was moved or renamed over to its new path, with its quarantine. A ledger
  /// in which nothing is to be changed is only read: a transaction that changes nothing waits for readers, too. From
  /// here on it is narrowed to the pipeline.
  package func adoptFleet(of owner: RunOwner) throws {
    let file = try fleetFile(of: owner, ownFiles(of: owner))
    if !file.isSameBytes(as: owner.file) {
      func adopt() throws {
        for table in ["fleet", "quarantine"] {
          try perform(
            "UPDATE OR REPLACE \(table) SET pipeline = ?2 WHERE pipeline = ?1",
            [.text(file), .text(owner.file)])
        }
      }
      // Together with what was just added, where that is one transaction.
      if connection.isInTransaction { try adopt() } else { try writing(adopt) }
    }
    try narrow(to: owner)
  }

  /// The paths under which runs of a pipeline are known, that of the latest run first. One that is empty is
  /// anybody's.
  private func ownFiles(of owner: RunOwner) throws -> [String] {
    var files: [String] = []
    try forEach("SELECT pipeline, file FROM runs GROUP BY pipeline, file ORDER BY max(id) DESC") {
      let (pipeline, file) = ($0.value(0).text ?? "", $0.value(1).text ?? "")
      if !files.contains(where: file.isSameBytes), owner.owns(pipeline: pipeline, file: file) {
        files.append(file)
      }
    }
    return files + ["", owner.file].filter { !files.contains(where: $0.isSameBytes) }
  }

  /// Under which of its paths the fleet of a pipeline is known: its present one, or, before the first run
  /// there, that of its latest run.
  private func fleetFile(of owner: RunOwner, _ own: [String]) throws -> String {
    guard has(.fleet) else { return owner.file }
    func isKnown(_ file: String) throws -> Bool {
      var isKnown = false
      try forEach("SELECT 1 FROM fleet WHERE pipeline = ?1 LIMIT 1", [.text(file)]) { _ in
        isKnown = true
      }
      return isKnown
    }
    if try isKnown(owner.file) { return owner.file }
    return try own.first { try !$0.isEmpty && isKnown($0) } ?? owner.file
  }

  /// The path under which a pipeline's fleet is known.
  func fleetFile(_ pipeline: String) -> String {
    guard let ownFleet, ownFleet.files.contains(where: pipeline.isSameBytes) else {
      return pipeline
    }
    return ownFleet.file
  }
}
