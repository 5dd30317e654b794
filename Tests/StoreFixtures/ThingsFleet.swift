import Foundation
import GodwitObjectModel
import GodwitSQLite

/// Stores of things that keep extra properties in a bucket: a property-list dictionary in a binary
/// attribute. Foundation writes the dictionaries, half of them binary and half as XML.
package struct ThingsFleet: Sendable {
  package var stores: Int
  /// Things of each store.
  package var things: Int
  package var seed: UInt64
  /// The store, counted from 0, that has one bucket which is not a property list any more.
  package var damaged: Int?

  package init(stores: Int, things: Int, seed: UInt64, damaged: Int? = nil) {
    self.stores = stores
    self.things = things
    self.seed = seed
    self.damaged = damaged
  }

  /// The thing whose bucket is damaged.
  package static let damagedKey: Int64 = 7

  /// What is in a store, to compare with.
  package struct Written: Sendable {
    package var path: String
    /// `Z_PK` and extended name, for each thing, in the order of the keys.
    package var extendedNames: [(key: Int64, name: String?)]
    /// `Z_PK` and the other keys of its bucket; nil without a bucket.
    package var otherKeys: [(key: Int64, names: [String]?)]
  }

  /// Writes `user-0001/Things.sqlite` and so on.
  ///
  /// - Parameter model: The first version, with Thing(name, index, metadata1, metadata2).
  package func write(_ model: ManagedObjectModel, to directory: String) throws -> [Written] {
    try (0..<stores).map { index in
      var random = SplitMix64(seed: SplitMix64.at(index, seed: seed))
      let digits = String(index + 1)
      let folder = "user-" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
      let path = "\(directory)/\(folder)/Things.sqlite"
      var written = Written(path: path, extendedNames: [], otherKeys: [])
      try DrawnStore(model, seed: random.next()).write(to: path) { store in
        for number in 0..<things {
          let key = Int64(number + 1)
          var bucket = try Self.bucket(number, &random)
          if index == damaged, key == Self.damagedKey { bucket.bytes = Array("bplist00\u{7}".utf8) }
          try Self.insert(key, bucket.bytes, into: store)
          written.extendedNames.append((key, bucket.dictionary?["extendedName"] as? String))
          written.otherKeys.append(
            (key, bucket.dictionary?.keys.filter { $0 != "extendedName" }.sorted()))
        }
      }
      return written
    }
  }

  /// A row of Thing.
  package static func insert(_ key: Int64, _ bucket: [UInt8]?, into store: Connection) throws {
    _ = try store.rows(
      """
      INSERT INTO ZTHING (Z_PK, Z_ENT, Z_OPT, ZINDEX, ZMETADATA1, ZMETADATA2, ZNAME)
      VALUES (?1, 1, 1, ?2, ?3, ?4, ?5)
      """,
      [
        .integer(key), .integer(key % 1000), .text("spare \(key)"),
        bucket.map { .blob($0) } ?? .null, .text("thing \(key)"),
      ])
  }

  /// Every tenth thing has no bucket, and every seventh one without an extended name.
  private static func bucket(
    _ number: Int, _ random: inout SplitMix64
  ) throws -> (dictionary: [String: Any]?, bytes: [UInt8]?) {
    if number % 10 == 9 { return (nil, nil) }
    var dictionary: [String: Any] = [
      "weight": random.fraction() * 100, "seen": Date(timeIntervalSinceReferenceDate: 7e8),
      "badge": Data((0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) }),
      "tags": ["a", "é", "👩‍🍳"], "inner": ["depth": number],
    ]
    if number % 7 != 6 {
      // Long ones, and what XML must escape.
      dictionary["extendedName"] =
        "Thing № \(number) <&> " + String(repeating: "x", count: random.below(40))
    }
    let format: PropertyListSerialization.PropertyListFormat = number % 2 == 0 ? .binary : .xml
    let data = try PropertyListSerialization.data(
      fromPropertyList: dictionary, format: format, options: 0)
    return (dictionary, Array(data))
  }
}
