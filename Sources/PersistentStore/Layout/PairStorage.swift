import GodwitObjectModel

/// Where a store keeps the pairs of a relationship.
///
/// Names are not quoted. Source: `core-data-sqlite-format.md` §4.3, §4.4, §6, §7.
package struct PairStorage: Sendable, Equatable {
  package var table: String
  /// Keys of the objects that have the relationship; `Z_PK` for a to-one.
  package var ownerColumn: String
  package var targetColumn: String
  /// The target's place in the owner's list.
  package var orderColumn: String?
  /// The owner's place in the target's list, where the inverse is ordered, too.
  package var inverseOrderColumn: String?
  package var ownerTable: String
  package var targetTable: String
  package var isJoinTable: Bool

  /// The same pairs, looked at from the other side.
  package var swapped: PairStorage {
    PairStorage(
      table: table, ownerColumn: targetColumn, targetColumn: ownerColumn,
      orderColumn: inverseOrderColumn, inverseOrderColumn: orderColumn, ownerTable: targetTable,
      targetTable: ownerTable, isJoinTable: isJoinTable)
  }
}

extension StoreLayout {
  /// The storage of a relationship that `declaring` declares; nil where there is none.
  package func pairStorage(
    of relationship: RelationshipDescription, declaredBy declaring: EntityName
  ) -> PairStorage? {
    guard let ownerTable = table(of: declaring)?.name,
      let targetTable = table(of: relationship.destinationEntity)?.name
    else { return nil }
    if let join = join(of: relationship.name, in: declaring) {
      let table = join.table
      let first = PairStorage(
        table: table.name, ownerColumn: table.firstColumn, targetColumn: table.secondColumn,
        orderColumn: table.secondOrderColumn, inverseOrderColumn: table.firstOrderColumn,
        ownerTable: join.isFirst ? ownerTable : targetTable,
        targetTable: join.isFirst ? targetTable : ownerTable, isJoinTable: true)
      return join.isFirst ? first : first.swapped
    }
    if !relationship.isToMany {
      guard let column = column(of: relationship.name, in: declaring) else { return nil }
      return PairStorage(
        table: ownerTable, ownerColumn: "Z_PK", targetColumn: column, orderColumn: nil,
        inverseOrderColumn: orderColumn(of: relationship.name, in: declaring),
        ownerTable: ownerTable, targetTable: targetTable, isJoinTable: false)
    }
    guard let inverse = hierarchy.inverse(of: relationship) else {
      guard let column = ownerColumn(of: relationship.name, in: declaring) else { return nil }
      return PairStorage(
        table: targetTable, ownerColumn: column, targetColumn: "Z_PK", orderColumn: nil,
        inverseOrderColumn: nil, ownerTable: ownerTable, targetTable: targetTable,
        isJoinTable: false)
    }
    guard let column = column(of: inverse.relationship.name, in: inverse.entity) else {
      return nil
    }
    return PairStorage(
      table: targetTable, ownerColumn: column, targetColumn: "Z_PK",
      orderColumn: orderColumn(of: inverse.relationship.name, in: inverse.entity),
      inverseOrderColumn: nil, ownerTable: ownerTable, targetTable: targetTable,
      isJoinTable: false)
  }
}
