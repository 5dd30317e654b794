import GodwitSQLite

/// A part of an index, by the values of its first column. The parts of one index meet without a gap.
package enum IndexPart {
  case all
  /// The first of several: NULL, and everything up to a value.
  case upTo(SQLiteValue)
  /// Above the first value, up to the second.
  case between(SQLiteValue, SQLiteValue)
  case above(SQLiteValue)
  case none

  /// - Returns: `WHERE` clauses that SQLite answers with one search each, and their values.
  func conditions(on column: String) -> [(String, [SQLiteValue])] {
    switch self {
    case .all: [("", [])]
    case .upTo(let value): [("WHERE \(column) IS NULL", []), ("WHERE \(column) <= ?1", [value])]
    case .between(let low, let high): [("WHERE \(column) > ?1 AND \(column) <= ?2", [low, high])]
    case .above(let value): [("WHERE \(column) > ?1", [value])]
    case .none: []
    }
  }
}

/// Cuts the indexes of a table into parts of about the same number of entries, as many as its rows
/// are cut into.
///
/// Bounds are values of a sample of rows. A bad sample makes parts unequal, and no part wrong.
package struct IndexCuts {
  private let parts: Int
  private var bounds: [String: [SQLiteValue]] = [:]

  private static let samples = 1024
  /// Longer texts are no bounds.
  private static let mostBytes = 256

  /// - Parameters:
  ///   - rowID: What the table's row id is called.
  ///   - ranges: The row ids that each unit goes over.
  package init(
    _ indexes: [TableIndex], of table: String, rowID: String, ranges: [ClosedRange<Int64>],
    in connection: Connection
  ) throws {
    parts = ranges.count
    guard parts > 1 else { return }
    let each = max(2, min(16, Self.samples / parts))
    let keys = ranges.flatMap { range in
      (0..<each).map { place in
        let width = Double(range.upperBound) - Double(range.lowerBound)
        let step = Int64(exactly: (width / Double(each) * Double(place)).rounded(.down)) ?? 0
        return "(\(range.lowerBound &+ step))"
      }
    }
    for column in Set(indexes.map { $0.columns[0] }) {
      let name = quoted(column)
      let found = try connection.rows(
        """
        WITH sample(key) AS (VALUES \(keys.joined(separator: ", ")))
        SELECT (SELECT CASE WHEN length(\(name)) <= \(Self.mostBytes) THEN \(name) END
                  FROM \(quoted(table))
                 WHERE \(rowID) >= key
                 ORDER BY \(rowID)
                 LIMIT 1) AS value
          FROM sample
         ORDER BY value
        """
      ).compactMap(\.first).filter { !$0.isNull }
      var cuts: [SQLiteValue] = []
      for part in 1..<parts where !found.isEmpty {
        let value = found[found.count * part / parts]
        if value != cuts.last { cuts.append(value) }
      }
      bounds[column] = cuts
    }
  }

  package func part(_ number: Int, of index: TableIndex) -> IndexPart {
    guard let cuts = bounds[index.columns[0]], let first = cuts.first, let last = cuts.last else {
      return number == 0 ? .all : .none
    }
    if number == 0 { return .upTo(first) }
    if number < cuts.count { return .between(cuts[number - 1], cuts[number]) }
    return number == cuts.count ? .above(last) : .none
  }
}
