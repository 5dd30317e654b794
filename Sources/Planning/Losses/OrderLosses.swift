import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

// Places in lists.
extension LossCounter {
  /// Ordered relationships whose pairs stay and whose order has no column on the way: the places of
  /// their members. A pair that goes is a loss by itself.
  func orderLosses() throws -> [Loss] {
    var losses: [Loss] = []
    for entity in source.order {
      for property in source[entity]?.properties ?? [] where property.isStored {
        guard let relationship = property.relationship, relationship.isOrdered,
          let storage = layout.pairStorage(of: relationship, declaredBy: entity)
        else { continue }
        let pairs = unordered(relationship, of: entity)
        guard !pairs.isEmpty else { continue }
        let count = try places(in: storage, of: pairs)
        guard count > 0 else { continue }
        losses.append(
          Loss(
            .order, entity: entity.rawValue, property: relationship.name, count: count,
            message: "The order of \(entity).\(relationship.name) is not kept: the "
              + "\(count == 1 ? "place" : "places") of \(Loss.number(count, "member")) "
              + "\(count == 1 ? "is" : "are") dropped."))
      }
    }
    return losses
  }

  /// `Z_ENT` of owners and targets, as `[owner, target]`, that stay a pair without an order.
  private func unordered(
    _ relationship: RelationshipDescription, of entity: EntityName
  ) -> Set<[Int64]> {
    let inverse = source.inverse(of: relationship)?.relationship.name
    var pairs: Set<[Int64]> = []
    for owner in source.concrete(of: entity) where hasRows(owner) {
      for target in source.concrete(of: relationship.destinationEntity) where hasRows(target) {
        let isLost = successors.losesPlace(
          in: relationship.name, from: owner, to: target, inverse: inverse)
        if isLost { pairs.insert([number(owner), number(target)]) }
      }
    }
    return pairs
  }

  /// How many of the pairs have a place in the owner's list.
  private func places(in storage: PairStorage, of pairs: Set<[Int64]>) throws -> Int64 {
    guard let order = storage.orderColumn, let joined = self.pairs(in: storage, with: order) else {
      return 0
    }
    let rows = try store.connection.rows(
      """
      SELECT x.Z_ENT, y.Z_ENT, count(*)
        FROM \(joined)
       WHERE r.\(quoted(order)) IS NOT NULL
       GROUP BY x.Z_ENT, y.Z_ENT
      """)
    return rows.reduce(Int64(0)) { sum, row in
      guard let owner = row[0].integer, let target = row[1].integer,
        pairs.contains([owner, target])
      else { return sum }
      return sum + (row[2].integer ?? 0)
    }
  }
}
