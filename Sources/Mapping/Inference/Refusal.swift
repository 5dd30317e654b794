public import GodwitObjectModel

/// Why a mapping cannot be inferred, or an inferred one cannot be carried out.
///
/// Source: `core-data-migration.md` §2.2.
public struct Refusal: Sendable, Hashable, Codable {
  public enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
    case attributeType = "attribute-type"
    case requiredWithoutDefault = "required-without-default"
    case requiredRelationship = "required-relationship"
    case relationshipDestination = "relationship-destination"
    case toManyToOne = "to-many-to-one"
    /// Several owners share a target whose row has room for the key of one.
    case sharedTargets = "shared-targets"
    case mergeRoots = "merge-roots"
    case splitEntity = "split-entity"
    case duplicateIdentifier = "duplicate-identifier"
    case abstractWithRows = "abstract-with-rows"
    case uniqueness
  }

  /// How sure it is that Core Data would refuse as well.
  public enum Certainty: String, Sendable, Hashable, Codable {
    case documented
    /// Apple is silent. We refuse, since the other answer could lose data.
    case unspecified
  }

  public var reason: Reason
  /// Of the destination model; of the source model for a duplicate identifier there.
  public var entity: EntityName
  /// None for a refusal that concerns the whole entity, several for a uniqueness constraint.
  public var properties: [String]
  public var message: String
  /// What to do about it.
  public var advice: String
  public var certainty: Certainty

  public init(
    _ reason: Reason, entity: EntityName, properties: [String] = [], message: String,
    advice: String, certainty: Certainty = .documented
  ) {
    self.reason = reason
    self.entity = entity
    self.properties = properties
    self.message = message
    self.advice = advice
    self.certainty = certainty
  }
}

extension Refusal {
  public var property: String? { properties.first }

  /// `Trade`, `Trade.amount`, or `Trade (isin, day)`.
  public var place: String {
    if reason == .uniqueness { return "\(entity) (\(properties.joined(separator: ", ")))" }
    return properties.first.map { "\(entity).\($0)" } ?? entity.rawValue
  }

  /// Core Data's error code: 134190 (inference refused) where the models decide, 134110
  /// (migration failed) or 134111 (constraint violated) where the rows do.
  /// Source: `core-data-migration.md` §1.4.
  public var code: Int {
    switch reason {
    case .attributeType, .relationshipDestination, .mergeRoots, .splitEntity,
      .duplicateIdentifier:
      134190
    case .requiredWithoutDefault, .requiredRelationship, .abstractWithRows, .toManyToOne,
      .sharedTargets:
      134110
    case .uniqueness: 134111
    }
  }
}

/// Something about an inferred mapping that a person should know and that stops nothing.
public struct InferenceNote: Sendable, Hashable, Codable {
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case renamedEntity = "renamed-entity"
    case renamedProperty = "renamed-property"
    /// One name in both models, two renaming identifiers: removed and added.
    case differentIdentifiers = "different-identifiers"
    /// The identifier names an intermediate name of a chain of renames: removed and added.
    case intermediateIdentifier = "intermediate-identifier"
    /// A number type that cannot hold every value of the source's.
    case narrowing
  }

  public var kind: Kind
  /// Of the destination model.
  public var entity: EntityName
  public var property: String?
  public var message: String

  public init(_ kind: Kind, entity: EntityName, property: String? = nil, message: String) {
    self.kind = kind
    self.entity = entity
    self.property = property
    self.message = message
  }
}
