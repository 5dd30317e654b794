import Foundation
import Godwit

/// What a property costs in a bucket, a property-list dictionary in a binary attribute, and as an
/// attribute of its own, where a policy adds, updates and reads it. For the benchmark: it says its
/// times on standard error, and makes things of which nobody has any use.
final class BucketCostPolicy: EntityMigrationPolicy {
  private var count = 0

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws { count += 1 }

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let environment = ProcessInfo.processInfo.environment
    let rounds = environment["BUCKET_ROUNDS"].flatMap { Int($0) } ?? 1
    let others = environment["BUCKET_OTHER_KEYS"].flatMap { Int($0) } ?? 0
    var seconds: [String: [Double]] = [:]
    for number in 0..<rounds {
      // Who comes first changes from round to round.
      for isBucket in number.isMultiple(of: 2) ? [false, true] : [true, false] {
        for (name, time) in try round(isBucket: isBucket, others, manager) {
          seconds[name, default: []].append(time)
        }
      }
    }
    let line = "bucket-cost " + String(decoding: try JSONEncoder().encode(seconds), as: UTF8.self)
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }

  private func round(
    isBucket: Bool, _ others: Int, _ manager: MigrationManager
  ) throws -> [String: Double] {
    let way = isBucket ? "bucket" : "native"
    var spare: [String: Any] = [:]
    for number in 0..<others { spare["key\(number)"] = "value \(number)" }
    var (things, names): ([ManagedObject], [String]) = ([], [])
    var seconds: [String: Double] = [:]
    seconds["add " + way] = try timed {
      for number in 0..<count {
        let thing = try manager.insertNewObject(forEntityName: "Thing")
        thing["name"] = "thing \(number)"
        if isBucket {
          var bucket = spare
          bucket["extendedName"] = "Extended name of thing \(number)"
          thing["metadata2"] = try encoded(bucket)
        } else {
          thing["extendedName"] = "Extended name of thing \(number)"
        }
        things.append(thing)
      }
    }
    seconds["update " + way] = try timed {
      for (number, thing) in things.enumerated() {
        guard isBucket else {
          thing["extendedName"] = Self.newName(number)
          continue
        }
        var bucket = try decoded(thing)
        bucket["extendedName"] = Self.newName(number)
        thing["metadata2"] = try encoded(bucket)
      }
    }
    seconds["read " + way] = try timed {
      names = try things.map { thing in
        isBucket
          ? try decoded(thing)["extendedName"] as? String ?? ""
          : thing["extendedName"] as String? ?? ""
      }
    }
    try check(names)
    guard isBucket else { return seconds }
    var cache: [ManagedObjectID: [String: Any]] = [:]
    for pass in ["first", "then"] {
      seconds["cached " + pass] = try timed {
        names = try things.map { thing in
          let id = thing.objectID
          let bucket = try cache[id] ?? decoded(thing)
          cache[id] = bucket
          return bucket["extendedName"] as? String ?? ""
        }
      }
      try check(names)
    }
    return seconds
  }

  private static func newName(_ number: Int) -> String { "Another name of thing \(number)" }

  private func encoded(_ bucket: [String: Any]) throws -> Data {
    try PropertyListSerialization.data(fromPropertyList: bucket, format: .binary, options: 0)
  }

  private func decoded(_ thing: ManagedObject) throws -> [String: Any] {
    guard let bytes = thing["metadata2"] as Data?,
      let bucket = try PropertyListSerialization.propertyList(from: bytes, format: nil)
        as? [String: Any]
    else { throw CocoaError(.propertyListReadCorrupt) }
    return bucket
  }

  /// Both ways must have come to the same, or their times say nothing.
  private func check(_ names: [String]) throws {
    guard names.count == count, names.enumerated().allSatisfy({ $1 == Self.newName($0) }) else {
      throw CocoaError(.coderInvalidValue)
    }
  }

  private func timed(_ body: () throws -> Void) rethrows -> Double {
    let start = ContinuousClock.now
    try body()
    let parts = (ContinuousClock.now - start).components
    return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
  }
}
