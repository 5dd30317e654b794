import Foundation
import GodwitObjectModel
import GodwitSQLite

/// The models that lie in `Fixtures/`, beside the sources.
package enum FixtureModels {
  /// The root folder of the package.
  package static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  package static let folder = packageRoot.appendingPathComponent("Fixtures")

  /// Reads any model file; of a bundle, its current version. Of a store, the model that it keeps.
  package static func model(at path: String) throws -> ManagedObjectModel {
    guard try isStore(path) else { return try ModelFile.model(at: path) }
    let store = try Connection(path: path, mode: .immutable)
    guard
      case .blob(let content)? = try store.rows("SELECT Z_CONTENT FROM Z_MODELCACHE").first?.first
    else { throw FixtureError.notExpressible("\(path) keeps no model") }
    return try ManagedObjectModel(archive: ModelCache.inflate(content), path: path)
  }

  private static func isStore(_ path: String) throws -> Bool {
    guard let file = FileHandle(forReadingAtPath: path) else { return false }
    defer { try? file.close() }
    let isFile = !URL(fileURLWithPath: path).hasDirectoryPath
    return isFile && (try? file.read(upToCount: 16)) == Data("SQLite format 3\0".utf8)
  }

  /// Apple's example: what counts as a version.
  package enum Recipes: String, Sendable, CaseIterable {
    case one = "Recipes"
    /// Compatible with ``one``: only a class name differs.
    case onePointOne = "Recipes 1.1"
    /// Reached by lightweight migration.
    case two = "Recipes 2"
    /// Reached by a mapping model only.
    case twoWithMapping = "Recipes 2 M"

    /// The `.xcdatamodel` folder.
    package var path: String {
      FixtureModels.folder
        .appendingPathComponent("Recipes.xcdatamodeld/\(rawValue).xcdatamodel").path
    }

    package func model() throws -> ManagedObjectModel { try FixtureModels.model(at: path) }
  }

  /// The versions of the migration benchmark.
  package enum Bench: String, Sendable, CaseIterable {
    case one = "Bench"
    case two = "Bench 2"
    /// Without one attribute of ``one``: for mapping models of copies and of expressions.
    case three = "Bench 3"
    /// ``one`` and an entity whose name sorts first.
    case four = "Bench 4"
    /// ``one`` and a small entity whose name sorts last.
    case five = "Bench 5"
    /// ``five`` with another small entity.
    case six = "Bench 6"

    package static var bundlePath: String {
      FixtureModels.folder.appendingPathComponent("Bench.xcdatamodeld").path
    }

    package var path: String { "\(Self.bundlePath)/\(rawValue).xcdatamodel" }

    package func model() throws -> ManagedObjectModel { try FixtureModels.model(at: path) }
  }
}
