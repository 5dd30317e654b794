import GodwitDigests
import GodwitSQLite

/// An index that can be compared with its table by digests of (indexed columns, row id).
package struct TableIndex {
  package let name: String
  let columns: [String]
  let isDescending: [Bool]
  let isUnique: Bool

  /// Every index of a table; nil where one of them, or the table, is a case for SQLite's own check:
  /// partial indexes, expressions, other collations than BINARY, tables without a row id.
  package static func all(of table: String, in connection: Connection) throws -> [TableIndex]? {
    guard let shape = try connection.shape(of: table) else { return [] }
    if shape.indexes.isEmpty { return [] }
    // A column that hides the row id is a case for SQLite, too.
    let isOdd = shape.columns.contains {
      $0.isHidden || ["rowid", "_rowid_", "oid"].contains($0.name.lowercased())
    }
    guard !isOdd, !shape.isWithoutRowID else { return nil }
    var indexes: [TableIndex] = []
    for declared in shape.indexes {
      guard !declared.isPartial else { return nil }
      let keys = declared.fields.filter(\.isKey)
      guard !keys.isEmpty,
        keys.allSatisfy({
          shape.columns.indices.contains($0.column) && $0.collation == "BINARY"
        })
      else { return nil }
      indexes.append(
        TableIndex(
          name: declared.name, columns: keys.map { shape.columns[$0.column].name },
          isDescending: keys.map(\.isDescending), isUnique: declared.isUnique))
    }
    return indexes
  }
}

/// The digests that the indexes of a table must have, from the table's rows.
package final class IndexKeys {
  /// Places in a row, of one list of keys.
  private struct Keys {
    var places: UnsafeMutableBufferPointer<Int>
    var digest = RowSetDigest()
  }

  package let indexes: [TableIndex]
  // Each list of keys once, however many indexes have it. Arrays cost a reference count and a check each
  // time, and this is done for each row.
  private let keys: UnsafeMutableBufferPointer<Keys>
  /// Which list an index has.
  private let lists: [Int]

  /// - Parameters:
  ///   - columns: The columns of the rows that will be added, by place.
  ///   - rowID: The place of the row id.
  /// - Returns: Nil where a column of an index is not among them.
  package init?(_ indexes: [TableIndex], columns: [String], rowID: Int) {
    let names = columns.map(\.columnKey)
    var (known, lists) = ([[Int]](), [Int]())
    for index in indexes {
      let places = index.columns.compactMap { names.firstIndex(of: $0.columnKey) } + [rowID]
      guard places.count == index.columns.count + 1 else { return nil }
      lists.append(known.firstIndex(of: places) ?? known.count)
      if lists.last == known.count { known.append(places) }
    }
    self.indexes = indexes
    self.lists = lists
    keys = .allocate(capacity: known.count)
    for (number, places) in known.enumerated() {
      let kept = UnsafeMutableBufferPointer<Int>.allocate(capacity: places.count)
      _ = kept.initialize(from: places)
      keys.initializeElement(at: number, to: Keys(places: kept))
    }
  }

  deinit {
    for list in keys { list.places.deallocate() }
    keys.deallocate()
  }

  /// Those of ``indexes``.
  package var digests: [RowSetDigest] { lists.map { keys[$0].digest } }

  package func add(_ row: UnsafePointer<RawValue>) {
    for number in 0..<keys.count {
      let places = keys[number].places
      var hash = RowHash(length: places.count)
      for place in 0..<places.count { hash.add(kept: row[places[place]]) }
      keys[number].digest.add(hash)
    }
  }
}

/// Whether entries of an index come in its order. Each is read to where ``entry`` says, beside the one
/// before.
struct EntryOrder: ~Copyable {
  private let isDescending: [Bool]
  private let isUnique: Bool
  private let count: Int
  private var last: UnsafeMutablePointer<RawValue>
  /// The place of the next entry's values.
  private(set) var entry: UnsafeMutablePointer<RawValue>
  private var bytes = RawBuffer(capacity: 4 << 10)
  private var isFirst = true

  init(_ index: TableIndex) {
    isDescending = index.isDescending
    isUnique = index.isUnique
    count = index.columns.count + 1
    last = .allocate(capacity: count)
    last.initialize(repeating: .null, count: count)
    entry = .allocate(capacity: count)
    entry.initialize(repeating: .null, count: count)
  }

  deinit {
    last.deallocate()
    entry.deallocate()
  }

  /// Whether ``entry`` stands behind the one before, which it takes the place of.
  @inline(__always)
  mutating func ascends() -> Bool {
    let ascends = isFirst || isInOrder()
    isFirst = false
    swap(&last, &entry)
    return ascends
  }

  /// Keeps the bytes of the last entry, before their page goes.
  mutating func keepLast() {
    var size = 0
    for place in 0..<count { size += last[place].buffer.count }
    bytes.removeAll()
    // At once, since growing would move what `last` points to.
    bytes.reserve(size)
    for place in 0..<count where last[place].bytes != nil {
      let start = bytes.count
      bytes.append(last[place].buffer)
      last[place].bytes = UnsafeRawPointer(bytes.base + start)
    }
  }

  @inline(__always)
  private func isInOrder() -> Bool {
    // Most indexes are over one column of numbers.
    if count == 2, last[0].kind == .integer, entry[0].kind == .integer,
      last[0].bits != entry[0].bits
    {
      return (last[0].bits < entry[0].bits) != isDescending[0]
    }
    return stands()
  }

  private func stands() -> Bool {
    var hasNull = false
    for place in 0..<(count - 1) {
      hasNull = hasNull || entry[place].kind == .null
      let comparison = RawValue.compare(last[place], entry[place])
      if comparison != 0 { return (comparison < 0) != isDescending[place] }
    }
    if isUnique && !hasNull { return false }
    return last[count - 1].bits < entry[count - 1].bits
  }
}
