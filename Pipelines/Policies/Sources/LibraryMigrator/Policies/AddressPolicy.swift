import Godwit

/// Splits an entity: of one `Member` come a `Member` and its `Address`.
final class AddressPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let member = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    let lines = ["street", "postalCode", "city"].map { ($0, source[$0] as String?) }
    guard let member, lines.contains(where: { $0.1 != nil }) else { return }
    let address = try manager.insertNewObject(forEntityName: "Address")
    for (key, line) in lines { address[key] = line }
    member["address"] = address
    // Both are what became of this source object: whoever asks for its instances gets both.
    try manager.associate(
      sourceInstance: source, withDestinationInstance: address, for: mapping)
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    // The relationship mappings are those of Member; an address has no loans.
    guard destination.entityName == "Member" else { return }
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
  }
}
