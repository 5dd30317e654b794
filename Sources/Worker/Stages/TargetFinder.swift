import GodwitObjectModel
import GodwitSQLite

/// Finds out what entity the row with a given key is.
///
/// A few look-ups go through the table's own b-tree. When many are asked of one table, a map of
/// one byte a key is made by a single scan, where the keys are dense enough for that; the maps of
/// one worker are bounded, so its memory stays flat whatever the number of rows.
final class TargetFinder {
  private struct Table {
    var name: String
    var statement: Statement
    var lookups = 0
    var map: Map?
    var isMapTried = false
  }

  /// The entities of all rows of a table, in memory that the finder owns.
  struct Map {
    /// Place of each key's entity in `entities`, from `lowestKey`; 0 for keys without a row.
    fileprivate let places: UnsafeMutableBufferPointer<UInt8>
    fileprivate let lowestKey: Int64
    fileprivate let entities: UnsafeMutablePointer<Int64>

    /// `Z_ENT` of a row; −1 where it is not an integer; nil where there is no such row.
    @inline(__always)
    func entity(of key: Int64) -> Int64? {
      let (offset, overflow) = key.subtractingReportingOverflow(lowestKey)
      guard !overflow, offset >= 0, offset < places.count else { return nil }
      let place = places[Int(offset)]
      return place == 0 ? nil : entities[Int(place)]
    }

    fileprivate func deallocate() {
      places.deallocate()
      entities.deallocate()
    }
  }

  /// 32 MiB: maps of 32 million keys. A worker may hold 128 MiB in all.
  private static let mapBudget = 32 << 20
  /// Look-ups in one table after which a map may pay: a look-up costs about as much as scanning
  /// three rows.
  private static let lookupsBeforeMap = 10_000
  private static let rowsALookup: Int64 = 4

  private let connection: Connection
  @exclusivity(unchecked) private var tables: [Table] = []
  private var mappedBytes = 0

  init(_ connection: Connection) { self.connection = connection }

  deinit {
    for table in tables { table.map?.deallocate() }
  }

  /// The number of a table, by which ``entity(of:inTable:)`` asks.
  func table(_ name: String) throws -> Int {
    if let known = tables.firstIndex(where: { $0.name.isSameName(as: name) }) { return known }
    let statement = try connection.prepare("SELECT Z_ENT FROM \(quoted(name)) WHERE Z_PK = ?1")
    tables.append(Table(name: name, statement: statement))
    return tables.count - 1
  }

  /// `Z_ENT` of a row; −1 where it is not an integer; nil where there is no such row.
  @inline(__always)
  func entity(of key: Int64, inTable number: Int) throws -> Int64? {
    if let map = tables[number].map { return map.entity(of: key) }
    return try lookUp(key, inTable: number)
  }

  /// The map of a table, where there is one. It is valid until ``removeMaps()``.
  func map(ofTable number: Int) -> Map? { tables[number].map }

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

  /// Makes a map at once where that is cheaper than so many look-ups.
  func expect(_ lookups: Int64, inTable number: Int) throws {
    guard !tables[number].isMapTried,
      let keys = try connection.extent(of: tables[number].name, key: "Z_PK"),
      keys.upperBound / Self.rowsALookup - keys.lowerBound / Self.rowsALookup <= lookups
    else { return }
    tables[number].isMapTried = true
    try makeMap(number)
  }

  /// Gives back the memory of all maps. They are made again when they are needed again.
  func removeMaps() {
    for number in tables.indices {
      tables[number].map?.deallocate()
      tables[number].map = nil
      tables[number].isMapTried = false
      tables[number].lookups = 0
    }
    mappedBytes = 0
  }

  /// Scans a table once, if its keys lie densely and its entities are few.
  private func makeMap(_ number: Int) throws {
    guard let keys = try connection.extent(of: tables[number].name, key: "Z_PK") else { return }
    let low = keys.lowerBound
    let (width, overflow) = keys.upperBound.subtractingReportingOverflow(low)
    guard !overflow, width < Int64(Self.mapBudget - mappedBytes) else { return }
    let places = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: Int(width) + 1)
    let entities = UnsafeMutablePointer<Int64>.allocate(capacity: 256)
    let map = Map(places: places, lowestKey: low, entities: entities)
    var isWhole = false
    defer { if !isWhole { map.deallocate() } }
    guard try fill(map, of: tables[number].name) else { return }
    isWhole = true
    mappedBytes += places.count
    tables[number].map = map
  }

  /// - Returns: False where there are too many entities for a byte.
  private func fill(_ map: Map, of table: String) throws -> Bool {
    let (places, entities) = (map.places, map.entities)
    var (count, areFew) = (1, true)
    func begin() {
      places.initialize(repeating: 0)
      entities.initialize(repeating: 0, count: 256)
      (count, areFew) = (1, true)
    }
    func enter(_ key: Int64, _ number: RawValue) {
      let entity = number.kind == .integer ? number.bits : -1
      var place = count - 1
      while place > 0, entities[place] != entity { place -= 1 }
      if place == 0 {
        areFew = areFew && count < 256
        guard areFew else { return }
        place = count
        entities[place] = entity
        count += 1
      }
      let offset = key &- map.lowestKey
      // Only a damaged table has keys outside of its lowest and highest.
      if offset >= 0, offset < places.count { places[Int(offset)] = UInt8(place) }
    }
    try connection.forEachRow(of: table, ["Z_PK", "Z_ENT"], begin: begin) { row in
      enter(row[0].bits, row[1])
    }
    return areFew
  }
}
