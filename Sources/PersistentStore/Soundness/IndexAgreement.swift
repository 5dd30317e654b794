import Glibc
import GodwitDigests
import GodwitSQLite

/// Whether each index holds exactly its table's rows, in order.
///
/// SQLite's own check looks every row up in every index, in the order of the table: it costs as
/// much as building the indexes. This reads each index once from end to end and each table once,
/// and compares order-free digests of (indexed columns, row id); the order of the entries is
/// checked on the way. Whatever it does not cover, or finds amiss, is left to SQLite's check.
struct IndexAgreement {
  let connection: Connection

  /// True when every index is covered and agrees with its table; false says only that SQLite's
  /// full check must be asked.
  func holds() throws -> Bool {
    let tables = try connection.rows(
      """
      SELECT name, sql
        FROM sqlite_master
       WHERE type = 'table'
       ORDER BY name
      """)
    for row in tables {
      guard let name = row[0].text, let sql = row[1].text else { return false }
      guard try holds(table: name, sql: sql) else { return false }
    }
    return true
  }

  /// The same for the indexes of one table.
  func holds(table: String) throws -> Bool {
    let row = try connection.rows(
      "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?1", [.text(table)])
    guard let sql = row.first?.first?.text else { return false }
    return try holds(table: table, sql: sql)
  }

  private struct Index {
    var name: String
    var columns: [Int]
    var isDescending: [Bool]
    var isUnique: Bool
  }

  private func holds(table: String, sql: String) throws -> Bool {
    let indexes = try connection.rows("PRAGMA index_list(\(quoted(table)))")
    if indexes.isEmpty { return true }
    var covered: [Index] = []
    for row in indexes {
      guard row.count >= 5, let name = row[1].text, row[4].integer == 0 else { return false }
      guard let index = try self.index(name, isUnique: row[2].integer == 1) else { return false }
      covered.append(index)
    }
    let names = try connection.rows("PRAGMA table_info(\(quoted(table)))").compactMap { $0[1].text }
    // A column that hides the row id, or a table without one, is a case for SQLite.
    let isHidden = names.contains { ["rowid", "_rowid_", "oid"].contains($0.lowercased()) }
    guard !isHidden, !sql.uppercased().contains("WITHOUT ROWID") else { return false }
    let columns = Set(covered.flatMap(\.columns)).sorted()
    guard columns.allSatisfy(names.indices.contains) else { return false }
    let expected = try tableDigests(table, columns, names, covered)
    for (index, digest) in zip(covered, expected) {
      guard try indexDigest(table, index, names) == digest else { return false }
    }
    return true
  }

  private func index(_ name: String, isUnique: Bool) throws -> Index? {
    var index = Index(name: name, columns: [], isDescending: [], isUnique: isUnique)
    for row in try connection.rows("PRAGMA index_xinfo(\(quoted(name)))") {
      guard row.count >= 6, row[5].integer == 1 else { continue }
      // −1 is the row id, −2 an expression.
      guard let column = row[1].integer, column >= 0, row[4].text?.uppercased() == "BINARY" else {
        return nil
      }
      index.columns.append(Int(column))
      index.isDescending.append(row[3].integer == 1)
    }
    return index.columns.isEmpty ? nil : index
  }

