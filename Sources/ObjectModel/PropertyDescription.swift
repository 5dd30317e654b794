/// A property of an entity.
public enum PropertyDescription: Sendable, Equatable {
  /// A value in a column, or in several where it is composite.
  case attribute(AttributeDescription)
  /// References to objects of an entity.
  case relationship(RelationshipDescription)
  /// Never stored in a column and not in the version hash.
  case fetchedProperty(FetchedPropertyDescription)
}

/// What attributes, relationships and fetched properties have in common.
public struct PropertyTraits: Sendable, Equatable {
  /// The property's name. An own property hides an inherited one of the same name.
  public var name: String
  /// False for a property that must have a value. Part of the version hash.
  public var isOptional: Bool
  /// True for a property that is not stored. Such properties are not in the entity's version hash.
  public var isTransient: Bool
  /// The name that a mapping is inferred by; nil means the own name.
  public var renamingIdentifier: String?
  /// A text that is mixed into the version hash; nil for none.
  public var versionHashModifier: String?
  /// Key-value pairs for the application. Not part of the version hash.
  public var userInfo: [String: String]
  /// The old `indexed` flag, before fetch indexes.
  public var isIndexed: Bool
  /// Whether Spotlight indexes the values. Not part of the version hash.
  public var isIndexedBySpotlight: Bool

  /// Makes the common part of a property. Nothing is checked.
  package init(
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
  package var mappingKey: String { renamingIdentifier ?? name }
}

extension PropertyDescription {
  /// What properties of all kinds have in common.
  public var traits: PropertyTraits {
    switch self {
    case .attribute(let attribute): attribute.traits
    case .relationship(let relationship): relationship.traits
    case .fetchedProperty(let fetched): fetched.traits
    }
  }

  /// The property's name.
  public var name: String { traits.name }

  /// True for properties that have a place in the store: not transient and not fetched.
  public var isStored: Bool {
    if case .fetchedProperty = self { return false }
    return !traits.isTransient
  }

  /// The attribute; nil for a property of another kind.
  public var attribute: AttributeDescription? {
    if case .attribute(let attribute) = self { attribute } else { nil }
  }

  /// The relationship; nil for a property of another kind.
  public var relationship: RelationshipDescription? {
    if case .relationship(let relationship) = self { relationship } else { nil }
  }
}

/// The type of an attribute; raw values are Core Data's `NSAttributeType`.
/// Source: `core-data-sqlite-format.md` §5.
public enum AttributeType: Int, Sendable, Equatable, Codable, CaseIterable {
  /// No type, or one that is not known. Transient attributes often have none in XML files.
  /// Source: `core-data-models.md` §2.
  case undefined = 0
  /// A signed integer of 16 bits.
  case integer16 = 100
  /// A signed integer of 32 bits.
  case integer32 = 200
  /// A signed integer of 64 bits.
  case integer64 = 300
  /// A decimal number of at most 38 digits: `NSDecimalNumber`.
  case decimal = 400
  /// A floating-point number of 64 bits.
  case double = 500
  /// A floating-point number of 32 bits.
  case float = 600
  /// A text.
  case string = 700
  /// Yes or no, stored as the integer 1 or 0.
  case boolean = 800
  /// A moment, stored as seconds since 2001-01-01 00:00:00 UTC.
  case date = 900
  /// Bytes, in the column or in a file of their own.
  case binary = 1000
  /// A UUID, stored as 16 bytes.
  case uuid = 1100
  /// A URI, stored as its text.
  case uri = 1200
  /// An object that a value transformer turns into bytes.
  case transformable = 1800
  /// The ID of a managed object. Seen in no model file: `core-data-models.md` §2.
  case objectID = 2000
  /// A group of attributes, which are stored in columns of their own.
  case composite = 2100

  /// True for the three integer types. A Boolean is not among them.
  public var isInteger: Bool { self == .integer16 || self == .integer32 || self == .integer64 }
  /// Types between which inference converts. Source: `core-data-migration.md` §2.2.
  public var isNumber: Bool {
    isInteger || self == .decimal || self == .double || self == .float || self == .boolean
  }

