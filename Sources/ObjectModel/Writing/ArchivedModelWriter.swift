import GodwitKeyedArchive

/// Writes a model as a keyed archive: the content of a `.mom` file.
///
/// The shape is that of Xcode's compiler: an entity lists its own properties, and everything has
/// references back to what holds it. Object numbers follow the order of names, so the same model
/// always gives the same bytes. Source: `core-data-models.md` §3 and §4.
///
/// What an archive has no known place for is left out: other settings of fetch requests than
/// counts, predicates of a form that was never seen archived, with the partial indexes that have one, and
/// the flag of cloud encryption.
struct ArchivedModelWriter {
  var archive = KeyedArchiveWriter()
  let hierarchy: EntityHierarchy
  private let root: KeyedArchiveWriter.Reference
  private var entities: [EntityName: KeyedArchiveWriter.Reference] = [:]
  private var subentities: [EntityName: [EntityName]] = [:]
  private var relationships: [PropertyKey: KeyedArchiveWriter.Reference] = [:]
  private var emptyUserInfo: KeyedArchiveWriter.Reference?

  private struct PropertyKey: Hashable {
    let entity: EntityName
    let name: String
  }
  typealias Fields = [(String, PropertyList)]

  static func write(_ hierarchy: EntityHierarchy) -> [UInt8] {
    var writer = ArchivedModelWriter(hierarchy)
    writer.writeModel()
    return writer.archive.bytes(root: writer.root)
  }

  private init(_ hierarchy: EntityHierarchy) {
    self.hierarchy = hierarchy
    root = archive.reserve()
    for entity in hierarchy.model.entities {
      entities[entity.name] = archive.reserve()
      if let superentity = entity.superentity {
        subentities[superentity, default: []].append(entity.name)
      }
      for relationship in entity.properties.compactMap(\.relationship) {
        relationships[PropertyKey(entity: entity.name, name: relationship.name)] =
          archive.reserve()
      }
    }
  }

  private func reference(to entity: EntityName?) -> KeyedArchiveWriter.Reference {
    entity.flatMap { entities[$0] } ?? .null
  }

  /// A dictionary with string keys, in byte order.
  private mutating func dictionary(
    _ pairs: [String: KeyedArchiveWriter.Reference], className: String = "NSMutableDictionary"
  ) -> KeyedArchiveWriter.Reference {
    let sorted = pairs.sorted { $0.key.precedesInBytes($1.key) }
    return archive.dictionary(
      sorted.map { (key: archive.string($0.key), value: $0.value) }, className: className)
  }

  private mutating func writeModel() {
    let model = hierarchy.model
    var named: [String: KeyedArchiveWriter.Reference] = [:]
    for entity in model.entities {
      named[entity.name.rawValue] = reference(to: entity.name)
    }
    for entity in model.entities { writeEntity(entity) }
    var templates = KeyedArchiveWriter.Reference.null
    if !model.fetchRequestTemplates.isEmpty {
      var requests: [String: KeyedArchiveWriter.Reference] = [:]
      for template in model.fetchRequestTemplates {
        requests[template.name] = fetchRequest(template)
      }
      templates = dictionary(requests)
    }
    let identifiers = model.versionIdentifiers.map { archive.string($0) }
    var fields: Fields = [
      ("NSEntities", dictionary(named).uid),
      ("NSFetchRequestTemplates", templates.uid),
      ("NSVersionIdentifiers", archive.collection(identifiers, className: "NSSet").uid),
    ]
    if !model.configurations.isEmpty {
      var configurations: [String: KeyedArchiveWriter.Reference] = [:]
      for (name, members) in model.configurations.sorted(by: { $0.key.precedesInBytes($1.key) }) {
        configurations[name] = archive.collection(members.compactMap { entities[$0] })
      }
      fields.append(("NSConfigurations", dictionary(configurations).uid))
    }
    archive.fill(root, "NSManagedObjectModel", fields)
  }

  private mutating func lists(_ lists: [[String]]) -> PropertyList {
    let inner = lists.map { names in
      archive.collection(names.map { archive.string($0) }, className: "NSMutableArray")
    }
    return archive.collection(inner, className: "NSMutableArray").uid
  }

  private mutating func userInfo(_ pairs: [String: String]) -> PropertyList {
    guard !pairs.isEmpty else {
      let empty = emptyUserInfo ?? archive.dictionary([], className: "NSDictionary")
      emptyUserInfo = empty
      return empty.uid
    }
    var values: [String: KeyedArchiveWriter.Reference] = [:]
    for (key, value) in pairs.sorted(by: { $0.key.precedesInBytes($1.key) }) {
      values[key] = archive.string(value)
    }
    return dictionary(values, className: "NSDictionary").uid
  }

