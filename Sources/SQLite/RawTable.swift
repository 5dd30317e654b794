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
    if let descriptor = rawDescriptor, let raw = try RawTable(table, columns: columns, in: self),
      let scan = TreeScan(descriptor: descriptor, root: raw.root)
    {
      do {
        return try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: max(1, raw.width)) {
          $0.initialize(repeating: .null)
          guard let row = $0.baseAddress else { return }
          while try scan.nextLeaf() {
            for cell in scan.rows {
              try raw.read(cell, into: row)
              try visit(row)
            }
          }
        }
      } catch is TreeScan.NotUnderstood {
        begin()
      }
    }
    // An index could hold something else than the table.
    try visitRows(
      columns.map { $0.map(quoted) ?? "rowid" },
      "FROM \(quoted(table)) NOT INDEXED", [], visit)
  }
}
