import Foundation
import GodwitObjectModel

/// The store of the migration benchmark: text of 20 to 200 bytes, four entities, one join table.
package struct BenchStore: Sendable {
  /// About how large the store is.
  package var bytes: Int
  package var seed: UInt64
  /// ``FixtureModels/Bench/one``, or ``FixtureModels/Bench/five`` with its small entity.
  package var version = FixtureModels.Bench.one

  package init(megabytes: Int, seed: UInt64) {
    self.init(bytes: megabytes * 1_000_000, seed: seed)
  }

  package init(bytes: Int, seed: UInt64) {
    self.bytes = bytes
    self.seed = seed
  }

  private static let parts: [(EntityName, Int)] = [
    ("Customer", 10), ("Product", 10), ("Purchase", 35), ("Review", 45),
  ]

  func options(objects: Int) -> StoreOptions {
    var options = StoreOptions(seed: seed)
    options.rows = 0
    for (entity, part) in Self.parts { options.rowsByEntity[entity] = max(1, objects * part / 100) }
    if version == .five { options.rowsByEntity["Setting"] = Self.settings }
    options.textBytes = 20...200
    options.nullFraction = 0.05
    options.metadata = ["bench": .integer(Int64(bytes / 1_000_000))]
    return options
  }

  /// Rows of the small table.
  private static let settings = 200

  private static let fewest = 100

  /// Objects of the small store that tells how large an object is.
  private static let sample = 20_000

  /// Writes the store and copies the models beside it, as `Bench.xcdatamodeld`.
  @discardableResult
  package func write(to path: String) throws -> StoreReport {
    let files = FileManager.default
    let model = try version.model()
    let trial = path + ".sample"
    let measured = try StoreGenerator(model, options: options(objects: Self.sample))
      .write(to: trial)
    try files.removeItem(atPath: trial)
    let each = Double(measured.bytes) / Double(Self.sample)
    var objects = max(Self.fewest, Int(Double(bytes) / each))
    var report = try StoreGenerator(model, options: options(objects: objects)).write(to: path)
    // Of a small store much is schema, model and pages that are not full.
    while report.bytes > bytes * 6 / 5, objects > Self.fewest {
      try files.removeItem(atPath: path)
      objects = max(Self.fewest, objects / 2)
      report = try StoreGenerator(model, options: options(objects: objects)).write(to: path)
    }
    let bundle = URL(fileURLWithPath: path).deletingLastPathComponent()
      .appendingPathComponent("Bench.xcdatamodeld")
    if !files.fileExists(atPath: bundle.path) {
      try files.copyItem(atPath: FixtureModels.Bench.bundlePath, toPath: bundle.path)
    }
    return report
  }
}
