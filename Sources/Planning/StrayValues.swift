import GodwitObjectModel
import GodwitPersistentStore

// Values in columns of other entities than the row's own. Core Data leaves them in a table of several entities,
// such as a default that was new once; they are nobody's, and a sound store may have them.
// Source: `core-data-sqlite-format.md` §5.
extension PlanContext {
  /// Whether something in the destination asks for a column's values in all rows, whatever their entity: a
  /// uniqueness constraint, or a derived attribute that is new and counts.
  func isAskedOfAll(_ column: Column) -> Bool {
    switch column.role {
    case .attribute(let entity, let name):
      return destination.hierarchy.isUnique([name], of: entity)
    case .leaf(let entity, let composite, let path):
      return destination.hierarchy.isUnique(
        [composite, ([composite] + path).joined(separator: ".")], of: entity)
    case .toOne(let entity, let name):
      return destination.hierarchy.isUnique([name], of: entity)
        || isNewlyCounted(name, declaredBy: entity)
    case .owner(let entity, let name):
      return isNewlyCounted(name, declaredBy: entity)
    case .targetEntity, .order: return false
    }
  }

  private func isNewlyCounted(_ relationship: String, declaredBy entity: EntityName) -> Bool {
    countColumns.contains { column, counted in
      let inverse = destination.hierarchy.inverse(of: counted.relationship)
      let end = inverse?.relationship ?? counted.relationship
      return end.name.isSameName(as: relationship)
        && (inverse?.entity ?? counted.entity) == entity && countedBefore(column) == nil
    }
  }

  /// The columns of derived attributes that count the members of a relationship.
  private var countColumns:
    [(column: Column, counted: (relationship: RelationshipDescription, entity: EntityName))]
  {
    destination.tables.flatMap(\.columns).compactMap { column in
      countedRelationship(of: column).map { (column, $0) }
    }
  }

  /// The source's relationship whose members a derived attribute has counted so far, if it goes on to.
  private func countedBefore(
    _ column: Column
  ) -> (relationship: RelationshipDescription, entity: EntityName)? {
    guard case .attribute(let owner, let name) = column.role,
      let new = destination.hierarchy.property(name, of: owner)?.property.attribute,
      let counted = new.countedRelationship,
      let match = inference.correspondence(of: name, in: owner),
      let was = match.property.attribute, was.type.keepsValues(as: new.type),
      let key = was.countedRelationship, keepsPairs(of: counted, in: owner, was: key),
      let declared = source.hierarchy.property(key, of: match.entity),
      let relationship = declared.property.relationship
    else { return nil }
    return (relationship, declared.entity)
  }

  /// Those of some tables of the source in which rows that are no members of a relationship may be counted as
  /// such: what Core Data has counted does not hold where the rows are computed.
  func countedStrays(in tables: Set<String>) -> Set<String> {
    Set(
      countColumns.compactMap { countedBefore($0.column) }.compactMap { counted in
        strayTable(of: counted.relationship, declaredBy: counted.entity)
      }
    ).intersection(tables)
  }

  /// The source's table in which rows that are no members of a to-many relationship may have a value in the
  /// column that says who its members are; nil where there is none.
  func strayTable(of relationship: RelationshipDescription, declaredBy entity: EntityName)
    -> String?
  {
    guard let storage = storage(of: relationship, declaredBy: entity),
      storage.targetColumn == "Z_PK",
      let table = source.table(of: relationship.destinationEntity), table.name == storage.table,
      table.entities.contains(where: {
        rows(ofSource: $0) > 0 && !source.hierarchy.isKind($0, of: relationship.destinationEntity)
      })
    else { return nil }
    return table.name
  }
}
