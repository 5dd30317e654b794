import GodwitObjectModel
import GodwitPlanning

/// The entity mapping that a policy runs for: what Core Data's `NSEntityMapping` tells it.
public struct CurrentEntityMapping: Sendable, Equatable {
  /// What kind of mapping it is; raw values are those of `NSEntityMappingType`.
  public enum MappingType: Int, Sendable {
    case undefined = 0
    case custom = 1
    case add = 2
    case remove = 3
    case copy = 4
    case transform = 5
  }

  /// How one property of the destination gets its value: Core Data's `NSPropertyMapping`.
  public struct PropertyMapping: Sendable, Equatable {
    public let name: String
    /// As the mapping model writes it; nil leaves the property at its default, or empty.
    public let valueExpression: String?
  }

  public let name: String
  public let mappingType: MappingType
  public let sourceEntityName: String?
  public let destinationEntityName: String?
  /// Nil without a source entity.
  public let sourceEntityVersionHash: VersionHash?
  /// Nil without a destination entity.
  public let destinationEntityVersionHash: VersionHash?
  /// The filter or the expression that the source objects are found by; nil takes all objects of the
  /// source entity.
  public let sourceExpression: String?
  /// Set in this order by `super.createDestinationInstances`.
  public let attributeMappings: [PropertyMapping]
  /// Set in this order by `super.createRelationships`.
  public let relationshipMappings: [PropertyMapping]
  /// The class name as the mapping model gives it.
  public let entityMigrationPolicyClassName: String?
  public let userInfo: [String: String]

  init(_ plan: EntityMappingPlan) {
    let mapping = plan.policyMapping
    func properties(_ mappings: [PolicyMapping.Property]?) -> [PropertyMapping] {
      (mappings ?? []).map { PropertyMapping(name: $0.name, valueExpression: $0.expression) }
    }
    name = plan.name
    mappingType = mapping.flatMap { MappingType(rawValue: $0.type) } ?? .custom
    sourceEntityName = plan.source?.rawValue
    destinationEntityName = plan.destination?.rawValue
    sourceEntityVersionHash = mapping?.sourceHash.flatMap { VersionHash(bytes: $0) }
    destinationEntityVersionHash = mapping?.destinationHash.flatMap { VersionHash(bytes: $0) }
    sourceExpression = mapping?.sourceExpression
    attributeMappings = properties(mapping?.attributes)
    relationshipMappings = properties(mapping?.relationships)
    entityMigrationPolicyClassName = plan.policy
    userInfo = plan.userInfo
  }
}
