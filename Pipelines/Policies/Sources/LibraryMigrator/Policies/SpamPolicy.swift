import Godwit

/// Drops objects by a condition. A filter in the mapping model can ask simple questions of one
/// object; code can ask any.
final class SpamPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    if isSpam(source) { return }
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
  }

  /// Marked as such, or one word said over and over.
  private func isSpam(_ review: ManagedObject) -> Bool {
    if review["isSpam"] ?? false { return true }
    let words = (review["text"] ?? "").split(separator: " ")
    return words.count >= 3 && Set(words).count == 1
  }
}
