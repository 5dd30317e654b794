import GodwitPersistentStore
import GodwitPlanning

/// Where a commit begins and ends: the source as it was when it was read, and the destination.
public struct CommitEnds: Sendable, Equatable, Codable {
  public var sourcePath: String
  /// What tells that the source is still the one that was read.
  public var sourceIdentity: StoreIdentity
  /// The source, or the private clone of it that was read.
  public var readPath: String
  /// The source's `_EXTERNAL_DATA` folder; it need not exist.
  public var externalDataPath: String
  /// The source's own path when the destination takes its place.
  public var destinationPath: String
  /// Of the plan, or of the chain.
  public var fingerprint: String

  public init(
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

  public init(_ plan: MigrationPlan) {
    sourcePath = plan.sourcePath
    sourceIdentity = plan.sourceIdentity
    readPath = plan.readPath
    externalDataPath = plan.externalDataPath
    destinationPath = plan.destinationPath
    fingerprint = plan.fingerprint
  }

  /// - Parameter store: Opened for a run; its private clone must outlive the commit.
  public init(reading store: SourceStore, destinationPath: String, fingerprint: String) {
    sourcePath = store.files.store.string
    sourceIdentity = store.identity
    readPath = store.readPath.string
    externalDataPath = store.files.externalDataFolder.string
    self.destinationPath = destinationPath
    self.fingerprint = fingerprint
  }
}
