import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The third stage of an entity mapping: whole rows, judged by the destination model's rules.
///
/// Rows come from the checkpoints of copy and link, and from the pairs that set them from the
/// other side. Where there are such pairs, the finished relationship columns are written to this
/// stage's checkpoint: the commit then needs no third source.
/// Source: `core-data-migration.md` §5.3.
struct MappedValidation {
  let context: ShardContext

  func rows(of index: Int, _ unit: Int, to writer: CheckpointWriter) throws -> ShardSummary {
    let mapping = try context.mapped.mapping(index)
    let table = try context.mapped.table(of: mapping)
    let offset = try context.mapped.offsets().offset(of: unit)
    let copied = try context.reader(.copy, unit)
    let linked = mapping.links.isEmpty ? nil : try context.reader(.link, unit)
    let fills = try mapping.fills.map { try FillCursor($0, context.mapped) }
    let digester = RowDigester(table, judges: true)
    let rules = table.entities.first { $0.destinationNumber == mapping.destinationNumber }?
      .validation
    let judge = rules.map { ValidationJudge($0, pattern: RegularExpression.matcher) }
    let row = RowValues(count: 3 + table.columns.count)
    let attributes = RowValues(count: 2 + table.attributePlaces.count)
    let relationships = RowValues(count: table.relationshipPlaces.count)
    let merge = RowMerge(table)
    var record = RawBuffer(capacity: 1 << 10)
    while let entry = try copied.next() {
      guard entry.channel == 0 else { continue }
      guard
        RecordFormat.decode(
          record: entry.payload, into: attributes.values, count: attributes.count)
      else { throw mismatch(table, unit, "a row's record is malformed") }
      for place in 0..<relationships.count { relationships.values[place] = .null }
      if let linked { try read(linked, entry.key, into: relationships, table, unit) }
      let key = entry.key + offset
      for fill in fills { try fill.apply(to: relationships.values, key: key) }
      merge.fill(
        row.values, key: key, attributes: attributes.values,
        relationships: relationships.values)
      digester.add(row.values, count: row.count)
      judge?.check(row.values + 3, key: key)
      if !fills.isEmpty {
        record.removeAll()
        RecordFormat.encode(relationships.values, count: relationships.count, into: &record)
        try writer.append(channel: 0, key: entry.key, record.bytes)
      }
    }
    var summary = digester.summary
    // That a value is missing, the model's rules say, with Core Data's code.
    summary.findings.removeAll { $0.kind == .required }
    summary.findings += judge?.findings ?? []
    return summary
  }

  private func read(
    _ linked: CheckpointReader, _ key: Int64, into values: borrowing RowValues, _ table: TablePlan,
    _ unit: Int
  ) throws {
    while let link = try linked.next() {
      guard link.channel == 0 else { continue }
      guard link.key == key,
        RecordFormat.decode(record: link.payload, into: values.values, count: values.count)
      else { break }
      return
    }
    throw mismatch(table, unit, "row \(key) was copied and not linked")
  }

  private func mismatch(_ table: TablePlan, _ unit: Int, _ what: String) -> StageError {
    .checkpointMismatch(table: table.name, unit: unit, what: what)
  }

  /// The pairs of a join table, as they will be written.
  ///
  /// - Parameter keys: Those of the first column, both ends included.
  func pairs(of index: Int, _ keys: ClosedRange<Int64>, to writer: CheckpointWriter) throws
    -> ShardSummary
  {
    guard context.plan.joinTables.indices.contains(index) else {
      throw StageError.outOfOrder("pairs of join table \(index)")
    }
    let join = context.plan.joinTables[index]
    let groups = context.plan.mapped?.groups ?? []
    let number = groups.firstIndex {
      if case .join(index, _, _, _) = $0.target { true } else { false }
    }
    guard let number, case .join(_, let first, let second, _) = groups[number].target else {
      throw StageError.outOfOrder("pairs of \(join.name), which nobody sets")
    }
    let columns = ["a", "b"] + (first ? ["place0"] : []) + (second ? ["place1"] : [])
    let statement = try context.mapped.edges().prepare(
      """
      SELECT \(columns.joined(separator: ", "))
        FROM edges\(number)
       WHERE a BETWEEN ?1 AND ?2
       ORDER BY a, b
      """)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    let row = RowValues(count: columns.count)
    let output = PairOutput(writer)
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: Int32(row.count))
      try output.add(row)
    }
    return output.summary
  }
}

