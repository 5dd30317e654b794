import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning

/// A store between two versions, as a predicate sees it: in a stage there are no entity mappings.
struct StageObjectAccess: UnmappedObjectAccess {
  private let store: StageStore

  init(_ store: StageStore) { self.store = store }

  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue? {
    guard let property = store.model.property(key, of: object.entity)?.property else {
      return element(key, of: object.entity) == nil ? nil : try store.value(forKey: key, of: object)
    }
    return property.isStored ? try store.value(forKey: key, of: object) : .null
  }

  func isComposite(_ key: String, of object: ObjectReference) -> Bool {
    element(key, of: object.entity)?.type == .composite
  }

  /// A stored attribute, or at a path of names an element of a composite one.
  private func element(_ key: String, of entity: EntityName) -> AttributeDescription? {
    let path = key.keyPathParts
    guard let declared = store.model.property(path[0], of: entity)?.property, declared.isStored
    else { return nil }
    return declared.attribute?.element(at: path.dropFirst())
  }

  func uri(of object: ObjectReference) throws -> String {
    let uuid = try store.connection.rows("SELECT Z_UUID FROM Z_METADATA LIMIT 1").first?.first?.text
    return ObjectURI.prefix(store: uuid ?? "", entity: object.entity.rawValue)
      + "\(object.primaryKey)"
  }

  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) throws -> [ObjectReference]? {
    guard store.model.contains(entity) else { return nil }
    var found: [ObjectReference] = []
    try store.fetch(entity, where: nil) { object in
      if object.entity == entity, try holds(object) { found.append(object) }
    }
    return found
  }
}
