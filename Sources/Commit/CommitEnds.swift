import GodwitPersistentStore
import GodwitPlanning

/// Where a commit begins and ends: the source as it was when it was read, and the destination.
package struct CommitEnds: Sendable, Equatable, Codable {
  package var sourcePath: String
  /// What tells that the source is still the one that was read.
  package var sourceIdentity: StoreIdentity
  /// The source, or the private clone of it that was read.
  package var readPath: String
  /// The source's `_EXTERNAL_DATA` folder; it need not exist.
  package var externalDataPath: String
  /// The source's own path when the destination takes its place.
  package var destinationPath: String
  /// Of the plan, or of the chain.
  package var fingerprint: String

  package init(
    sourcePath: String, sourceIdentity: StoreIdentity, readPath: String, externalDataPath: String,
    destinationPath: String, fingerprint: String
  ) {
    self.sourcePath = sourcePath
    self.sourceIdentity = sourceIdentity
    self.readPath = readPath
    self.externalDataPath = externalDataPath
    self.destinationPath = destinationPath
    self.fingerprint = fingerprint
  }

  package init(_ plan: MigrationPlan) {
    sourcePath = plan.sourcePath
    sourceIdentity = plan.sourceIdentity
    readPath = plan.readPath
    externalDataPath = plan.externalDataPath
    destinationPath = plan.destinationPath
    fingerprint = plan.fingerprint
  }

  /// - Parameter store: Opened for a run; its private clone must outlive the commit.
  package init(reading store: SourceStore, destinationPath: String, fingerprint: String) {
    sourcePath = store.files.store.string
    sourceIdentity = store.identity
    readPath = store.readPath.string
    externalDataPath = store.files.externalDataFolder.string
    self.destinationPath = destinationPath
    self.fingerprint = fingerprint
  }
}
