import GodwitObjectModel
import GodwitSQLite

/// How many rows a store has of what, and about how many bytes.
///
/// One scan a table at most. Bytes are estimated from a sample of rows.
public struct StoreCensus: Sendable, Equatable {
  /// The rows of one entity.
  public struct EntityRows: Sendable, Equatable {
    public var count: Int64
    /// The lowest and highest `Z_PK`; nil without rows.
    public var keys: ClosedRange<Int64>?
  }

  /// One entity table.
  public struct Table: Sendable, Equatable {
    public var name: String
    public var rows: Int64
    public var keys: ClosedRange<Int64>?
    /// Row bytes, indexes not counted. An estimate.
    public var bytes: Int64
  }

  public private(set) var entities: [EntityName: EntityRows] = [:]
  /// By the name of the table.
  public private(set) var tables: [String: Table] = [:]
  /// Rows whose `Z_ENT` is not a concrete entity of their table: one finding a table.
  public private(set) var unknownEntityRows: [StoreFinding] = []
  /// Rows of each join table.
  public private(set) var joinRows: [String: Int64] = [:]

  /// Rows of each entity of the model, abstract ones and those without rows included.
  public var rows: [EntityName: Int64] { entities.mapValues(\.count) }

  /// Rows that a byte estimate looks at in each table.
  private static let sampleSize: Int64 = 256
  private static let rowsAPlace: Int64 = 4

  public init(_ binding: StoreBinding) throws {
    let connection = binding.store.connection
    for table in binding.layout.tables {
      for name in table.entities { entities[name] = EntityRows(count: 0, keys: nil) }
      guard binding.table(of: table.root) != nil else { continue }
      let found = try Self.count(table, binding, connection)
      var whole = Table(name: table.name, rows: 0, keys: nil, bytes: 0)
      var unknown: Int64 = 0
      var examples: [Int64] = []
      let names = Dictionary(
        binding.hierarchy.concrete(of: table.root).map { (binding.number(of: $0), $0) },
        uniquingKeysWith: { first, _ in first })
      for (number, rows) in found {
        whole.rows += rows.count
        whole.keys = Self.union(whole.keys, rows.keys)
        if let name = number.flatMap({ names[$0] }) {
          entities[name] = rows
        } else {
          unknown += rows.count
          examples += [rows.keys?.lowerBound].compactMap { $0 }
        }
      }
      if unknown > 0 {
        unknownEntityRows.append(
          StoreFinding(
            kind: .rows, entity: table.root.rawValue,
            message: "\(table.name) has rows whose Z_ENT is not a concrete entity of this table",
            count: unknown, examples: examples))
      }
      whole.bytes = try Self.estimate(whole, binding)
      tables[table.name] = whole
    }
    for join in binding.joinTables {
      joinRows[join.name] =
        try connection.rows("SELECT count(*) FROM \(quoted(join.name))").first?.first?.integer ?? 0
    }
  }

  /// Rows by `Z_ENT`; nil for a `Z_ENT` that is not an integer.
  private static func count(_ table: EntityTable, _ binding: StoreBinding, _ connection: Connection)
    throws -> [(Int64?, EntityRows)]
  {
    let name = quoted(table.name)
    var result: [(Int64?, EntityRows)] = []
    var condition = "1"
    if table.entities.count == 1 {
      // Grouping would sort the whole table for one group.
      let number = binding.number(of: table.root)
      let row = try connection.rows(
        """
        SELECT count(*), min(Z_PK), max(Z_PK)
          FROM \(name)
         WHERE Z_ENT = \(number)
        """
      ).first
      if let row { result.append((number, rows(row[0], row[1], row[2]))) }
      condition = "Z_ENT IS NOT \(number)"
    }
    for row in try connection.rows(
      """
      SELECT Z_ENT, count(*), min(Z_PK), max(Z_PK)
        FROM \(name)
       WHERE \(condition)
       GROUP BY Z_ENT
       LIMIT 10000
      """)
    {
      result.append((row[0].integer, rows(row[1], row[2], row[3])))
    }
    return result
  }

  private static func rows(_ count: SQLiteValue, _ low: SQLiteValue, _ high: SQLiteValue)
    -> EntityRows
  {
    let keys: ClosedRange<Int64>? =
      if let low = low.integer, let high = high.integer, low <= high { low...high } else { nil }
    return EntityRows(count: count.integer ?? 0, keys: keys)
  }

  private static func union(_ a: ClosedRange<Int64>?, _ b: ClosedRange<Int64>?)
    -> ClosedRange<Int64>?
  {
    guard let a, let b else { return a ?? b }
    return min(a.lowerBound, b.lowerBound)...max(a.upperBound, b.upperBound)
  }

  /// Bytes of all rows, from the average of rows taken evenly over the key range.
  private static func estimate(_ table: Table, _ binding: StoreBinding) throws -> Int64 {
    guard table.rows > 0, let keys = table.keys else { return 0 }
    // SQLite tells the length of a blob without reading it. Numbers take 8 bytes at most.
    let lengths = binding.store.columns(of: table.name).map { column in
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
