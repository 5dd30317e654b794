import Foundation
import Godwit

// Each does by code what its entity mapping in Ledger.yaml does by expressions: the destination of
// Ledger.policies.yaml must be the same as that of Ledger.yaml with new keys.

/// Computes every attribute of one object after the other, so its entity may be cut.
final class AccountPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let account = try manager.insertNewObject(forEntityName: "Account")
    if let balance = source["balance"] as Double? { account["cents"] = balance * 100 }
    let opened = source["opened"] as Date?
    account["opened"] = opened
    account["day"] = opened.map { $0.timeIntervalSinceReferenceDate / 86400 }
    account["reference"] = source["reference"] as UUID?
    account["tier"] = (source["level"] as Int? ?? 0) > 1 ? "gold" : "plain"
    account["title"] = (source["name"] as String?)?.uppercased()
    try manager.associate(sourceInstance: source, withDestinationInstance: account, for: mapping)
  }
}

/// Changes what the mapping has made.
final class ProfilePolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let profile = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source]
    ).first
    profile?.setValue((source.value(forKey: "name") as? String)?.utf16.count, forKey: "letters")
  }
}

/// Drops what is not a debit.
final class DebitPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    guard let amount = source["amount"] as Double?, amount < 0 else { return }
    let debit = try manager.insertNewObject(forEntityName: "Debit")
    debit["cents"] = amount * -100
    debit["fee"] = 0.25 * (source["kind"] as Double? ?? 0)
    debit["memo"] = source["memo"] as String?
    debit["posted"] = source["posted"] as Date?
    try manager.associate(sourceInstance: source, withDestinationInstance: debit, for: mapping)
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    let source = try manager.sourceInstances(
      forEntityMappingName: mapping.name, destinationInstances: [destination]
    ).first
    guard let account = source?["account"] as ManagedObject? else { return }
    destination["account"] =
      try manager.destinationInstances(
        forEntityMappingName: "AccountToAccount", sourceInstances: [account]
      ).first
  }
}

/// Sets a many-to-many relationship from its other side, one member after the other.
final class LabelPolicy: EntityMigrationPolicy {
  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    let source = try manager.sourceInstances(
      forEntityMappingName: mapping.name, destinationInstances: [destination]
    ).first
    let accounts = source?["accounts"] as Set<ManagedObject>? ?? []
    for account in try manager.destinationInstances(
      forEntityMappingName: "AccountToAccount", sourceInstances: Array(accounts))
    {
      destination.add(account, to: "accounts")
    }
    destination["color"] = (destination["color"] as Int? ?? 0) * 10
  }
}

/// Sets an ordered relationship to objects that two other mappings have made.
final class SheetPolicy: EntityMigrationPolicy {
  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    let source = try manager.sourceInstances(
      forEntityMappingName: mapping.name, destinationInstances: [destination]
    ).first
    let entries = source?["entries"] as [ManagedObject]? ?? []
    destination["movements"] = try manager.destinationInstances(
      forSourceRelationshipNamed: "entries", sourceInstances: entries)
  }
}
