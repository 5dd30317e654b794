import Foundation
import Godwit

/// What the benchmark times: an object for an object, and three attributes set by code.
final class ThreeAttributesPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let review = try manager.insertNewObject(forEntityName: "Review")
    review["stars"] = source["stars"] as Int?
    review["text"] = source["text"] as String?
    review["writtenAt"] = source["writtenAt"] as Date?
    try manager.associate(sourceInstance: source, withDestinationInstance: review, for: mapping)
  }
}
