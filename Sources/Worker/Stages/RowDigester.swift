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
/// A row's digest is taken of `Z_PK`, `Z_ENT`, `Z_OPT` and its columns by value: checkpoints and
/// files, read by different code, must come to the same.
final class RowDigester {
  private let isRemoved: Bool
  private let judges: Bool
  // One for each program. Arrays cost a reference count and a check each time, and this is done for
  // each row.
  private let rules: UnsafeMutableBufferPointer<RowRules>
  private let failures: UnsafeMutableBufferPointer<RowFailures>
  private let digests: UnsafeMutableBufferPointer<RowSetDigest>
  private let numbers: [Int64]
  private let programs: ProgramTable
  private let table: TablePlan
  private var unknownEntityRows = RowSetDigest()
  /// `Z_PK` of some of them.
  private var unknownKeys: [Int64] = []
  private var rows: Int64 = 0
  private var bytes: Int64 = 0

  /// - Parameter judges: False where only digests are wanted.
  init(_ table: TablePlan, judges: Bool) {
    self.table = table
    isRemoved = table.way == .removed
    // Carried and computed rows bear destination numbers by now, rows left behind source numbers.
    numbers = table.entities.map { table.way == .removed ? $0.sourceNumber : $0.destinationNumber }
    programs = ProgramTable(numbers: numbers, elsewhere: [])
    self.judges = judges
    rules = .allocate(capacity: numbers.count)
    for (place, entity) in table.entities.enumerated() {
      rules.initializeElement(
        at: place, to: entity.destination == nil ? entity.sourceRules : entity.destinationRules)
    }
    failures = .allocate(capacity: numbers.count)
    failures.initialize(repeating: RowFailures())
    digests = .allocate(capacity: numbers.count)
    digests.initialize(repeating: RowSetDigest())
  }

  deinit {
    rules.deinitialize()
    rules.deallocate()
    failures.deinitialize()
    failures.deallocate()
    digests.deallocate()
  }

  /// Findings of the rows, and the digests of those that have a place in the destination.
  var summary: ShardSummary {
    var summary = ShardSummary(rows: rows, bytes: bytes)
    if judges {
      for (rules, failures) in zip(rules, failures) {
        summary.findings.merge(failures.findings(rules))
      }
    }
    for (number, digest) in zip(numbers, digests) where digest.count > 0 {
      summary.digests[Int(number), default: RowSetDigest()] += digest
    }
    // Rows of no known entity: they can never agree with what was planned.
    if unknownEntityRows.count > 0 {
      summary.digests[-1] = unknownEntityRows
      guard judges else { return summary }
      summary.findings.append(
        StoreFinding(
          kind: .rows, entity: table.root.rawValue,
          message: "\(table.name) has rows whose Z_ENT is not a concrete entity of this table",
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
    if index >= 0, judges {
      rules[index].check(row + 3, key: row[0].bits, into: &failures[index])
    }
    if isRemoved { return }
    rows &+= 1
    bytes &+= Int64(RecordFormat.size(of: row, count: count))
    if index >= 0 {
      digests[index].add(row, count: count)
    } else {
      unknownEntityRows.add(row, count: count)
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
  private var digest = RowSetDigest()
  private var bytes: Int64 = 0

  var summary: ShardSummary {
    ShardSummary(rows: Int64(digest.count), digests: [0: digest], bytes: bytes)
  }

  mutating func add(_ row: UnsafeMutablePointer<RawValue>, count: Int) {
    digest.add(row, count: count)
    bytes += Int64(RecordFormat.size(of: row, count: count))
  }
}
