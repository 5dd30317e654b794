import Foundation
import GodwitObjectModel

/// A default value as JSON has it.
struct DefaultValue: Encodable {
  let value: StoredDefault

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch value {
    case .integer(let number): try container.encode(number)
    case .real(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .blob(let bytes): try container.encode(Data(bytes).base64EncodedString())
    }
  }
}

/// A model as JSON.
struct ModelRecord: Encodable {
  struct Entity: Encodable {
    var name: String
    var number: Int
    var superentity: String?
    var isAbstract: Bool
    var className: String?
    var renamingIdentifier: String?
    /// A text that goes into the version hash; nil where the model sets none.
    var versionHashModifier: String?
    var versionHash: String?
    var properties: [Property]
    var uniquenessConstraints: [[String]]
    /// Each with its elements and its predicate, as text.
    var indexes: [String]
  }

  struct Property: Encodable {
    var name: String
    /// `attribute`, `relationship` or `fetched property`.
    var kind: String
    var type: String?
    /// The elements of a composite attribute; nil for any other property.
    var elements: [Property]?
    /// What validation asks of an attribute's value, as text; nil for any other property.
    var rules: [String]?
    /// The expression of a derived attribute; nil for any other property.
    var derivation: String?
    /// Whether an attribute allows external storage; nil for any other property.
    var isExternal: Bool?
    /// The name of the value transformer; nil for none.
    var transformer: String?
    var destination: String?
    var inverse: String?
    var isOptional: Bool
    var isTransient: Bool
    var isToMany: Bool?
    var isOrdered: Bool?
    /// The fewest objects of a relationship; nil where the model sets no number.
    var minCount: Int?
    /// The most objects of a to-many; nil where the model sets no number.
    var maxCount: Int?
    /// `noAction`, `nullify`, `cascade` or `deny`; nil for any other property than a relationship.
    var deleteRule: String?
    /// The entity and predicate of a fetched property; nil for any other property.
    var request: String?
    var renamingIdentifier: String?
    /// A text that goes into the version hash; nil where the model sets none.
    var versionHashModifier: String?
    /// The default value: a number, or a text; of bytes, their Base64; nil for none, and for an object,
    /// which only the application can store.
    var `default`: DefaultValue?

    init(_ property: PropertyDescription) {
      let traits = property.traits
      name = traits.name
      isOptional = traits.isOptional
      isTransient = traits.isTransient
      renamingIdentifier = traits.renamingIdentifier
      versionHashModifier = traits.versionHashModifier
      switch property {
      case .attribute(let attribute):
        kind = "attribute"
        type = attribute.type.xmlName
        elements = attribute.compositeElements?.map { Property(.attribute($0)) }
        rules = attribute.validation.map { PropertyAspects.text(of: $0) }
        derivation = attribute.derivationExpression
        isExternal = attribute.allowsExternalBinaryDataStorage
        transformer = attribute.valueTransformerName
        `default` = attribute.defaultValue.map(DefaultValue.init)
      case .relationship(let relationship):
        kind = "relationship"
        destination = relationship.destinationEntity.rawValue
        inverse = relationship.inverseName
        isToMany = relationship.isToMany
        isOrdered = relationship.isOrdered
        if relationship.minCount > 0 { minCount = relationship.minCount }
        if relationship.maxCount > 1 { maxCount = relationship.maxCount }
        deleteRule = "\(relationship.deleteRule)"
      case .fetchedProperty(let fetched):
        kind = "fetched property"
        request = PropertyAspects.text(of: fetched.fetchRequest)
      }
    }
  }

  var event = "model"
  var name: String
  var identifiers: [String]
  var checksum: String
  var entities: [Entity]
  /// Name → its entities.
  var configurations: [String: [String]]

  init(_ version: ModelVersion, _ hierarchy: EntityHierarchy) {
    name = version.name
    identifiers = version.model.versionIdentifiers.filter { !$0.isEmpty }
    checksum = hierarchy.versionChecksum
    let hashes = hierarchy.versionHashes
    entities = hierarchy.order.compactMap { name in
      guard let entity = hierarchy[name] else { return nil }
      return Entity(
        name: name.rawValue, number: hierarchy.numbers[name] ?? 0,
        superentity: entity.superentity?.rawValue, isAbstract: entity.isAbstract,
        className: entity.managedObjectClassName, renamingIdentifier: entity.renamingIdentifier,
        versionHashModifier: entity.versionHashModifier,
        versionHash: hashes[name]?.hexadecimal,
        properties: entity.properties.map(Property.init),
        uniquenessConstraints: entity.uniquenessConstraints,
        indexes: entity.fetchIndexes.map { PropertyAspects.text(of: $0) })
    }
    configurations = version.model.configurations.mapValues { $0.map(\.rawValue) }
  }
}