/// Walks the sorted pairs of one group beside the rows of a shard: both ascend by the row's key.
final class FillCursor {
  private let plan: RelationshipFill
  private let isDecided: Bool
  private let statement: Statement
  private var isStarted = false
  private var isAtEnd = false

  init(_ plan: RelationshipFill, _ context: MappedContext) throws {
    self.plan = plan
    // Only plans with policies have such a table.
    let groups = context.plan.mapped?.groups ?? []
    let isReplayed =
      try groups.indices.contains(plan.group) && groups[plan.group].isOpen == true
      && !context.edges().rows(
        "SELECT 1 FROM replayed WHERE number = ?1", [.integer(Int64(plan.group))]
      ).isEmpty
    isDecided = plan.isDecided || isReplayed
    statement = try context.edges().prepare(
      "SELECT a, b, entity, place FROM edges\(plan.group) WHERE a >= ?1 ORDER BY a")
  }

  /// Sets the columns of a row. Its own word counts, where it has one; the place in the owner's
  /// list is then taken over if the owner is the same.
  func apply(to columns: UnsafeMutablePointer<RawValue>, key: Int64) throws {
    if let value = plan.otherwise { columns[plan.keyPlace] = stored(value) }
    if isDecided {
      columns[plan.keyPlace] = .null
      if let place = plan.entityPlace { columns[place] = .null }
    }
    if !isStarted {
      isStarted = true
      try statement.bind(1, key)
      isAtEnd = try !statement.step()
    }
    while !isAtEnd, statement.int64(0) < key { isAtEnd = try !statement.step() }
    guard !isAtEnd, statement.int64(0) == key else { return }
    let owner = statement.int64(1)
    let hasOwn = columns[plan.keyPlace].kind == .integer
    if !isDecided, plan.keepsOwn || (plan.yieldsToOwn && hasOwn) {
      guard hasOwn, columns[plan.keyPlace].bits == owner else { return }
    } else {
      if let limit = plan.limit, owner > limit.most {
        throw StageError.countOutOfRange(limit, primaryKey: key)
      }
      columns[plan.keyPlace] = stored(owner)
      if let place = plan.entityPlace { columns[place] = .integer(statement.int64(2)) }
    }
    if let place = plan.orderPlace { columns[place] = .integer(statement.int64(3)) }
  }

  /// A key, or a count in the form of its column.
  private func stored(_ value: Int64) -> RawValue {
    plan.isReal == true ? .real(Double(value)) : .integer(value)
  }
}

/// Counts the members of to-many relationships in the written destination.
///
/// Source: `core-data-migration.md` §1.4: 1580 for too few, 1590 for too many.
struct MemberCounts {
  private let table: TablePlan
  private let rules: [CountRule]

  init(_ plan: MigrationPlan, table index: Int) {
    table = plan.tables[index]
    rules = (plan.mapped?.countRules ?? []).filter { $0.table == index }
  }

  func findings(in store: Connection, _ keys: ClosedRange<Int64>) throws -> [StoreFinding] {
    var findings: [StoreFinding] = []
    for rule in rules {
      let statement = try store.prepare(
        "SELECT Z_PK FROM \(quoted(table.name)) WHERE Z_PK BETWEEN ?1 AND ?2 AND Z_ENT = ?3")
      try statement.bind(1, keys.lowerBound)
      try statement.bind(2, keys.upperBound)
      try statement.bind(3, rule.entityNumber)
      let count = try store.prepare(rule.countSQL)
      var tally = FindingTally()
      while try statement.step() {
        let key = statement.int64(0)
        try count.bind(1, key)
        let members = try count.step() ? count.int64(0) : 0
        count.reset()
        if members == 0, rule.isOptional { continue }
        if members < rule.low {
          tally.add(
            .validation, entity: rule.entity.rawValue, property: rule.relationship,
            message: "has fewer members than its minimum", primaryKey: key, code: 1580)
        } else if rule.high > 0, members > rule.high {
          tally.add(
            .validation, entity: rule.entity.rawValue, property: rule.relationship,
            message: "has more members than its maximum", primaryKey: key, code: 1590)
        }
      }
      findings += tally.sorted
    }
    return findings
  }
}
