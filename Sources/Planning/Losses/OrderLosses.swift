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
        let pairs = questions.unordered(relationship, declaredBy: entity)
        guard !pairs.isEmpty else { continue }
        let count = try places(
          in: storage, of: Set(pairs.map { [number($0.owner), number($0.target)] }))
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

  /// How many of the pairs have a place in the owner's list.
  ///
  /// - Parameter pairs: `Z_ENT` of owners and targets, as `[owner, target]`.
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
