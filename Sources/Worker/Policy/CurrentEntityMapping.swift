import GodwitObjectModel
import GodwitPlanning

/// The entity mapping that a policy runs for: what Core Data's `NSEntityMapping` tells it.
public struct CurrentEntityMapping: Sendable, Equatable {
  /// What kind of mapping it is; raw values are those of `NSEntityMappingType`.
  public enum MappingType: Int, Sendable {
    /// Names no entity and no policy, and does nothing.
    case undefined = 0
    /// A policy creates the destination objects.
    case custom = 1
    /// A new destination entity, without source objects.
    case add = 2
    /// The source objects have no successor.
    case remove = 3
    /// Each property is copied.
    case copy = 4
    /// Each property is computed by its own property mapping.
    case transform = 5
  }

  /// How one property of the destination gets its value: Core Data's `NSPropertyMapping`.
  public struct PropertyMapping: Sendable, Equatable {
    /// The destination property.
    public let name: String
    /// As the mapping model writes it; nil leaves the property at its default, or empty.
    public let valueExpression: String?
    /// Key-value pairs of the mapping model for the property mapping.
    public let userInfo: [String: String]
  }

  /// The entity mapping's name, as expressions and look-ups spell it.
  public let name: String
  /// What happens to the objects.
  public let mappingType: MappingType
  /// The entity whose objects are mapped; nil for a mapping without a source.
  public let sourceEntityName: String?
  /// The entity of the new objects; nil for a mapping without a destination.
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
  /// Key-value pairs of the mapping model for the entity mapping.
  public let userInfo: [String: String]

  init(_ plan: EntityMappingPlan) {
    let mapping = plan.policyMapping
    func properties(_ mappings: [PolicyMapping.Property]?) -> [PropertyMapping] {
      (mappings ?? []).map {
        PropertyMapping(name: $0.name, valueExpression: $0.expression, userInfo: $0.userInfo)
      }
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
