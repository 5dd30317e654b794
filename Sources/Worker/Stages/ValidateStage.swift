import GodwitCheckpoints
import GodwitDigests
import GodwitPages
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The third stage: the destination model's rules on every row, and the digest of every row.
///
/// Rows that are computed are written here, finished.
final class ValidateStage {
  private let isComputed: Bool
  private let judge: RowDigester
  private let isMapped: [Bool]
  private let merge: RowMerge
  private let finisher: RowFinisher?
  private let row: RowValues
  private var record = RawBuffer(capacity: 64)

  init(_ table: TablePlan, _ context: ShardContext) throws {
    isComputed = table.way == .computed
    judge = RowDigester(table, judges: true)
    isMapped = table.entities.map { $0.destinationNumber != 0 }
    merge = RowMerge(table)
    finisher = isComputed ? try context.covered(table).map(RowFinisher.init) : nil
    let rest =
      isComputed ? table.columns : table.way == .removed ? table.copyColumns : table.carriedColumns
    row = RowValues(count: 3 + rest.count)
  }

  func run(_ rows: SourceRows, _ piece: borrowing RowPiece, to writer: CheckpointWriter) throws {
    for number in 0..<rows.count {
      let source = rows.row(number)
      guard isComputed else {
        judge.add(source, count: row.count)
        continue
      }
      let index = Int(piece.programs[number])
      guard index >= 0, isMapped[index] else { continue }
      merge.fill(
        row.values, key: source[0].bits,
        attributes: piece.attributes + number &* piece.attributeCount,
        relationships: piece.relationships + number &* piece.relationshipCount)
      judge.add(row.values, count: row.count)
      if let finisher {
        try writer.append(
          channel: 0, key: source[0].bits, finisher.record(of: row.values))
      } else {
        // A table that takes SQLite to write it: the row's values as they are.
        record.removeAll()
        RecordFormat.encode(row.values + 1, count: row.count - 1, into: &record)
        try writer.append(channel: 0, key: source[0].bits, record.bytes)
      }
    }
  }

  var summary: ShardSummary { judge.summary }
}

/// Validate where it waits for other shards: the objects of entity mappings.
struct MappedValidateStage {
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
    case .joinTable(let index):
      summary = try MappedValidation(context: context).pairs(of: index, shard.keys, to: writer)
    case .foreignTable(let index):
      summary = try PairPass(context: context).digest(
        context.plan.foreignTables[index], shard.keys)
    case .table:
      throw StageError.outOfOrder("a validation of a table beside entity mappings")
    }
    try writer.finish(summary)
    return summary
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
    let job = context.plan.audits[number]
    let isSound =
      try job.reference.map {
        try ReferenceScan.isSound($0, context.targets, in: context.source)
      } ?? false
    let summary = ShardSummary(
      findings: isSound ? [] : try StoreSoundness.run(job, on: context.source))
    try writer.finish(summary)
    return summary
  }
}

extension ForeignTablePlan {
  /// Restricts a query to the keys of one shard.
  var rowIDCondition: String {
    rowIDName.map { " WHERE \(quoted($0)) BETWEEN ?1 AND ?2" } ?? ""
  }
}
