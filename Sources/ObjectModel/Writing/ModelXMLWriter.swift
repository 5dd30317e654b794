/// Writes a model as the `contents` file of an `.xcdatamodel`, as Xcode 15 formats it.
///
/// Meant for models that have no such file yet. Xcode keeps things there that are no part of a
/// model (how a class is generated, where boxes stand in the diagram); a copy of an existing file
/// keeps them. What XML has no place for is left out: open bounds and predicates of other forms
/// among the validation rules, and defaults of Binary attributes.
///
/// Source: `core-data-models.md` §2; the order of attributes is that of the files of the corpus.
package struct ModelXMLWriter {
  private let hierarchy: EntityHierarchy
  private var lines = MarkupLines()
  /// Composite types are declared beside the entities, each once.
  private var composites: [(name: String, elements: [AttributeDescription])] = []

  /// Writes a model document, as Xcode keeps it in `contents`.
  ///
  /// - Returns: The UTF-8 text of the file.
  package static func write(_ hierarchy: EntityHierarchy) -> String {
    var writer = ModelXMLWriter(hierarchy: hierarchy)
    writer.writeModel()
    return writer.lines.text
  }

  /// Writes a model as a document.
  ///
  /// - Throws: ``ModelError`` for a model whose inheritance cannot be followed.
  package static func write(_ model: ManagedObjectModel) throws -> String {
    write(try EntityHierarchy(model))
  }

  private init(hierarchy: EntityHierarchy) { self.hierarchy = hierarchy }

  private mutating func writeModel() {
    let model = hierarchy.model
    lines.open(
      "model",
      [
        ("type", "com.apple.IDECoreDataModeler.DataModel"), ("documentVersion", "1.0"),
        ("lastSavedToolsVersion", "22758"), ("systemVersion", "23E224"),
        ("minimumToolsVersion", "Automatic"), ("sourceLanguage", "Swift"),
        ("userDefinedModelVersionIdentifier", model.versionIdentifiers.first ?? ""),
      ])
    for entity in model.entities { write(entity) }
    for template in model.fetchRequestTemplates { write(template) }
    for (name, members) in model.configurations.sorted(by: { $0.key.precedesInBytes($1.key) }) {
      lines.element("configuration", [("name", name)]) { lines in
        for member in members { lines.leaf("memberEntity", [("name", member.rawValue)]) }
      }
    }
    // Writing one may add those inside it.
    var written = 0
    while written < composites.count {
      let composite = composites[written]
      written += 1
      lines.open("composite", [("name", composite.name)])
      for element in composite.elements { write(element) }
      lines.close("composite")
    }
    lines.close("model")
  }

  private mutating func write(_ entity: EntityDescription) {
    let attributes: [(String, String?)] = [
      ("name", entity.name.rawValue), ("representedClassName", entity.managedObjectClassName),
      ("isAbstract", entity.isAbstract ? "YES" : nil),
      ("parentEntity", entity.superentity?.rawValue), ("elementID", entity.renamingIdentifier),
      ("versionHashModifier", entity.versionHashModifier), ("syncable", "YES"),
    ]
    let declared = CompiledIndexes.declared(
      from: entity.fetchIndexes, properties: entity.properties, compound: entity.compoundIndexes)
    // A compiled model repeats fetch indexes here; what was not compiled to an index is not one.
    let compound = entity.compoundIndexes.filter { names in
      entity.fetchIndexes.contains { $0.name == names.joined(separator: "_") }
    }
    guard
      !(entity.properties.isEmpty && declared.isEmpty && compound.isEmpty
        && entity.uniquenessConstraints.isEmpty && entity.userInfo.isEmpty)
    else { return lines.leaf("entity", attributes) }
    lines.open("entity", attributes)
    for attribute in entity.properties.compactMap(\.attribute) {
      write(attribute, isIndexed: isIndexed(attribute.traits, in: entity))
    }
    for relationship in entity.properties.compactMap(\.relationship) {
      write(relationship, isIndexed: isIndexed(relationship.traits, in: entity))
    }
    for property in entity.properties {
      if case .fetchedProperty(let fetched) = property { write(fetched) }
    }
    for index in declared { write(index) }
    lines.lists("compoundIndexes", "compoundIndex", "index", compound)
    lines.lists(
      "uniquenessConstraints", "uniquenessConstraint", "constraint",
      entity.uniquenessConstraints)
    lines.userInfo(entity.userInfo)
    lines.close("entity")
  }

  private func isIndexed(_ traits: PropertyTraits, in entity: EntityDescription) -> Bool {
    traits.isIndexed && entity.fetchIndexes.contains { $0.name == traits.name }
  }

  private mutating func write(_ index: FetchIndexDescription) {
    lines.element(
      "fetchIndex",
      [("name", index.name), ("partialIndexPredicate", index.partialIndexPredicate)]
    ) { lines in
      for element in index.elements {
        lines.leaf(
          "fetchIndexElement",
          [
            ("property", element.propertyName), ("expression", element.expression),
            ("type", element.isRTree ? "RTree" : "Binary"),
            ("order", element.isAscending ? "ascending" : "descending"),
          ])
      }
    }
  }

  private mutating func write(_ fetched: FetchedPropertyDescription) {
    lines.open(
      "fetchedProperty",
      [
        ("name", fetched.traits.name), ("optional", fetched.traits.isOptional ? "YES" : nil),
        ("elementID", fetched.traits.renamingIdentifier),
        ("versionHashModifier", fetched.traits.versionHashModifier),
      ])
    if let request = fetched.fetchRequest { write(request) }
    lines.userInfo(fetched.traits.userInfo)
    lines.close("fetchedProperty")
  }

  private mutating func write(_ template: FetchRequestTemplate) {
    let settings = template.settings.sorted { $0.key.precedesInBytes($1.key) }
    lines.leaf(
      "fetchRequest",
      [
        ("name", template.name), ("entity", template.entity?.rawValue),
        ("predicateString", template.predicate),
      ] + settings.map { ($0.key, $0.value) })
  }

  private mutating func write(_ relationship: RelationshipDescription, isIndexed: Bool) {
    let rules = ["No Action", "Nullify", "Cascade", "Deny"]
    let traits = relationship.traits
    let inverse = hierarchy.inverse(of: relationship)?.entity.rawValue
    lines.element(
      "relationship",
      [
        ("name", traits.name), ("optional", traits.isOptional ? "YES" : nil),
        ("transient", traits.isTransient ? "YES" : nil),
        ("toMany", relationship.isToMany ? "YES" : nil),
        ("minCount", relationship.minCount == 0 ? nil : "\(relationship.minCount)"),
        ("maxCount", relationship.maxCount == 0 ? nil : "\(relationship.maxCount)"),
        ("deletionRule", rules[relationship.deleteRule.rawValue]),
        ("ordered", relationship.isOrdered ? "YES" : nil),
        ("destinationEntity", relationship.destinationEntity.rawValue.nonEmpty),
        ("inverseName", relationship.inverseName),
        (
          "inverseEntity",
          relationship.inverseName == nil
            ? nil : inverse ?? relationship.destinationEntity.rawValue.nonEmpty
        ),
        ("elementID", traits.renamingIdentifier), ("indexed", isIndexed ? "YES" : nil),
        ("spotlightIndexingEnabled", traits.isIndexedBySpotlight ? "YES" : nil),
        ("versionHashModifier", traits.versionHashModifier),
      ]
    ) { $0.userInfo(traits.userInfo) }
  }
}

