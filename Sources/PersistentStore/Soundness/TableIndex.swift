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
package struct IndexKeys {
  package let indexes: [TableIndex]
  package private(set) var digests: [RowSetDigest]
  /// Places in a row, those of one index after those of another.
  private var places: [Int] = []
  private var ends: [Int] = []

  /// - Parameters:
  ///   - columns: The columns of the rows that will be added, by place.
  ///   - rowID: The place of the row id.
  /// - Returns: Nil where a column of an index is not among them.
  package init?(_ indexes: [TableIndex], columns: [String], rowID: Int) {
    self.indexes = indexes
    digests = indexes.map { _ in RowSetDigest() }
    let keys = columns.map(\.columnKey)
    for index in indexes {
      for column in index.columns {
        guard let place = keys.firstIndex(of: column.columnKey) else { return nil }
        places.append(place)
      }
      places.append(rowID)
      ends.append(places.count)
    }
  }

  package mutating func add(_ row: UnsafePointer<RawValue>) {
    var place = 0
    for index in ends.indices {
      let end = ends[index]
      var hash = RowHash(length: end - place)
      while place < end {
        hash.add(key: row[places[place]])
        place += 1
      }
      digests[index].add(hash)
    }
  }
}

extension RowHash {
  /// Columns of REAL hold whole numbers in either form, which SQLite takes for equal.
  @inline(__always)
  mutating func add(key value: RawValue) {
    if value.kind == .real, let whole = Int64(exactly: value.real) { return add(.integer(whole)) }
    add(value)
  }
}

/// Whether entries of an index come in its order. Keeps a copy of the entry before.
struct EntryOrder: ~Copyable {
  private let isDescending: [Bool]
  private let isUnique: Bool
  private let count: Int
  private let last: UnsafeMutablePointer<RawValue>
  private var bytes = RawBuffer(capacity: 4 << 10)
  private var isFirst = true

  init(_ index: TableIndex) {
    isDescending = index.isDescending
    isUnique = index.isUnique
    count = index.columns.count + 1
    last = .allocate(capacity: count)
    last.initialize(repeating: .null, count: count)
  }

  deinit { last.deallocate() }

  mutating func ascends(to entry: UnsafePointer<RawValue>) -> Bool {
    let ascends = isFirst || stands(before: entry)
    isFirst = false
    var size = 0
    for place in 0..<count { size += entry[place].buffer.count }
    bytes.removeAll()
    // At once, since growing would move what `last` points to.
    bytes.reserve(size)
    for place in 0..<count {
      var value = entry[place]
      if value.bytes != nil {
        let start = bytes.count
        bytes.append(value.buffer)
        value.bytes = UnsafeRawPointer(bytes.base + start)
      }
      last[place] = value
    }
    return ascends
  }

  private func stands(before entry: UnsafePointer<RawValue>) -> Bool {
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
