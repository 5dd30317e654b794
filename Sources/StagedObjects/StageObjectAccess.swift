import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning

/// A store between two versions, as a predicate sees it: in a stage there are no entity mappings.
struct StageObjectAccess: UnmappedObjectAccess {
  private let store: StageStore

  init(_ store: StageStore) { self.store = store }

  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue? {
    guard let property = store.model.property(key, of: object.entity)?.property else { return nil }
    return property.isStored ? try store.value(forKey: key, of: object) : .null
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
