import GodwitExpressions
import GodwitObjectModel

/// An object of the source or of the destination, as a policy sees it.
///
/// A value without a row of its own: it may be kept as long as the stage lasts, and everything
/// that is set is set for all who hold the object. An unknown key or a value of another type
/// ends the migration when the current hook returns, with an error that names entity, `Z_PK` and
/// key, as Core Data's exception would; until then such values are nil.
public struct ManagedObject {
  @usableFromInline let engine: PolicyEngine
  let reference: ObjectReference

  init(_ engine: PolicyEngine, _ reference: ObjectReference) {
    self.engine = engine
    self.reference = reference
  }

  /// The name of the object's own entity, never of one that it inherits from.
  public var entityName: String { reference.entity.rawValue }

  /// The object's entity in the model that it is of: Core Data's `entity`. Its `properties` are its own
  /// ones; ``attributesByName`` and ``relationshipsByName`` have those that it inherits, too.
  public var entity: EntityDescription {
    engine.hierarchy(ofSource: isSource)?[reference.entity]
      ?? EntityDescription(name: reference.entity)
  }

  /// The attributes that the object has values of, inherited ones among them: Core Data's
  /// `entity.attributesByName`, without transient ones, which no store has.
  public var attributesByName: [String: AttributeDescription] { byName(\.attribute) }

  /// The relationships of the object, inherited ones among them: Core Data's
  /// `entity.relationshipsByName`, without transient ones.
  public var relationshipsByName: [String: RelationshipDescription] { byName(\.relationship) }

  private func byName<Description>(
    _ kind: KeyPath<PropertyDescription, Description?>
  ) -> [String: Description] {
    let declared = engine.hierarchy(ofSource: isSource)?.properties(of: reference.entity) ?? []
    return Dictionary(
      declared.filter(\.property.isStored).compactMap { declared in
        declared.property[keyPath: kind].map { (declared.property.name, $0) }
      }, uniquingKeysWith: { first, _ in first })
  }

  /// What the object is known by.
  public var objectID: ManagedObjectID {
    ManagedObjectID(reference, uri: uriRepresentation)
  }
  /// True for an object of the source store, false for one of the destination.
  public var isSource: Bool { reference.store == .source }

  /// Where the object lives, as a URI representation of its object ID; nil for an object of the
  /// destination in the copy stage, when keys are not given out yet.
  public var uriRepresentation: String? { engine.uri(of: reference) }

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
    return engine.hierarchy(ofSource: isSource)?.property(path[0], of: reference.entity)?
      .property.attribute?.element(at: path.dropFirst())
  }

  /// The value at the end of a path of to-one relationships; nil where one of them leads nowhere.
  public func value(forKeyPath path: String) -> Any? {
    var keys = path.keyPathParts.filter { !$0.isEmpty }[...]
    var object = self
    while let key = keys.popFirst() {
      if keys.isEmpty { return object.value(forKey: key) }
      guard let found = object.engine.value(key, object.reference) else { return nil }
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
    engine.attempt {
      try engine.set(try value.map(ExpressionValue.init(native:)) ?? .null, key, reference)
    }
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
    guard let found = engine.value(key, reference), !found.isNull else { return nil }
    return found
  }

  @usableFromInline func fail(_ key: String, wanted: String) {
    engine.fail(
      .wrongType(
        entity: entityName, primaryKey: engine.primaryKey(of: reference), key: key, wanted: wanted))
  }

  @usableFromInline func assign(_ value: ExpressionValue, _ key: String) {
    engine.attempt { try engine.set(value, key, reference) }
  }

  /// Adds an object to a to-many relationship, at the end where that is ordered.
  public func add(_ object: ManagedObject, to relationship: String) {
    engine.attempt { try engine.add(object.reference, relationship, reference) }
  }

  /// Removes an object from a to-many relationship; nothing happens where it is no member. In the
  /// link stage only members that this policy's own mapping has set are known.
  public func remove(_ object: ManagedObject, from relationship: String) {
    engine.attempt { try engine.remove(object.reference, relationship, reference) }
  }
}

extension ManagedObject: Hashable {
  /// Equal where they are the same object of one migration.
  public static func == (a: ManagedObject, b: ManagedObject) -> Bool { a.reference == b.reference }

  /// Equal objects have equal hashes.
  public func hash(into hasher: inout Hasher) { hasher.combine(reference) }
}
