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
    /// Rows whose number is another after each of the chains of conversions.
    case changed(String, by: [[AttributeType]])
  }

  /// What the columns of a row are asked.
  private struct Check {
    /// Places in a row.
    var columns: [Int] = []
    var conversions: [[Int32]] = []
    var isRow = false
    var tally: Int
  }

  private let table: String
  /// Of a row.
  private var columns = ["Z_PK", "Z_ENT"]
  private var checks: [Int64: [Check]] = [:]
  private var tallies: [RowTally] = []

  init(table: String) { self.table = table }

  /// - Parameter number: `Z_ENT` of the rows.
  /// - Returns: The place of the answer in what ``run(on:)`` gives.
  mutating func ask(_ question: Question, ofRowsOf number: Int64) -> Int {
    var check = Check(tally: tallies.count)
    switch question {
    case .row: check.isRow = true
    case .value(let columns): check.columns = columns.map { column($0) }
    case .changed(let name, let chains):
      check.columns = [column(name)]
      check.conversions = chains.map { $0.map { Int32($0.rawValue) } }
    }
    checks[number, default: []].append(check)
    tallies.append(RowTally())
    return check.tally
  }

  private mutating func column(_ name: String) -> Int {
    if let known = columns.firstIndex(where: { $0.isSameName(as: name) }) { return known }
    columns.append(name)
    return columns.count - 1
  }

  /// Reads the table once; not at all where nothing was asked.
  func run(on connection: Connection) throws -> [RowTally] {
    var found = tallies
    guard !checks.isEmpty else { return found }
    var (number, asked): (Int64?, [Check]) = (nil, [])
    try connection.forEachRow(of: table, columns, begin: { found = tallies }) { row in
      guard row[1].kind == .integer else { return }
      if row[1].bits != number {
        number = row[1].bits
        asked = checks[row[1].bits] ?? []
      }
      for check in asked where check.isRow || Self.isCounted(row, check) {
        found[check.tally].add(row[0].bits)
      }
    }
    return found
  }

  private static func isCounted(_ row: UnsafeMutablePointer<RawValue>, _ check: Check) -> Bool {
    if check.conversions.isEmpty { return check.columns.contains { row[$0].kind != .null } }
    return NumericConversion.changes(row[check.columns[0]], by: check.conversions)
  }
}

extension NumericConversion {
  /// Whether a number is another after each of the chains, whose conversions are done one after the other.
  package static func changes(_ value: RawValue, by chains: [[Int32]]) -> Bool {
    chains.allSatisfy { chain in
      !chain.reduce(value) { convert($0, to: $1) }.isEqual(to: value)
    }
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
