import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Fills in derived attributes that count a to-many relationship. Other derived attributes stay
/// NULL, as in a row that was never saved again.
///
/// Source: `core-data-sqlite-format.md` §8.1.
struct DerivedCounts {
  private let layout: StoreLayout

  init(_ layout: StoreLayout) { self.layout = layout }

  func update(_ connection: Connection) throws {
    for table in layout.tables {
      for column in table.columns {
        guard case .attribute(let entity, let name) = column.role,
          let expression = layout.hierarchy.property(name, of: entity)?.property.attribute?
            .derivationExpression,
          let relationship = Self.counted(expression),
          let members = members(of: relationship, entity)
        else { continue }
        let numbers = layout.hierarchy.subtree(of: entity)
          .compactMap { layout.entityNumbers[$0] }.map(String.init).joined(separator: ", ")
        try connection.execute(
          """
          UPDATE \(StoreLayout.identifier(table.name))
             SET \(StoreLayout.identifier(column.name)) =
                 (SELECT count(*) FROM \(members.table) m
                   WHERE m.\(members.owner) = \(StoreLayout.identifier(table.name)).Z_PK)
           WHERE Z_ENT IN (\(numbers))
          """)
      }
    }
  }

  /// `count:(pages)` or `pages.@count` → `pages`.
  static func counted(_ expression: String) -> String? {
    expression.after("count:(")?.before(")") ?? expression.before(".@count")
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
