import GodwitExpressions
import GodwitObjectModel

/// A mapping model as it is written, before the two models have completed it.
///
/// Xcode's file and the text form leave most properties to themselves ("automatic"); what that
/// comes to depends on the models. ``MappingModel/init(_:source:destination:)`` completes it.
///
/// Source: `core-data-migration.md` §3.2, §3.3.
package struct MappingDocument: Sendable, Equatable {
  /// Where the models were when the file was made; relative to some project's folder.
  package var sourceModelPath: String?
  /// The same for the destination model; nil where the file does not say.
  package var destinationModelPath: String?
  /// In order.
  package var entityMappings: [Entry]

  /// Makes a document. Nothing is checked.
  package init(
    entityMappings: [Entry], sourceModelPath: String? = nil, destinationModelPath: String? = nil
  ) {
    self.entityMappings = entityMappings
    self.sourceModelPath = sourceModelPath
    self.destinationModelPath = destinationModelPath
  }

  /// One entity mapping.
  package struct Entry: Sendable, Equatable {
    /// nil: made from the entities' names.
    package var name: String?
    /// nil: follows from source, destination and policy.
    package var kind: Kind?
    /// The source entity; nil for an addition, and where none is named.
    package var source: EntityName?
    /// The destination entity; nil for a removal, and where none is named.
    package var destination: EntityName?
    /// The source objects that are mapped.
    package var selection: SourceSelection
    /// The class name of the entity migration policy; nil for none, and for ``defaultPolicy``.
    package var policy: String? {
      didSet { if policy == Self.defaultPolicy { policy = nil } }
    }
    /// Core Data's own class, which no name stands for, too. Source: `core-data-migration.md` §3.1.
    private static let defaultPolicy = "NSEntityMigrationPolicy"
    /// nil where the file does not say; Xcode's source form never does.
    package var sourceHash: VersionHash?
    /// The same for the destination entity.
    package var destinationHash: VersionHash?
    /// What is written about attributes of the destination entity, in order.
    package var attributes: [Row]
    /// What is written about relationships of the destination entity, in order.
    package var relationships: [Row]
    /// What happens to properties without a row.
    package var others: Others
    /// `$entityMapping.userInfo`: key-value pairs for expressions and policies.
    package var userInfo: [String: String]
    /// Expressions of the file that are never evaluated and were left out.
    package var unusedExpressions: [UnusedExpression] = []

    /// Makes an entity mapping as it is written. Nothing is checked.
    package init(
      name: String? = nil, kind: Kind? = nil, source: EntityName? = nil,
      destination: EntityName? = nil, selection: SourceSelection = .all, policy: String? = nil,
      sourceHash: VersionHash? = nil, destinationHash: VersionHash? = nil, attributes: [Row] = [],
      relationships: [Row] = [], others: Others = .automatic, userInfo: [String: String] = [:]
    ) {
      self.name = name
      self.kind = kind
      self.source = source
      self.destination = destination
      self.selection = selection
      self.policy = policy == Self.defaultPolicy ? nil : policy
      self.sourceHash = sourceHash
      self.destinationHash = destinationHash
      self.attributes = attributes
      self.relationships = relationships
      self.others = others
      self.userInfo = userInfo
    }
  }

  /// An expression that is never evaluated.
  package struct UnusedExpression: Sendable, Equatable {
    /// nil for the source expression.
    package var property: String?
    /// Why, as part of a sentence.
    package var reason: String

    /// Names an expression that is left out, with the reason.
    package init(property: String?, reason: String) {
      self.property = property
      self.reason = reason
    }
  }

  /// What kind of entity mapping it is. Source: `core-data-migration.md` §3.1.
  package enum Kind: String, Sendable, CaseIterable {
    /// Raw values are the words of the text form.
    case add, remove, copy, transform, custom
  }

  /// What happens to destination properties that have no row.
  package enum Others: String, Sendable, CaseIterable {
    /// They get what an automatic row would give them.
    case automatic
    /// They keep their default value.
    case none
  }

  /// What is written about one destination property.
  package struct Row: Sendable, Equatable {
    /// What a property is set to.
    package enum Value: Sendable, Equatable {
      /// From the source property of the same name, where there is one.
      case automatic
      /// Automatic, along another key path; relationships only.
      case along(ValueExpression)
      /// The property keeps its default value.
      case unset
      /// The value of an expression.
      case expression(ValueExpression)
    }

    /// The destination property.
    package var name: String
    /// What the property is set to.
    package var value: Value
    /// `$propertyMapping.userInfo`: key-value pairs for expressions and policies.
    package var userInfo: [String: String]

    /// Makes a row. Nothing is checked.
    package init(_ name: String, _ value: Value, userInfo: [String: String] = [:]) {
      self.name = name
      self.value = value
      self.userInfo = userInfo
    }
  }
}

extension MappingDocument {
  /// The names of the versions that the file was made for, as far as it says.
  package var modelNames: (source: VersionName?, destination: VersionName?) {
    (
      sourceModelPath.flatMap { VersionName(path: $0) },
      destinationModelPath.flatMap { VersionName(path: $0) }
    )
  }

  /// Whether any entity mapping says which version of an entity it was made for.
  package var hasHashes: Bool {
    entityMappings.contains { $0.sourceHash != nil || $0.destinationHash != nil }
  }
}

extension MappingDocument.Entry {
  /// The name given, else `SourceToDestination`, or the one entity's name.
  /// Source: `core-data-migration.md` §3.3, rule 1.
  package var effectiveName: String {
    if let name, !name.isEmpty { return name }
    return switch (source, destination) {
    case (let source?, let destination?): "\(source)To\(destination)"
    case (let source?, nil): source.rawValue
    case (nil, let destination?): destination.rawValue
    case (nil, nil): "Mapping"
    }
  }

  /// True where there are no source objects, and no policy whose code could make objects: then no
  /// row is ever evaluated.
  package var evaluatesNothing: Bool { source == nil && destination != nil && policy == nil }

  /// True for a removal with rows for properties: it makes no objects that they could be of.
  package var hasUnusedRows: Bool {
    source != nil && destination == nil && policy == nil
      && !(attributes.isEmpty && relationships.isEmpty)
  }

  /// The kind given, else the one that follows: custom with a policy, add without a source, remove
  /// without a destination, else transform. Nil where nothing is named.
  /// Source: `core-data-migration.md` §3.3, rule 2.
  package var effectiveKind: MappingDocument.Kind? {
    if let kind { return kind }
    if policy != nil { return .custom }
    if source == nil { return destination == nil ? nil : .add }
    return destination == nil ? .remove : .transform
  }
}

extension MappingDocument {
  /// The document that says exactly what a complete mapping model says.
  package init(_ model: MappingModel) {
    self.init(
      entityMappings: model.entityMappings.map { mapping in
        let kind: Kind? =
          switch mapping.type {
          case .add: .add
          case .remove: .remove
          case .copy: .copy
          case .transform: .transform
          case .custom: .custom
          case .undefined: nil
          }
        func rows(_ mappings: [PropertyMapping]) -> [Row] {
          mappings.map {
            Row($0.name, $0.expression.map { .expression($0) } ?? .unset, userInfo: $0.userInfo)
          }
        }
        return Entry(
          name: mapping.name, kind: kind, source: mapping.sourceEntity,
          destination: mapping.destinationEntity, selection: mapping.sourceSelection,
          policy: mapping.policy, sourceHash: mapping.sourceHash,
          destinationHash: mapping.destinationHash, attributes: rows(mapping.properties.attributes),
          relationships: rows(mapping.properties.relationships), others: .none,
          userInfo: mapping.userInfo)
      })
  }
}
