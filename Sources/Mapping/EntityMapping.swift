import GodwitExpressions
public import GodwitObjectModel

/// How the objects of one source entity become objects of one destination entity.
///
/// Plays the part of Core Data's `NSEntityMapping`. Its place in
/// ``MappingModel/entityMappings`` is the order in which it is processed.
///
/// Source: `core-data-migration.md` §3.1.
public struct EntityMapping: Sendable, Equatable {
  /// What happens to the objects. The cases keep Core Data's meaning.
  public enum MappingType: Sendable, Equatable {
    /// A new destination entity; there are no source objects.
    case add(destination: EntityName, PropertyMappings)
    /// The source objects have no successor.
    case remove(source: EntityName)
    /// Each property is copied. Only an *inferred* copy between equal version
    /// hashes lets rows move unchanged, byte for byte.
    case copy(source: EntityName, destination: EntityName, PropertyMappings)
    /// Each property is computed by its own property mapping.
    case transform(source: EntityName, destination: EntityName, PropertyMappings)
    /// A policy of the team's own creates the destination instances. Without a source it runs its
    /// hooks with no source objects, without a destination it may create whatever it likes.
    case custom(
      source: EntityName?, destination: EntityName?, policy: String, PropertyMappings)
    /// Names no entity and no policy, and does nothing. Xcode leaves such mappings behind.
    case undefined
  }

  /// Unique in its mapping model; `SourceToDestination` by custom, as in `TradeToTrade`.
  public var name: String
  /// What happens to the objects, with the entities and property mappings.
  public var type: MappingType
  /// The version hash that the source entity must have; nil where the file does not say.
  public var sourceHash: VersionHash?
  /// The version hash that the destination entity must have; nil where the file does not say.
  public var destinationHash: VersionHash?
  /// The source objects that are mapped. Not used where there is no source entity.
  package var sourceSelection: SourceSelection
  /// `$entityMapping.userInfo`: key-value pairs for expressions and policies.
  public var userInfo: [String: String]
  /// Expressions of the file that are never evaluated and were left out.
  package var unusedExpressions: [MappingDocument.UnusedExpression] = []
  /// True for a removal for which the file has property mappings, which were left out.
  package var hasUnusedRows = false

  /// Makes an entity mapping. Nothing is checked; see ``MappingCheck``.
  package init(
    name: String, type: MappingType, sourceHash: VersionHash? = nil,
    destinationHash: VersionHash? = nil, sourceSelection: SourceSelection = .all,
    userInfo: [String: String] = [:]
  ) {
    self.name = name
    self.type = type
    self.sourceHash = sourceHash
    self.destinationHash = destinationHash
    self.sourceSelection = sourceSelection
    self.userInfo = userInfo
  }
}

/// Which objects of the source entity a mapping takes. Objects of sub-entities are never taken:
/// they have mappings of their own.
///
/// Source: `core-data-migration.md` §3.1 ("Source expression").
package enum SourceSelection: Sendable, Equatable {
  /// All objects of the source entity.
  case all
  /// The objects for which the predicate holds.
  case filter(PredicateExpression)
  /// Whatever the expression yields.
  case expression(ValueExpression)
}

/// The property mappings of an entity mapping: attributes are set in the copy stage, relationships
/// in the link stage, each in this order.
public struct PropertyMappings: Sendable, Equatable {
  /// Destination attributes, in the order in which they are set.
  public var attributes: [PropertyMapping]
  /// Destination relationships, in the order in which they are set.
  public var relationships: [PropertyMapping]

  /// Makes the property mappings of one entity mapping.
  package init(attributes: [PropertyMapping] = [], relationships: [PropertyMapping] = []) {
    self.attributes = attributes
    self.relationships = relationships
  }
}

/// How one property of the destination gets its value. Core Data's `NSPropertyMapping`.
public struct PropertyMapping: Sendable, Equatable {
  /// The destination property.
  public var name: String
  /// nil leaves the property at its default, or empty. An expression that *yields* nil sets nil.
  /// Source: `core-data-migration.md` §4.5.
  public var expression: ValueExpression?
  /// `$propertyMapping.userInfo`: key-value pairs for expressions and policies.
  public var userInfo: [String: String]

  /// Makes a property mapping. Nothing is checked; see ``MappingCheck``.
  package init(name: String, expression: ValueExpression?, userInfo: [String: String] = [:]) {
    self.name = name
    self.expression = expression
    self.userInfo = userInfo
  }
}

extension EntityMapping {
  /// The entity whose objects are mapped; nil for an addition, and where the mapping names none.
  public var sourceEntity: EntityName? {
    switch type {
    case .add: nil
    case .remove(let source): source
    case .copy(let source, _, _), .transform(let source, _, _): source
    case .custom(let source, _, _, _): source
    case .undefined: nil
    }
  }

  /// The entity of the new objects; nil for a removal, and where the mapping names none.
  public var destinationEntity: EntityName? {
    switch type {
    case .add(let destination, _): destination
    case .remove: nil
    case .copy(_, let destination, _), .transform(_, let destination, _): destination
    case .custom(_, let destination, _, _): destination
    case .undefined: nil
    }
  }

  /// The property mappings. Empty for a removal and an undefined mapping.
  public var properties: PropertyMappings {
    switch type {
    case .add(_, let properties), .copy(_, _, let properties), .transform(_, _, let properties):
      properties
    case .custom(_, _, _, let properties): properties
    case .remove, .undefined: PropertyMappings()
    }
  }

  /// The class name of the entity migration policy, for ``MappingType/custom(source:destination:policy:_:)``.
  public var policy: String? {
    if case .custom(_, _, let policy, _) = type { policy } else { nil }
  }
}
