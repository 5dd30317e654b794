import GodwitObjectModel
import GodwitSQLite

/// What one index says of the rows of its table.
///
/// A page of it may be another index's, and read well: what it says counts for as much as the rows that are
/// there bear out.
struct IndexReading {
  private(set) var name: String
  private(set) var columns: [String]
  private(set) var isWhole = true
  /// Entries of rows that the table has.
  private(set) var saved: Int64 = 0
  /// Their keys; nil where there are too many to be kept.
  private(set) var savedKeys: [Int64]? = []
  private(set) var missing: [Int64] = []
  /// `Z_ENT` of the missing ones, where the index has it.
  private(set) var entityNumbers: [Int64: Int64] = [:]
  /// Rows that were found astray and that the index names.
  private(set) var confirmed: [Int64] = []
  /// Of missing rows of a join table.
  private(set) var pairs: [Int64: IndexEvidence.Pair] = [:]
  private(set) var hasUnusablePair = false
  /// Rows that the table has, and has with other values: by the column.
  var contraryKeys: [NameKey: Set<Int64>] = [:]
  /// Such rows of a join table: the table's pair and the index's.
  private(set) var contraryPairs: [Int64: (own: IndexEvidence.Pair, said: IndexEvidence.Pair)] = [:]
  private var contraryCount: Int64 { Int64(contraryKeys.values.map(\.count).max() ?? 0) }
  /// An index of the table's own agrees with the rows that are there: others prove no loss.
  var isContrary: Bool { contraryCount * 10 > saved }
  /// Too much for damaged values: it is another table's, or its columns are exchanged.
  var isForeign: Bool { isContrary && contraryCount > 2 }

  /// More entries than any index of Core Data's has columns.
  private static let mostValues = 64
  /// 64 MiB of keys of one index.
  private static let mostKeys: Int64 = 8 << 20

  /// One entry, compared with the table.
  private struct Entry {
    let key: Int64
    let isSaved: Bool
    /// Columns of which the row has another value.
    var contrary: [String] = []
    var own: IndexEvidence.Pair?
    var pair: IndexEvidence.Pair?
    var entityNumber: Int64?
  }

  /// The entries of one page.
  private struct Page {
    let number: UInt32
    var entries: [Entry] = []
    /// Entries with values that their columns cannot have.
    var odd = 0
    /// Some of the entries that the table does not bear out.
    var samples: [OtherIndexes.Entry] = []
  }

