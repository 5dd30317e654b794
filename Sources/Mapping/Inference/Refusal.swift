import GodwitObjectModel

/// Why a mapping cannot be inferred, or an inferred one cannot be carried out.
///
/// Source: `core-data-migration.md` §2.2.
package struct Refusal: Sendable, Hashable, Codable {
  /// What the rule is that forbids it. Raw values are part of the JSON output.
  package enum Reason: String, Sendable, Hashable, Codable, CaseIterable {
    /// The type of an attribute changes, and one of the two types is not a number.
    case attributeType = "attribute-type"
    /// A required attribute without a default would have no value in some rows.
    case requiredWithoutDefault = "required-without-default"
    /// A required relationship would have no object in some rows.
    case requiredRelationship = "required-relationship"
    /// The destination entity of a relationship is exchanged for another.
    case relationshipDestination = "relationship-destination"
    /// A to-many relationship becomes a to-one, and some objects have several objects in it.
    case toManyToOne = "to-many-to-one"
    /// Several owners share a target whose row has room for the key of one.
    case sharedTargets = "shared-targets"
    /// Entities without a common root entity get one: their rows would share a table.
    case mergeRoots = "merge-roots"
    /// Several destination entities come from one source entity.
    case splitEntity = "split-entity"
    /// Two entities or two properties have the same renaming identifier.
    case duplicateIdentifier = "duplicate-identifier"
    /// An entity becomes abstract and has objects.
    case abstractWithRows = "abstract-with-rows"
    /// An object has more objects in a relationship than the derived attribute that counts them can hold.
    case countOutOfRange = "count-out-of-range"
    /// Several rows have the same values under a uniqueness constraint of the destination.
    case uniqueness
  }

  /// How sure it is that Core Data would refuse as well.
  package enum Certainty: String, Sendable, Hashable, Codable {
    /// Apple's documentation, or Core Data's observed behaviour, says so.
    case documented
    /// Apple is silent. We refuse, since the other answer could lose data.
    case unspecified
  }

  /// The rule that forbids it.
  package var reason: Reason
  /// The entity of the destination model; of the source model for a duplicate identifier there.
  package var entity: EntityName
  /// None for a refusal that concerns the whole entity, several for a uniqueness constraint.
  package var properties: [String]
  /// What forbids it, as a sentence without its full stop.
  package var message: String
  /// What to do about it.
  package var advice: String
  /// How sure it is that Core Data would refuse as well.
  package var certainty: Certainty

  /// Makes a refusal. Nothing is checked.
  package init(
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
  /// The first of ``properties``; nil for a refusal that concerns the whole entity.
  package var property: String? { properties.first }

  /// `Trade`, `Trade.amount`, or `Trade (isin, day)`.
  package var place: String {
    if reason == .uniqueness { return "\(entity) (\(properties.joined(separator: ", ")))" }
    return properties.first.map { "\(entity).\($0)" } ?? entity.rawValue
  }

  /// Whole sentences: what forbids it, and what to do.
  package var text: String { "\(message). \(advice)" }

  /// Core Data's error code: 134190 (inference refused) where the models decide, 134110
  /// (migration failed) or 134111 (constraint violated) where the rows do.
  /// Source: `core-data-migration.md` §1.4.
  package var code: Int {
    switch reason {
    case .attributeType, .relationshipDestination, .mergeRoots, .splitEntity,
      .duplicateIdentifier:
      134190
    case .requiredWithoutDefault, .requiredRelationship, .abstractWithRows, .toManyToOne,
      .sharedTargets, .countOutOfRange:
      134110
    case .uniqueness: 134111
    }
  }
}

/// Something about an inferred mapping that a person should know and that stops nothing.
package struct InferenceNote: Sendable, Hashable, Codable {
  /// What the note is about. Raw values are part of the JSON output.
  package enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The entity has another name in the source model.
    case renamedEntity = "renamed-entity"
    /// The property has another name in the source model.
    case renamedProperty = "renamed-property"
    /// One name in both models, two renaming identifiers: removed and added.
    case differentIdentifiers = "different-identifiers"
    /// The identifier names an intermediate name of a chain of renames: removed and added.
    case intermediateIdentifier = "intermediate-identifier"
    /// A number type that cannot hold every value of the source's.
    case narrowing
    /// Two relationships become inverses: one of them decides, references that only the other has are
    /// dropped.
    case inverseDecides = "inverse-decides"
    /// No version hash covers the change: stores open, and the property's values are looked for
    /// elsewhere or in another form.
    case readOtherwise = "read-otherwise"
    /// A uniqueness constraint is new, and nothing keeps it: no index can be over its properties.
    case constraintNotKept = "constraint-not-kept"
    /// A new attribute has a default value that only Core Data can give to objects.
    case defaultNotGiven = "default-not-given"
  }

  /// What the note is about.
  package var kind: Kind
  /// The entity of the destination model.
  package var entity: EntityName
  /// The property of ``entity``; nil for a note about the entity.
  package var property: String?
  /// A sentence without its full stop.
  package var message: String

  /// Whether it says that something has another name in the source model.
  package var isRename: Bool { kind == .renamedEntity || kind == .renamedProperty }

  /// Makes a note. Nothing is checked.
  package init(_ kind: Kind, entity: EntityName, property: String? = nil, message: String) {
    self.kind = kind
    self.entity = entity
    self.property = property
    self.message = message
  }
}
