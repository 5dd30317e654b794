import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning

/// The keys of the objects that a mapping's source expression yields, where it is more than a fetch
/// under a filter.
///
/// The expression is evaluated as a whole, once a shard, so such a mapping is one shard. Objects
/// are taken by ascending key, whatever the order of the collection: that is how all others come.
/// Source: `core-data-migration.md` §3.1.
struct SourceSelectionKeys {
  /// Eight bytes for each object taken.
  private let keys: [Int64]

  /// - Throws: `EvaluationError` when the expression has no value, or objects of another entity.
  init(
    _ text: String, _ mapping: EntityMappingPlan, _ objects: SourceObjects, runDate: Double
  ) throws {
    let expression = try ValueExpression(parsing: text)
    var scope = EvaluationScope(entityMapping: mapping.name)
    scope.entityMappingUserInfo = mapping.userInfo
    let found = try Evaluator(access: objects, runDate: runDate).objects(of: expression, in: scope)
    for object in found where object.store != .source || object.entity != mapping.source {
      var place = scope
      place.source = object
      throw place.error(
        .access(
          "the source expression of \(mapping.name) yields an object of the "
            + "\(object.store.rawValue) entity \(object.entity), and the mapping takes those of "
            + "\(mapping.source ?? ""). Give sub-entities mappings of their own"), in: text)
    }
    keys = found.map(\.primaryKey).sorted()
  }

  func contains(_ key: Int64) -> Bool {
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low < keys.count && keys[low] == key
  }
}