  /// As an `.xcdatamodel` spells it: `Integer 16`, `Boolean` …
  package var xmlName: String {
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
  /// An integer.
  case integer(Int64)
  /// A floating-point number.
  case real(Double)
  /// A text.
  case text(String)
  /// Bytes.
  case blob([UInt8])
}

/// An attribute of an entity, or an element of a composite attribute.
public struct AttributeDescription: Sendable, Equatable {
  /// What it has in common with properties of other kinds.
  public var traits: PropertyTraits
  /// The type of its values. Part of the version hash.
  public var type: AttributeType
  /// The value of new objects; nil for none. Not part of the version hash.
  public var defaultValue: StoredDefault?
  /// The class of the values where the model names another than the type's own, else nil.
  /// Source: `core-data-models.md` §4, `NSAttributeValueClassName`; `customClassName` in XML.
  public var attributeValueClassName: String?
  /// The registered name of a transformable's value transformer; nil where the model names none.
  public var valueTransformerName: String?
  /// Whether values may be stored in files beside the store. Part of the version hash.
  public var allowsExternalBinaryDataStorage: Bool
  /// Whether the value is kept in the history when its object is deleted. Part of the version hash.
  public var preservesValueInHistoryOnDeletion: Bool
  /// Core Data's flag of this name. Not part of the version hash, and not read from a `.mom`.
  public var allowsCloudEncryption: Bool
  /// What else `NSFlagsKey` of a compiled model has, as it is there: what it means, and how it enters the version hash,
  /// is not known.
  package var otherFlags: Int64 = 0
  /// The text that Core Data hashes, such as `count:(pages)`; nil for attributes that are not derived. A compiled model
  /// may filter the objects: then ` where ` and the predicate follow.
  public var derivationExpression: String?
  /// The elements of a composite attribute, in declared order. Nil for every other type.
  public var compositeElements: [AttributeDescription]?
  /// The rules that values must fulfil, all of them.
  public var validation: [ValidationRule]
  /// What is understood only in part, as archives of their own: written back as they are.
  package var archived: [ArchivedPart: [UInt8]] = [:]

  /// Makes an attribute. Nothing is checked.
  package init(
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

  /// The attribute's name.
  public var name: String { traits.name }
}

extension AttributeDescription {
  /// True when values begin with a storage marker: binary data that may lie in files beside the store.
  ///
  /// Of other types the permission says nothing. Source: `core-data-sqlite-format.md` §5.1.
  package var isExternal: Bool { type == .binary && allowsExternalBinaryDataStorage }

  /// Whether a sound store may lack a value. Core Data fills a derived attribute when the object is saved, not
  /// before.
  package var mayBeNull: Bool { traits.isOptional || derivationExpression != nil }

  /// The default value as a row holds it: with the marker that says that the bytes are in the row.
  package var storedDefault: StoredDefault? {
    guard isExternal, case .blob(let bytes)? = defaultValue else { return defaultValue }
    return .blob([1] + bytes)
  }
}

/// A rule of the model editor's validation pane. Not part of schema or version hash.
/// Source: `core-data-models.md` §2 (attributes) and §4 ("Validation from the editor").
public enum ValidationRule: Sendable, Equatable {
  /// The smallest value allowed.
  case minimum(ValidationBound)
  /// The largest value allowed.
  case maximum(ValidationBound)
  /// A bound that values must exceed.
  case above(ValidationBound)
  /// A bound that values must stay below.
  case below(ValidationBound)
  /// Bounds of a string's length in UTF-16 units.
  case minimumLength(Int)
  /// The largest length allowed.
  case maximumLength(Int)
  /// An ICU regular expression that must match the whole string.
  case matches(String)
  /// A predicate of another form, as text for people; not judged.
  case other(String)
}

/// A relationship from objects of one entity to objects of another, or of the same.
public struct RelationshipDescription: Sendable, Equatable {
  /// What deleting the owner does. Raw values are Core Data's. Not part of the version hash.
  public enum DeleteRule: Int, Sendable, Equatable {
    /// Destination objects keep their references to the deleted object.
    case noAction = 0
    /// The inverse no longer refers to the deleted object.
    case nullify = 1
    /// Destination objects are deleted as well.
    case cascade = 2
    /// An object that has destination objects cannot be deleted.
    case deny = 3
  }

  /// What it has in common with properties of other kinds.
  public var traits: PropertyTraits
  /// The entity of the destination objects, which may also be of its sub-entities.
  public var destinationEntity: EntityName
  /// The name of the inverse, a property of ``destinationEntity``; nil for none.
  public var inverseName: String?
  /// The fewest objects; 0 for no bound. Not derived from `isOptional`.
  public var minCount: Int
  /// 1 is a to-one; anything else, 0 and −1 included, a to-many.
  public var maxCount: Int
  /// Whether the objects of a to-many have an order. Part of the version hash.
  public var isOrdered: Bool
  /// What happens when an object that has the relationship is deleted.
  public var deleteRule: DeleteRule

  /// Makes a relationship, by default an unordered to-one. Nothing is checked.
  package init(
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

  /// The relationship's name.
  public var name: String { traits.name }
  /// True unless ``maxCount`` is 1.
  public var isToMany: Bool { maxCount != 1 }
}

/// A property whose objects a fetch request finds.
public struct FetchedPropertyDescription: Sendable, Equatable {
  /// What it has in common with properties of other kinds.
  public var traits: PropertyTraits
  /// The request that finds the objects; nil where the file has none.
  public var fetchRequest: FetchRequestTemplate?

  /// Makes a fetched property. Nothing is checked.
  package init(traits: PropertyTraits, fetchRequest: FetchRequestTemplate? = nil) {
    self.traits = traits
    self.fetchRequest = fetchRequest
  }
}

extension AttributeDescription {
  /// The element of a composite attribute at a path below it.
  package func element(at path: ArraySlice<String>) -> AttributeDescription? {
    var current = self
    for name in path {
      guard let next = current.compositeElements?.first(where: { $0.name == name }) else {
        return nil
      }
      current = next
    }
    return current
  }
}
