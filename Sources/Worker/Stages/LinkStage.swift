import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The second stage: relationship columns of one shard's rows, or the pairs of a join table.
///
/// Keys are kept, so a to-one column is its source column; what this stage adds is the look at
/// the target: whether it exists, what entity it is, and what number that entity has now.
struct LinkStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    let shard = try context.shard(unit)
    let writer = try context.writer(.link, unit)
    var summary = ShardSummary()
    switch shard.subject {
    case .table(let index):
      try linkRows(of: context.plan.tables[index], shard.keys, to: writer, &summary)
    case .joinTable(let index):
      try linkPairs(of: context.plan.joinTables[index], shard.keys, to: writer, &summary)
    case .mapping(let index):
      summary = try MappedLinkStage(context: context).run(index, unit, to: writer)
    case .foreignTable, .inserted:
      throw StageError.outOfOrder("links of a foreign table")
    }
    try writer.finish(summary: summary.encoded())
    return summary
  }

  // MARK: Entity tables

  private func linkRows(
    of table: TablePlan, _ keys: ClosedRange<Int64>, to writer: CheckpointWriter,
    _ summary: inout ShardSummary
  ) throws {
    let names = table.linkColumns.map(quoted)
    let statement = try context.source.prepare(
      """
      SELECT \((["Z_PK", "Z_ENT"] + names).joined(separator: ", "))
        FROM \(quoted(table.sourceTable ?? table.name))
       WHERE Z_PK BETWEEN ?1 AND ?2
       ORDER BY Z_PK
      """)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    let programs = ProgramTable(table)
    let finder = context.targets
    let entities = try table.entities.map { try EntityLinks($0, finder: finder) }
    let queries = try table.pairQueries.map { try PairCursor($0, context.source, keys) }
    let ranks = try RankCounter(context.source, programs: table.entities, from: keys.lowerBound)
    let isWritten = table.way == .computed && !table.relationshipPlaces.isEmpty
    let columns = Int32(statement.columnCount)
    let row = RowValues(count: Int(columns))
    let output = RowValues(count: table.relationshipPlaces.count)
    var record = RawBuffer(capacity: 4 << 10)
    var tally = FindingTally()
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let index = programs.program(for: row.values[1])
      guard index >= 0 else { continue }
      let links = entities[Int(index)]
      let key = row.values[0].bits
      try links.look(at: row.values + 2, primaryKey: key, finder: finder, into: &tally)
      summary.rows += 1
      guard isWritten, links.isMapped else { continue }
      for query in queries { try query.advance(to: key) }
      try links.fill(
        output.values, from: row.values + 2, primaryKey: key, queries: queries, ranks: ranks,
        program: Int(index))
      record.removeAll()
      RecordFormat.encode(output.values, count: output.count, into: &record)
      try writer.append(channel: 0, key: key, record.bytes)
      summary.bytes += Int64(record.count)
    }
    summary.findings = tally.sorted
  }

  // MARK: Join tables

  private func linkPairs(
    of join: JoinTablePlan, _ keys: ClosedRange<Int64>, to writer: CheckpointWriter,
    _ summary: inout ShardSummary
  ) throws {
    guard let sql = join.sql else { throw StageError.outOfOrder("links of \(join.name)") }
    let statement = try context.source.prepare(sql)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    let columns = Int32(join.columns.count)
    let row = RowValues(count: Int(columns))
    var record = RawBuffer(capacity: 256)
    var counters = try join.ranks.map { rank in
      (rank, try rank.sql.map(context.source.prepare), [Int64: Int64]())
    }
    var (last, lastTarget) = (Int64.min, Int64.min)
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let (first, second) = (row.values[0].bits, row.values[1].bits)
      // Two source relationships may give one pair twice; a set holds it once.
      if summary.rows > 0, first == last, second == lastTarget { continue }
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
      record.removeAll()
      RecordFormat.encode(row.values, count: row.count, into: &record)
      try writer.append(channel: 0, key: summary.rows, record.bytes)
      summary.rows += 1
      summary.bytes += Int64(record.count)
    }
  }
}

/// Places in an ordered relationship, as Core Data gives them out when objects are inserted in
/// order. Source: `core-data-sqlite-format.md` §6.
enum OrderPlace {
  /// - Parameter index: Place in the list, from 0.
  static func value(at index: Int64) -> Int64 { 2048 + 1024 * index }
}
