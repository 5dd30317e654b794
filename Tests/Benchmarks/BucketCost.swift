import Foundation
import GodwitKeyedArchive
import GodwitSQLite
import StoreFixtures

/// The extended name of many things, once as an attribute and once as a key of a property-list
/// dictionary in a binary attribute: the same table, the same texts, one transaction each.
final class BucketCost {
  private enum Failure: Error { case differs(String) }

  private let folder: URL
  private let store: Connection
  private let items: Int
  /// What else an application keeps in the bucket.
  private let others: [(key: String, value: PropertyList)]

  /// - Parameter model: Has Thing(name, index, metadata1, metadata2, extendedName).
  init(model: String, items: Int, otherKeys: Int) throws {
    self.items = items
    others = (0..<otherKeys).map { ("key\($0)", .string("value \($0)")) }
    folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-bucket-\(UUID().uuidString)")
    let path = folder.appendingPathComponent("Things.sqlite").path
    try DrawnStore(FixtureModels.model(at: model)).write(to: path) { _ in }
    store = try Connection(path: path, mode: .readWrite)
    // As Core Data opens its stores: a transaction waits for no disk.
    try store.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// Seconds by the name of what was done. Who comes first changes from round to round.
  func round(_ number: Int) throws -> [String: Double] {
    var seconds: [String: Double] = [:]
    for isBucket in number.isMultiple(of: 2) ? [false, true] : [true, false] {
      let way = isBucket ? "bucket" : "native"
      try store.execute("DELETE FROM ZTHING")
      seconds["add " + way] = try timed { try isBucket ? addToBucket() : addNatively() }
      seconds["update " + way] = try timed { try isBucket ? updateInBucket() : updateNatively() }
      var names: [String] = []
      seconds["read " + way] = try timed {
        names = try isBucket ? readFromBucket() : readNatively()
      }
      try check(names, way)
      guard isBucket else { continue }
      var cache: [Int64: PropertyListDictionary] = [:]
      for pass in ["first", "then"] {
        seconds["cached " + pass] = try timed { names = try readCached(&cache) }
        try check(names, "cached " + pass)
      }
    }
    return seconds
  }

  private func timed(_ body: () throws -> Void) throws -> Double {
    let start = ContinuousClock.now
    try store.transaction(body)
    let parts = (ContinuousClock.now - start).components
    return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
  }

  /// Both ways must have come to the same, or their times say nothing.
  private func check(_ names: [String], _ way: String) throws {
    guard names.count == items, names.enumerated().allSatisfy({ $1 == Self.newName($0) }) else {
      throw Failure.differs(way)
    }
  }

  private static func name(_ number: Int) -> String { "Extended name of thing \(number)" }
  private static func newName(_ number: Int) -> String { "Another name of thing \(number)" }
}

// Adding and updating.
extension BucketCost {
  private func insertion(_ column: String) throws -> Statement {
    try store.prepare(
      """
      INSERT INTO ZTHING (Z_PK, Z_ENT, Z_OPT, ZINDEX, ZMETADATA1, ZNAME, \(column))
      VALUES (?1, 1, 1, ?2, ?3, ?4, ?5)
      """)
  }

  private func add(_ statement: Statement, _ number: Int, _ last: SQLiteValue) throws {
    try statement.bind(1, Int64(number + 1))
    try statement.bind(2, Int64(number & 0x7FFF))
    try statement.bind(3, SQLiteValue.null)
    try statement.bind(4, .text("thing \(number)"))
    try statement.bind(5, last)
    try statement.run()
  }

  private func addNatively() throws {
    let statement = try insertion("ZEXTENDEDNAME")
    for number in 0..<items { try add(statement, number, .text(Self.name(number))) }
  }

  private func addToBucket() throws {
    let statement = try insertion("ZMETADATA2")
    for number in 0..<items {
      var bucket = PropertyListDictionary(others)
      bucket["extendedName"] = .string(Self.name(number))
      try add(statement, number, .blob(PropertyList.dictionary(bucket).binary()))
    }
  }

  private func updateNatively() throws {
    let update = try store.prepare("UPDATE ZTHING SET ZEXTENDEDNAME = ?2 WHERE Z_PK = ?1")
    for number in 0..<items {
      try update.bind(1, Int64(number + 1))
      try update.bind(2, .text(Self.newName(number)))
      try update.run()
    }
  }

  private func updateInBucket() throws {
    let select = try store.prepare("SELECT ZMETADATA2 FROM ZTHING WHERE Z_PK = ?1")
    let update = try store.prepare("UPDATE ZTHING SET ZMETADATA2 = ?2 WHERE Z_PK = ?1")
    for number in 0..<items {
      try select.bind(1, Int64(number + 1))
      try select.step()
      var bucket = try decoded(select.value(0))
      select.reset()
      bucket["extendedName"] = .string(Self.newName(number))
      try update.bind(1, Int64(number + 1))
      try update.bind(2, .blob(PropertyList.dictionary(bucket).binary()))
      try update.run()
    }
  }

  private func decoded(_ value: SQLiteValue) throws -> PropertyListDictionary {
    guard case .blob(let bytes) = value, let bucket = try PropertyList(bytes: bytes).dictionary
    else { throw Failure.differs("a bucket is not a dictionary") }
    return bucket
  }
}

// Reading.
extension BucketCost {
  private func rows(_ column: String, _ body: (Int64, Statement) throws -> Void) throws {
    let select = try store.prepare("SELECT Z_PK, \(column) FROM ZTHING ORDER BY Z_PK")
    while try select.step() { try body(select.int64(0), select) }
  }

  private func readNatively() throws -> [String] {
    var names: [String] = []
    try rows("ZEXTENDEDNAME") { _, row in
      if case .text(let name) = row.value(1) { names.append(name) }
    }
    return names
  }

  private func readFromBucket() throws -> [String] {
    var names: [String] = []
    try rows("ZMETADATA2") { _, row in
      if let name = try decoded(row.value(1))["extendedName"]?.string { names.append(name) }
    }
    return names
  }

  /// Decodes each bucket once and keeps it with its object.
  private func readCached(_ cache: inout [Int64: PropertyListDictionary]) throws -> [String] {
    var names: [String] = []
    try rows("ZMETADATA2") { key, row in
      let bucket: PropertyListDictionary
      if let known = cache[key] {
        bucket = known
      } else {
        bucket = try decoded(row.value(1))
        cache[key] = bucket
      }
      if let name = bucket["extendedName"]?.string { names.append(name) }
    }
    return names
  }
}
