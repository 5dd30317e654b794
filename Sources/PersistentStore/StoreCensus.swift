import GodwitObjectModel
import GodwitSQLite

/// How many rows a store has of what, and about how many bytes.
///
/// One scan a table at most. Bytes are estimated from a sample of rows.
package struct StoreCensus: Sendable, Equatable {
  /// The rows of one entity.
  package struct EntityRows: Sendable, Equatable {
    package var count: Int64
    /// The lowest and highest `Z_PK`; nil without rows.
    package var keys: ClosedRange<Int64>?
  }

  /// One entity table.
  package struct Table: Sendable, Equatable {
    package var name: String
    package var rows: Int64
    package var keys: ClosedRange<Int64>?
    /// Row bytes, indexes not counted. An estimate.
    package var bytes: Int64
  }

  package private(set) var entities: [EntityName: EntityRows] = [:]
  /// By the name of the table.
  package private(set) var tables: [String: Table] = [:]
  /// Rows that belong to nobody: whose `Z_ENT` is not a concrete entity of their table, or that have no
  /// key, and pairs whose keys are not integers. One finding a table.
  package private(set) var ownerlessRows: [StoreFinding] = []
  /// Rows of each join table.
  package private(set) var joinRows: [String: Int64] = [:]

  /// Rows of each entity of the model, abstract ones and those without rows included.
  package var rows: [EntityName: Int64] { entities.mapValues(\.count) }

  /// Rows that a byte estimate looks at in each table.
  private static let sampleSize: Int64 = 256
  private static let rowsAPlace: Int64 = 4

  /// 64 MiB. Rows of a smaller store are counted before a second thread is of use.
  private static let leastDividedBytes: Int64 = 64 << 20
  /// More than processors: keys are seldom spread evenly.
  private static let parts = 8

  /// - Parameter shardBytes: What a shard may hold: of a store that is no larger no row is looked at for
  ///   its size. Its bytes are those of the file, shared out by rows: enough to cut it by.
  package init(_ binding: StoreBinding, shardBytes: Int64 = 0) throws {
    let size = Int64(binding.store.header.pageSize) * Int64(binding.store.header.pageCount ?? 0)
    let isOneShard = size > 0 && size <= shardBytes
    let connection = binding.store.connection
    for table in binding.layout.tables {
      for name in table.entities { entities[name] = EntityRows(count: 0, keys: nil) }
      guard binding.table(of: table.root) != nil else { continue }
      let found = try Self.count(
        table, connection, parts: size < Self.leastDividedBytes ? 1 : Self.parts)
      var whole = Table(name: table.name, rows: 0, keys: nil, bytes: 0)
      var all = EntityRows(count: 0, keys: nil)
      var unknown: Int64 = 0
      var examples: [Int64] = []
      let names = Dictionary(
        binding.hierarchy.concrete(of: table.root).map { (binding.number(of: $0), $0) },
        uniquingKeysWith: { first, _ in first })
      for (number, rows) in found {
        all = all.adding(rows)
        if let name = number.flatMap({ names[$0] }) {
          entities[name] = rows
        } else {
          unknown += rows.count
          examples += [rows.keys?.lowerBound].compactMap { $0 }
        }
      }
      if unknown > 0 {
        ownerlessRows.append(
          StoreFinding(
            kind: .rows, entity: table.root.rawValue,
            message: "\(table.name) has rows whose Z_ENT is not a concrete entity of this table",
            count: unknown, examples: examples))
      }
      (whole.rows, whole.keys) = (all.count, all.keys)
      whole.bytes = try isOneShard ? whole.rows : Self.estimate(whole, binding)
      tables[table.name] = whole
    }
    if isOneShard {
      let rows = max(1, tables.values.reduce(0) { $0 + $1.rows })
      for name in tables.keys { tables[name]?.bytes *= max(1, size / rows) }
    }
    for join in binding.joinTables {
      let pairs = try connection.rows(
        of: join.name, [join.firstColumn, join.secondColumn],
        inParts: size < Self.leastDividedBytes ? 1 : Self.parts, into: PairCount()
      ) { $1.add($0) }
      joinRows[join.name] = pairs.reduce(0) { $0 + $1.count }
      let odd = pairs.reduce(0) { $0 + $1.odd }
      if odd > 0 {
        ownerlessRows.append(
          StoreFinding(
            kind: .rows, entity: join.entity.rawValue, property: join.relationship,
            message: StoreFinding.pairWithoutKeys(in: join), count: odd))
      }
    }
  }

  /// Rows by `Z_ENT`; nil for one that is not an integer, and where there are very many.
  private static func count(_ table: EntityTable, _ connection: Connection, parts: Int) throws
    -> [(Int64?, EntityRows)]
  {
    let counts = try connection.rows(
      of: table.name, ["Z_PK", "Z_ENT"], inParts: parts, into: EntityCount()
    ) { $1.add($0) }
    var found: [Int64?: EntityRows] = [:]
    for count in counts { found.merge(count.all) { $0.adding($1) } }
    return found.filter { $0.value.count > 0 }
      .sorted { ($0.key ?? .min, $0.key == nil ? 0 : 1) < ($1.key ?? .min, $1.key == nil ? 0 : 1) }
      .map { ($0.key, $0.value) }
  }

  /// Bytes of all rows, from the average of rows taken evenly over the key range.
  private static func estimate(_ table: Table, _ binding: StoreBinding) throws -> Int64 {
    guard table.rows > 0, let keys = table.keys else { return 0 }
    // SQLite tells the length of a blob without reading it. Numbers take 8 bytes at most. The key is counted by
    // itself: a result has no more columns than a table may have.
    let columns = binding.store.columns(of: table.name)
    let lengths = columns.filter { NameKey($0.name) != NameKey("Z_PK") }.map { column in
      let name = quoted(column.name)
      return "iif(typeof(\(name)) IN ('text', 'blob'), length(\(name)), 5)"
    }
    let statement = try binding.store.connection.prepare(
      """
      SELECT Z_PK, \(lengths.isEmpty ? "0" : lengths.joined(separator: ", "))
        FROM \(quoted(table.name))
       WHERE Z_PK >= ?1
       ORDER BY Z_PK
       LIMIT ?2
      """)
    let places = max(1, min(sampleSize, table.rows) / rowsAPlace)
    let width = UInt64(bitPattern: keys.upperBound &- keys.lowerBound)
    var (sampled, bytes): (Int64, Int64) = (0, 0)
    var next = keys.lowerBound
    func sample(from start: Int64, rows: Int64) throws {
      try statement.bind(1, start)
      try statement.bind(2, rows)
      while try statement.step() {
        sampled += 1
        next = max(next, statement.int64(0))
        bytes += 5
        for column in 1..<Int32(statement.columnCount) { bytes += statement.int64(column) }
      }
      statement.reset()
    }
    for place in 0..<places {
      let offset = width / UInt64(places) * UInt64(place)
      let start = Int64(bitPattern: UInt64(bitPattern: keys.lowerBound) &+ offset)
      // Where keys are sparse, several places would lead to one row.
      if place == 0 || start > next { try sample(from: start, rows: rowsAPlace) }
    }
    let few = min(sampleSize, table.rows) - sampled
    if few > 0 { try sample(from: keys.lowerBound, rows: few) }
    guard sampled > 0 else { return 0 }
    let estimate = Double(max(bytes, sampled)) / Double(sampled) * Double(table.rows)
    // Never more than the file holds.
    let size = Double(binding.store.header.pageSize) * Double(binding.store.header.pageCount ?? 0)
    return Int64(size > 0 ? min(estimate, size) : min(estimate, 1e15))
  }
}

