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
    guard let source = plan.keySource else { return (nil, 0) }
    let column = quoted(source.column)
    let row =
      try context.store.connection.rows(
        "SELECT min(\(column)), max(\(column)), count(*) FROM \(quoted(source.table)) WHERE typeof(\(column)) = 'integer'"
      ).first ?? []
    guard row.count == 3, case .integer(let low) = row[0], case .integer(let high) = row[1],
      case .integer(let count) = row[2]
    else { return (nil, 0) }
    return (low...high, count)
  }

  private func plan(of join: JoinTable) -> JoinTablePlan {
    let columns =
      [join.firstColumn, join.secondColumn]
      + [join.firstOrderColumn, join.secondOrderColumn].compactMap { $0 }
    var plan = JoinTablePlan(
      name: join.name, columns: columns, way: .empty, sourceTable: nil, carriedColumns: [],
      sql: nil, ranks: [], keySource: nil)
    guard
      let relationship = context.destination.hierarchy.property(join.relationship, of: join.entity)?
        .property.relationship,
      let pairs = context.pairs(of: relationship, declaredBy: join.entity)
    else { return plan }
    let storage = pairs.storage
    if let carried = carriedColumns(of: join, storage, pairs.owners, pairs.targets) {
      plan.way = .carried
      plan.sourceTable = storage.table
      plan.carriedColumns = carried
      plan.keySource = JoinTablePlan.KeySource(table: storage.table, column: carried[0])
      return plan
    }
    plan.way = .computed
    plan.keySource = JoinTablePlan.KeySource(table: storage.table, column: storage.ownerColumn)
    compute(
      &plan, join, storage, owners: pairs.owners,
      targets: pairs.targets.keys.sorted().map(Int64.init))
    return plan
  }

  /// The source's columns in the destination's order, when every row of the source's table goes
  /// over as it is.
  private func carriedColumns(
    of join: JoinTable, _ storage: PairStorage, _ owners: [Int64], _ targets: [Int: Int64]
  ) -> [String]? {
    guard storage.isJoinTable, !join.isReflexive || storage.ownerColumn != storage.targetColumn,
      (join.firstOrderColumn == nil) == (storage.inverseOrderColumn == nil),
      (join.secondOrderColumn == nil) == (storage.orderColumn == nil)
    else { return nil }
    var columns = [storage.ownerColumn, storage.targetColumn]
    if let column = storage.inverseOrderColumn { columns.append(column) }
    if let column = storage.orderColumn { columns.append(column) }
    guard context.store.columns(of: storage.table).map(\.name) == columns,
      keepsEveryRow(of: storage.ownerTable, owners),
      keepsEveryRow(of: storage.targetTable, targets.keys.sorted().map(Int64.init))
    else { return nil }
    return columns
  }

  /// True when no row of the table belongs to an entity outside of `numbers`.
  ///
  /// Rows of other entities of the same tree are not in this relationship, but a damaged store may
  /// say so; then the pairs are computed, and these fall away.
  private func keepsEveryRow(of table: String, _ numbers: [Int64]) -> Bool {
    guard let old = context.source.tables.first(where: { $0.name == table }) else { return false }
    return old.entities.allSatisfy {
      numbers.contains(context.sourceNumber($0)) || context.rows(ofSource: $0) == 0
        || context.successor[$0] != nil
    }
  }

  private func compute(
    _ plan: inout JoinTablePlan, _ join: JoinTable, _ storage: PairStorage, owners: [Int64],
    targets: [Int64]
  ) {
    let owner = "r." + quoted(storage.ownerColumn)
    let target = "r." + quoted(storage.targetColumn)
    let from = """
        FROM \(quoted(storage.table)) AS r
        JOIN \(quoted(storage.ownerTable)) AS x ON x.Z_PK = \(owner)
        JOIN \(quoted(storage.targetTable)) AS y ON y.Z_PK = \(target)
       WHERE x.Z_ENT IN (\(owners.map(String.init).joined(separator: ", ")))
         AND y.Z_ENT IN (\(targets.map(String.init).joined(separator: ", ")))
      """
    var listed = [owner, target]
    if join.firstOrderColumn != nil {
      listed.append(storage.inverseOrderColumn.map { "r." + quoted($0) } ?? "NULL")
      if storage.inverseOrderColumn == nil {
        plan.ranks.append(
          JoinRank(
            place: listed.count - 1, ownerPlace: 1,
            sql: "SELECT count(*)\n\(from)\n   AND \(target) = ?1 AND \(owner) < ?2"))
      }
    }
    if join.secondOrderColumn != nil {
      listed.append(storage.orderColumn.map { "r." + quoted($0) } ?? "NULL")
      if storage.orderColumn == nil {
        plan.ranks.append(JoinRank(place: listed.count - 1, ownerPlace: 0, sql: nil))
      }
    }
    plan.sql = """
      SELECT \(listed.joined(separator: ", "))
      \(from)
         AND \(owner) BETWEEN ?1 AND ?2
       ORDER BY \(owner), \(target)
      """
  }
}
