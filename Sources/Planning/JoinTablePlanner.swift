import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Plans the join tables of many-to-many relationships: carried where only names change,
/// computed where pairs fall away, come from another form of storage, or begin to be ordered.
struct JoinTablePlanner {
  let context: PlanContext

  func plans() -> [JoinTablePlan] { context.destination.joinTables.map(plan(of:)) }

  /// Lowest and highest first key of a planned join table and the number of its pairs.
  func extent(of plan: JoinTablePlan) throws -> (keys: ClosedRange<Int64>?, rows: Int64) {
    var keys: ClosedRange<Int64>?
    var rows: Int64 = 0
    for source in plan.keySources {
      let column = quoted(source.column)
      let row =
        try context.store.connection.rows(
          """
          SELECT min(\(column)), max(\(column)), count(*)
            FROM \(quoted(source.table)) NOT INDEXED
           WHERE typeof(\(column)) = 'integer'
          """
        ).first ?? []
      guard row.count == 3, case .integer(let low) = row[0], case .integer(let high) = row[1],
        case .integer(let count) = row[2]
      else { continue }
      keys = keys.map { min($0.lowerBound, low)...max($0.upperBound, high) } ?? low...high
      rows += count
    }
    return (keys, rows)
  }

  private func plan(of join: JoinTable) -> JoinTablePlan {
    let columns =
      [join.firstColumn, join.secondColumn]
      + [join.firstOrderColumn, join.secondOrderColumn].compactMap { $0 }
    var plan = JoinTablePlan(
      name: join.name, columns: columns, way: .empty, sourceTable: nil, carriedColumns: [],
      sql: nil, ranks: [])
    guard
      let relationship = context.destination.hierarchy.property(join.relationship, of: join.entity)?
        .property.relationship
    else { return plan }
    let pairs = context.pairSet(of: relationship, declaredBy: join.entity)
    guard let first = pairs.parts.first else { return plan }
    if pairs.parts.count == 1, pairs.lists.isEmpty, let carried = carriedColumns(of: join, first) {
      plan.way = .carried
      plan.sourceTable = first.storage.table
      plan.carriedColumns = carried
      plan.keySources = [
        JoinTablePlan.KeySource(table: first.storage.table, column: carried[0])
      ]
      return plan
    }
    plan.way = .computed
    plan.keySources = pairs.parts.map {
      JoinTablePlan.KeySource(table: $0.storage.table, column: $0.storage.ownerColumn)
    }
    compute(&plan, join, pairs)
    return plan
  }

  /// The source's columns in the destination's order, when every row of the source's table goes
  /// over as it is.
  private func carriedColumns(of join: JoinTable, _ part: PairSet.Part) -> [String]? {
    let storage = part.storage
    guard storage.isJoinTable, !join.isReflexive || storage.ownerColumn != storage.targetColumn,
      (join.firstOrderColumn == nil) == (storage.inverseOrderColumn == nil),
      (join.secondOrderColumn == nil) == (storage.orderColumn == nil)
    else { return nil }
    var columns = [storage.ownerColumn, storage.targetColumn]
    if let column = storage.inverseOrderColumn { columns.append(column) }
    if let column = storage.orderColumn { columns.append(column) }
    guard context.store.columns(of: storage.table).map(\.name) == columns,
      context.keepsEveryPair(part), keepsEveryRow(of: storage.ownerTable),
      keepsEveryRow(of: storage.targetTable)
    else { return nil }
    return columns
  }

  /// True when no row of the table is dropped. Those of entities that do not have the relationship
  /// are in no pair, but a damaged store may say so; then the pairs are computed, and these fall
  /// away.
  private func keepsEveryRow(of table: String) -> Bool {
    guard let old = context.source.tables.first(where: { $0.name == table }) else { return false }
    return old.entities.allSatisfy {
      context.rows(ofSource: $0) == 0 || context.successor[$0] != nil
    }
  }

  private func compute(_ plan: inout JoinTablePlan, _ join: JoinTable, _ pairs: PairSet) {
    var listed = ["o", "t"]
    if join.firstOrderColumn != nil {
      listed.append("op")
      if !pairs.placesOwners {
        plan.ranks.append(
          JoinRank(
            place: listed.count - 1, ownerPlace: 1,
            sql:
              "SELECT count(DISTINCT o) FROM (\(pairs.kept { "\($0.target) = ?1 AND \($0.owner) < ?2" }))"
          ))
      }
    }
    if join.secondOrderColumn != nil {
      listed.append("tp")
      if !pairs.placesTargets {
        plan.ranks.append(JoinRank(place: listed.count - 1, ownerPlace: 0, sql: nil))
      }
    }
    plan.sql = """
      SELECT \(listed.joined(separator: ", "))
        FROM (\(pairs.placed { "\($0.owner) BETWEEN ?1 AND ?2" }))
       ORDER BY \(listed.joined(separator: ", "))
      """
  }
}
