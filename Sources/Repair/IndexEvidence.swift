import GodwitObjectModel
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
  private(set) var contradictedKeys: [NameKey: KeyRanges] = [:]
  /// Objects of a join table's first column of whose pairs the same is true.
  private(set) var contradictedOwners = KeyRanges()
  /// Rows that the table has and no whole index names: a page of it may be one of before they were deleted.
  private(set) var unnamedKeys = KeyRanges()
  /// Of a join table: the objects of the first column of such pairs.
  private(set) var unnamedOwners = KeyRanges()
  /// Indexes that could not be read from end to end, or that contradict the table and another index.
  private(set) var damaged: [String] = []

  /// - Parameters:
  ///   - table: As it was saved to `file`.
  ///   - entityNumbers: `Z_ENT` of the table's entities; nil for one that has no objects of the model.
  ///   - pairColumns: Of a join table: its two key columns.
  init(
    _ table: TableSalvage, _ schema: SchemaSalvage, _ damagedFile: DamagedFile,
    in file: Connection, nextTree: inout Int32, entityNumbers: Set<Int64>? = nil,
    pairColumns: (String, String)? = nil
  ) throws {
    var readings: [IndexReading] = []
    // One over some of the rows, or over expressions, proves nothing of the others; one in an order that only the
    // application knows nothing at all.
    for index in schema.indexes(of: table.name)
    where !schema.isPartial(index) && !schema.needsApplication(index) {
      nextTree += 1
      // The schema's names of them may have letters of another case.
      let columns = (schema.columns(ofIndex: index.name) ?? []).map { name in
        table.columns.first { $0.name.columnKey == name.columnKey }?.name ?? name
      }
      let reading = try IndexReading(
        index, of: table, columns: columns,
        DamagedTreeReader(damagedFile, .index, tree: nextTree), in: file,
        entityNumbers: entityNumbers, pairColumns: pairColumns,
        others: OtherIndexes(than: table.name, columns: columns, schema, in: file))
      self.entityNumbers.merge(reading.entityNumbers) { _, new in new }
      confirmedKeys.formUnion(KeyRanges(reading.confirmed))
      readings.append(reading)
    }
    judge(readings, table)
    try findUnnamed(readings, table, file, pairColumns?.0)
  }

  /// The reverse of a loss: where whole indexes lack rows that the table has, and none has them all, the
  /// table's pages may be old ones.
  private mutating func findUnnamed(
    _ readings: [IndexReading], _ table: TableSalvage, _ file: Connection, _ ownerColumn: String?
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

  private mutating func judge(_ found: [IndexReading], _ table: TableSalvage) {
    var all = found
    correctPairs(&all)
    damaged = all.filter { !$0.isWhole || $0.isForeign }.map(\.name)
    settle(all.filter { !$0.isForeign }, table)
    let readings = all.filter { !$0.isContrary }
    let whole = readings.filter(\.isWhole)
    isComplete = whole.contains { $0.saved == table.rowCount && !$0.hasUnusablePair }
    let named = whole.map { Set($0.missing) }
    // What one index names and a whole one does not, neither proves.
    func isUndisputed(_ key: Int64) -> Bool { named.allSatisfy { $0.contains(key) } }
    let inGaps = Set(
      readings.flatMap(\.missing).filter { key in table.gaps.contains { $0.contains(key) } })
    var lost = inGaps.filter(isUndisputed)
    // Where nothing of the table is damaged to see, one of its pages may be an old one. So may one of
    // an index: it takes two to prove a loss.
    var votes: [Int64: Int] = [:]
    for keys in named {
      for key in keys where !inGaps.contains(key) { votes[key, default: 0] += 1 }
    }
    let isRefuted = whole.contains { $0.missing.isEmpty && $0.saved == table.rowCount }
    for (key, count) in votes where count > 1 { lost.insert(key) }
    let open = inGaps.subtracting(lost).union(votes.filter { $0.value == 1 }.keys)
    if !isRefuted {
      possibleKeys = KeyRanges(open)
    } else {
      damaged += readings.filter { !Set($0.missing).isDisjoint(with: open) }.map(\.name)
    }
    lostKeys = KeyRanges(lost)
    takePairs(readings, table, isRefuted ? lost.contains : { _ in true }, isUndisputed)
    damaged = Set(damaged).sorted()
  }

  /// Pairs that the table lost: those of which indexes differ stay doubtful.
  private mutating func takePairs(
    _ readings: [IndexReading], _ table: TableSalvage, _ isPossible: (Int64) -> Bool,
    _ isUndisputed: (Int64) -> Bool
  ) {
    var pairs: [Int64: Pair] = [:]
    for reading in readings {
      for (key, pair) in reading.pairs
      where (!table.gaps.isEmpty || lostKeys.contains(key)) && isPossible(key) {
        let isAgreed = pairs[key].map { $0 == pair } ?? isUndisputed(key)
        if !isAgreed { contradictedOwners.insert(pair.first) }
        pairs[key] = pairs[key] ?? pair
      }
    }
    self.pairs = pairs.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Two indexes that say the same of a pair outvote the table.
  private mutating func correctPairs(_ readings: inout [IndexReading]) {
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
  private mutating func settle(_ readings: [IndexReading], _ table: TableSalvage) {
    var doubtful: [NameKey: Set<Int64>] = [:]
    for reading in readings {
      for (column, keys) in reading.contraryKeys where !keys.isEmpty {
        let witnesses = readings.filter { other in
          other.name != reading.name && other.isWhole && other.saved == table.rowCount
            && other.columns.contains { $0.isSameName(as: column.name) }
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
