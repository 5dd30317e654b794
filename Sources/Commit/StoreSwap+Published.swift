import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

extension StoreSwap {
  /// Whether what is at the destination is already, byte for byte, what the commit would put there,
  /// external data included. Nothing is changed.
  ///
  /// - Throws: ``CommitError/sourceChanged(store:)``: what was assembled is not of the source as it
  ///   is now.
  package func isPublished(_ assembled: FilePath) throws -> Bool {
    try isPublished(assembled, externalData: FilePath(ends.externalDataPath))
  }

  /// The same for what the last step of a chain wrote.
  package func isPublished(chain finished: StoreFiles) throws -> Bool {
    try isPublished(finished.store, externalData: finished.externalDataFolder)
  }

  private func isPublished(_ assembled: FilePath, externalData: FilePath) throws -> Bool {
    let source = StoreFiles(FilePath(ends.sourcePath))
    guard try source.identity() == ends.sourceIdentity else {
      throw CommitError.sourceChanged(store: source.store)
    }
    let target = StoreFiles(FilePath(ends.destinationPath))
    guard try ExternalDataFolder.areEqual(assembled, target.store) else { return false }
    let undelivered = try undelivered(assembled)
    for folder in [run.external, externalData] {
      for name in try ExternalDataFolder.names(in: folder) where !undelivered.contains(name) {
        guard
          try ExternalDataFolder.areEqual(
            folder.appending(name), target.externalDataFolder.appending(name))
        else { return false }
      }
    }
    return true
  }
}
