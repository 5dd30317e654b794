import Foundation
import GodwitObjectModel

/// A model in lines: an entity, then its own properties below it.
enum ModelText {
  static func lines(_ hierarchy: EntityHierarchy) -> [String] {
    var lines: [String] = []
    for name in hierarchy.order {
      guard let entity = hierarchy[name] else { continue }
      var head = "\(hierarchy.numbers[name] ?? 0)  \(name)"
      if let parent = entity.superentity { head += " : \(parent)" }
      if entity.isAbstract { head += ", abstract" }
      if let identifier = entity.renamingIdentifier { head += ", renamed from \(identifier)" }
      lines.append(head)
      let width = entity.properties.map(\.name.count).max() ?? 0
      for property in entity.properties {
        let pad = String(repeating: " ", count: width - property.name.count)
        var line = "     \(property.name)\(pad)  \(text(property))"
        if let identifier = property.traits.renamingIdentifier {
          line += ", renamed from \(identifier)"
        }
        lines.append(line)
      }
      for constraint in entity.uniquenessConstraints {
        lines.append("     unique (\(constraint.joined(separator: ", ")))")
      }
      for index in entity.fetchIndexes {
        let elements = index.elements.map { $0.propertyName ?? $0.expression ?? "?" }
        lines.append("     index \(index.name) (\(elements.joined(separator: ", ")))")
      }
    }
    return lines
  }

  /// A property in a few words.
  static func text(_ property: PropertyDescription) -> String {
    var words: [String]
    switch property {
    case .attribute(let attribute):
      words = [attribute.type.xmlName]
      if let value = attribute.defaultValue { words.append("default \(text(value))") }
      if attribute.allowsExternalBinaryDataStorage { words.append("external storage") }
      if let expression = attribute.derivationExpression { words.append("derived \(expression)") }
    case .relationship(let relationship):
      words = [
        relationship.isToMany ? "to many" : "to one", relationship.destinationEntity.rawValue,
      ]
      if relationship.isOrdered { words.append("ordered") }
      if let inverse = relationship.inverseName { words.append("inverse \(inverse)") }
      if relationship.minCount > 0 { words.append("at least \(relationship.minCount)") }
      if relationship.maxCount > 1 { words.append("at most \(relationship.maxCount)") }
    case .fetchedProperty:
      words = ["fetched property"]
    }
    words.append(property.traits.isOptional ? "optional" : "required")
    if property.traits.isTransient { words.append("transient") }
    if let modifier = property.traits.versionHashModifier {
      words.append("hash modifier \(modifier)")
    }
    return words.joined(separator: ", ")
  }

  private static func text(_ value: StoredDefault) -> String {
    switch value {
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): "\"\(text)\""
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }
}

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
    var versionHash: String?
    var properties: [Property]
    var uniquenessConstraints: [[String]]
  }

  struct Property: Encodable {
    var name: String
    var kind: String
    var type: String?
    var destination: String?
    var inverse: String?
    var isOptional: Bool
    var isTransient: Bool
    var isToMany: Bool?
    var isOrdered: Bool?
    var renamingIdentifier: String?
    /// A number, or a text; of bytes, their Base64.
    var `default`: DefaultValue?

    init(_ property: PropertyDescription) {
      name = property.name
      isOptional = property.traits.isOptional
      isTransient = property.traits.isTransient
      renamingIdentifier = property.traits.renamingIdentifier
      switch property {
      case .attribute(let attribute):
        kind = "attribute"
        type = attribute.type.xmlName
        `default` = attribute.defaultValue.map(DefaultValue.init)
      case .relationship(let relationship):
        kind = "relationship"
        destination = relationship.destinationEntity.rawValue
        inverse = relationship.inverseName
        isToMany = relationship.isToMany
        isOrdered = relationship.isOrdered
      case .fetchedProperty:
        kind = "fetched property"
      }
    }
  }

  var event = "model"
  var name: String
  var identifiers: [String]
  var checksum: String
  var entities: [Entity]

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
        versionHash: hashes[name]?.hexadecimal,
        properties: entity.properties.map(Property.init),
        uniquenessConstraints: entity.uniquenessConstraints)
    }
  }
}