  /// One scan of the table gives the digests that all of its indexes must have.
  private func tableDigests(
    _ table: String, _ columns: [Int], _ names: [String], _ indexes: [Index]
  ) throws -> [RowSetDigest] {
    let listed = columns.map { quoted(names[$0]) } + ["rowid"]
    let statement = try connection.prepare(
      "SELECT \(listed.joined(separator: ", ")) FROM \(quoted(table)) NOT INDEXED")
    let places = indexes.map { index in
      index.columns.map { columns.firstIndex(of: $0) ?? 0 } + [columns.count]
    }
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: listed.count)
    row.initialize(repeating: .null, count: listed.count)
    let key = UnsafeMutablePointer<RawValue>.allocate(capacity: listed.count)
    key.initialize(repeating: .null, count: listed.count)
    defer {
      row.deallocate()
      key.deallocate()
    }
    var record = RawBuffer(capacity: 4 << 10)
    var digests = indexes.map { _ in RowSetDigest() }
    while try statement.step() {
      statement.read(into: row, from: 0, count: Int32(listed.count))
      for index in places.indices {
        for (place, column) in places[index].enumerated() { key[place] = row[column] }
        record.removeAll()
        RecordFormat.encode(key, count: places[index].count, into: &record)
        digests[index].add(record.bytes)
      }
    }
    return digests
  }

  /// The digest of an index's entries; nil where they do not ascend, or a unique one repeats.
  private func indexDigest(_ table: String, _ index: Index, _ names: [String]) throws
    -> RowSetDigest?
  {
    let count = index.columns.count
    let listed = index.columns.map { quoted(names[$0]) }
    let order = zip(listed, index.isDescending).map { $0 + ($1 ? " DESC" : "") }
    guard
      let statement = try SQLiteError.nilByContent({
        try connection.prepare(
          """
          SELECT \((listed + ["rowid"]).joined(separator: ", "))
            FROM \(quoted(table)) INDEXED BY \(quoted(index.name))
           ORDER BY \(order.joined(separator: ", "))
          """)
      })
    else { return nil }
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: count + 1)
    row.initialize(repeating: .null, count: count + 1)
    defer { row.deallocate() }
    var record = RawBuffer(capacity: 4 << 10)
    var before = RawBuffer(capacity: 4 << 10)
    let last = UnsafeMutablePointer<RawValue>.allocate(capacity: count + 1)
    last.initialize(repeating: .null, count: count + 1)
    defer { last.deallocate() }
    var digest = RowSetDigest()
    while try statement.step() {
      statement.read(into: row, from: 0, count: Int32(count + 1))
      record.removeAll()
      RecordFormat.encode(row, count: count + 1, into: &record)
      digest.add(record.bytes)
      if digest.count > 1 {
        guard RecordFormat.decode(record: before.bytes, into: last, count: count + 1) else {
          return nil
        }
        guard ascends(last, row, index) else { return nil }
      }
      before.removeAll()
      before.append(record.bytes)
    }
    return digest
  }

  private func ascends(
    _ a: UnsafeMutablePointer<RawValue>, _ b: UnsafeMutablePointer<RawValue>, _ index: Index
  ) -> Bool {
    var hasNull = false
    for place in index.columns.indices {
      hasNull = hasNull || b[place].kind == .null
      let comparison = RawValue.compare(a[place], b[place])
      if comparison != 0 { return (comparison < 0) != index.isDescending[place] }
    }
    if index.isUnique && !hasNull { return false }
    return a[index.columns.count].bits < b[index.columns.count].bits
  }
}

extension RawValue {
  /// SQLite's order of values under the collation BINARY: NULL, numbers, text, blobs.
  ///
  /// - Returns: Less than, equal to or greater than 0, as `a` stands before, with or after `b`.
  ///   Source: https://sqlite.org/datatype3.html §4.1.
  static func compare(_ a: RawValue, _ b: RawValue) -> Int {
    let (x, y) = (rank(a), rank(b))
    if x != y { return x - y }
    switch (a.kind, b.kind) {
    case (.integer, .integer): return a.bits < b.bits ? -1 : a.bits > b.bits ? 1 : 0
    case (.real, .real): return a.real < b.real ? -1 : a.real > b.real ? 1 : 0
    case (.integer, .real): return compare(a.bits, b.real)
    case (.real, .integer): return -compare(b.bits, a.real)
    case (.null, _): return 0
    default:
      let (left, right) = (a.buffer, b.buffer)
      if let x = left.baseAddress, let y = right.baseAddress {
        let difference = memcmp(x, y, min(left.count, right.count))
        if difference != 0 { return Int(difference) }
      }
      return left.count - right.count
    }
  }

  private static func rank(_ value: RawValue) -> Int {
    switch value.kind {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  /// An integer against a real, without losing digits to a conversion.
  private static func compare(_ integer: Int64, _ real: Double) -> Int {
    if real >= 9_223_372_036_854_775_808.0 { return -1 }
    if real < -9_223_372_036_854_775_808.0 { return 1 }
    let whole = Int64(real)
    if integer != whole { return integer < whole ? -1 : 1 }
    let rest = real - Double(whole)
    return rest > 0 ? -1 : rest < 0 ? 1 : 0
  }
}
