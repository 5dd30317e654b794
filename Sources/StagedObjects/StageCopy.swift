import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

extension StageStore {
  /// Makes the private copy that a handler works on.
  ///
  /// Files of external data are linked: they are never changed, only added and removed.
  ///
  /// - Parameters:
  ///   - store: A store without a WAL, that nobody writes to meanwhile.
  ///   - externalData: Its `_EXTERNAL_DATA` folder; it need not exist.
  ///   - target: In the run directory, where there is nothing yet.
  /// - Throws: `DurabilityError`.
  package static func copy(
    _ store: FilePath, externalData: FilePath, to target: StoreFiles
  ) throws {
    try ExternalDataFolder.link(
      from: externalData, of: store, to: target.externalDataFolder, except: [])
    try DurableFile.copy(store, to: target.store)
    // The source may be read-only; the copy belongs to the run.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o600], ofItemAtPath: target.store.string)
  }
}
