import GodwitKeyedArchive

/// Reads the `contents` file of an `.xcdatamodel`.
///
/// Unknown elements and attributes are passed over, as Xcode adds some with every release.
/// Booleans are `YES` or `NO`; absent is `NO`. Source: `core-data-models.md` §2.
struct XMLModelReader {
  private let path: String
  private let composites: [NameKey: [MarkupElement]]
  private let budget = ReadingBudget()

  /// - Throws: ``ModelError``.
  static func read(_ bytes: [UInt8], path: String) throws -> ManagedObjectModel {
    let root: MarkupElement
    do {
      root = try MarkupElement(xml: bytes)
    } catch let error as ArchiveError {
      throw ModelError.unreadable(path: path, reason: error.reason)
    }
    guard root.name == "model" else {
      throw ModelError.unreadable(
        path: path, reason: "its root element is <\(root.name.prefix(40))>, not <model>")
    }
    return try XMLModelReader(root, path: path).model(root)
  }

  /// - Throws: `ModelError/unreadable(path:reason:)` for what has a name twice: one of the two would go unseen.
  private init(_ root: MarkupElement, path: String) throws {
    self.path = path
    var composites: [NameKey: [MarkupElement]] = [:]
    for element in root.children where ["composite", "compositeAttribute"].contains(element.name) {
      guard let name = element["name"] else { continue }
      guard
        composites.updateValue(element.children(named: "attribute"), forKey: NameKey(name)) == nil
      else { throw Self.twice("composite types", name, path) }
    }
    self.composites = composites
    var requests: Set<NameKey> = []
    for element in root.children(named: "fetchRequest") {
      guard let name = element["name"] else { continue }
      guard requests.insert(NameKey(name)).inserted else {
        throw Self.twice("fetch requests", name, path)
      }
    }
  }

  private func model(_ root: MarkupElement) throws -> ManagedObjectModel {
    var configurations: [String: [EntityName]] = [:]
    for element in root.children(named: "configuration") {
      let name = try name(of: element)
      let members = element.children(named: "memberEntity").compactMap {
        $0["name"].map { EntityName($0) }
      }
      guard configurations.updateValue(members, forKey: name) == nil else {
        throw Self.twice("configurations", name, path)
      }
    }
    return ManagedObjectModel(
      // Xcode writes an empty identifier when none was set.
      versionIdentifiers: [root["userDefinedModelVersionIdentifier"] ?? ""],
      entities: try root.children(named: "entity").map(entity),
      configurations: configurations,
      fetchRequestTemplates: try root.children(named: "fetchRequest").map(fetchRequest))
  }

  private static func twice(_ what: String, _ name: String, _ path: String) -> ModelError {
    .unreadable(path: path, reason: "it has two \(what) named \"\(name)\". Rename one of them")
  }

  private func name(of element: MarkupElement) throws -> String {
    guard let name = element["name"], !name.isEmpty else {
      throw ModelError.unreadable(path: path, reason: "a <\(element.name)> has no name")
    }
    return name
  }

  private func entity(_ element: MarkupElement) throws -> EntityDescription {
    let entityName = try name(of: element)
    var properties: [PropertyDescription] = []
    var declared: [FetchIndexDescription] = []
    var compound: [[String]] = []
    var constraints: [[String]] = []
    for child in element.children {
      switch child.name {
      case "attribute":
        properties.append(.attribute(try attribute(child, entity: entityName)))
      case "relationship":
        properties.append(.relationship(try relationship(child, entity: entityName)))
      case "fetchedProperty":
        var traits = try traits(child)
        traits.isTransient = true
        let request = try child.children(named: "fetchRequest").first.map(fetchRequest)
        properties.append(
          .fetchedProperty(FetchedPropertyDescription(traits: traits, fetchRequest: request)))
      case "fetchIndex": declared.append(try fetchIndex(child))
      case "compoundIndexes":
        compound += child.children(named: "compoundIndex").map { index in
          index.children(named: "index").compactMap { $0["value"] }
        }
      case "uniquenessConstraints":
        constraints += child.children(named: "uniquenessConstraint").map { constraint in
          constraint.children(named: "constraint").compactMap { $0["value"] }
        }
      default: break
      }
    }
    return EntityDescription(
      name: EntityName(entityName),
      managedObjectClassName: element["representedClassName"].flatMap(\.className),
      superentity: element["parentEntity"]?.nonEmpty.map { EntityName($0) },
      isAbstract: element.yes("isAbstract"),
      renamingIdentifier: element["elementID"]?.nonEmpty.flatMap {
        $0.isSameName(as: entityName) ? nil : $0
      },
      versionHashModifier: element["versionHashModifier"]?.nonEmpty,
      userInfo: userInfo(element), properties: properties,
      uniquenessConstraints: constraints,
      fetchIndexes: CompiledIndexes.indexes(
        declared: declared, properties: properties, compound: compound),
      compoundIndexes: compound)
  }

