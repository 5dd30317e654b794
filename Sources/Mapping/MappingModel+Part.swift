import GodwitExpressions
import GodwitObjectModel

extension MappingModel {
  /// As much of a mapping model as is for a store of one configuration. Of entities that the store does not
  /// hold there are no objects: what expressions ask for of them is nothing.
  ///
  /// - Parameters:
  ///   - isHeld: Of each entity mapping, in their order, whether it is for what the store holds.
  ///   - whole: The source model.
  ///   - source: What the store holds of it.
  package func part(
    _ isHeld: [Bool], of whole: EntityHierarchy, in source: EntityHierarchy
  ) -> MappingModel {
    let held = zip(entityMappings, isHeld).filter { $0.1 }.map { $0.0 }
    let nothing = Absence(
      mappings: Set(entityMappings.map(\.name)).subtracting(held.map(\.name)), whole: whole,
      source: source)
    return MappingModel(
      entityMappings: held.map { mapping in
        mapping.replacingParts { part, _ in nothing.replacement(of: part) }
      })
  }
}

/// What expressions ask for in vain.
private struct Absence {
  /// Names of entity mappings that are left out.
  let mappings: Set<String>
  let whole: EntityHierarchy
  let source: EntityHierarchy

  private func isAbsent(_ entity: EntityName) -> Bool {
    whole.contains(entity) && !source.contains(entity)
  }

  /// What comes in the place of an expression; nil for what stays.
  func replacement(of expression: ValueExpression) -> ValueExpression? {
    switch expression {
    case .function(.variable("manager"), let selector, let arguments):
      guard case .constant(.string(let name))? = arguments.first else { return nil }
      let isOfMapping =
        selector == ManagerSelector.instancesForMapping
        || selector == ManagerSelector.sourceInstancesForMapping
      return isOfMapping && mappings.contains(name) ? .aggregate([]) : nil
    case .fetch(
      .function(.variable("manager"), ManagerSelector.fetchRequest, let arguments), _,
      let countOnly):
      guard case .constant(.string(let name))? = arguments.first, isAbsent(EntityName(name)) else {
        return nil
      }
      return countOnly ? .constant(.integer(0)) : .aggregate([])
    default: return nil
    }
  }
}
