import GodwitPages
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

  /// The query that gives such rows.
  var sql: String {
    let columns = (["Z_PK", "Z_ENT", "Z_OPT"] + names).map { "t." + quoted($0) } + expressions
    return """
      SELECT \(columns.joined(separator: ", "))
        FROM \(quoted(table)) AS t
       WHERE t.Z_PK BETWEEN ?1 AND ?2
       ORDER BY t.Z_PK
      """
  }
}

/// A table whose rows can be read from its pages, see `TableScan`.
struct RawTable {
  let root: UInt32
  /// For each column of the table where it is wanted; −1 for nowhere.
  fileprivate(set) var places: [Int32]
  /// Values that are wanted twice: place, and the place that it is also wanted at.
  fileprivate(set) var copies: [(from: Int, to: Int)] = []
  /// Places of the row's key.
  fileprivate(set) var keyPlaces: [Int] = []
  /// Places of columns that SQLite gives as reals, whatever their records hold.
  fileprivate(set) var realPlaces: [Int] = []
  /// How many values of a record have to be looked at.
  fileprivate(set) var count = 0

  /// - Returns: nil where only SQLite knows what the table's rows are: columns with defaults that
  ///   older rows lack, generated ones, keys of another kind, expressions.
  init?(_ columns: SourceColumns, in source: Connection) throws {
    guard columns.expressions.isEmpty else { return nil }
    let kind = try source.rows(
      """
      SELECT m.rootpage, l.wr FROM pragma_table_list AS l, main.sqlite_master AS m
       WHERE l.schema = 'main' AND l.name = ?1 AND l.type = 'table' AND m.type = 'table'
         AND m.name = l.name
         AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name) WHERE origin = 'pk')
      """, [.text(columns.table)])
    guard kind.count == 1, let root = kind[0][0].integer.flatMap(UInt32.init(exactly:)),
      kind[0][1].integer == 0
    else { return nil }
    self.root = root
    let listed = try source.rows(
      "SELECT name, type, dflt_value, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid",
      [.text(columns.table)])
    var numbers: [String: Int] = [:]
    var key: Int?
    places = []
    for (number, column) in listed.enumerated() {
      guard let name = column[0].text, column[2] == .null, column[4].integer == 0 else {
        return nil
      }
      if column[3].integer != 0 {
        guard column[1].text?.uppercased() == "INTEGER", key == nil else { return nil }
        key = number
      }
      numbers[name.lowercased()] = number
      places.append(-1)
    }
    guard key != nil else { return nil }
    for (place, name) in (["Z_PK", "Z_ENT", "Z_OPT"] + columns.names).enumerated() {
      guard let number = numbers[name.lowercased()] else { return nil }
      if number == key {
        keyPlaces.append(place)
        continue
      }
      if ColumnAffinity(declaredType: listed[number][1].text ?? "") == .real {
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
  private let scan: TableScan?
  private let raw: RawTable?
  private let places: UnsafeMutablePointer<Int32>
  private let statement: Statement?
  private var isAtEnd = false
  /// Texts and blobs of a statement's rows.
  private var bytes = RawBuffer(capacity: 16)
  private let mostRows: Int

  /// Rows by their pages.
  init(_ columns: SourceColumns, _ raw: RawTable, _ scan: TableScan) {
    (width, self.scan, self.raw, statement) = (columns.width, scan, raw, nil)
    places = .allocate(capacity: max(1, raw.places.count))
    places.initialize(from: raw.places, count: raw.places.count)
    (capacity, mostRows) = (256, Int.max)
    values = .allocate(capacity: capacity * width)
    values.initialize(repeating: .null, count: capacity * width)
  }

  /// Rows by SQLite.
  ///
  /// - Parameter mostRows: Rows of one piece, where not a page's worth.
  init(_ columns: SourceColumns, _ statement: Statement, mostRows: Int = stepsAtOnce) {
    (width, scan, raw, self.statement) = (columns.width, nil, nil, statement)
    places = .allocate(capacity: 1)
    (capacity, self.mostRows) = (mostRows, mostRows)
    values = .allocate(capacity: capacity * width)
    values.initialize(repeating: .null, count: capacity * width)
  }

  deinit {
    values.deallocate()
    places.deallocate()
  }

  /// The values of a row: `Z_PK`, `Z_ENT`, `Z_OPT` and the columns.
  @inline(__always)
  func row(_ number: Int) -> UnsafeMutablePointer<RawValue> { values + number &* width }

  /// Moves to the next piece, and gives false when there are no more.
  ///
  /// - Throws: `TableScan.NotUnderstood`, and what SQLite says.
  func next() throws -> Bool {
    if let scan, let raw { return try readLeaf(scan, raw) }
    return try readSteps()
  }

  private func readLeaf(_ scan: TableScan, _ raw: RawTable) throws -> Bool {
    count = 0
    guard try scan.nextLeaf() else { return false }
    let cells = scan.rows
    if cells.count > capacity {
      values.deallocate()
      capacity = cells.count
      values = .allocate(capacity: capacity * width)
      values.initialize(repeating: .null, count: capacity * width)
    }
    for (number, cell) in cells.enumerated() {
      let row = row(number)
      guard
        RecordFormat.scatter(record: cell.record, into: row, places: places, count: raw.count)
      else { throw TableScan.NotUnderstood() }
      for (from, to) in raw.copies { row[to] = row[from] }
      for place in raw.keyPlaces { row[place] = .integer(cell.key) }
      for place in raw.realPlaces where row[place].kind == .integer {
        row[place] = .real(Double(row[place].bits))
      }
    }
    count = cells.count
    return true
  }

  private func readSteps() throws -> Bool {
    count = 0
    guard let statement, !isAtEnd else { return false }
    bytes.removeAll()
    var offsets = 0
    while count < mostRows, offsets < 1 << 16 {
      guard try statement.step() else {
        // A step more would begin anew.
        isAtEnd = true
        break
      }
      let row = row(count)
      statement.read(into: row, from: 0, count: Int32(width))
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
}
