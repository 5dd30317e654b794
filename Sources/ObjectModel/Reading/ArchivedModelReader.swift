import GodwitKeyedArchive

/// Reads a model from its keyed archive: a `.mom` file, or a store's inflated model cache.
///
/// A `.mom` lists an entity's own properties; caches list inherited ones again, as the same
/// objects, as copies or as `_NSPropertyDescriptionProxy`. Own properties are those whose names
/// the superentity does not have. Source: `core-data-models.md` §4, `core-data-sqlite-format.md` §3.
struct ArchivedModelReader {
  private let path: String
  private let budget = ReadingBudget()

  /// - Throws: ``ModelError``.
  static func read(_ bytes: [UInt8], path: String) throws -> ManagedObjectModel {
    do {
      let root = try KeyedArchive(bytes: bytes).root()
      return try ArchivedModelReader(path: path).model(root)
    } catch let error as ArchiveError {
      throw ModelError.unreadable(path: path, reason: error.reason)
    }
  }

  private func odd(_ reason: String) -> ModelError { .unreadable(path: path, reason: reason) }

  private func model(_ root: ArchivedObject) throws -> ManagedObjectModel {
    guard root.className != "XDPMModel" else { throw ModelError.oldBinaryModel(path: path) }
    guard let entities = root["NSEntities"]?.stringEntries else {
      throw odd("its root object is a \(root.className.prefix(40)), not a managed object model")
    }
    var configurations: [String: [EntityName]] = [:]
    for (name, members) in root.entries("NSConfigurations") {
      configurations[name] = try budget.items(members.elements ?? []).compactMap {
        $0.object?.string("NSEntityName").map { EntityName($0) }
      }
    }
    var inherited: [ArchivedObject: [NameKey: ArchivedObject]] = [:]
    let templates = root.entries("NSFetchRequestTemplates").compactMap { name, value in
      value.object.map { Self.fetchRequest($0, name: name) }
    }
    try budget.spend(templates.count)
    return ManagedObjectModel(
      versionIdentifiers: root.elements("NSVersionIdentifiers").compactMap(\.string),
      entities: try entities.map { name, value in
        guard let entity = value.object else { throw odd("entity \(name) is not an object") }
        return try self.entity(entity, inherited: &inherited)
      }, configurations: configurations,
      fetchRequestTemplates: templates.sorted { $0.name.precedesInBytes($1.name) })
  }

  private func entity(
    _ entity: ArchivedObject, inherited: inout [ArchivedObject: [NameKey: ArchivedObject]]
  ) throws -> EntityDescription {
    guard let name = entity.string("NSEntityName") else { throw odd("an entity has no name") }
    let superentity = entity.object("NSSuperentity")
    var inheritedObjects: [NameKey: ArchivedObject] = [:]
    if let superentity {
      // Kept, since a thousand entities may have one superentity with a thousand properties.
      inheritedObjects = try inherited[superentity] ?? propertyObjects(of: superentity)
      inherited[superentity] = inheritedObjects
    }
    var properties: [PropertyDescription] = []
    for (key, value) in try budget.items(entity.entries("NSProperties")) {
      guard let object = value.object else { continue }
      if let original = inheritedObjects[NameKey(key)] {
        try requireSame(object, original, name: key, entity: name)
        continue
      }
      guard let property = try property(object, name: key, entity: name) else { continue }
      properties.append(property)
    }
    return EntityDescription(
      name: EntityName(name),
      managedObjectClassName: entity.string("NSClassNameForEntity").flatMap(\.className),
      superentity: superentity?.string("NSEntityName").map { EntityName($0) },
      isAbstract: entity.boolean("NSIsAbstract"),
      renamingIdentifier: entity.string("NSRenamingIdentifier")?.nonEmpty
        .flatMap { $0.isSameName(as: name) ? nil : $0 },
      versionHashModifier: entity.string("NSVersionHashModifier")?.nonEmpty,
      userInfo: try userInfo(entity), properties: properties,
      uniquenessConstraints: try names(entity.elements("NSUniqueTuples")),
      fetchIndexes: try budget.items(entity.elements("NSFetchIndexDescriptions"))
        .compactMap(\.object).map(fetchIndex),
      compoundIndexes: try names(entity.elements("NSCompoundIndexes")))
  }

  private func propertyObjects(
    of entity: ArchivedObject
  ) throws -> [NameKey: ArchivedObject] {
    let pairs = try budget.items(entity.entries("NSProperties")).compactMap { key, value in
      value.object.map { (NameKey(key), $0) }
    }
    return Dictionary(pairs) { first, _ in first }
  }