// MARK: - Attributes

extension ModelXMLWriter {
  private mutating func write(_ attribute: AttributeDescription, isIndexed: Bool = false) {
    let traits = attribute.traits
    let (minimum, maximum, pattern) = bounds(of: attribute)
    let isDate = attribute.type == .date
    let text = AttributeText.defaultText(of: attribute)
    lines.element(
      "attribute",
      [
        ("name", traits.name), ("optional", traits.isOptional ? "YES" : nil),
        ("transient", traits.isTransient ? "YES" : nil),
        ("attributeType", attribute.type == .undefined ? nil : attribute.type.xmlName),
        (
          "allowsExternalBinaryDataStorage",
          attribute.allowsExternalBinaryDataStorage ? "YES" : nil
        ),
        ("elements", attribute.compositeElements.map { compositeName(of: $0, for: traits.name) }),
        ("minValueString", isDate ? nil : minimum), ("maxValueString", isDate ? nil : maximum),
        ("minDateTimeInterval", isDate ? minimum : nil),
        ("maxDateTimeInterval", isDate ? maximum : nil),
        ("derived", attribute.derivationExpression == nil ? nil : "YES"),
        (
          "derivationExpression",
          attribute.derivationExpression.map(DerivationExpression.editor(fromHashed:))
        ),
        ("defaultDateTimeInterval", isDate ? text : nil),
        ("defaultValueString", isDate ? nil : text), ("regularExpressionString", pattern),
        ("valueTransformerName", attribute.valueTransformerName),
        ("usesScalarValueType", AttributeText.usesScalar(attribute.type)),
        ("customClassName", attribute.attributeValueClassName),
        ("indexed", isIndexed ? "YES" : nil), ("elementID", traits.renamingIdentifier),
        (
          "preserveAfterDeletion",
          attribute.preservesValueInHistoryOnDeletion ? "YES" : nil
        ),
        ("allowsCloudEncryption", attribute.allowsCloudEncryption ? "YES" : nil),
        ("spotlightIndexingEnabled", traits.isIndexedBySpotlight ? "YES" : nil),
        ("versionHashModifier", traits.versionHashModifier),
      ]
    ) { $0.userInfo(traits.userInfo) }
  }

