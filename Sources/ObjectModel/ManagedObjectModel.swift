/// A managed object model: the entities of one version of a store's schema.
///
/// A store opens under a model when the two agree on the ``VersionHash`` of
/// every entity. Version identifiers such as `"2.0.7"` are hints for people and
/// are never compared.
///
/// Source: Core Data Model Versioning and Data Migration Programming Guide,
/// "Understanding Versions"; `core-data-models.md` §2 and §4 for what is kept.
public struct ManagedObjectModel: Sendable, Equatable {
  /// Hints for people, sorted. A merged model keeps the identifiers of all its parts.
  public var versionIdentifiers: [String]
  /// Concrete and abstract entities, sorted by name in byte order.
  public var entities: [EntityDescription]
  /// Configuration name → its entities. The default configuration is not listed.
  public var configurations: [String: [EntityName]]
  /// Fetch requests that the model keeps by name, in the order given.
  public var fetchRequestTemplates: [FetchRequestTemplate]

  /// Makes a model; version identifiers and entities are sorted. Whether they agree with each other
  /// is checked by ``EntityHierarchy``.
  package init(
    versionIdentifiers: [String] = [], entities: [EntityDescription],
    configurations: [String: [EntityName]] = [:],
    fetchRequestTemplates: [FetchRequestTemplate] = []
  ) {
    self.versionIdentifiers = versionIdentifiers.sorted { $0.precedesInBytes($1) }
    self.entities = entities.sorted { $0.name < $1.name }
    self.configurations = configurations
    self.fetchRequestTemplates = fetchRequestTemplates
  }
}

/// One entity, with the properties that it declares itself.
///
/// Inherited properties are found through `EntityHierarchy.properties(of:)`.
public struct EntityDescription: Sendable, Equatable {
  /// Unique in the model.
  public var name: EntityName
  /// The class of the objects; nil is `NSManagedObject`. Not part of the version hash.
  public var managedObjectClassName: String?
  /// The entity that this one inherits from; nil for a root entity.
  public var superentity: EntityName?
  /// True for an entity that has no objects of its own. Part of the version hash.
  public var isAbstract: Bool
  /// The name that a mapping is inferred by; nil means the own name. See `mappingKey`.
  public var renamingIdentifier: String?
  /// A text that is mixed into the version hash; nil for none.
  /// Source: `core-data-models.md` §6.2.
  public var versionHashModifier: String?
  /// Key-value pairs for the application. Not part of the version hash.
  public var userInfo: [String: String]
  /// Own properties only, sorted by name in byte order.
  public var properties: [PropertyDescription]
  /// Each constraint is a list of property names, in declared order.
  public var uniquenessConstraints: [[String]]
  /// As the *compiled* model holds them, those of old `indexed` flags and compound indexes included.
  /// Source: `core-data-sqlite-format.md` §8, "Details".
  public var fetchIndexes: [FetchIndexDescription]
  /// Indexes of the form used before fetch indexes; each is a list of property names.
  public var compoundIndexes: [[String]]

  /// Makes an entity; its properties are sorted by name. Nothing is checked.
  package init(
    name: EntityName, managedObjectClassName: String? = nil, superentity: EntityName? = nil,
    isAbstract: Bool = false, renamingIdentifier: String? = nil,
    versionHashModifier: String? = nil, userInfo: [String: String] = [:],
    properties: [PropertyDescription] = [], uniquenessConstraints: [[String]] = [],
    fetchIndexes: [FetchIndexDescription] = [], compoundIndexes: [[String]] = []
  ) {
    self.name = name
    self.managedObjectClassName = managedObjectClassName
    self.superentity = superentity
    self.isAbstract = isAbstract
    self.renamingIdentifier = renamingIdentifier
    self.versionHashModifier = versionHashModifier
    self.userInfo = userInfo
    self.properties = properties.sorted { $0.name.precedesInBytes($1.name) }
    self.uniquenessConstraints = uniquenessConstraints
    self.fetchIndexes = fetchIndexes
    self.compoundIndexes = compoundIndexes
  }

  /// What correspondence is decided by: the renaming identifier, else the name.
  /// Source: `core-data-migration.md` §2.1.
  package var mappingKey: String { renamingIdentifier ?? name.rawValue }
}

/// An index declared for fetches.
public struct FetchIndexDescription: Sendable, Equatable {
  /// The name of the index in the model.
  public var name: String
  /// What is indexed, the first element first.
  public var elements: [Element]
  /// The text of a partial index predicate, where there is one.
  public var partialIndexPredicate: String?

  /// Makes an index description. Nothing is checked.
  package init(name: String, elements: [Element], partialIndexPredicate: String? = nil) {
    self.name = name
    self.elements = elements
    self.partialIndexPredicate = partialIndexPredicate
  }

  /// A property or an expression that an index orders rows by.
  public struct Element: Sendable, Equatable {
    /// nil for an expression element.
    public var propertyName: String?
    /// The text of an expression that is indexed instead of a property; nil for a property element.
    public var expression: String?
    /// True for the type `RTree`, false for `Binary`. Source: `core-data-models.md` §2.
    public var isRTree: Bool
    /// False for descending order.
    public var isAscending: Bool

    /// Makes an element of either kind. Nothing is checked.
    package init(
      propertyName: String?, expression: String? = nil, isRTree: Bool = false,
      isAscending: Bool = true
    ) {
      self.propertyName = propertyName
      self.expression = expression
      self.isRTree = isRTree
      self.isAscending = isAscending
    }
  }
}

/// A fetch request kept in the model by name. Never stored in a column, not in the version hash.
public struct FetchRequestTemplate: Sendable, Equatable {
  /// The name that the model's file gives the request.
  public var name: String
  /// The entity whose objects are fetched; nil where the file names none.
  public var entity: EntityName?
  /// The text of the predicate; nil for a request without one.
  public var predicate: String?
  /// Every other setting under its name in the source file.
  public var settings: [String: String]

  /// Makes a template. Nothing is checked.
  package init(
    name: String, entity: EntityName?, predicate: String?, settings: [String: String] = [:]
  ) {
    self.name = name
    self.entity = entity
    self.predicate = predicate
    self.settings = settings
  }
}
