import GodwitExpressions
import GodwitObjectModel

/// What a stage's handler can do with a store, by references to its objects. Handlers use it
/// through ``StageContext`` and ``StageObject``.
package protocol StageStoreAccess: AnyObject {
  /// The model under which the store is open.
  var model: EntityHierarchy { get }

  /// Which store the references to its objects name.
  var side: ObjectReference.Store { get }

  /// True when the handler's call has ended: nothing can be asked any more.
  var isOver: Bool { get }

  /// Calls the body with every object of an entity and its sub-entities, by ascending `Z_PK`.
  ///
  /// The body may change, insert and delete objects: those inserted meanwhile are not met.
  ///
  /// - Parameter predicate: Asked of each object when its turn comes; nil for all of them.
  func fetch(
    _ entity: EntityName, where predicate: PredicateExpression?,
    _ body: (ObjectReference) throws -> Void
  ) throws

  /// An attribute's value, a relationship's object or objects, or by `composite.element` an
  /// element of a composite attribute.
  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue

  /// Sets what ``value(forKey:of:)`` gives. The inverse of a relationship is kept.
  func setValue(_ value: ExpressionValue, forKey key: String, of object: ObjectReference) throws

  /// Adds an object to a to-many relationship, at the end of an ordered one.
  func add(_ member: ObjectReference, toKey key: String, of object: ObjectReference) throws

  /// Makes an object with the model's default values.
  func insert(_ entity: EntityName) throws -> ObjectReference

  /// Deletes an object by the delete rules of its relationships.
  func delete(_ object: ObjectReference) throws

  /// False for one that was deleted, or never was.
  func exists(_ object: ObjectReference) throws -> Bool
}

/// What a context and its objects lead to, for as long as the handler's call lasts.
struct StageCall {
  let access: any StageStoreAccess

  /// The store, while the call lasts.
  ///
  /// - Throws: ``StagedMigrationError/callIsOver``.
  var store: any StageStoreAccess {
    get throws {
      if access.isOver { throw StagedMigrationError.callIsOver }
      return access
    }
  }
}