  /// What an entity lists under an inherited name must be the inherited property itself or a copy:
  /// a property of its own would have no column, and its values would disappear.
  private func requireSame(
    _ object: ArchivedObject, _ original: ArchivedObject, name: String, entity: String
  ) throws {
    guard object != original, let own = try property(object, name: name, entity: entity),
      let inherited = try property(original, name: name, entity: entity)
    else { return }
    guard own.isSameKind(as: inherited),
      VersionHashRecipe.hash(of: own) == VersionHashRecipe.hash(of: inherited)
    else {
      throw ModelError.invalid(
        path: path,
        problems: [
          ModelProblem(
            entity: EntityName(entity), property: name,
            message: "Entity \(entity) declares \(name), which it inherits. "
              + "Remove or rename one of the two.")
        ])
    }
  }

  /// Lists of lists of properties, each by its name or by itself.
  private func names(_ lists: [ArchivedValue]) throws -> [[String]] {
    try budget.items(lists).map { list in
      try budget.items(list.elements ?? []).map {
        $0.string ?? $0.object?.string("NSPropertyName") ?? "?"
      }
    }
  }

  private func userInfo(_ object: ArchivedObject) throws -> [String: String] {
    var pairs: [String: String] = [:]
    for (key, value) in try budget.items(object.entries("NSUserInfo")) {
      if let text = value.string { pairs[key] = text }
    }
    return pairs
  }

  private func property(
    _ object: ArchivedObject, name: String, entity: String
  ) throws -> PropertyDescription? {
    switch object.className {
    case "_NSPropertyDescriptionProxy": return nil
    case "NSRelationshipDescription": return .relationship(try relationship(object, name: name))
    case "NSFetchedPropertyDescription":
      var traits = try traits(object, name: name)
      traits.isTransient = true
      var request = object.object("NSFetchRequest").map {
        Self.fetchRequest($0, name: FetchRequestTemplate.fetchedPropertyName)
      }
      if request?.entity == nil, let entity = object.string("_NSFetchRequestEntityName") {
        request?.entity = EntityName(entity)
      }
      return .fetchedProperty(FetchedPropertyDescription(traits: traits, fetchRequest: request))
    default:
      return .attribute(try attribute(object, name: name, entity: entity, depth: 0))
    }
  }

  private func traits(_ object: ArchivedObject, name: String) throws -> PropertyTraits {
    PropertyTraits(
      name: name, isOptional: object.boolean("NSIsOptional"),
      isTransient: object.boolean("NSIsTransient"),
      renamingIdentifier: object.string("NSRenamingIdentifier")?.nonEmpty
        .flatMap { $0.isSameName(as: name) ? nil : $0 },
      versionHashModifier: object.string("NSVersionHashModifier")?.nonEmpty,
      userInfo: try userInfo(object), isIndexed: object.boolean("NSIsIndexed"),
      isIndexedBySpotlight: object.boolean("NSIndexedBySpotlight"))
  }

  private func relationship(
    _ object: ArchivedObject, name: String
  ) throws -> RelationshipDescription {
    let destination =
      object.string("_NSDestinationEntityName")
      ?? object.object("NSDestinationEntity")?.string("NSEntityName") ?? ""
    let inverse =
      object.string("_NSInverseRelationshipName")
      ?? object.object("NSInverseRelationship")?.string("NSPropertyName")
    let rule = object.integer("NSDeleteRule").flatMap { Int(exactly: $0) } ?? 1
    return RelationshipDescription(
      traits: try traits(object, name: name), destinationEntity: EntityName(destination),
      inverseName: inverse?.nonEmpty, minCount: Int(object.integer("NSMinCount") ?? 0),
      maxCount: Int(object.integer("NSMaxCount") ?? 0), isOrdered: object.boolean("NSIsOrdered"),
      deleteRule: RelationshipDescription.DeleteRule(rawValue: rule) ?? .nullify)
  }

  private func fetchIndex(_ object: ArchivedObject) throws -> FetchIndexDescription {
    FetchIndexDescription(
      name: object.string("NSIndexName") ?? "",
      elements: try budget.items(object.elements("NSIndexElements")).compactMap(\.object).map {
        element in
        FetchIndexDescription.Element(
          propertyName: element.string("NSPropertyName"),
          expression: element["NSExpression"].flatMap { DerivationExpression.hashed(from: $0) },
          isRTree: element.integer("NSFetchIndexElementType") == 1,
          isAscending: element["NSAscending"]?.boolean ?? true)
      },
      partialIndexPredicate: object["NSPartialIndexPredicate"].map(PredicateText.text))
  }

