import GodwitSQLite

/// What a table's indexes tell of rows that the table has lost.
struct IndexEvidence {
  /// Keys of two objects.
  typealias Pair = (first: Int64, second: Int64)

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
  private(set) var pairs: [Pair] = []
  /// Pairs of a join table that two indexes have, and the table otherwise: by the row.
  private(set) var correctedPairs: [Int64: Pair] = [:]
  /// Rows of which an index has another value than the table, and nothing tells which is right: by
  /// the column.
  private(set) var contradictedKeys: [String: KeyRanges] = [:]
  /// Objects of a join table's first column of whose pairs the same is true.
  private(set) var contradictedOwners = KeyRanges()
  /// Rows that the table has and no whole index names: a page of it may be one of before they were deleted.
  private(set) var unnamedKeys = KeyRanges()
  /// Of a join table: the objects of the first column of such pairs.
  private(set) var unnamedOwners = KeyRanges()
  /// Indexes that could not be read from end to end, or that contradict the table and another index.
  private(set) var damaged: [String] = []

  /// More entries than any index of Core Data's has columns.
  private static let mostValues = 64
  /// 64 MiB of keys of one index.
  private static let mostKeys: Int64 = 8 << 20

  /// What one index says.
  private struct Reading {
    let name: String
    let columns: [String]
    var isWhole = true
    /// Entries of rows that the table has.
    var saved: Int64 = 0
    /// Their keys; nil where there are too many to be kept.
    var savedKeys: [Int64]? = []
    var missing: [Int64] = []
    var pairs: [Int64: Pair] = [:]
    var hasUnusablePair = false
    /// Rows that the table has, and has with other values: by the column.
    var contraryKeys: [String: Set<Int64>] = [:]
    /// Such rows of a join table: the table's pair and the index's.
    var contraryPairs: [Int64: (own: Pair, said: Pair)] = [:]
    private var contraryCount: Int64 { Int64(contraryKeys.values.map(\.count).max() ?? 0) }
    /// An index of the table's own agrees with the rows that are there: others prove no loss.
    var isContrary: Bool { contraryCount * 10 > saved }
    /// Too much for damaged values: it is another table's, or its columns are exchanged.
    var isForeign: Bool { isContrary && contraryCount > 2 }
  }

  /// - Parameters:
  ///   - table: As it was saved to `file`.
  ///   - pairColumns: Of a join table: its two key columns.
  init(
    _ table: TableSalvage, _ schema: SchemaSalvage, _ damagedFile: DamagedFile,
    in file: Connection, nextTree: inout Int32, pairColumns: (String, String)? = nil
  ) throws {
    var readings: [Reading] = []
    // One over some of the rows, or over expressions, proves nothing of the others.
    for index in schema.indexes(of: table.name) where !schema.isPartial(index) {
      nextTree += 1
      readings.append(
        try read(
          index, of: table, columns: schema.columns(ofIndex: index.name) ?? [],
          DamagedTreeReader(damagedFile, .index, tree: nextTree), in: file, pairColumns))
    }
    judge(readings, table)
    try findUnnamed(readings, table, file, pairColumns?.0)
  }

  /// The reverse of a loss: where whole indexes lack rows that the table has, and none has them all, the
  /// table's pages may be old ones.
  private mutating func findUnnamed(
    _ readings: [Reading], _ table: TableSalvage, _ file: Connection, _ ownerColumn: String?
  ) throws {
    let whole = readings.filter { $0.isWhole && !$0.isForeign }
    let partial = whole.filter { $0.saved < table.rowCount }
    guard !partial.isEmpty else { return }
    damaged = Set(damaged + partial.map(\.name)).sorted()
    guard partial.count == whole.count, partial.allSatisfy({ $0.savedKeys != nil }) else { return }
    let named = Set(partial.flatMap { $0.savedKeys ?? [] })
    let owner = ownerColumn.map(quoted) ?? "NULL"
    let rows = try file.prepare("SELECT rowid, \(owner) FROM \(quoted(table.name))")
    var (unnamed, owners): ([Int64], [Int64]) = ([], [])
    let strays = table.strayKeys
    while try rows.step() {
      let key = rows.int64(0)
      guard !named.contains(key), !strays.contains(key) else { continue }
      unnamed.append(key)
      if let object = rows.value(1).integer { owners.append(object) }
    }
    unnamedKeys = KeyRanges(unnamed)
    unnamedOwners = KeyRanges(owners)
  }