  private mutating func writeEntity(_ entity: EntityDescription) {
    let place = reference(to: entity.name)
    var properties: [String: KeyedArchiveWriter.Reference] = [:]
    for property in entity.properties {
      switch property {
      case .attribute(let attribute):
        properties[property.name] = self.attribute(attribute, entity: place)
      case .relationship(let relationship):
        properties[property.name] = writeRelationship(relationship, of: entity.name)
      case .fetchedProperty(let fetched):
        properties[property.name] = fetchedProperty(fetched, entity: place)
      }
    }
    var subentities: [String: KeyedArchiveWriter.Reference] = [:]
    for name in self.subentities[entity.name] ?? [] {
      subentities[name.rawValue] = reference(to: name)
    }
    let name = archive.string(entity.name.rawValue)
    var fields: Fields = [
      ("NSEntityName", name.uid),
      ("NSClassNameForEntity", archive.string(entity.managedObjectClassName).uid),
      ("NSManagedObjectModel", root.uid),
      ("NSSuperentity", reference(to: entity.superentity).uid),
      ("NSSubentities", dictionary(subentities).uid),
      ("NSProperties", dictionary(properties).uid),
      (
        "NSRenamingIdentifier",
        archive.string(entity.renamingIdentifier ?? entity.name.rawValue).uid
      ),
      ("NSVersionHashModifier", archive.string(entity.versionHashModifier).uid),
      ("NSUserInfo", userInfo(entity.userInfo)),
    ]
    if entity.isAbstract { fields.append(("NSIsAbstract", .boolean(true))) }
    if !entity.uniquenessConstraints.isEmpty {
      fields.append(("NSUniqueTuples", lists(entity.uniquenessConstraints)))
    }
    // Without its predicate a partial index would be another, and missed in the store.
    let archivable = entity.fetchIndexes.filter {
      $0.partialIndexPredicate.map { PredicateSyntax.parse($0) != nil } ?? true
    }
    if !archivable.isEmpty {
      let indexes = archivable.map { fetchIndex($0, entity: place) }
      fields.append(
        (
          "NSFetchIndexDescriptions",
          archive.collection(indexes, className: "NSMutableArray").uid
        ))
    }
    if !entity.compoundIndexes.isEmpty {
      fields.append(("NSCompoundIndexes", lists(entity.compoundIndexes)))
    }
    archive.fill(place, "NSEntityDescription", fields)
  }

  private mutating func fetchIndex(
    _ index: FetchIndexDescription, entity: KeyedArchiveWriter.Reference
  ) -> KeyedArchiveWriter.Reference {
    let place = archive.reserve()
    let elements = index.elements.map { element in
      var fields: Fields = [
        ("NSPropertyName", archive.string(element.propertyName).uid),
        ("NSFetchIndexElementType", .integer(element.isRTree ? 1 : 0)),
        ("NSAscending", .boolean(element.isAscending)),
        ("NSFetchIndexDescription", place.uid),
      ]
      if let expression = element.expression {
        fields.append(("NSExpression", derivation(expression).uid))
      }
      return archive.object("NSFetchIndexElementDescription", fields)
    }
    archive.fill(
      place, "NSFetchIndexDescription",
      [
        ("NSIndexName", archive.string(index.name).uid),
        ("NSIndexElements", archive.collection(elements).uid),
        ("NSPartialIndexPredicate", predicate(index.partialIndexPredicate).uid),
        ("NSEntity", entity.uid),
      ])
    return place
  }
}

// MARK: - Properties

extension ArchivedModelWriter {
  /// `_P`: what the named keys say, once more, as bits. Source: `core-data-models.md` §4.
  private static func flags(
    _ traits: PropertyTraits, isReadOnly: Bool, isValidated: Bool, isOrdered: Bool = false
  ) -> Int64 {
    var bits: Int64 = 1
    if traits.isOptional { bits |= 2 }
    if isReadOnly { bits |= 4 }
    if traits.isTransient { bits |= 8 }
    if !isValidated { bits |= 0x30 }
    if traits.userInfo.isEmpty { bits |= 0x40 }
    if traits.versionHashModifier == nil { bits |= 0x80 }
    if traits.isIndexedBySpotlight { bits |= 0x100 }
    if isOrdered { bits |= 0x400 }
    return bits
  }

  private mutating func common(
    _ traits: PropertyTraits, entity: KeyedArchiveWriter.Reference, isReadOnly: Bool = false,
    isValidated: Bool = false, isOrdered: Bool = false
  ) -> Fields {
    var fields: Fields = [
      ("NSPropertyName", archive.string(traits.name).uid),
      ("NSEntity", entity.uid),
      ("NSRenamingIdentifier", archive.string(traits.renamingIdentifier ?? traits.name).uid),
      (
        "_P",
        .integer(
          Self.flags(
            traits, isReadOnly: isReadOnly, isValidated: isValidated, isOrdered: isOrdered))
      ),
    ]
    let marks = [
      ("NSIsOptional", traits.isOptional), ("NSIsTransient", traits.isTransient),
      ("NSIsReadOnly", isReadOnly), ("NSIsIndexed", traits.isIndexed),
      ("NSIndexedBySpotlight", traits.isIndexedBySpotlight), ("NSIsOrdered", isOrdered),
    ]
    for (key, mark) in marks where mark { fields.append((key, .boolean(true))) }
    if let modifier = traits.versionHashModifier {
      fields.append(("NSVersionHashModifier", archive.string(modifier).uid))
    }
    if !traits.userInfo.isEmpty { fields.append(("NSUserInfo", userInfo(traits.userInfo))) }
    return fields
  }

