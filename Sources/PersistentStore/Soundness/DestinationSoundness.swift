import GodwitObjectModel
import GodwitSQLite
import SystemPackage

extension StoreSoundness {
  /// Opens an assembled destination as the store that it will be once it is published.
  ///
  /// - Parameters:
  ///   - modelCache: What the destination's `Z_MODELCACHE` is to hold: its model.
  ///   - snapshotFolder: Not used: nothing of an assembled file waits in a WAL.
  public static func assembled(
    at path: FilePath, modelCache: [UInt8], snapshotFolder: FilePath
  ) throws -> StoreBinding {
    StoreBinding(
      try SourceStore(path: path, snapshotFolder: snapshotFolder),
      try EntityHierarchy(modelCache: modelCache))
  }

  /// What remains to be asked of a destination's rows before it is published.
  ///
  /// Every row was judged by itself when it was validated, and the digests say that these are the
  /// rows of the file; SQLite's check of the pages is a matter of the whole file. What is left
  /// needs more than one row: references, inverses, places, uniqueness, derived counts, and every
  /// index against its table.
  ///
  /// - Returns: The same jobs in the same order for the same store and model.
  public static func destinationJobs(_ binding: StoreBinding) -> [Job] {
    let questions = RowQuestions(binding)
    var scans: [[Question]] = [indexQuestions(binding)]
    for (entity, relationship) in binding.relationships where !relationship.isToMany {
      scans.append(questions.toOne(relationship, of: entity).filter { $0.kind != .note })
    }
    scans += pairScans(binding, questions)
    return number(scans.flatMap { $0 })
  }

  /// Largest tables first would be better still; the order of the schema is good enough.
  private static func indexQuestions(_ binding: StoreBinding) -> [Question] {
    var seen: Set<String> = []
    return binding.store.schemaObjects.filter { $0.kind == .index }.compactMap { index in
      guard seen.insert(index.table).inserted else { return nil }
      return Question(
        kind: .index, message: "an index of \(index.table) disagrees with its table",
        form: .indexes(table: index.table))
    }
  }
}
