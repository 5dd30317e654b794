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
  public var name: String { facts.name }
  /// What happens to the objects.
  public var mappingType: MappingType { facts.mappingType }
  /// The entity whose objects are mapped; nil for a mapping without a source.
  public var sourceEntityName: String? { facts.sourceEntityName }
  /// The entity of the new objects; nil for a mapping without a destination.
  public var destinationEntityName: String? { facts.destinationEntityName }
  /// Nil without a source entity.
  public var sourceEntityVersionHash: VersionHash? { facts.sourceEntityVersionHash }
  /// Nil without a destination entity.
  public var destinationEntityVersionHash: VersionHash? { facts.destinationEntityVersionHash }
  /// The filter or the expression that the source objects are found by; nil takes all objects of the
  /// source entity.
  public var sourceExpression: String? { facts.sourceExpression }
  /// Set in this order by `super.createDestinationInstances`.
  public var attributeMappings: [PropertyMapping] { facts.attributeMappings }
  /// Set in this order by `super.createRelationships`.
  public var relationshipMappings: [PropertyMapping] { facts.relationshipMappings }
  /// The class name as the mapping model gives it.
  public var entityMigrationPolicyClassName: String? { facts.entityMigrationPolicyClassName }
  /// Key-value pairs of the mapping model for the entity mapping.
  public var userInfo: [String: String] { facts.userInfo }

  /// Every hook of every object is passed the mapping: one reference, and not each of its texts.
  private let shared: Shared
  private var facts: Facts { shared.facts }

  private struct Facts: Sendable, Equatable {
    let name: String
    let mappingType: MappingType
    let sourceEntityName: String?
    let destinationEntityName: String?
    let sourceEntityVersionHash: VersionHash?
    let destinationEntityVersionHash: VersionHash?
    let sourceExpression: String?
    let attributeMappings: [PropertyMapping]
    let relationshipMappings: [PropertyMapping]
    let entityMigrationPolicyClassName: String?
    let userInfo: [String: String]

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

  private final class Shared: Sendable, Equatable {
    let facts: Facts
    init(_ facts: Facts) { self.facts = facts }

    static func == (a: Shared, b: Shared) -> Bool { a === b || a.facts == b.facts }
  }

  init(_ plan: EntityMappingPlan) { shared = Shared(Facts(plan)) }
}
