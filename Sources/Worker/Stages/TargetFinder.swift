import GodwitSQLite

/// Finds out what entity the row with a given key is.
///
/// A few look-ups go through the source's own b-tree. When many are asked of one table, a map of
/// one byte a key is made by a single scan, where the keys are dense enough for that; the maps of
/// one worker are bounded, so its memory stays flat whatever the number of rows.
final class TargetFinder {
  private struct Table {
    var name: String
    var statement: Statement
    var lookups = 0
    /// Place of each key's entity in `entities`, from `lowestKey`; 0 for keys without a row.
    var map: UnsafeMutableBufferPointer<UInt8>?
    var lowestKey: Int64 = 0
    var entities: [Int64] = []
    var isMapTried = false
  }

  /// 32 MiB: maps of 32 million keys. A worker may hold 128 MiB in all.
  private static let mapBudget = 32 << 20
  /// Look-ups in one table after which a map may pay: a look-up costs about as much as scanning
  /// three rows.
  private static let lookupsBeforeMap = 10_000

  private let connection: Connection
  private let file: Int32
  private var tables: [Table] = []
  private var mappedBytes = 0

  /// - Parameter file: The file of the connection, open for reading.
  init(_ connection: Connection, file: Int32) {
    self.connection = connection
    self.file = file
  }

  deinit {
    for table in tables { table.map?.deallocate() }
  }

  /// The number of a table, by which ``entity(of:inTable:)`` asks.
  func table(_ name: String) throws -> Int {
    if let known = tables.firstIndex(where: { $0.name == name }) { return known }
    let statement = try connection.prepare("SELECT Z_ENT FROM \(quoted(name)) WHERE Z_PK = ?1")
    tables.append(Table(name: name, statement: statement))
    return tables.count - 1
  }

  /// `Z_ENT` of a row; −1 where it is not an integer; nil where there is no such row.
  @inline(__always)
  func entity(of key: Int64, inTable number: Int) throws -> Int64? {
    if let map = tables[number].map {
      let place = key &- tables[number].lowestKey
      guard place >= 0, place < map.count else { return nil }
      let entity = map[Int(place)]
      return entity == 0 ? nil : tables[number].entities[Int(entity)]
    }
    return try lookUp(key, inTable: number)
  }

  @inline(never)
  private func lookUp(_ key: Int64, inTable number: Int) throws -> Int64? {
    tables[number].lookups += 1
    if tables[number].lookups > Self.lookupsBeforeMap, !tables[number].isMapTried {
      tables[number].isMapTried = true
      try makeMap(number)
    }
    let statement = tables[number].statement
    try statement.bind(1, key)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    var value = RawValue.null
    statement.read(into: &value, from: 0, count: 1)
    return value.kind == .integer ? value.bits : -1
  }

  /// Scans a table once, if its keys lie densely and its entities are few.
  private func makeMap(_ number: Int) throws {
    let name = quoted(tables[number].name)
    let extent = try connection.rows("SELECT min(Z_PK), max(Z_PK) FROM \(name)").first
    guard case .integer(let low)? = extent?.first, case .integer(let high)? = extent?.last else {
      return
    }
    let (width, overflow) = high.subtractingReportingOverflow(low)
    guard !overflow, width < Int64(Self.mapBudget - mappedBytes) else { return }
    let map = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: Int(width) + 1)
    var entities: [Int64]?
    do {
      let columns = SourceColumns(table: tables[number].name, names: [])
      let raw = try RawTable(columns, in: connection)
      let scan = raw.flatMap { TableScan(descriptor: file, root: $0.root, keys: low...high) }
      do {
        guard let raw, let scan else { throw TableScan.NotUnderstood() }
        entities = try Self.fill(map, from: low, SourceRows(columns, raw, scan))
      } catch is TableScan.NotUnderstood {
        let statement = try connection.prepare(columns.sql)
        try statement.bind(1, low)
        try statement.bind(2, high)
        entities = try Self.fill(map, from: low, SourceRows(columns, statement))
      }
    } catch {
      map.deallocate()
      throw error
    }
    guard let entities else { return map.deallocate() }
    mappedBytes += map.count
    tables[number].map = map
    tables[number].lowestKey = low
    tables[number].entities = entities
  }

  /// - Returns: The entities by the numbers in the map; nil where there are too many.
  private static func fill(
    _ map: UnsafeMutableBufferPointer<UInt8>, from low: Int64, _ rows: SourceRows
  ) throws -> [Int64]? {
    map.initialize(repeating: 0)
    var entities: [Int64] = [0]
    while try rows.next() {
      for number in 0..<rows.count {
        let row = rows.row(number)
        let entity = row[1].kind == .integer ? row[1].bits : -1
        var place = entities.count - 1
        while place > 0, entities[place] != entity { place -= 1 }
        if place == 0 {
          guard entities.count < 256 else { return nil }
          place = entities.count
          entities.append(entity)
        }
        map[Int(row[0].bits &- low)] = UInt8(place)
      }
    }
    return entities
  }
}
