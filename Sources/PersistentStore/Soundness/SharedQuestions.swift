import GodwitObjectModel
import GodwitSQLite

extension RowQuestions {
  // MARK: Uniqueness

  /// Values of a constraint that more than one object has. NULL is equal to nothing.
  func uniqueness(of entity: EntityName) -> [Question] {
    guard let table = binding.table(of: entity) else { return [] }
    let numbers = binding.numbers(of: binding.hierarchy.subtree(of: entity))
    return (binding.hierarchy[entity]?.uniquenessConstraints ?? []).compactMap { names in
      let columns = names.compactMap { binding.column(of: $0, in: entity) }.map(quoted)
      guard columns.count == names.count, !columns.isEmpty else { return nil }
      let listed = columns.joined(separator: ", ")
      return Question(
        kind: .unique, entity: entity.rawValue, property: names.joined(separator: ", "),
        message: "has values that more than one object has",
        form: .groups(
          source: """
            SELECT 1
              FROM \(quoted(table.name))
             WHERE Z_ENT IN (\(numbers)) AND \(columns.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
             GROUP BY \(listed)
            HAVING count(*) > 1
            """))
    }
  }

  // MARK: Derived attributes

  /// Only the number of members of a to-many can be computed again.
  func derived(of entity: EntityName) -> [Question] {
    guard let table = binding.table(of: entity) else { return [] }
    return (binding.hierarchy[entity]?.properties ?? []).compactMap { property in
      guard property.isStored, let attribute = property.attribute,
        let column = binding.column(of: attribute.name, in: entity),
        let name = attribute.countedRelationship,
        let declared = binding.hierarchy.property(name, of: entity),
        let relationship = declared.property.relationship, relationship.isToMany,
        let members = members(of: relationship, declaredBy: declared.entity)
      else { return nil }
      let own = binding.numbers(of: binding.hierarchy.subtree(of: entity))
      return Question(
        kind: .derived, entity: entity.rawValue, property: attribute.name,
        message: "is not the number of \(relationship.name)",
        form: .rows(
          source: """
            (SELECT * FROM \(quoted(table.name)) WHERE Z_ENT IN (\(own))) AS a
            LEFT JOIN (SELECT \(members.owner) AS owner, count(*) AS n
                         FROM \(members.source)
                        GROUP BY \(members.owner)) AS c ON c.owner = a.Z_PK
            """,
          condition: "a.\(quoted(column)) IS NOT ifnull(c.n, 0)"
            + living(relationship, of: declared.entity, insteadOf: "a.\(quoted(column))"),
          key: "a.Z_PK"))
    }
  }

  /// A pair with an object that is gone is a finding of its own: whether Core Data counts it depends on when
  /// it counted, and either number is taken.
  private func living(
    _ relationship: RelationshipDescription, of entity: EntityName, insteadOf value: String
  ) -> String {
    guard let found = binding.join(of: relationship.name, in: entity),
      let target = binding.table(of: relationship.destinationEntity)
    else { return "" }
    let (first, second) = (quoted(found.table.firstColumn), quoted(found.table.secondColumn))
    let (owner, other) = found.isFirst ? (first, second) : (second, first)
    return """
       AND \(value) IS NOT (SELECT count(*) FROM \(quoted(found.table.name)) AS j
                              JOIN \(quoted(target.name)) AS m ON m.Z_PK = j.\(other)
                             WHERE j.\(owner) = a.Z_PK)
      """
  }

  // MARK: Members of to-many relationships

  /// Where a to-many relationship has one row for each member, and the column with the owner's key.
  func members(of relationship: RelationshipDescription, declaredBy entity: EntityName) -> (
    owner: String, source: String
  )? {
    if let found = binding.join(of: relationship.name, in: entity) {
      let join = found.table
      return (quoted(found.isFirst ? join.firstColumn : join.secondColumn), quoted(join.name))
    }
    let column: String?
    let table: EntityTable?
    if let inverse = binding.hierarchy.inverse(of: relationship) {
      guard !inverse.relationship.isToMany else { return nil }
      column = binding.column(of: inverse.relationship.name, in: inverse.entity)
      table = binding.table(of: inverse.entity)
    } else {
      column = binding.layout.ownerColumn(of: relationship.name, in: entity)
      table = binding.table(of: relationship.destinationEntity)
    }
    guard let column, let table, binding.has(column, in: table.name) else { return nil }
    let name = quoted(column)
    return (name, "(SELECT \(name) FROM \(quoted(table.name)) WHERE \(name) IS NOT NULL)")
  }
}
