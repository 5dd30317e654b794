import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// The end of a chain of versions: the one commit that a store sees of it.
///
/// The stores between lie in the run directory. What the last step wrote is published, or takes
/// the place of the first step's source, as one step's assembled file would.
extension StoreSwap {
  /// - Parameters:
  ///   - finished: What the last step wrote. It stays, so that the commit can be made again.
  ///   - obsolete: Names of external data files that only the source refers to.
  @discardableResult
  package func commit(chain finished: StoreFiles, obsolete: [String]) throws -> CommitJournal {
    let path = try assemblyPath()
    let isLink = path.parent == run.path
    try checkSpace(
      assembledBytes: bytes(in: finished.externalDataFolder)
        .added(isLink ? 0 : FileMark(finished.store)?.size ?? 0))
    try DurableFile.removeIfPresent(path)
    try DurableFile.removeUnfinished([path])
    // The link is the file itself on one volume, and a copy elsewhere.
    try DurableFile.link(finished.store, to: path)
    // The names come from a file of the run directory.
    let unreferenced = try ExternalDataFolder.names(
      obsolete.filter(ExternalDataFolder.isSound), notReferredToBy: finished.store)
    do {
      return try commit(
        path, external: finished.externalDataFolder, obsolete: unreferenced.sorted())
    } catch {
      // It was the store for a moment, in which somebody opened it: the step is made again.
      if (try? StoreFiles.isDatabase(finished.store)) == false {
        _ = try? DurableFile.removeIfPresent(finished.store)
      }
      throw error
    }
  }
}

extension StoreSwap {
  /// Removes, from what a step of a chain wrote, the external data that only rows of its source
  /// refer to. Doing so again changes nothing.
  ///
  /// - Parameters:
  ///   - plan: Of the step. Its source must still be readable.
  ///   - written: What the step wrote into the run directory.
  /// - Returns: The names of those files.
  package static func dropObsoleteExternalData(
    _ plan: MigrationPlan, from written: StoreFiles
  ) throws -> [String] {
    let names = try ObsoleteExternalData(plan).names(
      in: FilePath(plan.externalDataPath), assembled: written.store)
    try ExternalDataFolder.remove(names, from: written.externalDataFolder)
    return names
  }
}
