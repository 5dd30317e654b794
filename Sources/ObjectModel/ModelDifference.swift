/// What differs between two versions of a model, entity by entity and property by property.
///
/// Items correspond as in inference: by renaming identifier, else by name. Whether a difference
/// can be migrated without a mapping model is not judged here.
/// Source: `core-data-migration.md` §2.1.
public struct ModelDifference: Sendable, Equatable, Codable {
  /// What is compared. Raw values are part of the JSON output.
  public enum Aspect: String, Sendable, Codable, CaseIterable {
    case name, versionHashModifier, userInfo
    case superentity, isAbstract, className, uniquenessConstraints, fetchIndexes
    case declaringEntity, optional, transient, indexed, spotlight
    case type, defaultValue, valueClassName, valueTransformer, externalStorage
    case preservedOnDeletion, cloudEncryption, derivation, composite, validation
    case destination, inverse, minCount, maxCount, toMany, ordered, deleteRule
    case fetchRequest
  }

  /// One aspect that differs, as text; nil where a side has nothing.
  public struct Change: Sendable, Equatable, Codable {
    public let aspect: Aspect
    public let before: String?
    public let after: String?
  }

  public enum Kind: String, Sendable, Codable { case added, removed, changed }

  public struct PropertyDifference: Sendable, Equatable, Codable {
    public let kind: Kind
    /// The names in the two models; nil where the property is not there.
    public let source: String?
    public let destination: String?
    /// `String, optional`: what was added or removed. Nil for a changed one.
    public let summary: String?
    public let changes: [Change]

    public var isRenamed: Bool {
      source != nil && destination != nil && !source.isSameName(as: destination)
    }
  }

  public struct EntityDifference: Sendable, Equatable, Codable {
    public let kind: Kind
    public let source: EntityName?
    public let destination: EntityName?
    public let changes: [Change]
    public let properties: [PropertyDifference]
    /// Tells whether a store of the source needs a migration because of this entity.
    public let hashChanged: Bool

    public var isRenamed: Bool { source != nil && destination != nil && source != destination }
  }

  /// Sorted by the name in the destination, else in the source. Equal entities are not listed.
  public let entities: [EntityDifference]

  /// True when the models are equal in everything that is compared.
  public var isEmpty: Bool { entities.isEmpty }
  /// True when a store of the source does not open under the destination.
  public var needsMigration: Bool { entities.contains(where: \.hashChanged) }

  public init(source: EntityHierarchy, destination: EntityHierarchy) {
    let comparison = ModelComparison(source: source, destination: destination)
    entities = comparison.entities()
  }

  /// - Throws: ``ModelError`` for a model whose inheritance cannot be followed.
  public init(source: ManagedObjectModel, destination: ManagedObjectModel) throws {
    self.init(
      source: try EntityHierarchy(source), destination: try EntityHierarchy(destination))
  }
}

extension ModelDifference: CustomStringConvertible {
  /// One line an item: `+` added, `-` removed, `~` changed; properties are indented.
  public var description: String {
    entities.map(\.description).joined(separator: "\n")
  }
}

extension ModelDifference.Change: CustomStringConvertible {
  public var description: String {
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
  public var description: String {
    let name = destination ?? source ?? ""
    let origin = isRenamed ? " (was \(source ?? ""))" : ""
    let details = summary.map { [$0] } ?? changes.filter { $0.aspect != .name }.map(\.description)
    return "\(kind.mark) \(name)\(origin)"
      + (details.isEmpty ? "" : ": " + details.joined(separator: "; "))
  }
}

extension ModelDifference.EntityDifference: CustomStringConvertible {
  public var description: String {
    let name = destination ?? source ?? ""
    let origin = isRenamed ? " (was \(source ?? ""))" : ""
    let details = changes.filter { $0.aspect != .name }.map { "\n    \($0)" }
    return "\(kind.mark) \(name)\(origin)" + details.joined()
      + properties.map { "\n    \($0)" }.joined()
  }
}