  private func traits(_ element: MarkupElement) throws -> PropertyTraits {
    let name = try name(of: element)
    return PropertyTraits(
      name: name, isOptional: element.yes("optional"), isTransient: element.yes("transient"),
      renamingIdentifier: element["elementID"]?.nonEmpty.flatMap {
        $0.isSameName(as: name) ? nil : $0
      },
      versionHashModifier: element["versionHashModifier"]?.nonEmpty,
      userInfo: userInfo(element), isIndexed: element.yes("indexed"),
      isIndexedBySpotlight: element.yes("spotlightIndexingEnabled"))
  }

  private func userInfo(_ element: MarkupElement) -> [String: String] {
    var pairs: [String: String] = [:]
    for entry in element.children(named: "userInfo").flatMap({ $0.children(named: "entry") }) {
      if let key = entry["key"] { pairs[key] = entry["value"] ?? "" }
    }
    return pairs
  }

  private func relationship(
    _ element: MarkupElement, entity: String
  ) throws -> RelationshipDescription {
    let traits = try traits(element)
    func count(_ key: String) throws -> Int? {
      guard let text = element[key]?.nonEmpty else { return nil }
      guard let number = Int(text), Int32(exactly: number) != nil else {
        throw ModelError.unreadable(
          path: path, reason: "\(key) of \(entity).\(traits.name) is not a number of 32 bits")
      }
      return number
    }
    let rules: [String: RelationshipDescription.DeleteRule] = [
      "No Action": .noAction, "Nullify": .nullify, "Cascade": .cascade, "Deny": .deny,
    ]
    return RelationshipDescription(
      traits: traits, destinationEntity: EntityName(element["destinationEntity"] ?? ""),
      inverseName: element["inverseName"]?.nonEmpty, minCount: try count("minCount") ?? 0,
      maxCount: try count("maxCount") ?? (element.yes("toMany") ? 0 : 1),
      isOrdered: element.yes("ordered"),
      deleteRule: element["deletionRule"].flatMap { rules[$0] } ?? .nullify)
  }

  private func fetchIndex(_ element: MarkupElement) throws -> FetchIndexDescription {
    FetchIndexDescription(
      name: try name(of: element),
      elements: element.children(named: "fetchIndexElement").map { part in
        FetchIndexDescription.Element(
          propertyName: part["property"], expression: part["expression"],
          isRTree: part["type"] == "RTree", isAscending: part["order"] != "descending")
      }, partialIndexPredicate: element["partialIndexPredicate"]?.nonEmpty)
  }

  private func fetchRequest(_ element: MarkupElement) throws -> FetchRequestTemplate {
    let known: Set<String> = ["name", "entity", "predicateString"]
    return FetchRequestTemplate(
      name: try name(of: element), entity: element["entity"]?.nonEmpty.map { EntityName($0) },
      predicate: element["predicateString"]?.nonEmpty,
      settings: element.attributes.filter { !known.contains($0.key) })
  }
}

// MARK: - Attributes

extension XMLModelReader {
  /// Composites inside composites. Core Data's own use two levels.
  private static let compositeDepthLimit = 16

