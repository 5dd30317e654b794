import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

// Places in lists.
extension LossCounter {
  /// Relationships that are ordered and become sets on the way: the places of their members.
  func orderLosses() throws -> [Loss] {
    var losses: [Loss] = []
    for entity in source.order {
      for property in source[entity]?.properties ?? [] where property.isStored {
        guard let relationship = property.relationship, relationship.isOrdered,
          let path = successors.path(of: relationship.name, in: entity),
          path.contains(where: { $0.relationship.map { !$0.isOrdered } ?? false }),
          let storage = layout.pairStorage(of: relationship, declaredBy: entity),
          let order = storage.orderColumn, !store.columns(of: storage.table).isEmpty
        else { continue }
        let count =
          try store.connection.rows(
            "SELECT count(*) FROM \(quoted(storage.table)) WHERE \(quoted(order)) IS NOT NULL "
              + "AND \(quoted(storage.ownerColumn)) IS NOT NULL"
          )[0][0].integer ?? 0
        guard count > 0 else { continue }
        losses.append(
          Loss(
            .order, entity: entity.rawValue, property: relationship.name, count: count,
            message: "\(entity).\(relationship.name) is no longer ordered: the "
              + "\(count == 1 ? "place" : "places") of \(Loss.number(count, "member")) "
              + "\(count == 1 ? "is" : "are") dropped."))
      }
    }
    return losses
  }
}
