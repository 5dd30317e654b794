import GodwitCheckpoints
import GodwitDigests
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The third stage: the destination model's rules on every row, and the digest of every row.
///
/// Computed rows are read from the checkpoints of copy and link, carried ones from the source.
struct ValidateStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    let shard = try context.shard(unit)
    let writer = try context.writer(.validate, unit)
    let summary: ShardSummary
    switch shard.subject {
    case .mapping(let index):
      let mapping = try context.mapped.mapping(index)
      summary =
        mapping.policy == nil
        ? try MappedValidation(context: context).rows(of: index, unit, to: writer)
        : try PolicyValidation(context: context).rows(of: mapping, unit, to: writer)
    case .inserted(let table):
      summary = try PolicyValidation(context: context).inserted(table, to: writer)
    case .joinTable(let index) where context.plan.mapped != nil:
      summary = try MappedValidation(context: context).pairs(of: index, shard.keys, to: writer)
    case .table(let index):
      let table = context.plan.tables[index]
      summary =
        table.way == .computed
        ? try computedRows(of: table, unit) : try sourceRows(of: table, shard.keys)
    case .joinTable(let index):
      let join = context.plan.joinTables[index]
      summary =
        join.way == .computed ? try computedPairs(of: join, unit) : try digest(join, shard.keys)
    case .foreignTable(let index):
      summary = try digest(context.plan.foreignTables[index], shard.keys)
    }
    try writer.finish(summary: summary.encoded())
    return summary
  }

  // MARK: Rows

  private func computedRows(of table: TablePlan, _ unit: Int) throws -> ShardSummary {
    let copied = try context.reader(.copy, unit)
    let linked = table.relationshipPlaces.isEmpty ? nil : try context.reader(.link, unit)
    let judge = RowDigester(table, judges: true)
    let row = RowValues(count: 3 + table.columns.count)
    let attributes = RowValues(count: 2 + table.attributePlaces.count)
    let relationships = RowValues(count: table.relationshipPlaces.count)
    let merge = RowMerge(table)
    while let entry = try copied.next() {
      guard entry.channel == 0 else { continue }
      guard
        RecordFormat.decode(
          record: entry.payload, into: attributes.values, count: attributes.count)
      else { throw mismatch(table, unit, "a row's record is malformed") }
      if let linked {
        guard let link = try linked.next(), link.channel == 0, link.key == entry.key,
          RecordFormat.decode(
            record: link.payload, into: relationships.values, count: relationships.count)
        else { throw mismatch(table, unit, "row \(entry.key) was copied and not linked") }
      }
      merge.fill(
        row.values, key: entry.key, attributes: attributes.values,
        relationships: relationships.values)
      judge.add(row.values, count: row.count)
    }
    return judge.summary
  }

  private func sourceRows(of table: TablePlan, _ keys: ClosedRange<Int64>) throws -> ShardSummary {
    let judge = RowDigester(table, judges: true)
    let columns = table.way == .removed ? table.copyColumns : table.carriedColumns
    try judge.addRows(of: table.sourceTable ?? table.name, columns: columns, keys, context.source)
    return judge.summary
  }

  private func mismatch(_ table: TablePlan, _ unit: Int, _ what: String) -> StageError {
    .checkpointMismatch(table: table.name, unit: unit, what: what)
  }

  // MARK: Pairs and foreign rows

  private func computedPairs(of join: JoinTablePlan, _ unit: Int) throws -> ShardSummary {
    let reader = try context.reader(.link, unit)
    var digest = RowSetDigest()
    var summary = ShardSummary()
    while let entry = try reader.next() {
      guard entry.channel == 0 else { continue }
      digest.add(entry.payload)
      summary.rows += 1
      summary.bytes += Int64(entry.payload.count)
    }
    summary.digests[0] = digest
    return summary
  }

  private func digest(_ join: JoinTablePlan, _ keys: ClosedRange<Int64>) throws -> ShardSummary {
    let key = quoted(join.carriedColumns.first ?? "")
    return try RowDigester.digest(
      """
      SELECT \(join.carriedColumns.map(quoted).joined(separator: ", "))
        FROM \(quoted(join.sourceTable ?? join.name))
       WHERE \(key) BETWEEN ?1 AND ?2
      """, keys, context.source)
  }

  private func digest(_ table: ForeignTablePlan, _ keys: ClosedRange<Int64>) throws -> ShardSummary
  {
    try RowDigester.digest(
      """
      SELECT \(table.expressions.joined(separator: ", "))
        FROM \(quoted(table.name))
      \(table.rowIDCondition)
      """, table.rowIDName == nil ? nil : keys, context.source)
  }
}

/// Checks that go across the rows of the source, each a piece of SQL.
struct AuditStage {
  let context: ShardContext

  func run(_ number: Int) throws -> ShardSummary {
    guard context.plan.audits.indices.contains(number) else {
      throw StageError.outOfOrder("audit \(number) of \(context.plan.audits.count)")
    }
    let writer = try context.writer(.audit, number)
    let summary = ShardSummary(
      findings: try StoreSoundness.run(context.plan.audits[number], on: context.source))
    try writer.finish(summary: summary.encoded())
    return summary
  }
}

extension ForeignTablePlan {
  /// Restricts a query to the keys of one shard.
  fileprivate var rowIDCondition: String {
    rowIDName.map { " WHERE \(quoted($0)) BETWEEN ?1 AND ?2" } ?? ""
  }
}
