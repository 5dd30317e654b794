import GodwitExpressions
import GodwitObjectModel

/// The store that the handlers of a custom stage work on: the part of Core Data's
/// `NSManagedObjectContext`.
///
/// Everything that a handler changes is saved when it returns, and nothing of it when it throws.
/// Saving validates the objects that were changed by the model's rules, as Core Data does: what
/// breaks them ends the migration with Core Data's codes, and the store is as it was.
///
/// For the thread that the handler was called on, and for as long as the call lasts: later it throws
/// ``StagedMigrationError/callIsOver``, and so do its objects.
public struct StageContext {
  private let call: StageCall

  package init(_ access: any StageStoreAccess) { call = StageCall(access: access) }

  /// The model under which the store is open: a `willMigrate` handler sees the stage's source
  /// model, a `didMigrate` handler its destination model.
  package var model: EntityHierarchy { call.access.model }

  /// The objects of an entity and its sub-entities, by ascending `Z_PK`.
  ///
  /// Only keys are held. For an entity of millions ``forEach(_:where:_:)`` holds none.
  ///
  /// - Parameter predicate: In the words of `NSPredicate`'s format strings; nil for all objects.
  /// - Throws: `ExpressionError` for a predicate that cannot be read, `EvaluationError`,
  ///   ``StagedMigrationError`` for an entity that the model does not have.
  public func fetch(
    _ entity: EntityName, where predicate: String? = nil
  ) throws -> [StageObject] {
    var found: [StageObject] = []
    try forEach(entity, where: predicate) { found.append($0) }
    return found
  }

  /// Calls the body with each object of an entity and its sub-entities, by ascending `Z_PK`.
  ///
  /// The body may change, insert and delete objects. It does not meet those that it inserts, and
  /// the predicate sees what it changed.
  ///
  /// - Throws: As ``fetch(_:where:)``, and what the body throws.
  public func forEach(
    _ entity: EntityName, where predicate: String? = nil, _ body: (StageObject) throws -> Void
  ) throws {
    let condition = try predicate.map { try PredicateExpression(parsing: $0) }
    try call.store.fetch(entity, where: condition) { try body(StageObject($0, call)) }
  }

  /// How many objects ``fetch(_:where:)`` would give.
  public func count(_ entity: EntityName, where predicate: String? = nil) throws -> Int {
    var count = 0
    try forEach(entity, where: predicate) { _ in count += 1 }
    return count
  }

  /// Makes an object with the model's default values. Its `Z_PK` is the next of its table.
  ///
  /// - Throws: ``StagedMigrationError`` for an entity that is abstract or unknown.
  public func insert(_ entity: EntityName) throws -> StageObject {
    StageObject(try call.store.insert(entity), call)
  }

  /// Deletes an object by the delete rules of its relationships: cascade takes objects along, deny
  /// is an error at once, nullify lets go. No action leaves references to what is gone, and so do
  /// relationships without inverse: where they are left when the handler has returned, the migration is refused
  /// with the reason `dangling`. Nothing happens where the object is gone already.
  ///
  /// - Throws: ``StagedMigrationError``, with code 1600 where a relationship denies it.
  public func delete(_ object: StageObject) throws {
    try call.store.delete(object.reference(in: call))
  }

  /// The object of a reference, as a value of a relationship holds it. One that `willMigrate` has kept is good
  /// for `didMigrate`, too, where the entity has kept its name.
  public func object(_ reference: ObjectReference) -> StageObject {
    let (entity, key) = (reference.entity, reference.primaryKey)
    return StageObject(ObjectReference(entity, key, in: call.access.side), call)
  }
}

/// An object of a store between two versions: a key, whose values are read when they are asked
/// for. The part of Core Data's `NSManagedObject`.
public struct StageObject {
  /// The object's entity, key and store.
  public let reference: ObjectReference
  private let call: StageCall

  init(_ reference: ObjectReference, _ call: StageCall) {
    self.reference = reference
    self.call = call
  }

  /// The reference for what is done with the object in a call.
  ///
  /// - Throws: ``StagedMigrationError/callIsOver`` for an object of another one.
  func reference(in call: StageCall) throws -> ObjectReference {
    guard self.call.access === call.access else { throw StagedMigrationError.callIsOver }
    return reference
  }

  /// The object's own entity, never only an ancestor.
  public var entity: EntityName { reference.entity }
  /// `Z_PK` of the object's row.
  public var primaryKey: Int64 { reference.primaryKey }

  /// True after ``StageContext/delete(_:)``.
  public var isDeleted: Bool { get throws { try !call.store.exists(reference) } }
}

extension StageObject {
  /// The value of a property: nil, and a to-one relationship without object, are `.null`; a to-many
  /// relationship is a `.set` or an `.orderedSet` of objects; a composite attribute a
  /// `.dictionary`, nil where no element has a value, and by `composite.element` one of its elements.
  ///
  /// - Throws: ``StagedMigrationError`` for a key that is not a stored property of the entity (1550),
  ///   and when the object is gone (133000).
  public func value(forKey key: String) throws -> ExpressionValue {
    try call.store.value(forKey: key, of: reference)
  }

  /// Sets a property. Numbers become numbers of the attribute's type, cut toward zero for an
  /// integer; nothing else is converted automatically. The inverse of a relationship is kept.
  ///
  /// - Throws: ``StagedMigrationError``, also for a value of another kind or out of its type's
  ///   range (1550, 1610, 1620), and for one that breaks a uniqueness constraint (1551).
  public func setValue(_ value: ExpressionValue, forKey key: String) throws {
    try call.store.setValue(value, forKey: key, of: reference)
  }

  /// The object of a to-one relationship.
  public func object(forKey key: String) throws -> StageObject? {
    guard case .object(let found) = try value(forKey: key) else { return nil }
    return StageObject(found, call)
  }

  /// The objects of a to-many relationship: in its order, or by ascending `Z_PK`.
  public func objects(forKey key: String) throws -> [StageObject] {
    (try value(forKey: key).members ?? []).compactMap {
      if case .object(let found) = $0 { StageObject(found, call) } else { nil }
    }
  }

  /// Sets a to-one relationship.
  public func setObject(_ object: StageObject?, forKey key: String) throws {
    try setValue(object.map { .object(try $0.reference(in: call)) } ?? .null, forKey: key)
  }

  /// Sets a to-many relationship; an ordered one keeps the order given.
  public func setObjects(_ objects: some Sequence<StageObject>, forKey key: String) throws {
    try setValue(.array(objects.map { .object(try $0.reference(in: call)) }), forKey: key)
  }

  /// Adds an object to a to-many relationship, at the end of an ordered one. The other members
  /// are not read; one that is a member already keeps its place.
  public func add(_ object: StageObject, toKey key: String) throws {
    try call.store.add(object.reference(in: call), toKey: key, of: reference)
  }
}

extension StageObject: Hashable {
  /// Equal where they are the same object of one stage.
  public static func == (a: StageObject, b: StageObject) -> Bool { a.reference == b.reference }

  /// Equal objects have equal hashes.
  public func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}
