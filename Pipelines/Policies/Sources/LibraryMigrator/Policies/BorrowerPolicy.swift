import Godwit

/// Links again by a key: a loan knew its member by number, now by a relationship.
final class BorrowerPolicy: EntityMigrationPolicy {
  /// Source members by number; an instance that links makes it when it first needs it.
  private var membersByNumber: [Int: ManagedObject]?

  /// Each shard looks members up for itself.
  override class var scope: Scope { .shard }

  /// In the link stage, when every destination object exists, whatever mapping made it.
  override func createRelationships(
    forDestination loan: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createRelationships(forDestination: loan, in: mapping, manager: manager)
    let source = try manager.sourceInstances(
      forEntityMappingName: mapping.name, destinationInstances: [loan]
    ).first
    guard let number: Int = source?["memberNumber"],
      let member = try member(number, manager)
    else { return }  // nobody has that number any more: a loan without a member is allowed
    loan["member"] = try manager.destinationInstances(
      forEntityMappingName: "MemberToMember", sourceInstances: [member]
    ).first { $0.entityName == "Member" }
  }

  private func member(_ number: Int, _ manager: MigrationManager) throws -> ManagedObject? {
    if let membersByNumber { return membersByNumber[number] }
    var found: [Int: ManagedObject] = [:]
    try manager.forEachSourceObject(ofEntity: "Member") { member in
      if let number: Int = member["number"] { found[number] = member }
    }
    membersByNumber = found
    return found[number]
  }
}