  private mutating func read(
    _ index: SchemaSalvage.Entry, of table: TableSalvage, columns: [String],
    _ tree: DamagedTreeReader, in file: Connection, _ pairColumns: (String, String)?
  ) throws -> Reading {
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: Self.mostValues)
    defer { values.deallocate() }
    let places = columns.indices.filter { place in
      table.columns.contains { $0.name.isSameName(as: columns[place]) }
    }
    // SQLite compares as the column does: a whole number is stored alike in a column of numbers.
    let agrees = places.map { "\(quoted(columns[$0])) IS ?\($0 + 2)" }
    let own = pairColumns.map { [quoted($0), quoted($1)] } ?? []
    let known = try file.prepare(
      "SELECT \((agrees + own + ["1"]).joined(separator: ", ")) FROM \(quoted(table.name)) "
        + "WHERE rowid = ?1")
    let entityColumn = columns.firstIndex(of: "Z_ENT")
    let pair = pairColumns.flatMap { first, second -> (Int, Int)? in
      guard let a = columns.firstIndex(of: first), let b = columns.firstIndex(of: second) else {
        return nil
      }
      return (a, b)
    }
    var reader = tree
    var lost: [Int] = []
    var reading = Reading(name: index.name, columns: columns)
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
      for place in places { try known.bind(Int32(place + 2), values[place]) }
      let isSaved = try known.step()
      let contrary =
        isSaved
        ? places.indices.filter { known.value(Int32($0)).integer == 0 }.map { columns[places[$0]] }
        : []
      for column in contrary where !table.hasLost(column, of: key) {
        reading.contraryKeys[column, default: []].insert(key)
      }
      if !contrary.isEmpty, let pair,
        let first = known.value(Int32(places.count)).integer,
        let second = known.value(Int32(places.count + 1)).integer,
        let saidFirst = Self.integer(values[pair.0]), let saidSecond = Self.integer(values[pair.1])
      {
        reading.contraryPairs[key] = ((first, second), (saidFirst, saidSecond))
      }
      known.reset()
      guard !isSaved else {
        reading.saved += 1
        reading.savedKeys?.append(key)
        if reading.saved > Self.mostKeys { reading.savedKeys = nil }
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

  private mutating func judge(_ found: [Reading], _ table: TableSalvage) {
    var all = found
    correctPairs(&all)
    damaged = all.filter { !$0.isWhole || $0.isForeign }.map(\.name)
    settle(all.filter { !$0.isForeign }, table)
    let readings = all.filter { !$0.isContrary }
    let whole = readings.filter(\.isWhole)
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
    var pairs: [Int64: Pair] = [:]
    for reading in readings {
      for (key, pair) in reading.pairs where !table.gaps.isEmpty || lost.contains(key) {
        pairs[key] = pair
      }
    }
    self.pairs = pairs.sorted { $0.key < $1.key }.map(\.value)
    damaged = Set(damaged).sorted()
  }

  /// Two indexes that say the same of a pair outvote the table.
  private mutating func correctPairs(_ readings: inout [Reading]) {
    for (place, reading) in readings.enumerated() {
      for (key, pairs) in reading.contraryPairs {
        let agreeing = readings[(place + 1)...].contains { other in
          other.contraryPairs[key].map { $0.said == pairs.said } == true
        }
        if agreeing { correctedPairs[key] = pairs.said }
      }
    }
    for place in readings.indices {
      for (column, keys) in readings[place].contraryKeys {
        readings[place].contraryKeys[column] = keys.filter { correctedPairs[$0] == nil }
      }
    }
  }

  /// Who is right where one index and the table differ: another index that agrees with the table all
  /// over tells that the first one is damaged.
  private mutating func settle(_ readings: [Reading], _ table: TableSalvage) {
    var doubtful: [String: Set<Int64>] = [:]
    for reading in readings {
      for (column, keys) in reading.contraryKeys where !keys.isEmpty {
        let witnesses = readings.filter { other in
          other.name != reading.name && other.isWhole && other.saved == table.rowCount
            && other.columns.contains(column)
        }
        let open = keys.filter { key in
          witnesses.allSatisfy { $0.contraryKeys[column]?.contains(key) == true }
        }
        doubtful[column, default: []].formUnion(open)
        if open.count < keys.count { damaged.append(reading.name) }
        contradictedOwners.formUnion(
          KeyRanges(open.compactMap { reading.contraryPairs[$0]?.own.first }))
      }
    }
    contradictedKeys = doubtful.filter { !$0.value.isEmpty }.mapValues { KeyRanges($0) }
  }
}
