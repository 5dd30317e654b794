import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The first stage: destination rows with their attributes, from one shard of the source.
///
/// Validation is off, as in Core Data's own copy; only the source's own soundness is looked at,
/// since the row is at hand. Rows keep `Z_PK` and `Z_OPT`.
struct CopyStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    let (shard, table) = try context.table(unit)
    let writer = try context.writer(.copy, unit)
    let names = table.copyColumns.map { "t." + quoted($0) } + table.copyExpressions
    let statement = try context.source.prepare(
      """
      SELECT \((["t.Z_PK", "t.Z_ENT", "t.Z_OPT"] + names).joined(separator: ", "))
        FROM \(quoted(table.sourceTable ?? table.name)) AS t
       WHERE t.Z_PK BETWEEN ?1 AND ?2
       ORDER BY t.Z_PK
      """)
    try statement.bind(1, shard.keys.lowerBound)
    try statement.bind(2, shard.keys.upperBound)
    var summary = ShardSummary()
    try copyRows(of: table, from: statement, to: writer, &summary)
    try writer.finish(summary: summary.encoded())
    return summary
  }

  private func copyRows(
    of table: TablePlan, from statement: Statement, to writer: CheckpointWriter,
    _ summary: inout ShardSummary
  ) throws {
    let programs = ProgramTable(table)
    let codes = table.entities.map {
      AttributeProgramCode($0.attributes, columnCount: table.copyColumns.count)
    }
    let rules = table.entities.map(\.sourceRules)
    var failures = rules.map { _ in RowFailures() }
    let columns = Int32(statement.columnCount)
    let row = RowValues(count: Int(columns))
    let output = RowValues(count: 2 + table.attributePlaces.count)
    var record = RawBuffer(capacity: 64 << 10)
    var scratch = RawBuffer(capacity: 16)
    var tally = FindingTally()
    let external = ExternalData(folder: context.plan.externalDataPath)
    let newFiles = NewExternalFiles(
      folder: context.run.external, fingerprint: context.fingerprint)
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let key = row.values[0].bits
      let index = programs.program(for: row.values[1])
      guard index >= 0 else {
        if index == ProgramTable.unknown {
          tally.add(
            .rows, entity: table.root.rawValue,
            message: "Z_ENT is not a concrete entity of \(table.sourceTable ?? table.name)",
            primaryKey: key)
        }
        continue
      }
      let attributes = row.values + 3
      rules[Int(index)].check(attributes, key: key, into: &failures[Int(index)])
      let entity = table.entities[Int(index)].destinationNumber
      guard entity != 0 else { continue }
      output.values[0] = .integer(entity)
      output.values[1] = row.values[2]
      let code = codes[Int(index)]
      Self.run(code.operations, from: attributes, to: output.values + 2)
      if code.needsScratch {
        scratch.removeAll()
        try external.settle(
          code.operations, from: attributes, to: output.values + 2, scratch: &scratch,
          newFiles: newFiles, entity: table.entities[Int(index)].source.rawValue, primaryKey: key)
      }
      record.removeAll()
      RecordFormat.encode(output.values, count: output.count, into: &record)
      try writer.append(channel: 0, key: key, record.bytes)
      summary.rows += 1
      summary.bytes += Int64(record.count)
    }
    summary.findings = tally.sorted
    for (rules, failures) in zip(rules, failures) {
      summary.findings.merge(failures.findings(rules))
    }
  }

  /// The row loop's heart: nothing here allocates or branches on more than an operation's code.
  @inline(__always)
  static func run(
    _ operations: UnsafeMutableBufferPointer<AttributeOperation>,
    from source: UnsafeMutablePointer<RawValue>, to output: UnsafeMutablePointer<RawValue>
  ) {
    for place in 0..<operations.count {
      let operation = operations[place]
      switch operation.code {
      case .constant:
        output[place] = operation.value
      case .source:
        output[place] = source[Int(operation.source)]
      case .sourceOr:
        let value = source[Int(operation.source)]
        output[place] = value.kind == .null ? operation.value : value
      case .converted:
        let value = source[Int(operation.source)]
        output[place] =
          value.kind == .null
          ? operation.value : NumericConversion.convert(value, to: operation.type)
      case .markedInline, .unmarked, .refiled:
        output[place] = .null  // settled afterwards, since it needs memory or a file
      }
    }
  }
}