  /// The name of a composite type with these elements; a new one is named after the attribute.
  private mutating func compositeName(
    of elements: [AttributeDescription], for attribute: String
  ) -> String {
    if let known = composites.first(where: { $0.elements == elements }) { return known.name }
    let base = attribute.prefix(1).uppercased() + attribute.dropFirst()
    var (name, number) = (base, 1)
    while composites.contains(where: { $0.name == name }) {
      number += 1
      name = base + "\(number)"
    }
    composites.append((name, elements))
    return name
  }

  private func text(of bound: ValidationBound, _ type: AttributeType) -> String {
    bound.integer.map { "\($0)" } ?? AttributeText.text(of: bound.real, type: type)
  }

  private func bounds(
    of attribute: AttributeDescription
  ) -> (minimum: String?, maximum: String?, pattern: String?) {
    var (minimum, maximum, pattern): (String?, String?, String?)
    for rule in attribute.validation {
      switch rule {
      case .minimum(let bound): minimum = text(of: bound, attribute.type)
      case .maximum(let bound): maximum = text(of: bound, attribute.type)
      case .minimumLength(let bound): minimum = "\(bound)"
      case .maximumLength(let bound): maximum = "\(bound)"
      case .matches(let text): pattern = text
      case .above, .below, .other: break
      }
    }
    return (minimum, maximum, pattern)
  }
}

/// Values of attributes as `contents` files spell them.
enum AttributeText {
  /// A whole number without fraction where the type has none.
  static func text(of number: Double, type: AttributeType) -> String {
    if type.isInteger || type == .date || type == .decimal, let whole = Int64(exactly: number) {
      return "\(whole)"
    }
    return "\(number)"
  }

  static func defaultText(of attribute: AttributeDescription) -> String? {
    switch (attribute.type, attribute.defaultValue) {
    case (_, nil): return nil
    case (.boolean, .integer(let number)?): return number == 0 ? "NO" : "YES"
    case (.float, .real(let number)?): return "\(Float(number))"
    case (.double, .integer(let number)?), (.float, .integer(let number)?):
      return "\(Double(number))"
    case (_, .integer(let number)?): return "\(number)"
    case (_, .real(let number)?): return "\(number)"
    case (_, .text(let text)?): return text
    case (.uuid, .blob(let bytes)?): return uuid(bytes)
    case (_, .blob?): return nil
    }
  }

  private static func uuid(_ bytes: [UInt8]) -> String {
    var text = ""
    for (place, byte) in bytes.enumerated() {
      if bytes.count == 16, [4, 6, 8, 10].contains(place) { text += "-" }
      text += (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
    return text
  }

  /// What Xcode writes for a new attribute; code generation only.
  static func usesScalar(_ type: AttributeType) -> String? {
    switch type {
    case .integer16, .integer32, .integer64, .double, .float, .boolean: "YES"
    case .date, .uuid: "NO"
    default: nil
    }
  }
}
