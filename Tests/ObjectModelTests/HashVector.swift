import Foundation

@testable import GodwitObjectModel

/// One line of `hash-vectors.jsonl`: an entity's flattened definition and its known hash.
struct HashVector {
  let name: String
  let expected: String
  let computed: VersionHash

  private struct Malformed: Error {}

  init(_ line: String) throws {
    guard
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any],
      let name = object["entity"] as? String, let expected = object["hash"] as? String,
      let properties = object["properties"] as? [String: [String: Any]]
    else { throw Malformed() }
    self.name = name
    self.expected = expected
    let entity = EntityDescription(
      name: EntityName(name), isAbstract: object["abstract"] as? Bool ?? false,
      versionHashModifier: object["modifier"] as? String,
      uniquenessConstraints: object["uniqueness"] as? [[String]] ?? [])
    let parent = (object["parentHash"] as? String).flatMap { VersionHash(hexadecimal: $0) }
    computed = VersionHashRecipe.hash(
      of: entity, superentityHash: parent,
      properties: properties.map { key, value in
        EntityHierarchy.Declared(
          entity: EntityName(name), property: Self.property(key, value))
      })
  }

  private static func property(_ name: String, _ value: [String: Any]) -> PropertyDescription {
    let traits = PropertyTraits(
      name: name, isOptional: value["optional"] as? Bool ?? false,
      isTransient: value["transient"] as? Bool ?? false,
      versionHashModifier: value["modifier"] as? String)
    switch value["kind"] as? String {
    case "relationship":
      return .relationship(
        RelationshipDescription(
          traits: traits, destinationEntity: EntityName(value["dest"] as? String ?? ""),
          inverseName: value["inv"] as? String, minCount: value["min"] as? Int ?? 0,
          maxCount: value["max"] as? Int ?? 0, isOrdered: value["ordered"] as? Bool ?? false))
    case "fetchedProperty":
      return .fetchedProperty(FetchedPropertyDescription(traits: traits))
    default:
      return .attribute(attribute(traits, value))
    }
  }

  private static func attribute(
    _ traits: PropertyTraits, _ value: [String: Any]
  ) -> AttributeDescription {
    var elements: [AttributeDescription]?
    if let parts = value["elements"] as? [String: [String: Any]] {
      elements = parts.compactMap { property($0, $1).attribute }
    } else if let parts = value["elements"] as? [[String: Any]] {
      elements = parts.compactMap { property($0["name"] as? String ?? "", $0).attribute }
    }
    return AttributeDescription(
      traits: traits, type: AttributeType(rawValue: value["type"] as? Int ?? 0) ?? .undefined,
      allowsExternalBinaryDataStorage: value["flagged"] as? Bool ?? false,
      derivationExpression: value["expr"] as? String, compositeElements: elements)
  }
}
