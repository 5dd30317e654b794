import GodwitPersistentStore

/// Why a staged migration cannot be planned or run. Messages in quotation marks are Core Data's.
///
/// Source: `core-data-migration.md` §1.4, §6.3.
public enum StagedMigrationError: Error, Sendable, Equatable {
  /// No model at hand has the checksum that a reference names.
  case modelReferenceNotFound(name: String, checksum: String)
  /// The store records no version checksum, as those of frameworks before 2023 do not.
  case frameworkVersionMismatch
  /// The store's version comes after the destination's in the order of the stages.
  case backwardMigration(store: String, destination: String)
  /// No stage names the version.
  case unknownVersion(checksum: String)
  /// Two stages name the version checksum.
  case duplicateChecksum(String)
  /// A step that has to be inferred and cannot be.
  case missingMapping(source: String, destination: String, [Reason])
  /// A handler tried what the model or the store does not allow.
  case invalidValue(entity: String, property: String, code: Int, message: String)
  /// What a handler left breaks the model's rules. Not empty.
  case invalidObjects([StoreFinding])
  /// A handler used a context or an object of another call.
  case callIsOver
}

extension StagedMigrationError {
  /// Core Data's code, where it has one.
  public var code: Int? {
    switch self {
    case .modelReferenceNotFound: 134_504
    case .frameworkVersionMismatch: 134_505
    case .backwardMigration: 134_506
    case .missingMapping: 134_140
    case .invalidValue(_, _, let code, _): code
    // Several are one error with parts, `NSValidationMultipleErrorsError`.
    case .invalidObjects(let findings): findings.count == 1 ? findings.first?.code : 1560
    case .callIsOver: 134_110
    case .unknownVersion, .duplicateChecksum: nil
    }
  }
}

extension StagedMigrationError: CustomStringConvertible {
  /// What is wrong with the stages, and what to do next.
  public var description: String {
    switch self {
    case .modelReferenceNotFound(let name, let checksum):
      "No model given has the version checksum \(checksum), which the reference \(name) names. "
        + "Give that version, or correct the checksum: `godwit model hash` prints it."
    case .frameworkVersionMismatch:
      "The store records no version checksum, so its place among the stages is not known. "
        + "Migrate it without stages once (--chain direct)."
    case .backwardMigration(let store, let destination):
      "\"A store file cannot be migrated backwards with staged migration.\" The store's version "
        + "\(store) comes after \(destination) in the order of the stages."
    case .unknownVersion(let checksum):
      "\"Cannot use staged migration with an unknown model version.\" No stage names the version "
        + "checksum \(checksum). Add a lightweight stage with it."
    case .duplicateChecksum(let checksum):
      "\"Duplicate version checksums across stages detected.\" It is \(checksum). Leave it in one "
        + "stage."
    case .missingMapping(let source, let destination, let reasons):
      "A mapping model from \(source) to \(destination) cannot be inferred: "
        + reasons.map(\.message).joined(separator: " ")
        + " Put a custom stage between them."
    case .invalidValue(let entity, let property, _, let message):
      "\([entity, property].filter { !$0.isEmpty }.joined(separator: ".")): \(message)"
    case .invalidObjects(let findings):
      "The handler left objects that the model does not allow: "
        + findings.map(\.description).joined(separator: "; ") + ". Correct them in the handler."
    case .callIsOver:
      "A context or an object of an earlier call of a handler cannot be used: it lasts as long as its "
        + "call. Keep the object's reference, and ask the context at hand for `object(_:)`."
    }
  }
}

/// What a handler of a custom stage threw: the error itself with its place.
public struct StageHandlerError: Error {
  /// Which of a stage's two handlers.
  public enum Phase: String, Sendable, Codable {
    /// Under the source model, before the migration.
    case willMigrate
    /// Under the destination model, after it.
    case didMigrate
  }

  /// Which of the two handlers threw.
  public let phase: Phase
  /// The stage's label, or its two versions.
  public let stage: String
  /// As it was thrown.
  public let error: any Error

  /// Puts an error at its place.
  package init(_ error: any Error, in phase: Phase, of stage: String) {
    self.error = error
    self.phase = phase
    self.stage = stage
  }
}

extension StageHandlerError: CustomStringConvertible {
  /// Which handler failed, in which stage, and what it said.
  public var description: String {
    "The \(phase.rawValue) handler of the stage \(stage) threw "
      + "\(String(reflecting: type(of: error))): \(error.ownDescription)"
  }
}
