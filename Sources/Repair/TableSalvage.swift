import GodwitPersistentStore
import GodwitSQLite

/// Copies what can be read of one table's rows into a table of a sound file.
///
/// That table has the columns of the damaged one and none of its constraints.
struct TableSalvage {
  let name: String
  let columns: [SchemaSalvage.Column]
  /// What its pages are claimed for.
  let tree: Int32
  /// Where rows may be lost.
  private(set) var gaps: [KeyGap] = []
  /// Rows that were there and of which nothing can be read.
  private(set) var lostKeys = KeyRanges()
  /// Rows whose records do not add up, or have values on pages of zeros.
  private(set) var doubtfulKeys = KeyRanges()
  /// Rows whose key may be another row's.
  private(set) var doubtfulOwnKeys = KeyRanges()
  /// Whether an object has the Z_PK 0.
  private(set) var hasZeroKey = false
  /// Keys of which there was another row, with other values, that is left out.
  private(set) var repeatedKeys = KeyRanges()
  /// Rows whose page stood in another one's place.
  private(set) var misplacedKeys = KeyRanges()
  /// Rows that were found on pages to which no page leads, though none of the table's is damaged.
  private(set) var strayKeys = KeyRanges()
  /// Rows that were found on pages to which no page leads, and that may be another table's that has lost such rows.
  private(set) var contestedKeys = KeyRanges()
  /// Rows that have more values than the table has columns; those are left out.
  private(set) var surplusKeys = KeyRanges()
  /// By the number of the column: rows whose value is lost.
  private(set) var lostValues: [Int: KeyRanges] = [:]
  /// By the number of the column: rows whose value goes on in overflow pages that may be another row's.
  private(set) var doubtfulValues: [Int: KeyRanges] = [:]
  /// The same of rows whose text is not valid UTF-8, and is kept as it is.
  private(set) var oddTexts: [Int: KeyRanges] = [:]
  /// The same of rows whose value the column makes a number of.
  private(set) var convertedValues: [Int: KeyRanges] = [:]
  private(set) var rowCount: Int64 = 0

  private var statement: Statement?
  /// Gives a row its row id where no statement has room for it beside the columns.
  private var numbering: Statement?
  /// Whether a row is there as it would be inserted.
  private var comparison: Statement?
  private let comparisonSQL: String
  /// Whether a key of 0 is odd: Core Data gives keys from 1 on, and one damaged byte makes the first one 0.
  private let doubtsZero: Bool
  private let places: [Int32]
  /// Where the row id goes.
  private let keyPlace: Int32?
  private let values: UnsafeMutablePointer<RawValue>
  private let rowIDColumn: Int?
  /// The column that has the key in the records themselves.
  private let keyColumn: Int?
  private let kind: TreeScan.Kind
  private var root: UInt32 = 0
  /// Rows for ``settle()``.
  private var waiting: [Deferred] = []
  private var isContested = false
  /// What may lie in each column.
  private let kinds: [ValueKinds]
  private let file: Connection

  /// Whether no row was found, sound or not.
  var isEmpty: Bool { rowCount == 0 && waiting.isEmpty }

  /// Whether a row's key is that of its cell.
  var namesRowsByRowID: Bool { keyColumn == nil && kind == .table }

  /// Whether a row can be told by a key. Others have numbers here by which they are counted.
  var namesRows: Bool { namesRowsByRowID || keyColumn != nil }

  /// Whether a row's value in a column could not be read.
  func hasLost(_ column: String, of key: Int64) -> Bool {
    lostValues.contains { $0.value.contains(key) && columns[$0.key].name.isSameName(as: column) }
  }

