import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

enum ModelTargets {
  static func xml(_ bytes: [UInt8]) throws {
    try use(ManagedObjectModel(xml: bytes, path: "contents"))
  }

  /// Both forms: the archive as it is, and deflated as in a store.
  static func archive(_ bytes: [UInt8]) throws {
    do {
      try use(ManagedObjectModel(modelCache: bytes))
    } catch {
      try use(ManagedObjectModel(archive: bytes, path: "Model.mom"))
    }
  }

  /// What every command does with a model that it has read.
  private static func use(_ model: ManagedObjectModel) throws {
    let hierarchy = try EntityHierarchy(model)
    let hashes = hierarchy.versionHashes
    let layout = StoreLayout(hierarchy)
    _ = layout.statements.map(\.sql)
    _ = layout.problems.map { String(describing: $0) }
    _ = InferredMapping(source: hierarchy, destination: hierarchy).refusals.map(\.message)
    _ = ModelDifference(source: hierarchy, destination: hierarchy)
    let again = certain("a written archive reads") {
      try EntityHierarchy(
        ManagedObjectModel(archive: hierarchy.archiveBytes(), path: "again"))
    }
    hold("a model keeps its hashes in an archive", again.versionHashes == hashes)
  }
}
