private import CSQLite
import Dispatch

/// A table whose rows can be read from its pages, and which of their values are wanted where.
public struct RawTable {
  public let root: UInt32
  /// For each column of the table where it is wanted; −1 for nowhere.
  private var places: [Int32] = []
  /// Values that are wanted twice: place, and the place that it is also wanted at.
  private var copies: [(from: Int, to: Int)] = []
  /// Places of the row's key.
  private var keyPlaces: [Int] = []
  /// Places of columns that SQLite gives as reals, whatever their records hold.
  private var realPlaces: [Int] = []
  /// How many values of a record have to be looked at.
  private var count = 0
  let width: Int

  /// - Parameter columns: In the order in which they are wanted; nil for the row's key.
  /// - Returns: nil where only SQLite knows what the table's rows are: columns with defaults that
  ///   older rows lack, generated ones, tables without row ids, expressions for columns.
  public init?(_ table: String, columns: [String?], in connection: Connection) throws {
    guard let shape = try connection.shape(of: table), shape.kind == "table",
      !shape.isWithoutRowID, let root = try connection.rootPage(of: table)
    else { return nil }
    self.root = root
    width = columns.count
    let hasKeyIndex = shape.indexes.contains { $0.origin == "pk" }
    var numbers: [[UInt8]: Int] = [:]
    var key: Int?
    for (number, column) in shape.columns.enumerated() {
      guard !column.name.isEmpty, !column.hasDefault, !column.isHidden else { return nil }
      if column.keyPlace != 0, !hasKeyIndex {
        guard column.declaredType.uppercased() == "INTEGER", key == nil else { return nil }
        key = number
      }
      numbers[column.name.columnKey] = number
      places.append(-1)
    }
    for (place, name) in columns.enumerated() {
      guard let name else {
        keyPlaces.append(place)
        continue
      }
      guard let number = numbers[name.columnKey] else { return nil }
      if number == key {
        keyPlaces.append(place)
        continue
      }
      if ColumnAffinity(declaredType: shape.columns[number].declaredType) == .real {
        realPlaces.append(place)
      }
      if places[number] >= 0 {
        copies.append((Int(places[number]), place))
      } else {
        places[number] = Int32(place)
      }
    }
    count = (places.lastIndex { $0 >= 0 } ?? -1) + 1
  }
}

extension RawTable {
  /// Puts the values of a row where they are wanted.
  ///
  /// - Throws: ``TreeScan/NotUnderstood``.
  @inline(__always)
  public func read(_ cell: TreeScan.Cell, into row: UnsafeMutablePointer<RawValue>) throws {
    let isRecord = places.withUnsafeBufferPointer { places in
      guard let start = places.baseAddress else { return false }
      return RecordFormat.scatter(record: cell.record, into: row, places: start, count: count)
    }
    guard isRecord || places.isEmpty else { throw TreeScan.NotUnderstood() }
    for (from, to) in copies { row[to] = row[from] }
    for place in keyPlaces { row[place] = .integer(cell.key) }
    for place in realPlaces where row[place].kind == .integer {
      row[place] = .real(Double(row[place].bits))
    }
  }
}

extension RawTable {
  /// Gives the rows of these keys.
  ///
  /// - Throws: ``TreeScan/NotUnderstood``, and what the visit throws.
  @inline(__always)
  fileprivate func forEachRow(
    _ descriptor: Int32, _ keys: ClosedRange<Int64>,
    _ visit: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    guard let scan = TreeScan(descriptor: descriptor, root: root, keys: keys, columns: count) else {
      throw TreeScan.NotUnderstood()
    }
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: max(1, width)) {
      $0.initialize(repeating: .null)
      guard let row = $0.baseAddress else { return }
      while try scan.nextLeaf() {
        for cell in scan.rows {
          try read(cell, into: row)
          try visit(row)
        }
      }
    }
  }
}

