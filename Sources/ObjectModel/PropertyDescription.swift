/// A property of an entity.
public enum PropertyDescription: Sendable, Equatable {
  case attribute(AttributeDescription)
  case relationship(RelationshipDescription)
  /// Never stored in a column and not in the version hash.
  case fetchedProperty(FetchedPropertyDescription)
}

/// What attributes, relationships and fetched properties have in common.
public struct PropertyTraits: Sendable, Equatable {
  public var name: String
  public var isOptional: Bool
  public var isTransient: Bool
  /// The name that a mapping is inferred by; nil means the own name.
  public var renamingIdentifier: String?
  public var versionHashModifier: String?
  public var userInfo: [String: String]
  /// The old `indexed` flag, before fetch indexes.
  public var isIndexed: Bool
  public var isIndexedBySpotlight: Bool

  public init(
    name: String, isOptional: Bool = true, isTransient: Bool = false,
    renamingIdentifier: String? = nil, versionHashModifier: String? = nil,
    userInfo: [String: String] = [:], isIndexed: Bool = false, isIndexedBySpotlight: Bool = false
  ) {
    self.name = name
    self.isOptional = isOptional
    self.isTransient = isTransient
    self.renamingIdentifier = renamingIdentifier
    self.versionHashModifier = versionHashModifier
    self.userInfo = userInfo
    self.isIndexed = isIndexed
    self.isIndexedBySpotlight = isIndexedBySpotlight
  }

  /// What correspondence is decided by: the renaming identifier, else the name.
  public var mappingKey: String { renamingIdentifier ?? name }
}

extension PropertyDescription {
  public var traits: PropertyTraits {
    switch self {
    case .attribute(let attribute): attribute.traits
    case .relationship(let relationship): relationship.traits
    case .fetchedProperty(let fetched): fetched.traits
    }
  }

  public var name: String { traits.name }

  /// True for properties that have a place in the store: not transient and not fetched.
  public var isStored: Bool {
    if case .fetchedProperty = self { return false }
    return !traits.isTransient
  }

  public var attribute: AttributeDescription? {
    if case .attribute(let attribute) = self { attribute } else { nil }
  }

  public var relationship: RelationshipDescription? {
    if case .relationship(let relationship) = self { relationship } else { nil }
  }
}

/// The type of an attribute; raw values are Core Data's `NSAttributeType`.
/// Source: `core-data-sqlite-format.md` §5.
public enum AttributeType: Int, Sendable, Equatable, Codable, CaseIterable {
  case undefined = 0
  case integer16 = 100
  case integer32 = 200
  case integer64 = 300
  case decimal = 400
  case double = 500
  case float = 600
  case string = 700
  case boolean = 800
  case date = 900
  case binary = 1000
  case uuid = 1100
  case uri = 1200
  case transformable = 1800
  case objectID = 2000
  case composite = 2100

  public var isInteger: Bool { self == .integer16 || self == .integer32 || self == .integer64 }
  /// Types between which inference converts. Source: `core-data-migration.md` §2.2.
  public var isNumber: Bool {
    isInteger || self == .decimal || self == .double || self == .float || self == .boolean
  }

  /// As an `.xcdatamodel` spells it: `Integer 16`, `Boolean` …
  public var xmlName: String {
    switch self {
    case .undefined: "Undefined"
    case .integer16: "Integer 16"
    case .integer32: "Integer 32"
    case .integer64: "Integer 64"
    case .decimal: "Decimal"
    case .double: "Double"
    case .float: "Float"
    case .string: "String"
    case .boolean: "Boolean"
    case .date: "Date"
    case .binary: "Binary"
    case .uuid: "UUID"
    case .uri: "URI"
    case .transformable: "Transformable"
    case .objectID: "ObjectID"
    case .composite: "Composite"
    }
  }
}

