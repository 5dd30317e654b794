import GodwitObjectModel

/// One version of a model, by its version checksum.
///
/// Plays the part of Core Data's `NSManagedObjectModelReference`: a model counts as found only
/// when its own checksum is the one that the reference names. Xcode writes checksums to the build
/// log and to `VersionInfo.plist`; `godwit model hash` prints them.
public struct ModelReference: Sendable {
  /// Where the model is to be had.
  private enum Place: Sendable {
    /// Among the models that the run was given, and that the store carries.
    case given
    case model(ManagedObjectModel)
    case file(String)
  }

  /// For people; never compared.
  public var name: String
  /// As Xcode records it, base64.
  public var versionChecksum: String
  private let place: Place

  /// A version among the models that the run is given (`--models`), or the store's own.
  public init(name: String, versionChecksum: String) {
    self.name = name
    self.versionChecksum = versionChecksum
    place = .given
  }

  /// A model in memory.
  package init(name: String, model: ManagedObjectModel, versionChecksum: String) {
    self.name = name
    self.versionChecksum = versionChecksum
    place = .model(model)
  }

  /// A model that a file holds.
  ///
  /// - Parameter file: An `.xcdatamodel`, `.mom`, or a version in a bundle, as
  ///   `Shop.momd:Shop 2`. It is read when a store is migrated.
  public init(file: String, versionChecksum: String) {
    name = file
    self.versionChecksum = versionChecksum
    place = .file(file)
  }

  /// The version that the reference names.
  ///
  /// - Parameter models: Those at hand.
  /// - Throws: ``StagedMigrationError/modelReferenceNotFound(name:checksum:)``, `ModelError`.
  package func resolved(among models: [ModelVersion]) throws -> ModelVersion {
    let candidates: [ModelVersion] =
      switch place {
      case .given: models
      case .model(let model):
        [ModelVersion(name: name, model: model, isCurrent: false, path: name)]
      case .file(let path): [try ModelFile.version(at: path)]
      }
    for model in candidates
    where try model.hierarchy().versionChecksum == versionChecksum {
      return model
    }
    throw StagedMigrationError.modelReferenceNotFound(name: name, checksum: versionChecksum)
  }
}