extension Connection {
  /// Gives all rows of a table in the order of their keys, from its pages where they can be read, and
  /// else by SQLite.
  ///
  /// - Parameters:
  ///   - columns: nil for the row's key.
  ///   - begin: Called before the first row; again where SQLite has to begin anew.
  ///   - visit: Texts and blobs of the row are valid until it returns.
  public func forEachRow(
    of table: String, _ columns: [String?], begin: () -> Void = {},
    _ visit: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    begin()
    if let descriptor = rawDescriptor, let raw = try RawTable(table, columns: columns, in: self) {
      do {
        return try raw.forEachRow(descriptor, .min ... .max, visit)
      } catch is TreeScan.NotUnderstood {
        begin()
      }
    }
    // An index could hold something else than the table.
    try visitRows(
      columns.map { $0.map(quoted) ?? "rowid" },
      "FROM \(quoted(table)) NOT INDEXED", [], visit)
  }

  /// Gives all rows of a table, those of each part of its keys to a value of its own, where its pages can
  /// be read by several threads; else all of them to one.
  ///
  /// - Parameters:
  ///   - columns: nil for the row's key.
  ///   - visit: Texts and blobs of the row are valid until it returns.
  /// - Returns: The values, in the order of the keys.
  public func rows<Part: Sendable>(
    of table: String, _ columns: [String?], inParts parts: Int, into initial: Part,
    _ visit: @Sendable (UnsafeMutablePointer<RawValue>, inout Part) throws -> Void
  ) throws -> [Part] {
    if parts > 1, let descriptor = rawDescriptor,
      let raw = try RawTable(table, columns: columns, in: self),
      let keys = try extent(of: table, key: "rowid")
    {
      let ranges = keys.divided(into: parts)
      var found = [Result<Part, any Error>?](repeating: nil, count: ranges.count)
      found.withUnsafeMutableBufferPointer { found in
        // Each thread has an element of its own.
        nonisolated(unsafe) let found = found
        nonisolated(unsafe) let raw = raw
        DispatchQueue.concurrentPerform(iterations: ranges.count) { number in
          found[number] = Result {
            var part = initial
            try raw.forEachRow(descriptor, ranges[number]) { try visit($0, &part) }
            return part
          }
        }
      }
      do {
        return try found.compactMap { try $0?.get() }
      } catch is TreeScan.NotUnderstood {}
    }
    var part = initial
    try forEachRow(of: table, columns, begin: { part = initial }) { try visit($0, &part) }
    return [part]
  }

  /// The lowest and highest key of a table, each by one search; nil where it has no rows.
  ///
  /// - Throws: ``SQLiteError``, also for a damaged tree of which these are the first and the last row, and
  ///   not in this order.
  public func extent(of table: String, key: String) throws -> ClosedRange<Int64>? {
    let sql = """
      SELECT (SELECT min(\(key)) FROM \(quoted(table))), (SELECT max(\(key)) FROM \(quoted(table)))
      """
    let row = try rows(sql).first
    guard let low = row?.first?.integer, let high = row?.last?.integer else { return nil }
    guard low <= high else {
      throw SQLiteError.failed(
        code: SQLITE_CORRUPT, message: "the rows of \(table) are not in the order of their keys",
        statement: sql, database: path)
    }
    return low...high
  }
}

extension ClosedRange<Int64> {
  /// In ranges that are about as wide and meet without a gap: as many as asked for, or as there are numbers.
  package func divided(into parts: Int) -> [Self] {
    let last = UInt64(bitPattern: upperBound &- lowerBound)
    let count = Swift.min(UInt64(Swift.max(1, parts)) - 1, last) + 1
    // 128 bits: the range may be all of Int64.
    func start(_ part: UInt64) -> Int64 {
      let share = (UInt128(last) + 1) * UInt128(part) / UInt128(count)
      return lowerBound &+ Int64(bitPattern: UInt64(share))
    }
    return (0..<count).map { part in
      start(part)...(part == count - 1 ? upperBound : start(part + 1) - 1)
    }
  }
}
