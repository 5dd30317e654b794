import GodwitDigests
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Lays the attribute and relationship columns of a row side by side, in the table's order.
struct RowMerge {
  private let attributePlaces: [Int]
  private let relationshipPlaces: [Int]

  init(_ table: TablePlan) {
    attributePlaces = table.attributePlaces
    relationshipPlaces = table.relationshipPlaces
  }

  /// Fills `Z_PK`, `Z_ENT`, `Z_OPT` and the columns.
  ///
  /// - Parameter attributes: `Z_ENT`, `Z_OPT`, then the attribute columns.
  @inline(__always)
  func fill(
    _ row: UnsafeMutablePointer<RawValue>, key: Int64,
    attributes: UnsafeMutablePointer<RawValue>, relationships: UnsafeMutablePointer<RawValue>
  ) {
    row[0] = .integer(key)
    row[1] = attributes[0]
    row[2] = attributes[1]
    for index in attributePlaces.indices { row[3 + attributePlaces[index]] = attributes[2 + index] }
    for index in relationshipPlaces.indices {
      row[3 + relationshipPlaces[index]] = relationships[index]
    }
  }
}

/// Judges rows by the destination's rules and sums up their digests, one for each entity.
///
/// A row's digest is taken of `Z_PK`, `Z_ENT`, `Z_OPT` and its columns, encoded as an SQLite
/// record: checkpoints and files, read by different code, must come to the same bytes.
final class RowDigester {
  private let isRemoved: Bool
  private let rules: [RowRules]?
  private var failures: [RowFailures]
  private let numbers: [Int64]
  private let programs: ProgramTable
  private var digests: [RowSetDigest]
  private let table: TablePlan
  private var unknownEntityRows = RowSetDigest()
  /// `Z_PK` of some of them.
  private var unknownKeys: [Int64] = []
  private var rows: Int64 = 0
  private var bytes: Int64 = 0
  private var record = RawBuffer(capacity: 64 << 10)

  /// - Parameter judges: False where only digests are wanted.
  init(_ table: TablePlan, judges: Bool) {
    self.table = table
    isRemoved = table.way == .removed
    // Carried and computed rows bear destination numbers by now, rows left behind source numbers.
    numbers = table.entities.map { table.way == .removed ? $0.sourceNumber : $0.destinationNumber }
    programs = ProgramTable(numbers: numbers, elsewhere: [])
    digests = Array(repeating: RowSetDigest(), count: numbers.count)
    rules =
      judges
      ? table.entities.map { $0.destination == nil ? $0.sourceRules : $0.destinationRules } : nil
    failures = numbers.map { _ in RowFailures() }
  }

  /// Findings of the rows, and the digests of those that have a place in the destination.
  var summary: ShardSummary {
    var summary = ShardSummary(rows: rows, bytes: bytes)
    for (rules, failures) in zip(rules ?? [], failures) {
      summary.findings.merge(failures.findings(rules))
    }
    for (number, digest) in zip(numbers, digests) where digest.count > 0 {
      summary.digests[Int(number), default: RowSetDigest()] += digest
    }
    // Rows of no known entity: they can never agree with what was planned.
    if unknownEntityRows.count > 0 {
      summary.digests[-1] = unknownEntityRows
      guard rules != nil else { return summary }
      summary.findings.append(
        StoreFinding(
          kind: .rows, entity: table.root.rawValue,
          message: "\(table.name) has rows whose Z_ENT is no concrete entity of this table",
          count: Int64(unknownEntityRows.count), examples: unknownKeys))
    }
    return summary
  }

  /// Adds every row of a table whose `Z_PK` lies in `keys`.
  ///
  /// - Parameter visit: Is given each row as well: `Z_PK`, `Z_ENT`, `Z_OPT` and the columns.
  func addRows(
    of name: String, columns: [String], _ keys: ClosedRange<Int64>, _ connection: Connection,
    _ visit: (UnsafeMutablePointer<RawValue>) throws -> Void = { _ in }
  ) throws {
    let names = EntityTable.systemColumns + columns
    try connection.visitRows(
      names.map(quoted), "FROM \(quoted(name)) WHERE Z_PK BETWEEN ?1 AND ?2",
      [.integer(keys.lowerBound), .integer(keys.upperBound)]
    ) { row in
      add(row, count: names.count)
      try visit(row)
    }
  }

  /// Adds one row: `Z_PK`, `Z_ENT`, `Z_OPT` and its columns.
  func add(_ row: UnsafeMutablePointer<RawValue>, count: Int) {
    let index = Int(programs.program(for: row[1]))
    if index >= 0, let rules {
      rules[index].check(row + 3, key: row[0].bits, into: &failures[index])
    }
    if isRemoved { return }
    record.removeAll()
    RecordFormat.encode(row, count: count, into: &record)
    rows += 1
    bytes += Int64(record.count)
    if index >= 0 {
      digests[index].add(record.bytes)
    } else {
      unknownEntityRows.add(record.bytes)
      if unknownKeys.count < StoreFinding.mostExamples { unknownKeys.append(row[0].bits) }
    }
  }

  /// The digest of everything a query gives.
  static func digest(_ sql: String, _ keys: ClosedRange<Int64>?, _ connection: Connection) throws
    -> ShardSummary
  {
    let statement = try connection.prepare(sql)
    if let keys {
      try statement.bind(1, keys.lowerBound)
      try statement.bind(2, keys.upperBound)
    }
    let row = RowValues(count: statement.columnCount)
    var digest = PlainDigest()
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: Int32(row.count))
      digest.add(row.values, count: row.count)
    }
    return digest.summary
  }
}

/// The digest of rows that no entity is known of.
struct PlainDigest: ~Copyable {
  private var record = RawBuffer(capacity: 4 << 10)
  private var digest = RowSetDigest()
  private var bytes: Int64 = 0

  var summary: ShardSummary {
    ShardSummary(rows: Int64(digest.count), digests: [0: digest], bytes: bytes)
  }

  mutating func add(_ row: UnsafeMutablePointer<RawValue>, count: Int) {
    record.removeAll()
    RecordFormat.encode(row, count: count, into: &record)
    digest.add(record.bytes)
    bytes += Int64(record.count)
  }
}