  init(
    _ index: SchemaSalvage.Entry, of table: TableSalvage, columns: [String],
    _ tree: DamagedTreeReader, in file: Connection, entityNumbers: Set<Int64>?,
    pairColumns: (String, String)?, others: OtherIndexes
  ) throws {
    (name, self.columns) = (index.name, columns)
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: Self.mostValues)
    defer { values.deallocate() }
    let own = columns.map { name in table.columns.first { $0.name.isSameName(as: name) } }
    let places = columns.indices.filter { own[$0] != nil }
    let kinds = own.map { $0.map { (type: $0.type, kinds: ValueKinds($0)) } }
    // SQLite compares as the column does: a whole number is stored alike in a column of numbers.
    let agrees = places.map { "\(quoted(columns[$0])) IS ?\($0 + 2)" }
    let pairNames = pairColumns.map { [quoted($0), quoted($1)] } ?? []
    let known = try file.prepare(
      "SELECT \((agrees + pairNames + ["1"]).joined(separator: ", ")) FROM \(quoted(table.name)) "
        + "WHERE rowid = ?1")
    let entityColumn = entityNumbers == nil ? nil : columns.firstIndex(of: "Z_ENT")
    let pair = pairColumns.flatMap { first, second -> (Int, Int)? in
      guard let a = columns.firstIndex(where: { $0.isSameName(as: first) }),
        let b = columns.firstIndex(where: { $0.isSameName(as: second) })
      else { return nil }
      return (a, b)
    }
    var (reader, lost): (DamagedTreeReader, [Int]) = (tree, [])
    var reading = self
    var page = Page(number: index.root)
    try reader.read(root: index.root) { cell in
      if cell.page != page.number {
        try reading.take(page, table, tree, others, isOfPairs: pair != nil)
        page = Page(number: cell.page)
      }
      guard
        let (count, condition) = cell.record.decode(
          into: values, count: Self.mostValues, lost: &lost),
        condition == .whole || condition == .blank, !cell.record.isDoubtful
      else {
        reading.isWhole = false
        return
      }
      guard count == columns.count + 1, values[count - 1].kind == .integer else {
        page.odd += 1
        return
      }
      let key = values[count - 1].bits
      try known.bind(1, key)
      for place in places { try known.bind(Int32(place + 2), values[place]) }
      var entry = Entry(key: key, isSaved: try known.step())
      if entry.isSaved {
        entry.contrary = places.indices.filter { known.value(Int32($0)).integer == 0 }
          .map { columns[places[$0]] }
        if !pairNames.isEmpty, let first = known.value(Int32(places.count)).integer,
          let second = known.value(Int32(places.count + 1)).integer
        {
          entry.own = (first, second)
        }
      }
      known.reset()
      // An odd value that the row has, too, is damage of the row's.
      let isBorneOut = entry.isSaved && entry.contrary.isEmpty
      // Nor are zeros that the row has, too, a lost page.
      guard condition == .whole || isBorneOut else {
        reading.isWhole = false
        return
      }
      let isPossible =
        columns.indices.allSatisfy { place in
          guard let (type, kinds) = kinds[place], values[place].kind != .null else { return true }
          return kinds.contains(values[place].kind) && TableShape.allows(type, values[place].kind)
        }
        && entityColumn.map { place in
          values[place].kind != .integer || entityNumbers?.contains(values[place].bits) == true
        } ?? true
      guard isBorneOut || isPossible else {
        page.odd += 1
        return
      }
      entry.entityNumber = entityColumn.flatMap { Self.integer(values[$0]) }
      if let pair, let first = Self.integer(values[pair.0]),
        let second = Self.integer(values[pair.1])
      {
        entry.pair = (first, second)
      }
      if !entry.isSaved || !entry.contrary.isEmpty, page.samples.count < OtherIndexes.mostSamples {
        page.samples.append((key, columns.indices.map { SQLiteValue(values[$0]) }))
      }
      page.entries.append(entry)
    }
    try reading.take(page, table, tree, others, isOfPairs: pair != nil)
    if !reader.gaps.isEmpty { reading.isWhole = false }
    self = reading
  }

  private static func integer(_ value: RawValue) -> Int64? {
    value.kind == .integer ? value.bits : nil
  }

  /// Believes a page, unless it is another index's.
  private mutating func take(
    _ page: Page, _ table: TableSalvage, _ tree: DamagedTreeReader, _ others: OtherIndexes,
    isOfPairs: Bool
  ) throws {
    guard page.odd > 0 || !page.entries.isEmpty else { return }
    if page.odd > 0 { isWhole = false }
    let saved = page.entries.filter(\.isSaved)
    let contrary = saved.count { !$0.contrary.isEmpty }
    let isBorneOut = !saved.isEmpty && contrary * 2 <= saved.count
    // A page that stands elsewhere, too, is that index's, and so is one that another table's rows bear out.
    let isAnothers =
      try page.odd * 10 > page.entries.count
      || !isBorneOut && (tree.isCopied(page.number) || others.have(page.samples))
    guard !isAnothers else {
      isWhole = false
      return
    }
    for entry in page.entries {
      guard entry.isSaved else {
        missing.append(entry.key)
        if let number = entry.entityNumber { entityNumbers[entry.key] = number }
        if let pair = entry.pair {
          pairs[entry.key] = pair
        } else if isOfPairs {
          hasUnusablePair = true
        }
        continue
      }
      for column in entry.contrary where !table.hasLost(column, of: entry.key) {
        contraryKeys[NameKey(column), default: []].insert(entry.key)
      }
      if !entry.contrary.isEmpty, let own = entry.own, let said = entry.pair {
        contraryPairs[entry.key] = (own, said)
      }
      self.saved += 1
      savedKeys?.append(entry.key)
      if self.saved > Self.mostKeys { savedKeys = nil }
      if table.strayKeys.contains(entry.key) { confirmed.append(entry.key) }
    }
  }
}