/// A default value, in the form in which SQLite would hold it in the attribute's column.
///
/// Column affinity is already applied: an integral Decimal or Date is `.integer`, a Double is
/// always `.real`. Source: `core-data-sqlite-format.md` §5, `core-data-migration.md` §2.4.
public enum StoredDefault: Sendable, Hashable, Codable {
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

public struct AttributeDescription: Sendable, Equatable {
  public var traits: PropertyTraits
  public var type: AttributeType
  public var defaultValue: StoredDefault?
  public var attributeValueClassName: String?
  public var valueTransformerName: String?
  public var allowsExternalBinaryDataStorage: Bool
  public var preservesValueInHistoryOnDeletion: Bool
  public var allowsCloudEncryption: Bool
  /// The text that Core Data hashes, such as `count:(pages)`; nil for attributes that are not derived.
  public var derivationExpression: String?
  /// The elements of a composite attribute, in declared order. Nil for every other type.
  public var compositeElements: [AttributeDescription]?
  public var validation: [ValidationRule]

  public init(
    traits: PropertyTraits, type: AttributeType, defaultValue: StoredDefault? = nil,
    attributeValueClassName: String? = nil, valueTransformerName: String? = nil,
    allowsExternalBinaryDataStorage: Bool = false, preservesValueInHistoryOnDeletion: Bool = false,
    allowsCloudEncryption: Bool = false, derivationExpression: String? = nil,
    compositeElements: [AttributeDescription]? = nil, validation: [ValidationRule] = []
  ) {
    self.traits = traits
    self.type = type
    self.defaultValue = defaultValue
    self.attributeValueClassName = attributeValueClassName
    self.valueTransformerName = valueTransformerName
    self.allowsExternalBinaryDataStorage = allowsExternalBinaryDataStorage
    self.preservesValueInHistoryOnDeletion = preservesValueInHistoryOnDeletion
    self.allowsCloudEncryption = allowsCloudEncryption
    self.derivationExpression = derivationExpression
    self.compositeElements = compositeElements
    self.validation = validation
  }

  public var name: String { traits.name }
}

/// A rule of the model editor's validation pane. Not part of schema or version hash.
/// Source: `core-data-models.md` §2 (attributes) and §4 ("Validation from the editor").
public enum ValidationRule: Sendable, Equatable {
  /// Bounds of a number, or of a date in seconds since 2001-01-01 UTC.
  case minimum(Double)
  case maximum(Double)
  case above(Double)
  case below(Double)
  /// Bounds of a string's length in UTF-16 units.
  case minimumLength(Int)
  case maximumLength(Int)
  /// An ICU regular expression that must match the whole string.
  case matches(String)
  /// A predicate of another form, as text for people; not judged.
  case other(String)
}

public struct RelationshipDescription: Sendable, Equatable {
  /// What deleting the owner does. Raw values are Core Data's. Not part of the version hash.
  public enum DeleteRule: Int, Sendable, Equatable {
    case noAction = 0
    case nullify = 1
    case cascade = 2
    case deny = 3
  }

  public var traits: PropertyTraits
  public var destinationEntity: EntityName
  public var inverseName: String?
  public var minCount: Int
  /// 1 is a to-one; anything else, 0 and −1 included, a to-many.
  public var maxCount: Int
  public var isOrdered: Bool
  public var deleteRule: DeleteRule

  public init(
    traits: PropertyTraits, destinationEntity: EntityName, inverseName: String? = nil,
    minCount: Int = 0, maxCount: Int = 1, isOrdered: Bool = false, deleteRule: DeleteRule = .nullify
  ) {
    self.traits = traits
    self.destinationEntity = destinationEntity
    self.inverseName = inverseName
    self.minCount = minCount
    self.maxCount = maxCount
    self.isOrdered = isOrdered
    self.deleteRule = deleteRule
  }

  public var name: String { traits.name }
  public var isToMany: Bool { maxCount != 1 }
}

public struct FetchedPropertyDescription: Sendable, Equatable {
  public var traits: PropertyTraits
  public var fetchRequest: FetchRequestTemplate?

  public init(traits: PropertyTraits, fetchRequest: FetchRequestTemplate? = nil) {
    self.traits = traits
    self.fetchRequest = fetchRequest
  }
}