  /// - Parameters:
  ///   - file: The sound file, which has the table.
  ///   - kind: That of a tree of the form of an index for a table without row ids.
  init(
    _ name: String, columns: [SchemaSalvage.Column], tree: Int32, in file: Connection,
    values: UnsafeMutablePointer<RawValue>, kind: TreeScan.Kind = .table
  ) throws {
    self.name = name
    self.columns = columns
    self.tree = tree
    self.values = values
    self.file = file
    self.kind = kind
    keyColumn = columns.firstIndex(where: \.holdsKey)
    rowIDColumn = keyColumn ?? columns.firstIndex(where: \.isRowID)
    kinds = columns.map(ValueKinds.init)
    let taken = Set(columns.map(\.name.columnKey))
    let rowID =
      rowIDColumn == nil && kind == .table
      ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0.columnKey) } : nil
    let hidden = columns.count < LayoutProblem.mostColumns ? rowID : nil
    if let rowID, hidden == nil {
      numbering = try file.prepare(
        "UPDATE OR IGNORE \(quoted(name)) SET \(rowID) = ?1 WHERE \(rowID) = ?2")
    }
    let names = columns.map { quoted($0.name) } + (hidden.map { [$0] } ?? [])
    let marks = (1...names.count).map { "?\($0)" }.joined(separator: ", ")
    statement = try file.prepare(
      "INSERT OR IGNORE INTO \(quoted(name)) (\(names.joined(separator: ", "))) VALUES (\(marks))")
    comparisonSQL =
      "SELECT 1 FROM \(quoted(name)) WHERE (\(names.joined(separator: ", "))) IS (\(marks))"
    doubtsZero = rowIDColumn.map { columns[$0].isRowID && columns[$0].name == "Z_PK" } ?? false
    places = columns.indices.map { Int32($0 + 1) }
    keyPlace = rowIDColumn.map { Int32($0 + 1) } ?? hidden.map { _ in Int32(names.count) }
  }

  /// `CREATE TABLE` of the table that rows are copied to. Types are in quotes: a hostile one could say anything, and
  /// to SQLite it is the same type.
  static func sql(_ name: String, _ columns: [SchemaSalvage.Column]) -> String {
    let listed = columns.map { column in
      column.isRowID || column.holdsKey
        ? "\(quoted(column.name)) INTEGER PRIMARY KEY"
        : "\(quoted(column.name)) \(column.type.isEmpty ? "" : quoted(column.type))"
    }
    return "CREATE TABLE \(quoted(name)) (\(listed.joined(separator: ", ")))"
  }
}

extension TableSalvage {
  /// Rows that may stand in others' place, by their keys or since their records do not add up: put there when
  /// all others are.
  struct Deferred {
    var key: Int64
    var state: KeyState
    /// Without its bytes, which are gone with its page.
    var record: DamagedRecord
    var bytes: [UInt8]
  }

  /// Reads the tree below `root`, and the leaves that lead to it no more.
  ///
  /// - Parameters:
  ///   - isContested: Whether the orphans' rows may be another table's as well.
  ///   - isOwn: Whether what lies on a leaf of the tree can be the table's, as ``DamagedTreeReader/isOwn``.
  mutating func fill(
    root: UInt32?, orphans: [UInt32], of damaged: DamagedFile, isContested: Bool = false,
    isOwn: @escaping (UInt32, () -> Bool) throws -> Bool = { _, _ in true }
  ) throws {
    var reader = DamagedTreeReader(damaged, kind, tree: tree)
    reader.isOwn = isOwn
    var waiting: [Deferred] = []
    var working = self
    working.isContested = isContested
    if let root {
      working.root = root
      try reader.read(root: root) {
        try working.take($0, isInTree: true, &waiting)
      }
    }
    for page in orphans {
      try reader.read(orphan: page) {
        try working.take($0, isInTree: false, &waiting)
      }
    }
    working.gaps += namesRowsByRowID ? reader.gaps : reader.gaps.map { KeyGap(page: $0.page) }
    try working.insert(waiting, [.misplaced, .onlyPossible])
    working.waiting += waiting.filter { $0.state == .doubtful || $0.state == .sound }
    self = working
  }

  /// Puts rows there that may not be what they seem, where no other row has come to be, from whichever page.
  mutating func settle() throws {
    try insert(waiting, [.doubtful, .sound])
    waiting = []
  }

  /// - Parameter states: Of the rows that come now. Whose key is more certain comes first: it stays where two rows
  ///   have the same one. Last come rows of which the key alone is certain.
  private mutating func insert(_ rows: [Deferred], _ states: [KeyState]) throws {
    for state in states {
      for row in rows where row.state == state {
        let isNew = try row.bytes.withUnsafeBytes { bytes in
          try insert(DamagedRecord(row.record, copiedTo: bytes), key: row.key)
        }
        guard isNew else { continue }
        switch state {
        case .misplaced: misplacedKeys.insert(row.key)
        case .onlyPossible, .doubtful: doubtfulOwnKeys.insert(row.key)
        case .sound: break
        }
      }
    }
  }

  /// Lets the file be closed. What was found elsewhere is not lost.
  mutating func end() throws {
    guard statement != nil else { return }
    (statement, numbering, comparison) = (nil, nil, nil)
    guard !lostKeys.isEmpty, namesRowsByRowID else { return }
    let there = try file.prepare(
      "SELECT rowid FROM \(quoted(name)) WHERE rowid BETWEEN ?1 AND ?2")
    var found: [Int64] = []
    for range in lostKeys.ranges {
      try there.bind(1, range.lowerBound)
      try there.bind(2, range.upperBound)
      while try there.step() { found.append(there.int64(0)) }
      there.reset()
    }
    lostKeys = lostKeys.subtracting(KeyRanges(found))
  }

  mutating func addGap(_ gap: KeyGap) { gaps.append(gap) }

