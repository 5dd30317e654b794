import Foundation
import GodwitObjectModel

/// Many stores of the Recipes application, one folder for each of its users.
package struct RecipesFleet: Sendable {
  package enum Version: String, Sendable, CaseIterable {
    case one = "1.0"
    case onePointOne = "1.1"
    case two = "2.0"
    /// Every store is of one of the others.
    case mixed
  }

  /// Which stores have rows that are only in their write-ahead log.
  package enum Logs: String, Sendable, CaseIterable { case none, some, all }

  package var stores: Int
  /// Objects of the largest store. The smallest has a few; the others lie between.
  package var rows: Int
  package var seed: UInt64
  package var version = Version.one
  package var logs = Logs.none
  /// Some images lie in files of their own.
  package var external = false

  package init(stores: Int, rows: Int, seed: UInt64) {
    self.stores = stores
    self.rows = rows
    self.seed = seed
  }

  /// Objects of a store: few in the first, ``rows`` in the last, growing by a constant factor and
  /// off by up to a third between.
  func size(of index: Int) -> Int {
    guard stores > 1, rows > Self.fewest else { return max(rows, 1) }
    if index == 0 { return Self.fewest }
    if index == stores - 1 { return rows }
    let step = Double(index) / Double(stores - 1)
    var random = SplitMix64(seed: SplitMix64.at(index, seed: seed))
    let exact = Double(Self.fewest) * pow(Double(rows) / Double(Self.fewest), step)
    return min(rows, max(Self.fewest, Int(exact * (0.67 + 0.66 * random.fraction()))))
  }

  private static let fewest = 8

  /// How a Recipes store of so many objects is made up.
  package static func counts(
    objects: Int, of version: FixtureModels.Recipes
  ) -> [EntityName: Int] {
    let parts: [(EntityName, Int)] = [
      ("Author", 2), ("Blogger", 1), ("Chef", 1), ("Cookbook", 1), ("Image", 12),
      ("Ingredient", 40), ("MeasuredIngredient", 28), ("LooseIngredient", 12), ("Recipe", 16),
      ("RecipeType", 1), ("Category", 1), ("Step", 26), ("Tag", 2),
    ]
    let absent: Set<EntityName> =
      switch version {
      case .one, .onePointOne:
        ["Blogger", "MeasuredIngredient", "LooseIngredient", "Category", "Tag"]
      case .two: ["MeasuredIngredient", "LooseIngredient", "RecipeType"]
      case .twoWithMapping: ["Blogger", "Ingredient", "Category", "Tag"]
      }
    let present = parts.filter { !absent.contains($0.0) }
    let sum = present.reduce(0) { $0 + $1.1 }
    var counts: [EntityName: Int] = [:]
    var left = objects
    for (entity, part) in present where entity != "Recipe" {
      // Every entity of a store of a few objects has one, as far as they go.
      let count = min(max(0, left), max(1, objects * part / sum))
      counts[entity] = count
      left -= count
    }
    counts["Recipe"] = max(1, left)
    return counts
  }

  /// Writes the fleet into `user-0001/Recipes.sqlite` and so on.
  ///
  /// - Parameter report: Called after each store.
  package func write(
    to directory: String, report: (Version, StoreReport) throws -> Void = { _, _ in }
  ) throws {
    let models: [Version: FixtureModels.Recipes] = [
      .one: .one, .onePointOne: .onePointOne, .two: .two,
    ]
    let mixture: [Version] = [.one, .onePointOne, .two]
    var loaded: [Version: ManagedObjectModel] = [:]
    for index in 0..<stores {
      var random = SplitMix64(seed: SplitMix64.at(index, seed: ~seed))
      let version = self.version == .mixed ? mixture[index % mixture.count] : self.version
      guard let fixture = models[version] else { continue }
      let model = try loaded[version] ?? fixture.model()
      loaded[version] = model
      var options = StoreOptions(seed: random.next())
      options.rowsByEntity = Self.counts(objects: size(of: index), of: fixture)
      options.rows = 0
      options.externalFraction = external ? 0.05 : 0
      options.history = random.below(4) == 0
      options.leavesWAL = logs == .all || logs == .some && index % 2 == 1
      options.metadata = ["user": .integer(Int64(index + 1)), "locale": .string("de_AT")]
      let digits = String(index + 1)
      let name = "user-" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
      let folder = URL(fileURLWithPath: directory).appendingPathComponent(name)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let generator = try StoreGenerator(model, options: options)
      let written = try generator.write(
        to: folder.appendingPathComponent("Recipes.sqlite").path)
      try report(version, written)
    }
  }
}
