import GodwitObjectModel
import GodwitSQLite

/// One object of a store that a stage's handler looks at.
public struct StageObjectID: Sendable, Hashable {
  /// The object's own entity, never only an ancestor.
  public var entity: EntityName
  public var primaryKey: Int64

  public init(entity: EntityName, primaryKey: Int64) {
    self.entity = entity
    self.primaryKey = primaryKey
  }
}

/// What the handlers of a custom stage can do with a store: Core Data's context, as far as stages
/// need it.
///
/// Values are as SQLite holds them: dates are seconds since 2001-01-01 UTC, a UUID is a blob of 16
/// bytes, a Boolean 0 or 1. What a handler changes is saved when it returns, and nothing of it
/// when it throws.
public protocol StageStoreAccess: AnyObject {
  /// The model under which the store is open.
  var model: EntityHierarchy { get }

  /// Calls the body with every object of an entity and its sub-entities, by ascending `Z_PK`. The
  /// body may change the object.
  func fetch(_ entity: EntityName, _ body: (StageObjectID) throws -> Void) throws

  /// - Throws: ``StagedMigrationError/invalidValue(entity:property:code:message:)`` for what is no
  ///   stored attribute of the entity, or when there is no such object.
  func value(of attribute: String, for object: StageObjectID) throws -> SQLiteValue

  /// Sets an attribute. `Z_OPT` of the object rises by one, however many of its attributes are
  /// set one after the other.
  ///
  /// - Throws: ``StagedMigrationError/invalidValue(entity:property:code:message:)``, also for a
  ///   value of another type or beyond the model's bounds.
  func setValue(_ value: SQLiteValue, of attribute: String, for object: StageObjectID) throws
}