extension StoreCensus.EntityRows {
  fileprivate func adding(_ other: Self) -> Self {
    guard let mine = keys, let others = other.keys else {
      return Self(count: count + other.count, keys: keys ?? other.keys)
    }
    return Self(
      count: count + other.count,
      keys: min(mine.lowerBound, others.lowerBound)...max(mine.upperBound, others.upperBound))
  }
}

/// Counts pairs, and those of them whose keys are not integers.
private struct PairCount: Sendable {
  private(set) var count: Int64 = 0
  private(set) var odd: Int64 = 0

  mutating func add(_ row: UnsafeMutablePointer<RawValue>) {
    count += 1
    if row[0].kind != .integer || row[1].kind != .integer { odd += 1 }
  }
}

/// Counts rows that come in the order of their keys, most of them behind others of their entity. In a
/// damaged tree they may come in any order.
private struct EntityCount: Sendable {
  private var found: [Int64?: StoreCensus.EntityRows] = [:]
  private var number: Int64?
  private var rows = StoreCensus.EntityRows(count: 0, keys: nil)

  /// Once all rows were added.
  var all: [Int64?: StoreCensus.EntityRows] { found.merging([number: rows]) { $0.adding($1) } }

  mutating func add(_ row: UnsafeMutablePointer<RawValue>) {
    // A row without a key is in no range of keys.
    let next = row[1].kind == .integer && row[0].kind == .integer ? row[1].bits : nil
    if next != number {
      found[number] = found[number]?.adding(rows) ?? rows
      rows = StoreCensus.EntityRows(count: 0, keys: nil)
      number = found.count > 10_000 && found[next] == nil ? nil : next
    }
    rows.count += 1
    let key = row[0].bits
    rows.keys = min(rows.keys?.lowerBound ?? key, key)...max(rows.keys?.upperBound ?? key, key)
  }
}