  private mutating func take(
    _ cell: DamagedCell, isInTree: Bool, _ waiting: inout [Deferred]
  ) throws {
    let kinds = cell.record.kinds
    if keyColumn != nil || cell.keyState == .sound && (kinds != nil || !isInTree) {
      _ = try insert(cell.record, key: cell.key, isInTree: isInTree)
    } else if cell.keyState != .doubtful || kinds.map({ $0.count <= columns.count }) ?? false {
      waiting.append(
        Deferred(
          key: cell.key, state: cell.keyState, record: cell.record,
          bytes: [UInt8](cell.record.bytes)))
    }
  }

  /// - Returns: Whether the row is new.
  @discardableResult
  private mutating func insert(
    _ record: DamagedRecord, key: Int64, isInTree: Bool = true
  ) throws -> Bool {
    var lost: [Int] = []
    guard
      let (count, condition) = record.decode(into: values, count: columns.count, lost: &lost),
      // A record that proves whole tells that the table has more columns than its text.
      count <= columns.count || isInTree && condition == .whole,
      isInTree || condition != .doubtful
    else {
      if isInTree { lose(key) }
      return false
    }
    guard let statement else { return false }
    var key = key
    if let keyColumn {
      guard values[keyColumn].kind == .integer else {
        lose(key)
        return false
      }
      key = values[keyColumn].bits
    }
    for (place, kinds) in kinds.enumerated() where !kinds.contains(values[place].kind) {
      values[place] = .null
      lost.append(place)
    }
    // A row that was there before its last columns has what these are declared with.
    for place in min(count, columns.count)..<columns.count where place != rowIDColumn {
      if let value = columns[place].defaultValue { values[place] = value.raw }
    }
    try bind(to: statement)
    if let keyPlace { try statement.bind(keyPlace, key) }
    try statement.run()
    guard try file.changes > 0 && number(key) else {
      if try !isThere(key) { repeatedKeys.insert(key) }
      return false
    }
    if !namesRows { key = file.lastInsertRowID }
    rowCount += 1
    if count > columns.count { surplusKeys.insert(key) }
    if !isInTree, gaps.isEmpty { strayKeys.insert(key) }
    if !isInTree, isContested { contestedKeys.insert(key) }
    if key == 0, doubtsZero { hasZeroKey = true }
    if condition == .doubtful || condition == .blank { doubtfulKeys.insert(key) }
    for place in lost where place < columns.count && place != rowIDColumn {
      lostValues[place, default: KeyRanges()].insert(key)
    }
    for (place, column) in columns.enumerated()
    where values[place].kind == .text && place != rowIDColumn && !column.isGenerated
      && String(validating: values[place].buffer, as: UTF8.self) == nil
    {
      oddTexts[place, default: KeyRanges()].insert(key)
    }
    for (place, column) in columns.enumerated()
    where place != rowIDColumn && !column.isGenerated && kinds[place].converts(values[place]) {
      convertedValues[place, default: KeyRanges()].insert(key)
    }
    if record.isDoubtful {
      for place in record.doubtfulValues(count: columns.count) where !lost.contains(place) {
        doubtfulValues[place, default: KeyRanges()].insert(key)
      }
    }
    return true
  }

  private func bind(to statement: Statement) throws {
    for place in columns.indices where place != rowIDColumn {
      try statement.bind(places[place], values[place])
    }
  }

  /// Gives the row that was inserted last its row id, where that is not done yet.
  ///
  /// - Returns: False where another row has it; the new one is gone then.
  private func number(_ key: Int64) throws -> Bool {
    let last = file.lastInsertRowID
    guard let numbering, last != key else { return true }
    try numbering.bind(1, key)
    try numbering.bind(2, last)
    try numbering.run()
    guard file.changes == 0 else { return true }
    try file.execute("DELETE FROM \(quoted(name)) WHERE rowid = \(last)")
    return false
  }

  private mutating func lose(_ key: Int64) {
    if namesRowsByRowID { lostKeys.insert(key) } else { gaps.append(KeyGap(page: root)) }
  }

  /// Tells whether there is a row of a row id so far, or nobody can tell.
  func presence() -> (Int64) -> Bool {
    let search = try? file.prepare("SELECT 1 FROM \(quoted(name)) WHERE rowid = ?1")
    return { key in
      guard let search else { return true }
      defer { search.reset() }
      return (try? search.bind(1, key)).flatMap { try? search.step() } ?? true
    }
  }

  /// Whether the row that was not inserted, since its key is taken, is there already as it is.
  private mutating func isThere(_ key: Int64) throws -> Bool {
    guard let keyPlace else { return false }
    if comparison == nil {
      comparison = try file.prepare(comparisonSQL + " AND rowid = ?\(keyPlace)")
    }
    guard let comparison else { return false }
    try bind(to: comparison)
    try comparison.bind(keyPlace, key)
    defer { comparison.reset() }
    return try comparison.step()
  }
}
