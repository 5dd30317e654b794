import Foundation
import Godwit

/// Parses a text into several attributes: "Le Guin, Ursula K." is a family name and a given name.
final class PersonNamePolicy: EntityMigrationPolicy {
  /// A librarian whose name says nothing.
  enum NameError: Error, CustomStringConvertible {
    case blank

    var description: String { "a name is blank. Correct it in the application and migrate again" }
  }

  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    guard let name = Self.parse(source["fullName"] ?? "") else {
      // Ends the migration with exactly this error. A hook that throws does so, too; this also
      // works where a method must not throw, or when the hook should come to its end first.
      manager.cancelMigration(with: NameError.blank)
      return
    }
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    for librarian in try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    {
      librarian["familyName"] = name.family
      librarian["givenName"] = name.given
    }
  }

  /// "Family, Given" as catalogues write it, or "Given Family" as people do. One word is a family
  /// name.
  static func parse(_ text: String) -> (family: String, given: String?)? {
    let parts = text.split(separator: ",", maxSplits: 1).map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    if parts.count == 2, !parts[0].isEmpty {
      return (parts[0], parts[1].isEmpty ? nil : parts[1])
    }
    let words = text.split { $0.isWhitespace || $0 == "," }
    guard let family = words.last else { return nil }
    let given = words.dropLast().joined(separator: " ")
    return (String(family), given.isEmpty ? nil : given)
  }
}
