/// What differs between two versions of a model, entity by entity and property by property.
///
/// Items correspond as in inference: by renaming identifier, else by name. Whether a difference
/// can be migrated without a mapping model is not judged here.
/// Source: `core-data-migration.md` §2.1.
package struct ModelDifference: Sendable, Equatable, Codable {
  /// What is compared. Raw values are part of the JSON output.
  package enum Aspect: String, Sendable, Codable, CaseIterable {
    /// Aspects of entities and properties alike.
    case name, versionHashModifier, userInfo
    /// Aspects of entities.
    case superentity, isAbstract, className, uniquenessConstraints, fetchIndexes
    /// Aspects of properties. `declaringEntity` differs where a property moved in the hierarchy;
    /// `indexed` is the old flag and `spotlight` that of Spotlight.
    case declaringEntity, optional, transient, indexed, spotlight
    /// Aspects of attributes. `externalStorage` is the permission to store a value outside the
    /// store's file.
    case type, defaultValue, valueClassName, valueTransformer, externalStorage
    /// More aspects of attributes: flags, the derivation expression, the elements of a composite
    /// attribute and the validation rules.
    case preservedOnDeletion, cloudEncryption, derivation, composite, validation
    /// Aspects of relationships.
    case destination, inverse, minCount, maxCount, toMany, ordered, deleteRule
    /// The fetch request of a fetched property: its entity and predicate.
    case fetchRequest
  }

  /// One aspect that differs, as text; nil where a side has nothing.
  package struct Change: Sendable, Equatable, Codable {
    /// What differs.
    package let aspect: Aspect
    /// The text in the source model.
    package let before: String?
    /// The text in the destination model.
    package let after: String?
  }

  /// Whether an item is in one of the models only, or in both and different.
  package enum Kind: String, Sendable, Codable {
    /// In the destination only; in the source only; in both and different.
    case added, removed, changed
  }

  /// A property that is not the same in both models.
  package struct PropertyDifference: Sendable, Equatable, Codable {
    /// Whether the property was added, removed or changed.
    package let kind: Kind
    /// The names in the two models; nil where the property is not there.
    package let source: String?
    /// The name in the destination model; nil for a removed property.
    package let destination: String?
    /// `String, optional`: what was added or removed. Nil for a changed one.
    package let summary: String?
    /// The aspects that differ. Empty for an added or removed property.
    package let changes: [Change]

    /// True for a property that is in both models under two names.
    package var isRenamed: Bool {
      source != nil && destination != nil && !source.isSameName(as: destination)
    }
  }

  /// An entity that is not the same in both models.
  package struct EntityDifference: Sendable, Equatable, Codable {
    /// Whether the entity was added, removed or changed.
    package let kind: Kind
    /// The name in the source model; nil for an added entity.
    package let source: EntityName?
    /// The name in the destination model; nil for a removed entity.
    package let destination: EntityName?
    /// The entity's own aspects that differ. Empty for an added or removed entity.
    package let changes: [Change]
    /// Own properties that differ, sorted by name; all own ones of an added or removed entity.
    package let properties: [PropertyDifference]
    /// Tells whether a store of the source needs a migration because of this entity.
    package let hashChanged: Bool

    /// True for an entity that is in both models under two names.
    package var isRenamed: Bool { source != nil && destination != nil && source != destination }
  }

  /// Sorted by the name in the destination, else in the source. Equal entities are not listed.
  package let entities: [EntityDifference]

  /// True when the models are equal in everything that is compared.
  package var isEmpty: Bool { entities.isEmpty }

  /// Compares two models whose inheritance is already computed.
  package init(source: EntityHierarchy, destination: EntityHierarchy) {
    let comparison = ModelComparison(source: source, destination: destination)
    entities = comparison.entities()
  }

  /// Compares two models.
  ///
  /// - Throws: ``ModelError`` for a model whose inheritance cannot be followed.
  package init(source: ManagedObjectModel, destination: ManagedObjectModel) throws {
    self.init(
      source: try EntityHierarchy(source), destination: try EntityHierarchy(destination))
  }
}

extension ModelDifference: CustomStringConvertible {
  /// One line an item: `+` added, `-` removed, `~` changed; properties are indented.
  package var description: String {
    entities.map(\.description).joined(separator: "\n")
  }
}

extension ModelDifference.Change: CustomStringConvertible {
  /// The aspect, what it was, and what it is.
  package var description: String {
    "\(aspect.rawValue): \(before ?? "none") → \(after ?? "none")"
  }
}

extension ModelDifference.Kind {
  var mark: String {
    switch self {
    case .added: "+"
    case .removed: "-"
    case .changed: "~"
    }
  }
}

extension ModelDifference.PropertyDifference: CustomStringConvertible {
  /// The property and its changes, on one line.
  package var description: String {
    let name = destination ?? source ?? ""
    let origin = isRenamed ? " (was \(source ?? ""))" : ""
    let details = summary.map { [$0] } ?? changes.filter { $0.aspect != .name }.map(\.description)
    return "\(kind.mark) \(name)\(origin)"
      + (details.isEmpty ? "" : ": " + details.joined(separator: "; "))
  }
}

extension ModelDifference.EntityDifference: CustomStringConvertible {
  /// The entity, and a line below it for each change.
  package var description: String { lines.joined(separator: "\n") }

  /// The entity, and a line below it for each change.
  package var lines: [String] {
    let name = destination ?? source ?? ""
    let origin = isRenamed ? " (was \(source ?? ""))" : ""
    let details = changes.filter { $0.aspect != .name }.map { "    \($0)" }
    return ["\(kind.mark) \(name)\(origin)"] + details + properties.map { "    \($0)" }
  }
}
