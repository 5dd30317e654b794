import GodwitObjectModel
import GodwitSQLite

/// What references in one column of a table must keep, as a look at each row by itself can show it:
/// each leads to a row, and to one of an allowed entity.
package struct ReferenceRule: Codable, Sendable, Equatable {
  package let table: String
  package let column: String
  /// The table that the keys are of.
  package let target: String
  /// `Z_ENT` of the rows that have the reference; nil for all rows of the table.
  package var entities: [Int64]?
  /// `Z_ENT` of the rows that may be referred to.
  package let allowed: [Int64]
  /// Holds the target's `Z_ENT`, or NULL where there is no target.
  package var entityColumn: String?
  /// An integer where there is a target.
  package var orderColumn: String?
  /// Whether the key may be NULL.
  package var isOptional = true

  /// What rows that keep the rule are free of.
  static let proves: Set<StoreFinding.Kind> = [
    .type, .dangling, .targetEntity, .entityColumn, .order,
  ]

  /// For SQL: the rows in question as `a`, and the row that each refers to as `b`.
  var source: String {
    let rows = entities.map { entities in
      "(SELECT * FROM \(quoted(table)) WHERE Z_ENT IN (\(Self.list(entities))))"
    }
    return "\(rows ?? quoted(table)) AS a "
      + "LEFT JOIN \(quoted(target)) AS b ON b.Z_PK = a.\(quoted(column))"
  }

  /// For SQL.
  var isNotAllowed: String { "b.Z_PK IS NOT NULL AND b.Z_ENT NOT IN (\(Self.list(allowed)))" }

  private static func list(_ numbers: [Int64]) -> String {
    numbers.isEmpty ? "NULL" : numbers.map { String($0) }.joined(separator: ", ")
  }
}

extension RowQuestions {
  func toOneRule(_ relationship: RelationshipDescription, of entity: EntityName) -> ReferenceRule? {
    guard let table = binding.table(of: entity),
      let column = binding.column(of: relationship.name, in: entity),
      let other = binding.table(of: relationship.destinationEntity)
    else { return nil }
    return ReferenceRule(
      table: table.name, column: column, target: other.name,
      entities: numbers(below: entity), allowed: numbers(below: relationship.destinationEntity),
      entityColumn: binding.entityColumn(of: relationship.name, in: entity),
      orderColumn: binding.orderColumn(of: relationship.name, in: entity))
  }

  /// For the members of a to-many relationship without inverse.
  func ownerRule(_ relationship: RelationshipDescription, of entity: EntityName) -> ReferenceRule? {
    guard let column = binding.layout.ownerColumn(of: relationship.name, in: entity),
      let table = binding.table(of: relationship.destinationEntity),
      let owner = binding.table(of: entity), binding.has(column, in: table.name)
    else { return nil }
    return ReferenceRule(
      table: table.name, column: column, target: owner.name, allowed: numbers(below: entity))
  }

  func pairRule(_ join: JoinTable, _ column: String, of entity: EntityName) -> ReferenceRule? {
    guard let table = binding.table(of: entity) else { return nil }
    return ReferenceRule(
      table: join.name, column: column, target: table.name, allowed: numbers(below: entity),
      isOptional: false)
  }

  private func numbers(below entity: EntityName) -> [Int64] {
    binding.hierarchy.subtree(of: entity).map(binding.number)
  }
}
