import GodwitExpressions
import GodwitObjectModel

/// An object of the source or of the destination, as a policy sees it.
///
/// A value without a row of its own: it may be kept as long as the stage lasts, and everything
/// that is set is set for all who hold the object. An unknown key or a value of another type
/// ends the migration when the current hook returns, with an error that names entity, `Z_PK` and
/// key, as Core Data's exception would; until then such values are nil. So does the use of an
/// object in another stage than its own.
public struct ManagedObject {
  @usableFromInline let engine: PolicyEngine
  let reference: ObjectReference

  init(_ engine: PolicyEngine, _ reference: ObjectReference) {
    self.engine = engine
    self.reference = reference
  }

  /// For what is done with the object, and not only to tell what it is.
  var usedReference: ObjectReference {
    engine.requireStage()
    return reference
  }

  /// The name of the object's own entity, never of one that it inherits from.
  public var entityName: String { reference.entity.rawValue }

  /// The object's entity in the model that it is of: Core Data's `entity`. Its `properties` are its own
  /// ones; ``attributesByName`` and ``relationshipsByName`` have those that it inherits, too.
  public var entity: EntityDescription {
    hierarchy?[reference.entity] ?? EntityDescription(name: reference.entity)
  }

  /// The attributes that the object has values of, inherited ones among them: Core Data's
  /// `entity.attributesByName`, without transient ones, which no store has.
  public var attributesByName: [String: AttributeDescription] { byName(\.attribute) }

  /// The relationships of the object, inherited ones among them: Core Data's
  /// `entity.relationshipsByName`, without transient ones.
  public var relationshipsByName: [String: RelationshipDescription] { byName(\.relationship) }

  private var hierarchy: EntityHierarchy? {
    engine.reach { $0.hierarchy(ofSource: isSource) } ?? nil
  }

  private func byName<Description>(
    _ kind: KeyPath<PropertyDescription, Description?>
  ) -> [String: Description] {
    let declared = hierarchy?.properties(of: reference.entity) ?? []
    return Dictionary(
      declared.filter(\.property.isStored).compactMap { declared in
        declared.property[keyPath: kind].map { (declared.property.name, $0) }
      }, uniquingKeysWith: { first, _ in first })
  }

  /// What the object is known by.
  public var objectID: ManagedObjectID {
    ManagedObjectID(reference, uri: uriRepresentation, stage: engine.number)
  }
  /// True for an object of the source store, false for one of the destination.
  public var isSource: Bool { reference.store == .source }

  /// Where the object lives, as a URI representation of its object ID; nil for an object of the
  /// destination in the copy stage, when keys are not given out yet.
  public var uriRepresentation: String? { engine.reach { $0.uri(of: reference) } ?? nil }

  /// An attribute's value as `NSNumber`, `Decimal`, `String`, `Date`, `Data`, `UUID` or `URL`; a
  /// number can be cast to every type of Swift that holds it. A relationship's as ``ManagedObject``, `Set` or, where it is ordered, `Array` of
  /// them; a composite attribute's as a dictionary of the elements that have a value, nil where none has.
  /// Its elements are keys of their own, as `place.street`. Nil for nil.
  public func value(forKey key: String) -> Any? {
    guard let found = present(key) else { return nil }
    let value: Any?
    switch found {
    // Of other kinds a value tells its type.
    case .real, .dictionary: value = found.native(in: engine, of: attribute(key))
    default: value = found.native(in: engine)
    }
    // A URI that Foundation cannot read: nil would be no value.
    if value == nil { fail(key, wanted: "URL") }
    return value
  }

  /// The attribute of a key, which may be the path to an element of a composite one.
  private func attribute(_ key: String) -> AttributeDescription? {
    let path = key.keyPathParts
    return hierarchy?.property(path[0], of: reference.entity)?
      .property.attribute?.element(at: path.dropFirst())
  }

  /// The value at the end of a path of to-one relationships; nil where one of them leads nowhere.
  public func value(forKeyPath path: String) -> Any? {
    var keys = path.keyPathParts.filter { !$0.isEmpty }[...]
    var object = self
    while let key = keys.popFirst() {
      if keys.isEmpty { return object.value(forKey: key) }
      guard let found = object.stored(key) else { return nil }
      guard case .object(let next) = found else {
        // A composite attribute's elements are keys of their own, also where none has a value.
        if found.isNull, object.attribute(key)?.type != .composite { return nil }
        return object.value(forKey: ([key] + keys).joined(separator: "."))
      }
      object = ManagedObject(engine, next)
    }
    return nil
  }

  /// Sets an attribute or a relationship of a destination object: a value as ``value(forKey:)``
  /// gives it, any integer, a collection of objects, or nil.
  public func setValue(_ value: Any?, forKey key: String) {
    change { try $0.set(try value.map(ExpressionValue.init(native:)) ?? .null, key, reference) }
  }

  /// A property by its type: `object["name"] as String?`. Faster than ``value(forKey:)``.
  public subscript<Value: PropertyValue>(key: String) -> Value? {
    // Inlined where it is used: there the type is known, and is not looked up for each object.
    @inlinable get {
      guard let found = present(key) else { return nil }
      if let value = Value(found, in: engine) { return value }
      fail(key, wanted: "\(Value.self)")
      return nil
    }
    @inlinable nonmutating set { assign(newValue?.expressionValue ?? .null, key) }
  }

  /// A property's value; nil for nil, and after an error.
  @usableFromInline func present(_ key: String) -> ExpressionValue? {
    guard let found = stored(key), !found.isNull else { return nil }
    return found
  }

  private func stored(_ key: String) -> ExpressionValue? {
    engine.reach { $0.value(key, reference) } ?? nil
  }

  private func change(_ body: (PolicyStageEngine) throws -> Void) {
    engine.reach { stage in stage.attempt { try body(stage) } }
  }

  @usableFromInline func fail(_ key: String, wanted: String) {
    engine.reach {
      $0.fail(
        .wrongType(
          entity: entityName, primaryKey: $0.primaryKey(of: reference), key: key, wanted: wanted))
    }
  }

  @usableFromInline func assign(_ value: ExpressionValue, _ key: String) {
    change { try $0.set(value, key, reference) }
  }

  /// Adds an object to a to-many relationship, at the end where that is ordered.
  public func add(_ object: ManagedObject, to relationship: String) {
    change { try $0.add(object.usedReference, relationship, reference) }
  }

  /// Removes an object from a to-many relationship; nothing happens where it is no member. In the
  /// link stage only members that this policy's own mapping has set are known.
  public func remove(_ object: ManagedObject, from relationship: String) {
    change { try $0.remove(object.usedReference, relationship, reference) }
  }
}

extension ManagedObject: Hashable {
  /// Equal where they are the same object of one stage. An object of an earlier one is equal to none; that it is
  /// compared with one of the same number, as the key of a dictionary that is kept too long, is an error.
  public static func == (a: ManagedObject, b: ManagedObject) -> Bool {
    guard a.reference == b.reference else { return false }
    if a.engine === b.engine { return true }
    a.engine.requireStage()
    b.engine.requireStage()
    return false
  }

  /// Equal objects have equal hashes.
  public func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}
