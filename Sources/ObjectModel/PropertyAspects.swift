/// The aspects of properties as text, for comparing and for showing.
package enum PropertyAspects {
  typealias Row = (ModelDifference.Aspect, String?, String?)

  static func changes(
    _ before: PropertyDescription, _ after: PropertyDescription
  ) -> [ModelDifference.Change] {
    var rows = traits(before.traits, after.traits)
    switch (before, after) {
    case (.attribute(let old), .attribute(let new)): rows += attribute(old, new)
    case (.relationship(let old), .relationship(let new)): rows += relationship(old, new)
    case (.fetchedProperty(let old), .fetchedProperty(let new)):
      rows.append((.fetchRequest, text(of: old.fetchRequest), text(of: new.fetchRequest)))
    default: break
    }
    return ModelComparison.differing(rows)
  }

  private static func traits(_ old: PropertyTraits, _ new: PropertyTraits) -> [Row] {
    [
      (.name, old.name, new.name), (.optional, old.isOptional.word, new.isOptional.word),
      (.transient, old.isTransient.word, new.isTransient.word),
      (.versionHashModifier, old.versionHashModifier, new.versionHashModifier),
      (.indexed, old.isIndexed.word, new.isIndexed.word),
      (.spotlight, old.isIndexedBySpotlight.word, new.isIndexedBySpotlight.word),
      (.userInfo, text(of: old.userInfo), text(of: new.userInfo)),
    ]
  }

  private static func attribute(
    _ old: AttributeDescription, _ new: AttributeDescription
  ) -> [Row] {
    [
      (.type, old.type.xmlName, new.type.xmlName),
      (.defaultValue, text(ofDefault: old), text(ofDefault: new)),
      (.valueClassName, old.attributeValueClassName, new.attributeValueClassName),
      (.valueTransformer, old.valueTransformerName, new.valueTransformerName),
      (
        .externalStorage, old.allowsExternalBinaryDataStorage.word,
        new.allowsExternalBinaryDataStorage.word
      ),
      (
        .preservedOnDeletion, old.preservesValueInHistoryOnDeletion.word,
        new.preservesValueInHistoryOnDeletion.word
      ),
      (.cloudEncryption, old.allowsCloudEncryption.word, new.allowsCloudEncryption.word),
      (.derivation, old.derivationExpression, new.derivationExpression),
      (.composite, text(of: old.compositeElements), text(of: new.compositeElements)),
      (.validation, text(of: old.validation), text(of: new.validation)),
    ]
  }

  private static func relationship(
    _ old: RelationshipDescription, _ new: RelationshipDescription
  ) -> [Row] {
    [
      (.toMany, old.isToMany.word, new.isToMany.word),
      (.minCount, "\(old.minCount)", "\(new.minCount)"),
      (.maxCount, "\(old.maxCount)", "\(new.maxCount)"),
      (.ordered, old.isOrdered.word, new.isOrdered.word),
      (.deleteRule, "\(old.deleteRule)", "\(new.deleteRule)"),
    ]
  }

  /// `Integer 16, required, default 4`.
  static func summary(of property: PropertyDescription) -> String {
    var parts: [String] = []
    switch property {
    case .attribute(let attribute): parts.append(attribute.type.xmlName)
    case .relationship(let relationship):
      let order = relationship.isOrdered ? "ordered " : ""
      parts.append(
        "\(order)\(relationship.isToMany ? "to-many" : "to-one") "
          + relationship.destinationEntity.rawValue)
    case .fetchedProperty: parts.append("fetched property")
    }
    parts.append(property.traits.isOptional ? "optional" : "required")
    if property.traits.isTransient, property.attribute != nil || property.relationship != nil {
      parts.append("transient")
    }
    if let text = property.attribute.flatMap(text(ofDefault:)) { parts.append("default \(text)") }
    if let text = property.attribute?.derivationExpression { parts.append("derived \(text)") }
    return parts.joined(separator: ", ")
  }

  /// A default value as a person writes it; of bytes that are no UUID, how many; of what no column holds, that it is
  /// there; nil for none.
  package static func text(ofDefault attribute: AttributeDescription) -> String? {
    if case .blob(let bytes)? = attribute.defaultValue, attribute.type != .uuid {
      return "\(bytes.count) bytes"
    }
    if case .text(let text)? = attribute.defaultValue { return "\"\(text)\"" }
    if attribute.hasUnstorableDefault { return "an object" }
    return AttributeText.defaultText(of: attribute)
  }

  static func text(of pairs: [String: String]) -> String? {
    pairs.sorted { $0.key.precedesInBytes($1.key) }.map { "\($0.key)=\($0.value)" }
      .joined(separator: ", ").nonEmpty
  }

  static func text(of indexes: [FetchIndexDescription]) -> String? {
    indexes.map(text(of:)).sorted { $0.precedesInBytes($1) }.joined(separator: " | ").nonEmpty
  }

  /// `byName(name, date descending) where name != nil`.
  package static func text(of index: FetchIndexDescription) -> String {
    let elements = index.elements.map { element in
      (element.propertyName ?? element.expression ?? "?")
        + (element.isRTree ? " R-tree" : "") + (element.isAscending ? "" : " descending")
    }
    return "\(index.name)(\(elements.joined(separator: ", ")))"
      + (index.partialIndexPredicate.map { " where \($0)" } ?? "")
  }

  /// The elements of a composite attribute, with those within them; nil for nil.
  package static func text(of elements: [AttributeDescription]?) -> String? {
    elements?.map { element in
      let inner = text(of: element.compositeElements).map { "(\($0))" } ?? ""
      let storage = element.isExternal ? " (external storage)" : ""
      let need = element.traits.isOptional ? "" : " required"
      let value = text(ofDefault: element).map { " default \($0)" } ?? ""
      let further = further(of: element).map { " [\($0)]" }.joined()
      return "\(element.name): \(element.type.xmlName)\(storage)\(need)\(value)\(further)\(inner)"
    }.joined(separator: ", ")
  }

  /// What few elements have, under the names by which differences are told.
  private static func further(of element: AttributeDescription) -> [String] {
    let plain = AttributeDescription(
      traits: PropertyTraits(name: element.name, isOptional: element.traits.isOptional),
      type: element.type)
    let told: Set<ModelDifference.Aspect> = [.defaultValue, .composite]
    let rows = traits(plain.traits, element.traits) + attribute(plain, element)
    return ModelComparison.differing(rows.filter { !told.contains($0.0) })
      .filter { $0.aspect != .externalStorage || !element.isExternal }
      .map { "\($0.aspect.rawValue) \($0.after ?? "none")" }
  }

  private static func text(of rules: [ValidationRule]) -> String? {
    rules.map(text(of:)).joined(separator: ", ").nonEmpty
  }

  /// `length ≥ 3`.
  package static func text(of rule: ValidationRule) -> String {
    switch rule {
    case .minimum(let bound): "≥ \(bound)"
    case .maximum(let bound): "≤ \(bound)"
    case .above(let bound): "> \(bound)"
    case .below(let bound): "< \(bound)"
    case .minimumLength(let bound): "length ≥ \(bound)"
    case .maximumLength(let bound): "length ≤ \(bound)"
    case .matches(let pattern): "matches \(pattern)"
    case .other(let text): text
    }
  }

  /// `Note where date > 0`; nil for nil.
  package static func text(of request: FetchRequestTemplate?) -> String? {
    request.map { request in
      (request.entity?.rawValue ?? "?") + (request.predicate.map { " where \($0)" } ?? "")
    }
  }
}
