import GodwitObjectModel
import GodwitPersistentStore

// Values in columns of other entities than the row's own. Core Data leaves them in a table of several entities,
// such as a default that was new once; they are nobody's, and a sound store may have them.
// Source: `core-data-sqlite-format.md` §5.
extension PlanContext {
  /// Whether something in the destination asks for a column's values in all rows, whatever their entity: a
  /// uniqueness constraint, or a derived attribute that counts.
  func isAskedOfAll(_ column: Column) -> Bool {
    switch column.role {
    case .attribute(let entity, let name):
      return isUnique([name], of: entity)
    case .leaf(let entity, let composite, let path):
      return isUnique([composite, ([composite] + path).joined(separator: ".")], of: entity)
    case .toOne(let entity, let name):
      return isUnique([name], of: entity) || isCounted(name, declaredBy: entity)
    case .owner(let entity, let name):
      return isCounted(name, declaredBy: entity)
    case .targetEntity, .order: return false
    }
  }

  private func isUnique(_ names: [String], of entity: EntityName) -> Bool {
    destination.hierarchy.order.contains { name in
      (destination.hierarchy[name]?.uniquenessConstraints ?? []).contains { constraint in
        constraint.contains { property in names.contains { $0.isSameName(as: property) } }
      } && destination.hierarchy.isKind(name, of: entity)
    }
  }

  /// Whether rows of the source that are no members of a to-many relationship may have a value in the column
  /// that says who its members are.
  func mayHaveStrays(_ relationship: RelationshipDescription, declaredBy entity: EntityName) -> Bool
  {
    guard let storage = storage(of: relationship, declaredBy: entity),
      storage.targetColumn == "Z_PK",
      let table = source.table(of: relationship.destinationEntity), table.name == storage.table
    else { return false }
    return table.entities.contains {
      rows(ofSource: $0) > 0 && !source.hierarchy.isKind($0, of: relationship.destinationEntity)
    }
  }
}