  private static func fetchRequest(_ object: ArchivedObject, name: String) -> FetchRequestTemplate {
    var settings: [String: String] = [:]
    for (key, setting) in FetchRequestTemplate.archivedSettings {
      if let number = object.integer(key), number != 0 { settings[setting] = "\(number)" }
    }
    return FetchRequestTemplate(
      name: name,
      entity: object.object("NSEntity")?.string("NSEntityName").map { EntityName($0) },
      predicate: object["NSPredicate"].map(PredicateText.text), settings: settings)
  }
}

extension FetchRequestTemplate {
  /// What Xcode calls the request of a fetched property. Archives keep no name for it.
  static let fetchedPropertyName = "fetchedPropertyFetchRequest"

  /// Settings that are plain numbers, by their keys in an archive and in `contents`.
  static let archivedSettings: [(key: String, setting: String)] = [
    ("NSFetchLimit", "fetchLimit"), ("NSFetchOffset", "fetchOffset"),
    ("NSBatchSize", "fetchBatchSize"), ("NSResultType", "resultType"),
  ]
}

// MARK: - Attributes

extension ArchivedModelReader {
  /// Composites inside composites. Core Data's own use two levels.
  private static let compositeDepthLimit = 16
  /// `NSFlagsKey`.
  private enum Flag {
    static let externalStorage: Int64 = 4
    static let preservedOnDeletion: Int64 = 16
  }

  private func attribute(
    _ object: ArchivedObject, name: String, entity: String, depth: Int
  ) throws -> AttributeDescription {
    try budget.spend(1)
    guard depth <= Self.compositeDepthLimit else {
      throw odd("composite attribute \(entity).\(name) is nested too deeply")
    }
    let isComposite = object.className == "NSCompositeAttributeDescription"
    let number = object.integer("NSAttributeType") ?? 0
    guard
      let type = isComposite
        ? .composite : Int(exactly: number).flatMap(AttributeType.init(rawValue:))
    else { throw odd("attribute \(entity).\(name) has the unknown type \(number)") }
    var elements: [AttributeDescription]?
    if isComposite {
      elements = []
      for element in object.elements("NSCompositeElements").compactMap(\.object) {
        guard let part = element.string("NSPropertyName") else { continue }
        elements?.append(
          try attribute(element, name: part, entity: entity, depth: depth + 1))
      }
    }
    let flags = object.integer("NSFlagsKey") ?? 0
    var rules: [ValidationRule] = []
    for predicate in try budget.items(object.elements("NSValidationPredicates")) {
      ArchivedValidation.append(predicate, to: &rules)
    }
    var attribute = AttributeDescription(
      traits: try traits(object, name: name), type: type,
      defaultValue: DefaultValue.read(type, archived: object["NSDefaultValue"]),
      attributeValueClassName: object.string("NSAttributeValueClassName")?.nonEmpty
        .flatMap { $0 == type.valueClassName ? nil : $0 },
      valueTransformerName: object.string("NSValueTransformerName")?.nonEmpty,
      allowsExternalBinaryDataStorage: flags & Flag.externalStorage != 0,
      preservesValueInHistoryOnDeletion: flags & Flag.preservedOnDeletion != 0,
      derivationExpression: DerivationExpression.text(of: object),
      compositeElements: elements, validation: rules)
    attribute.otherFlags = flags & ~(Flag.externalStorage | Flag.preservedOnDeletion)
    var parts: [ArchivedPart] = attribute.derivationExpression == nil ? [] : [.filter]
    // Some models have an empty text where a number has no default.
    if attribute.defaultValue == nil, object.string(ArchivedPart.defaultValue.rawValue) != "" {
      parts.append(.defaultValue)
    }
    for part in parts {
      guard let bytes = object.archive(of: part.rawValue) else { continue }
      // Attributes may share one: 32 MiB in all.
      try budget.spend(bytes.count / 64)
      attribute.archived[part] = bytes
    }
    return attribute
  }
}

extension AttributeType {
  /// `NSAttributeValueClassName` where the model sets no class of its own.
  /// Source: `core-data-models.md` §4, "Default value class names".
  var valueClassName: String? {
    switch self {
    case .integer16, .integer32, .integer64, .double, .float, .boolean: "NSNumber"
    case .decimal: "NSDecimalNumber"
    case .string: "NSString"
    case .date: "NSDate"
    case .binary: "NSData"
    case .uuid: "NSUUID"
    case .uri: "NSURL"
    case .composite: "NSDictionary"
    case .undefined, .transformable, .objectID: nil
    }
  }
}
