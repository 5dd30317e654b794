import GodwitObjectModel
import GodwitPersistentStore

extension PlanContext {
  /// The relationship whose objects a derived attribute's column counts, and who declares it.
  ///
  /// Such a column is filled like those of relationships, once all of them are known.
  /// Source: `core-data-sqlite-format.md` §8.1.
  func countedRelationship(of column: Column) -> (
    relationship: RelationshipDescription, entity: EntityName
  )? {
    guard case .attribute(let entity, let name) = column.role,
      let key = destination.hierarchy.property(name, of: entity)?.property.attribute?
        .countedRelationship,
      let declared = destination.hierarchy.property(key, of: entity),
      declared.property.isStored,
      let relationship = declared.property.relationship, relationship.isToMany
    else { return nil }
    return (relationship, declared.entity)
  }

  /// The columns that the copy stage of a mapped migration fills.
  func copiedColumns(of table: EntityTable) -> [Column] {
    table.columns.filter { isCopied($0) }
  }

  func isCopied(_ column: Column) -> Bool {
    column.isAttribute && countedRelationship(of: column) == nil
  }

  /// The to-one relationship at the other end of one that is counted, whose column must have a
  /// group; nil for a join table, and where the column lies with the targets alone.
  func isCounted(_ relationship: String, declaredBy entity: EntityName) -> Bool {
    destination.tables.contains { table in
      table.columns.contains { column in
        guard let counted = countedRelationship(of: column) else { return false }
        guard let inverse = destination.hierarchy.inverse(of: counted.relationship) else {
          return counted.relationship.name == relationship && counted.entity == entity
        }
        return inverse.relationship.name == relationship && inverse.entity == entity
      }
    }
  }
}
