import GodwitCheckpoints
import GodwitDigests
import GodwitPlanning
import GodwitSQLite

/// Link and validate of one shard of a join table, and the digests of tables that are carried as
/// they are.
struct PairPass {
  let context: ShardContext

  func run(_ join: JoinTablePlan, _ keys: ClosedRange<Int64>, _ unit: Int) throws -> ShardSummary {
    let writer = try context.writer(.rows, unit)
    let summary =
      join.way == .computed ? try link(join, keys, to: writer) : try digest(join, keys)
    try writer.finish(summary)
    return summary
  }

  private func link(
    _ join: JoinTablePlan, _ keys: ClosedRange<Int64>, to writer: CheckpointWriter
  ) throws -> ShardSummary {
    guard let sql = join.sql else { throw StageError.outOfOrder("links of \(join.name)") }
    let output = PairOutput(writer)
    let statement = try context.source.prepare(sql)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    let columns = Int32(join.columns.count)
    let row = RowValues(count: Int(columns))
    var counters = try join.ranks.map { rank in
      (rank, try rank.sql.map(context.source.prepare), [Int64: Int64]())
    }
    var (last, lastTarget) = (Int64.min, Int64.min)
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let (first, second) = (row.values[0].bits, row.values[1].bits)
      // Two source relationships may give one pair twice; a set holds it once.
      if output.rowCount > 0, first == last, second == lastTarget { continue }
      for index in counters.indices {
        let (rank, count, _) = counters[index]
        let owner = row.values[rank.ownerPlace].bits
        let place: Int64
        if let known = counters[index].2[owner] {
          place = known + 1
        } else if let count {
          try count.bind(1, owner)
          try count.bind(2, first)
          place = try count.step() ? count.int64(0) : 0
          count.reset()
        } else {
          // The owner is the first key: its members never lie in two shards.
          counters[index].2.removeAll(keepingCapacity: true)
          place = 0
        }
        counters[index].2[owner] = place
        row.values[rank.place] = .integer(OrderPlace.value(at: place))
      }
      (last, lastTarget) = (first, second)
      try output.add(row)
    }
    var summary = output.summary
    summary.linked = StageShare(rows: summary.rows, findings: [])
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

  func digest(_ table: ForeignTablePlan, _ keys: ClosedRange<Int64>) throws -> ShardSummary {
    try RowDigester.digest(
      """
      SELECT \(table.expressions.joined(separator: ", "))
        FROM \(quoted(table.name)) NOT INDEXED
      \(table.rowIDCondition)
      """, table.rowIDName == nil ? nil : keys, context.source)
  }
}

/// Writes the pairs of one shard, and sums up their digest.
final class PairOutput {
  private let writer: CheckpointWriter
  private var record = RawBuffer(capacity: 256)
  private var digest = RowSetDigest()
  private var byteCount: Int64 = 0
  private(set) var rowCount: Int64 = 0

  init(_ writer: CheckpointWriter) { self.writer = writer }

  /// The key of a pair is its number.
  func add(_ row: borrowing RowValues) throws {
    record.removeAll()
    RecordFormat.encode(row.values, count: row.count, into: &record)
    try writer.append(channel: 0, key: rowCount, record.bytes)
    digest.add(row.values, count: row.count)
    rowCount += 1
    byteCount += Int64(record.count)
  }

  var summary: ShardSummary {
    ShardSummary(rows: rowCount, digests: [0: digest], bytes: byteCount)
  }
}
