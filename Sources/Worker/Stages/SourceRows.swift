import GodwitPersistentStore
import GodwitSQLite

/// What a pass reads of a table's rows: which columns, and where in the row each is wanted.
struct SourceColumns: Hashable {
  /// The source's table.
  var table: String
  /// Columns by name, in the order of the row, behind `Z_PK`, `Z_ENT` and `Z_OPT`. One may be
  /// wanted twice.
  var names: [String]
  /// SQL expressions behind them.
  var expressions: [String] = []

  /// Values of a row.
  var width: Int { 3 + names.count + expressions.count }

  /// Those of the table, in the order of the row.
  var all: [String] { ["Z_PK", "Z_ENT", "Z_OPT"] + names }

  /// The query that gives such rows. Of a very wide table several, side by side: a result has no more columns than
  /// a table may have.
  var queries: [String] {
    let columns = all.map { "t." + quoted($0) } + expressions
    return stride(from: 0, to: columns.count, by: LayoutProblem.mostColumns).map { start in
      """
      SELECT \(columns[start...].prefix(LayoutProblem.mostColumns).joined(separator: ", "))
        FROM \(quoted(table)) AS t
       WHERE t.Z_PK BETWEEN ?1 AND ?2
       ORDER BY t.Z_PK
      """
    }
  }
}

/// Source rows, a piece at a time: those of a leaf page, or as many steps of a statement.
///
/// Values point into pages or copies, and are valid until the next piece.
final class SourceRows {
  /// Rows of one piece, at most.
  private static let stepsAtOnce = 64

  let width: Int
  private(set) var count = 0
  private(set) var values: UnsafeMutablePointer<RawValue>
  private var capacity: Int
  private let scan: TreeScan?
  private let raw: RawTable?
  private let statements: [Statement]
  private var isAtEnd = false
  /// Texts and blobs of a statement's rows.
  private var bytes = RawBuffer(capacity: 16)
  private let mostRows: Int

  /// Rows by their pages.
  init(_ columns: SourceColumns, _ raw: RawTable, _ scan: TreeScan) {
    (width, self.scan, self.raw, statements) = (columns.width, scan, raw, [])
    (capacity, mostRows) = (256, Int.max)
    values = .allocate(capacity: capacity * width)
    values.initialize(repeating: .null, count: capacity * width)
  }

  /// Rows by SQLite.
  ///
  /// - Parameters:
  ///   - statements: Those of ``SourceColumns/queries``.
  ///   - mostRows: Rows of one piece, where not a page's worth.
  init(_ columns: SourceColumns, _ statements: [Statement], mostRows: Int = stepsAtOnce) {
    (width, scan, raw, self.statements) = (columns.width, nil, nil, statements)
    (capacity, self.mostRows) = (mostRows, mostRows)
    values = .allocate(capacity: capacity * width)
    values.initialize(repeating: .null, count: capacity * width)
  }

  deinit { values.deallocate() }

  /// The values of a row: `Z_PK`, `Z_ENT`, `Z_OPT` and the columns.
  @inline(__always)
  func row(_ number: Int) -> UnsafeMutablePointer<RawValue> { values + number &* width }

  /// Moves to the next piece, and gives false when there are no more.
  ///
  /// - Throws: `TreeScan.NotUnderstood`, and what SQLite says.
  func next() throws -> Bool {
    if let scan, let raw { return try readLeaf(scan, raw) }
    return try readSteps()
  }

  private func readLeaf(_ scan: TreeScan, _ raw: RawTable) throws -> Bool {
    count = 0
    guard try scan.nextLeaf() else { return false }
    let cells = scan.rows
    if cells.count > capacity {
      values.deallocate()
      capacity = cells.count
      values = .allocate(capacity: capacity * width)
      values.initialize(repeating: .null, count: capacity * width)
    }
    for number in 0..<cells.count { try raw.read(cells[number], into: row(number)) }
    count = cells.count
    return true
  }

  private func readSteps() throws -> Bool {
    count = 0
    guard !isAtEnd else { return false }
    bytes.removeAll()
    var offsets = 0
    while count < mostRows, offsets < 1 << 16 {
      let row = row(count)
      guard try readStep(into: row) else {
        // A step more would begin anew.
        isAtEnd = true
        break
      }
      if mostRows > 1 {
        // The next step takes SQLite's memory back. Places first: the buffer moves as it grows.
        for place in 0..<width where row[place].count > 0 {
          let start = bytes.count
          bytes.append(row[place].buffer)
          row[place].bits = Int64(start)
        }
        offsets = bytes.count
      }
      count &+= 1
    }
    guard count > 0 else { return false }
    if mostRows > 1 {
      for place in 0..<count &* width where values[place].count > 0 {
        values[place].bytes = UnsafeRawPointer(bytes.base + Int(values[place].bits))
        values[place].bits = 0
      }
    }
    return true
  }

  /// The statements give the same rows, in the same order: nobody writes between their steps.
  private func readStep(into row: UnsafeMutablePointer<RawValue>) throws -> Bool {
    var place = 0
    for statement in statements {
      guard try statement.step() else { return false }
      let count = statement.columnCount
      statement.read(into: row + place, from: 0, count: Int32(count))
      place += count
    }
    return true
  }
}
