import Godwit

/// Copies a value that is reached over relationships: a series had one publisher for all of its
/// books, now every edition names its own.
final class PublisherPolicy: EntityMigrationPolicy {
  /// Looks at one edition at a time.
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    // The source objects, not what becomes of them: those may not exist yet.
    let publisher = source.value(forKeyPath: "book.series.publisher")
    for edition in made { edition.setValue(publisher, forKey: "publisher") }
  }
}
