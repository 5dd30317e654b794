import GodwitSQLite

/// What a table's indexes tell of rows that the table has lost.
struct IndexEvidence {
  /// Rows that the table had and has lost: an index names them where pages of it are lost, or two
  /// whole ones do.
  private(set) var lostKeys = KeyRanges()
  /// Rows that the table may have lost: the only whole index that there is names them.
  private(set) var possibleKeys = KeyRanges()
  /// Rows that were found astray and that an index names.
  private(set) var confirmedKeys = KeyRanges()
  /// `Z_ENT` of some of the lost rows.
  private(set) var entityNumbers: [Int64: Int64] = [:]
  /// Whether an index proves that no other rows are lost.
  private(set) var isComplete = false
  /// Pairs of a join table that an index has and the table lost.
  private(set) var pairs: [(first: Int64, second: Int64)] = []
  /// Indexes that could not be read from end to end, or that contradict the table and another index.
  private(set) var damaged: [String] = []

  /// More entries than any index of Core Data's has columns.
  private static let mostValues = 64

  /// What one index says.
  private struct Reading {
    let name: String
    var isWhole = true
    /// Entries of rows that the table has.
    var saved: Int64 = 0
    var missing: [Int64] = []
    var pairs: [Int64: (first: Int64, second: Int64)] = [:]
    var hasUnusablePair = false
    /// Rows that the table has, and has with other keys.
    var contraryPairs: Int64 = 0
    /// An index of the table's own agrees with the rows that are there.
    var isContrary: Bool { contraryPairs * 10 > saved }
  }

  /// - Parameters:
  ///   - table: As it was saved to `file`.
  ///   - pairColumns: Of a join table: its two key columns.
  init(
    _ table: TableSalvage, _ schema: SchemaSalvage, _ damagedFile: DamagedFile,
    in file: Connection, nextTree: inout Int32, pairColumns: (String, String)? = nil
  ) throws {
    var readings: [Reading] = []
    for index in schema.indexes(of: table.name) {
      nextTree += 1
      readings.append(
        try read(
          index, of: table, columns: schema.columns(ofIndex: index.name) ?? [],
          DamagedTreeReader(damagedFile, .index, tree: nextTree), in: file, pairColumns))
    }
    judge(readings, table)
  }

  private mutating func read(
    _ index: SchemaSalvage.Entry, of table: TableSalvage, columns: [String],
    _ tree: DamagedTreeReader, in file: Connection, _ pairColumns: (String, String)?
  ) throws -> Reading {
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: Self.mostValues)
    defer { values.deallocate() }
    let own = pairColumns.map { "\(quoted($0)), \(quoted($1))" } ?? "1"
    let known = try file.prepare("SELECT \(own) FROM \(quoted(table.name)) WHERE rowid = ?1")
    let entityColumn = columns.firstIndex(of: "Z_ENT")
    let pair = pairColumns.flatMap { first, second -> (Int, Int)? in
      guard let a = columns.firstIndex(of: first), let b = columns.firstIndex(of: second) else {
        return nil
      }
      return (a, b)
    }
    var reader = tree
    var lost: [Int] = []
    var reading = Reading(name: index.name)
    var (numbers, confirmed): ([Int64: Int64], [Int64]) = ([:], [])
    let strays = table.strayKeys
    try reader.read(root: index.root) { cell in
      guard
        let (count, condition) = cell.record.decode(
          into: values, count: Self.mostValues, lost: &lost),
        condition == .whole, count == columns.count + 1, values[count - 1].kind == .integer
      else {
        reading.isWhole = false
        return
      }
      let key = values[count - 1].bits
      try known.bind(1, key)
      let isSaved = try known.step()
      if isSaved, let pair,
        known.value(0).integer != Self.integer(values[pair.0])
          || known.value(1).integer != Self.integer(values[pair.1])
      {
        reading.contraryPairs += 1
      }
      known.reset()
      guard !isSaved else {
        reading.saved += 1
        if !strays.isEmpty, strays.contains(key) { confirmed.append(key) }
        return
      }
      reading.missing.append(key)
      if let entityColumn, values[entityColumn].kind == .integer {
        numbers[key] = values[entityColumn].bits
      }
      guard let pair else { return }
      if values[pair.0].kind == .integer, values[pair.1].kind == .integer {
        reading.pairs[key] = (values[pair.0].bits, values[pair.1].bits)
      } else {
        reading.hasUnusablePair = true
      }
    }
    entityNumbers.merge(numbers) { _, new in new }
    confirmedKeys.formUnion(KeyRanges(confirmed))
    if !reader.gaps.isEmpty { reading.isWhole = false }
    return reading
  }

  private static func integer(_ value: RawValue) -> Int64? {
    value.kind == .integer ? value.bits : nil
  }

  private mutating func judge(_ all: [Reading], _ table: TableSalvage) {
    // Of another table, or with its columns exchanged.
    let readings = all.filter { !$0.isContrary }
    defer { damaged += all.filter(\.isContrary).map(\.name) }
    let whole = readings.filter(\.isWhole)
    damaged = readings.filter { !$0.isWhole }.map(\.name)
    isComplete = whole.contains { $0.saved == table.rowCount && !$0.hasUnusablePair }
    var lost = Set(
      readings.flatMap(\.missing).filter { key in table.gaps.contains { $0.contains(key) } })
    // Where nothing of the table is damaged to see, one of its pages may be an old one. So may one of
    // an index: it takes two to prove a loss.
    var votes: [Int64: Int] = [:]
    for reading in whole {
      for key in Set(reading.missing) where !lost.contains(key) { votes[key, default: 0] += 1 }
    }
    let isRefuted = whole.contains { $0.missing.isEmpty && $0.saved == table.rowCount }
    for (key, count) in votes where count > 1 { lost.insert(key) }
    let single = votes.filter { $0.value == 1 }.keys
    if !isRefuted {
      possibleKeys = KeyRanges(single)
    } else {
      damaged += whole.filter { !Set($0.missing).isDisjoint(with: single) }.map(\.name)
    }
    lostKeys = KeyRanges(lost)
    var pairs: [Int64: (first: Int64, second: Int64)] = [:]
    for reading in readings {
      for (key, pair) in reading.pairs where !table.gaps.isEmpty || lost.contains(key) {
        pairs[key] = pair
      }
    }
    self.pairs = pairs.sorted { $0.key < $1.key }.map(\.value)
  }
}
