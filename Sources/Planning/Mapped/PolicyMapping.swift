import GodwitMapping
import GodwitObjectModel

/// What a policy may ask of the entity mapping that it runs for, beyond what the stages need of it.
///
/// Source: `core-data-migration.md` §3.1, `NSEntityMapping`.
public struct PolicyMapping: Codable, Sendable, Equatable {
  /// One property mapping.
  public struct Property: Codable, Sendable, Equatable {
    /// The destination property.
    public var name: String
    /// As mapping models write it; nil where there is none.
    public var expression: String?
    /// Key-value pairs of the mapping model for the property mapping.
    public var userInfo: [String: String]
  }

  /// `NSEntityMappingType`.
  public var type: Int
  /// 32 bytes each; nil without an entity.
  public var sourceHash: [UInt8]?
  /// The version hash of the destination entity; see ``sourceHash``.
  public var destinationHash: [UInt8]?
  /// The filter or the expression that the source objects are found by; nil takes all.
  public var sourceExpression: String?
  /// Property mappings of attributes, in the order in which they are set.
  public var attributes: [Property]
  /// Property mappings of relationships, in the order in which they are set.
  public var relationships: [Property]

  init(_ mapping: EntityMapping, source: EntityHierarchy, destination: EntityHierarchy) {
    type =
      switch mapping.type {
      case .undefined: 0
      case .custom: 1
      case .add: 2
      case .remove: 3
      case .copy: 4
      case .transform: 5
      }
    let (sourceName, destinationName) = (mapping.sourceEntity, mapping.destinationEntity)
    sourceHash = (mapping.sourceHash ?? sourceName.flatMap { source.versionHashes[$0] })?.bytes
    destinationHash =
      (mapping.destinationHash ?? destinationName.flatMap { destination.versionHashes[$0] })?.bytes
    sourceExpression =
      switch mapping.sourceSelection {
      case .all: nil
      case .filter(let predicate): predicate.description
      case .expression(let expression): expression.description
      }
    func properties(_ mappings: [PropertyMapping]) -> [Property] {
      mappings.map {
        Property(
          name: $0.name, expression: $0.expression?.description, userInfo: $0.userInfo)
      }
    }
    attributes = properties(mapping.properties.attributes)
    relationships = properties(mapping.properties.relationships)
  }
}
