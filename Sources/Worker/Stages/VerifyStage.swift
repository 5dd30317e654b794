import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Reads the assembled destination back: the same digests, from the file that will be published, and
/// on the way what its indexes and references say.
struct VerifyStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    let assembled = try context.openedAssembled("a verification")
    let shard = try context.shard(unit)
    let writer = try context.writer(.verify, unit)
    let summary: ShardSummary
    switch shard.subject {
    case .table(let index):
      let table = context.plan.tables[index]
      let digester = RowDigester(table, judges: false)
      var scan = try SoundnessScan(
        context, unit, columns: EntityTable.systemColumns + table.columns, rowID: 0)
      try digester.addRows(
        of: table.name, columns: table.columns, shard.keys, assembled
      ) { try scan.add($0) }
      var found = digester.summary
      found.findings += try MemberCounts(context.plan, table: index).findings(
        in: assembled, shard.keys)
      found.soundness = try scan.evidence()
      summary = found
    case .mapping(let index):
      summary = try PolicyCustomValidation(context: context).run(index)
    case .inserted:
      throw StageError.outOfOrder("a verification of a policy's objects")
    case .joinTable(let index):
      summary = try rows(
        of: context.plan.joinTables[index].name, context.plan.joinTables[index].columns,
        rowID: "rowid", unit, assembled)
    case .foreignTable(let index):
      let table = context.plan.foreignTables[index]
      summary =
        if let rowID = table.rowIDName {
          try rows(of: table.name, table.columns, rowID: quoted(rowID), unit, assembled)
        } else {
          try RowDigester.digest(
            "SELECT \(table.columns.map(quoted).joined(separator: ", ")) FROM \(quoted(table.name)) NOT INDEXED",
            nil, assembled)
        }
    }
    try writer.finish(summary)
    return summary
  }

  private func rows(
    of name: String, _ columns: [String], rowID: String, _ unit: Int, _ assembled: Connection
  ) throws -> ShardSummary {
    var scan = try SoundnessScan(context, unit, columns: columns, rowID: columns.count)
    var digest = PlainDigest()
    try assembled.visitRows(
      columns.map(quoted) + [rowID],
      "FROM \(quoted(name)) NOT INDEXED WHERE \(rowID) BETWEEN ?1 AND ?2",
      [.integer(scan.rowIDs.lowerBound), .integer(scan.rowIDs.upperBound)]
    ) { row in
      digest.add(row, count: columns.count)
      try scan.add(row)
    }
    var summary = digest.summary
    summary.soundness = try scan.evidence()
    return summary
  }
}

/// What the verify stage left open about the assembled destination, each a piece of SQL.
struct SoundnessStage {
  let context: ShardContext

  func run(_ number: Int) throws -> ShardSummary {
    let assembled = try context.openedAssembled("a look at the destination")
    let jobs = try context.destinationJobs()
    guard jobs.indices.contains(number) else {
      throw StageError.outOfOrder("question \(number) of \(jobs.count)")
    }
    let writer = try context.writer(.soundness, number)
    let summary = ShardSummary(
      findings: try StoreSoundness.run(jobs[number].job, on: assembled))
    try writer.finish(summary)
    return summary
  }
}
