import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// One scan of an entity table, that counts values.
struct LossScan {
  /// What is counted.
  enum Question: Equatable {
    /// Every row.
    case row
    /// Rows in which one of the columns has a value.
    case value(of: [String])
    /// Rows whose number is another after all the conversions, done one after the other.
    case changed(String, by: [AttributeType])
  }

  /// What one column of the result is asked.
  private struct Check {
    var column: Int
    var conversions: [Int32]
    var isRow: Bool
    var tally: Int
  }

  private let table: String
  private var expressions: [String] = []
  private var checks: [Int64: [Check]] = [:]
  private var tallies: [RowTally] = []

  init(table: String) { self.table = table }

  /// - Parameter number: `Z_ENT` of the rows.
  /// - Returns: The place of the answer in what ``run(on:)`` gives.
  mutating func ask(_ question: Question, ofRowsOf number: Int64) -> Int {
    var check = Check(column: -1, conversions: [], isRow: false, tally: tallies.count)
    switch question {
    case .row: check.isRow = true
    case .value(let columns):
      let tests = columns.map { "\(quoted($0)) IS NOT NULL" }
      check.column = column(tests.isEmpty ? "0" : tests.joined(separator: " OR "))
    case .changed(let name, let types):
      check.column = column(quoted(name))
      check.conversions = types.map { Int32($0.rawValue) }
    }
    checks[number, default: []].append(check)
    tallies.append(RowTally())
    return check.tally
  }

  private mutating func column(_ expression: String) -> Int {
    if let known = expressions.firstIndex(of: expression) { return known }
    expressions.append(expression)
    return expressions.count - 1
  }

  /// Reads the table once; not at all where nothing was asked.
  func run(on connection: Connection) throws -> [RowTally] {
    var tallies = tallies
    guard !checks.isEmpty else { return tallies }
    let numbers = checks.keys.sorted().map(String.init).joined(separator: ", ")
    let statement = try connection.prepare(
      """
      SELECT \((["Z_PK", "Z_ENT"] + expressions).joined(separator: ", "))
        FROM \(quoted(table))
       WHERE Z_ENT IN (\(numbers))
       ORDER BY Z_PK
      """)
    let width = expressions.count
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: max(1, width)) { values in
      guard let start = values.baseAddress else { return }
      while try statement.step() {
        guard let asked = checks[statement.int64(1)] else { continue }
        let key = statement.int64(0)
        statement.read(into: start, from: 2, count: Int32(width))
        for check in asked
        where check.isRow || Self.isCounted(values[check.column], check.conversions) {
          tallies[check.tally].add(key)
        }
      }
    }
    return tallies
  }

  private static func isCounted(_ value: RawValue, _ conversions: [Int32]) -> Bool {
    // The test itself: 1 or 0.
    if conversions.isEmpty { return value.bits != 0 }
    return !conversions.reduce(value) { NumericConversion.convert($0, to: $1) }.isEqual(to: value)
  }
}

extension RawValue {
  /// Whether two numbers are one; anything that is not a number never changes.
  fileprivate func isEqual(to other: RawValue) -> Bool {
    switch (kind, other.kind) {
    case (.integer, .integer): bits == other.bits
    case (.real, .real): real == other.real
    case (.integer, .real): other.real == Double(exactly: bits)
    case (.real, .integer): real == Double(exactly: other.bits)
    default: true
    }
  }
}
