import Foundation
import Godwit

/// Merges duplicates: tags that differ only in case and spaces become one.
final class TagMergePolicy: EntityMigrationPolicy {
  private var tags: [String: ManagedObject] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let key = (source["name"] ?? "").trimmingCharacters(in: .whitespaces).lowercased()
    if let tag = tags[key] {
      // Many to one: whoever asks what became of the second source object gets the first one's
      // destination. That is how the books of every spelling come to the one tag that is left.
      try manager.associate(sourceInstance: source, withDestinationInstance: tag, for: mapping)
      return
    }
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let tag = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    tag?["name"] = key
    tags[key] = tag
  }
}
