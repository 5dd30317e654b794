import Foundation
import GodwitExpressions

/// What an object is known by: Core Data's `NSManagedObjectID`.
///
/// IDs are equal when their objects are the same, and may be keys of a dictionary. A temporary ID is of no
/// use after its stage, in which alone it is equal to any. What has to come along to a later stage is
/// ``uriRepresentation()``.
public struct ManagedObjectID: Hashable, Sendable {
  let reference: ObjectReference
  private let uri: String?
  /// Of a temporary ID, the stage; else 0.
  private let stage: Int

  /// - Parameter stage: The number of the object's ``PolicyEngine``.
  init(_ reference: ObjectReference, uri: String?, stage: Int) {
    self.reference = reference
    self.uri = uri
    self.stage = uri == nil ? stage : 0
  }

  /// The name of the object's own entity, never of one that it inherits from.
  public var entityName: String { reference.entity.rawValue }

  /// True for an object of the destination in the copy stage, when keys are not given out yet.
  public var isTemporaryID: Bool { uri == nil }

  /// `x-coredata://STORE/ENTITY/pKEY`; nil for a temporary ID.
  public func uriRepresentation() -> URL? { uri.flatMap { URL(string: $0) } }

  /// Equal where they identify the same object.
  public static func == (a: Self, b: Self) -> Bool {
    a.reference == b.reference && a.stage == b.stage && a.uri == b.uri
  }

  /// Equal identifiers have equal hashes.
  public func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}

extension ManagedObjectID: CustomStringConvertible {
  /// The URI, or that the ID is temporary.
  public var description: String { uri ?? "a temporary ID of \(entityName)" }
}