  private func attribute(
    _ element: MarkupElement, entity: String, depth: Int = 0
  ) throws -> AttributeDescription {
    let traits = try traits(element)
    try budget.spend(1)
    guard depth <= Self.compositeDepthLimit else {
      throw ModelError.unreadable(
        path: path, reason: "composite attribute \(entity).\(traits.name) is nested too deeply")
    }
    func invalid(_ message: String) -> ModelError {
      .invalid(
        path: path,
        problems: [
          ModelProblem(entity: EntityName(entity), property: traits.name, message: message)
        ])
    }
    // An absent type is undefined. An unknown one has a hash and a column that nobody knows here.
    let typeName = element["attributeType"]?.nonEmpty
    guard let type = typeName.map(AttributeType.init(xmlName:)) ?? .undefined else {
      throw invalid(
        "The attribute \(entity).\(traits.name) has the unknown type \(typeName ?? ""). Correct it."
      )
    }
    var elements: [AttributeDescription]?
    if type == .composite {
      elements = []
      guard let name = element["elements"]?.nonEmpty else {
        throw invalid(
          "The composite attribute \(entity).\(traits.name) names no composite type. Choose one.")
      }
      guard let parts = composites[NameKey(name)] else {
        throw invalid(
          "The composite type \(name) of the attribute \(entity).\(traits.name) is not in the model. "
            + "Add it, or choose another.")
      }
      for part in parts {
        elements?.append(
          try attribute(part, entity: entity, depth: depth + 1))
      }
    }
    return AttributeDescription(
      traits: traits, type: type, defaultValue: DefaultValue.read(type, element: element),
      attributeValueClassName: element["customClassName"]?.nonEmpty,
      valueTransformerName: element["valueTransformerName"]?.nonEmpty,
      allowsExternalBinaryDataStorage: element.yes("allowsExternalBinaryDataStorage"),
      preservesValueInHistoryOnDeletion: element.yes("preserveAfterDeletion"),
      allowsCloudEncryption: element.yes("allowsCloudEncryption"),
      derivationExpression: element.yes("derived")
        ? element["derivationExpression"].map(DerivationExpression.hashed(fromEditor:)) : nil,
      compositeElements: elements, validation: Self.validation(element, type: type))
  }

  private static func validation(_ element: MarkupElement, type: AttributeType) -> [ValidationRule]
  {
    func bound(_ key: String) -> ValidationBound? {
      element[key].flatMap(ValidationBound.init(text:))
    }
    func length(_ key: String) -> Int? { bound(key)?.whole.flatMap { Int(exactly: $0) } }
    var rules: [ValidationRule] = []
    switch type {
    case .string:
      if let value = length("minValueString") { rules.append(.minimumLength(value)) }
      if let value = length("maxValueString") { rules.append(.maximumLength(value)) }
    case .date:
      // `minValueString` beside it is display text.
      if let value = bound("minDateTimeInterval") { rules.append(.minimum(value)) }
      if let value = bound("maxDateTimeInterval") { rules.append(.maximum(value)) }
    default:
      if let value = bound("minValueString") { rules.append(.minimum(value)) }
      if let value = bound("maxValueString") { rules.append(.maximum(value)) }
    }
    if let pattern = element["regularExpressionString"]?.nonEmpty {
      rules.append(.matches(pattern))
    }
    return rules
  }
}

extension AttributeType {
  /// Nil for a name that no released Xcode writes.
  package init?(xmlName: String) {
    guard let type = Self.allCases.first(where: { $0.xmlName == xmlName }) else { return nil }
    self = type
  }
}

extension MarkupElement {
  fileprivate func yes(_ attribute: String) -> Bool { self[attribute] == "YES" }
}

extension String {
  /// Models write an empty text where nothing was set.
  var nonEmpty: String? { isEmpty ? nil : self }

  /// The name of an entity's class; `NSManagedObject` is what having none means.
  var className: String? { isEmpty || self == "NSManagedObject" ? nil : self }
}
