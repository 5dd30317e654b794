import Foundation
import GodwitObjectModel

/// A model in lines: an entity, then its own properties below it; the configurations at the end.
enum ModelText {
  static func lines(_ hierarchy: EntityHierarchy) -> [String] {
    var lines: [String] = []
    for name in hierarchy.order {
      guard let entity = hierarchy[name] else { continue }
      var head = "\(hierarchy.numbers[name] ?? 0)  \(name)"
      if let parent = entity.superentity { head += " : \(parent)" }
      if entity.isAbstract { head += ", abstract" }
      if let identifier = entity.renamingIdentifier { head += ", renamed from \(identifier)" }
      if let modifier = entity.versionHashModifier { head += ", hash modifier \(modifier)" }
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
      lines += entity.fetchIndexes.map { "     index \(PropertyAspects.text(of: $0))" }
    }
    return lines + configurations(hierarchy.model)
  }

  private static func configurations(_ model: ManagedObjectModel) -> [String] {
    model.configurations.sorted { $0.key.precedesInBytes($1.key) }.map { name, entities in
      "configuration \(name): \(entities.map(\.rawValue).joined(separator: ", "))"
    }
  }

  /// A property in a few words.
  static func text(_ property: PropertyDescription) -> String {
    var words: [String]
    switch property {
    case .attribute(let attribute):
      words = [attribute.type.xmlName]
      if let elements = PropertyAspects.text(of: attribute.compositeElements) {
        words[0] += " (\(elements))"
      }
      if let value = PropertyAspects.text(ofDefault: attribute) { words.append("default \(value)") }
      words += attribute.validation.map { PropertyAspects.text(of: $0) }
      if attribute.allowsExternalBinaryDataStorage { words.append("external storage") }
      if let expression = attribute.derivationExpression { words.append("derived \(expression)") }
      if let name = attribute.valueTransformerName { words.append("transformer \(name)") }
    case .relationship(let relationship):
      words = [
        relationship.isToMany ? "to many" : "to one", relationship.destinationEntity.rawValue,
      ]
      if relationship.isOrdered { words.append("ordered") }
      if let inverse = relationship.inverseName { words.append("inverse \(inverse)") }
      if relationship.minCount > 0 { words.append("at least \(relationship.minCount)") }
      if relationship.maxCount > 1 { words.append("at most \(relationship.maxCount)") }
      if relationship.deleteRule != .nullify {
        words.append("delete rule \(relationship.deleteRule)")
      }
    case .fetchedProperty(let fetched):
      words = ["fetched property"]
      if let request = PropertyAspects.text(of: fetched.fetchRequest) { words[0] += " \(request)" }
    }
    words.append(property.traits.isOptional ? "optional" : "required")
    if property.traits.isTransient { words.append("transient") }
    if let modifier = property.traits.versionHashModifier {
      words.append("hash modifier \(modifier)")
    }
    return words.joined(separator: ", ")
  }
}
