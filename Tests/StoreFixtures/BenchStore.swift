import Foundation
import GodwitObjectModel

/// The store of the migration benchmark: text of 20 to 200 bytes, four entities, one join table.
public struct BenchStore: Sendable {
  public var megabytes: Int
  public var seed: UInt64

  public init(megabytes: Int, seed: UInt64) {
    self.megabytes = megabytes
    self.seed = seed
  }

  private static let parts: [(EntityName, Int)] = [
    ("Customer", 10), ("Product", 10), ("Purchase", 35), ("Review", 45),
  ]

  func options(objects: Int) -> StoreOptions {
    var options = StoreOptions(seed: seed)
    options.rows = 0
    for (entity, part) in Self.parts { options.rowsByEntity[entity] = max(1, objects * part / 100) }
    options.textBytes = 20...200
    options.nullFraction = 0.05
    options.metadata = ["bench": .integer(Int64(megabytes))]
    return options
  }

  /// Objects of the small store that tells how large an object is.
  private static let sample = 20_000

  /// Writes the store and copies the two models beside it, as `Bench.xcdatamodeld`.
  @discardableResult
  public func write(to path: String) throws -> StoreReport {
    let files = FileManager.default
    let model = try FixtureModels.Bench.one.model()
    let trial = path + ".sample"
    let measured = try StoreGenerator(model, options: options(objects: Self.sample))
      .write(to: trial)
    try files.removeItem(atPath: trial)
    let each = Double(measured.bytes) / Double(Self.sample)
    let objects = max(100, Int(Double(megabytes) * 1_000_000 / each))
    let report = try StoreGenerator(model, options: options(objects: objects)).write(to: path)
    let bundle = URL(fileURLWithPath: path).deletingLastPathComponent()
      .appendingPathComponent("Bench.xcdatamodeld")
    if !files.fileExists(atPath: bundle.path) {
      try files.copyItem(atPath: FixtureModels.Bench.bundlePath, toPath: bundle.path)
    }
    return report
  }
}