  private mutating func writeRelationship(
    _ relationship: RelationshipDescription, of entity: EntityName
  ) -> KeyedArchiveWriter.Reference {
    let place = relationships[PropertyKey(entity: entity, name: relationship.name)] ?? .null
    let inverse = hierarchy.inverse(of: relationship).flatMap {
      relationships[PropertyKey(entity: $0.entity, name: $0.relationship.name)]
    }
    let destination = relationship.destinationEntity
    var fields = common(
      relationship.traits, entity: reference(to: entity), isOrdered: relationship.isOrdered)
    fields += [
      ("NSDestinationEntity", reference(to: destination).uid),
      ("_NSDestinationEntityName", archive.string(destination.rawValue.nonEmpty).uid),
      ("NSInverseRelationship", (inverse ?? .null).uid),
      ("_NSInverseRelationshipName", archive.string(relationship.inverseName).uid),
      ("NSMinCount", .integer(Int64(relationship.minCount))),
      ("NSMaxCount", .integer(Int64(relationship.maxCount))),
      ("NSDeleteRule", .integer(Int64(relationship.deleteRule.rawValue))),
    ]
    archive.fill(place, "NSRelationshipDescription", fields)
    return place
  }

  private mutating func fetchedProperty(
    _ fetched: FetchedPropertyDescription, entity: KeyedArchiveWriter.Reference
  ) -> KeyedArchiveWriter.Reference {
    var fields = common(fetched.traits, entity: entity, isReadOnly: true)
    if let request = fetched.fetchRequest {
      fields += [
        ("NSFetchRequest", fetchRequest(request).uid),
        ("_NSFetchRequestEntityName", archive.string(request.entity?.rawValue).uid),
      ]
    }
    return archive.object("NSFetchedPropertyDescription", fields)
  }

  private mutating func fetchRequest(
    _ template: FetchRequestTemplate
  ) -> KeyedArchiveWriter.Reference {
    let null = KeyedArchiveWriter.Reference.null.uid
    var fields: Fields = [
      ("NSEntity", reference(to: template.entity).uid),
      ("NSPredicate", predicate(template.predicate).uid),
      ("NSSortDescriptors", null), ("NSHavingPredicate", null), ("NSValuesToFetch", null),
      ("NSValuesToGroupBy", null), ("NSRelationshipKeyPathsForPrefetching", null),
      ("NSHasFetchRequestFlags", .boolean(true)),
      // What every request in a compiled model has.
      ("NSFetchRequestFlags", .integer(30)),
    ]
    for (key, setting) in FetchRequestTemplate.archivedSettings {
      fields.append((key, .integer(template.settings[setting].flatMap { Int64($0) } ?? 0)))
    }
    return archive.object("NSFetchRequest", fields)
  }

  private mutating func attribute(
    _ attribute: AttributeDescription, entity: KeyedArchiveWriter.Reference
  ) -> KeyedArchiveWriter.Reference {
    let rules = attribute.validation.compactMap { rule in
      validation(rule, isDate: attribute.type == .date)
    }
    let isDerived = attribute.derivationExpression != nil
    var fields = common(
      attribute.traits, entity: entity, isReadOnly: isDerived, isValidated: !rules.isEmpty)
    let valueClass = attribute.attributeValueClassName ?? attribute.type.valueClassName
    let flags: Int64 =
      (attribute.allowsExternalBinaryDataStorage ? 4 : 0)
      | (attribute.preservesValueInHistoryOnDeletion ? 16 : 0) | attribute.otherFlags
    fields += [
      ("NSAttributeType", .integer(Int64(attribute.type.rawValue))),
      ("NSAttributeValueClassName", archive.string(valueClass).uid),
      ("NSDefaultValue", defaultValue(attribute).uid),
      ("NSValueTransformerName", archive.string(attribute.valueTransformerName).uid),
      ("NSFlagsKey", .integer(flags)),
    ]
    if !rules.isEmpty {
      fields += [
        ("NSValidationPredicates", archive.collection(rules.map(\.predicate)).uid),
        ("NSValidationWarnings", archive.collection(rules.map(\.warning)).uid),
      ]
    }
    if let elements = attribute.compositeElements {
      // The nesting is bounded by the reader, or by whoever built the model.
      let parts = elements.map { self.attribute($0, entity: entity) }
      fields.append(
        ("NSCompositeElements", archive.collection(parts, className: "NSMutableArray").uid))
      return archive.object("NSCompositeAttributeDescription", fields)
    }
    guard let expression = attribute.hashedDerivation else {
      return archive.object("NSAttributeDescription", fields)
    }
    fields += [
      ("NSDerivationExpression", derivation(expression).uid),
      ("NSFilteringPredicate", part(.filter, of: attribute).uid),
    ]
    return archive.object("NSDerivedAttributeDescription", fields)
  }
}
