import Foundation

/// What a policy did that the migration cannot follow.
public enum PolicyError: Error, Sendable, Equatable {
  /// A key that is not a property of the object's entity. Here and below, `primaryKey` is 0, which no object
  /// has, for one that the copy stage makes, and where an entity itself was asked.
  case unknownKey(entity: String, primaryKey: Int64, key: String)
  /// A typed subscript asked for another type than the property has.
  case wrongType(entity: String, primaryKey: Int64, key: String, wanted: String)
  /// A value that the property does not take, with the reason in words.
  case unacceptable(entity: String, primaryKey: Int64, key: String, reason: String)
  /// A Swift value of a type that no property has.
  case unknownValue(type: String)
  /// A name that no concrete entity of the model has.
  case unknownEntity(String)
  /// A name that no entity mapping has.
  case unknownMapping(String)
  /// Something that the stage at hand does not allow, in words.
  case notNow(String)
}

extension PolicyError: CustomStringConvertible {
  /// What the policy did wrong, where, and what to do next.
  public var description: String {
    switch self {
    case .unknownKey(let entity, 0, let name):
      "\(entity) has no key \(name). Check the spelling"
    case .unknownKey(let entity, let key, let name):
      "\(entity) with Z_PK \(key) has no key \(name). Check the spelling"
    case .wrongType(let entity, let key, let name, let wanted):
      "\(Self.named(entity, key)): the value of \(name) is not of type \(wanted). Ask for its own type"
    case .unacceptable(let entity, let key, let name, let reason):
      "\(Self.named(entity, key)): \(name) cannot be set: \(reason)"
    case .unknownValue(let type):
      "a value of type \(type) is none that a property can have. Convert it"
    case .unknownEntity(let name): "the model has no concrete entity \(name)"
    case .unknownMapping(let name): "there is no entity mapping \(name)"
    case .notNow(let what): what
    }
  }

  private static func named(_ entity: String, _ key: Int64) -> String {
    key == 0 ? "a new object of \(entity)" : "\(entity) with Z_PK \(key)"
  }
}

/// As an `NSError`: for whoever catches one in a hook, or logs it.
extension PolicyError: CustomNSError, LocalizedError {
  /// The domain of the errors as `NSError`. It never changes.
  public static let errorDomain = "GodwitPolicyErrorDomain"

  /// Numbers never change their meaning.
  public var errorCode: Int {
    switch self {
    case .unknownKey: 1
    case .wrongType: 2
    case .unacceptable: 3
    case .unknownValue: 4
    case .unknownEntity: 5
    case .unknownMapping: 6
    case .notNow: 7
    }
  }

  /// The same as `description`.
  public var errorDescription: String? { description }

  /// `entity`, `primaryKey` and `key` where the error has them.
  public var errorUserInfo: [String: Any] {
    var info: [String: Any] = [NSLocalizedDescriptionKey: description]
    switch self {
    case .unknownKey(let entity, let primaryKey, let key),
      .wrongType(let entity, let primaryKey, let key, _),
      .unacceptable(let entity, let primaryKey, let key, _):
      (info["entity"], info["key"]) = (entity, key)
      if primaryKey != 0 { info["primaryKey"] = primaryKey }
    case .unknownEntity(let entity): info["entity"] = entity
    case .unknownValue, .unknownMapping, .notNow: break
    }
    return info
  }
}

/// An error out of a policy's hook, with the place where it came up. The policy's own error keeps
/// its identity.
package struct PolicyFailure: Error, Sendable {
  package var policy: String
  package var mapping: String
  package var hook: String
  /// The source object that the hook was called for, else the destination object.
  package var entity: String?
  package var primaryKey: Int64?
  /// True for an error of `cancelMigration(with:)`.
  package var isCancellation: Bool
  package var error: any Error
}
