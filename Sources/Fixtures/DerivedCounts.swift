import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Fills in derived attributes that count a to-many relationship, where their type is that of a number. Other
/// derived attributes stay NULL, as in a row that was never saved again.
///
/// Source: `core-data-sqlite-format.md` §8.1.
struct DerivedCounts {
  private let layout: StoreLayout

  init(_ layout: StoreLayout) { self.layout = layout }

  /// - Throws: ``FixtureError/tooManyMembers(property:relationship:most:)``.
  func update(_ connection: Connection) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let entity, let name) = column.role,
          let attribute = layout.hierarchy.property(name, of: entity)?.property.attribute,
          let relationship = attribute.countedRelationship,
          let members = members(of: relationship, entity)
        else { continue }
        let (own, value) = (
          StoreLayout.identifier(table.name), StoreLayout.identifier(column.name)
        )
        let numbers = layout.hierarchy.subtree(of: entity)
          .compactMap { layout.entityNumbers[$0] }.map(String.init).joined(separator: ", ")
        try connection.execute(
          """
          UPDATE \(own)
             SET \(value) =
                 (SELECT count(*) FROM \(members.table) m
                   WHERE m.\(members.owner) = \(own).Z_PK)
           WHERE Z_ENT IN (\(numbers))
          """)
        guard let most = attribute.type.highestCount else { continue }
        let highest = try connection.rows(
          "SELECT max(\(value)) FROM \(own) WHERE Z_ENT IN (\(numbers))")
        if let count = highest.first?.first?.integer, count > most {
          throw FixtureError.tooManyMembers(
            property: "\(entity).\(name)", relationship: relationship, most: most)
        }
      }
    }
  }

  private func members(
    of name: String, _ entity: EntityName
  ) -> (table: String, owner: String)? {
    guard let declared = layout.hierarchy.property(name, of: entity),
      let relationship = declared.property.relationship, relationship.isToMany
    else { return nil }
    if let join = layout.join(of: name, in: declared.entity) {
      let column = join.isFirst ? join.table.firstColumn : join.table.secondColumn
      return (StoreLayout.identifier(join.table.name), StoreLayout.identifier(column))
    }
    guard let table = layout.table(of: relationship.destinationEntity) else { return nil }
    let column: String? =
      if let inverse = layout.hierarchy.inverse(of: relationship) {
        layout.column(of: inverse.relationship.name, in: inverse.entity)
      } else {
        layout.ownerColumn(of: name, in: declared.entity)
      }
    return column.map { (StoreLayout.identifier(table.name), StoreLayout.identifier($0)) }
  }
}
