import Foundation
import Godwit

/// Answers the mapping model's expressions: `FUNCTION($entityPolicy, "nameOfKind:", …)` turns the
/// number of a kind into its name.
final class ShelfKindPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  /// Told beforehand, so that `mapping check` can say where an expression misspells one.
  override class var selectors: Set<String> { ["nameOfKind:"] }

  private static let kinds = ["fiction", "science", "maps", "children"]

  override func perform(
    _ selector: String, with arguments: [Any?], manager: MigrationManager
  ) throws -> Any? {
    guard selector == "nameOfKind:" else {
      return try super.perform(selector, with: arguments, manager: manager)
    }
    guard let code = arguments.first as? Int, Self.kinds.indices.contains(code) else {
      // An error of Core Data's own domain keeps its code: here NSManagedObjectValidationError.
      throw NSError(
        domain: NSCocoaErrorDomain, code: 1550,
        userInfo: [NSLocalizedDescriptionKey: "There is no such kind of shelf."])
    }
    return Self.kinds[code]
  }
}
