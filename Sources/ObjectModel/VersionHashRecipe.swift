/// How version hashes are computed: Core Data's style 3 (`NSStoreModelVersionHashesVersion`).
///
/// Class names, delete rules, indexes, default values, validation, user info, renaming
/// identifiers and configurations do not enter. Source: `core-data-models.md` §6.1 and §6.2.
enum VersionHashRecipe {
  static func hash(of property: PropertyDescription) -> VersionHash? {
    switch property {
    case .attribute(let attribute): hash(of: attribute)
    case .relationship(let relationship): hash(of: relationship)
    case .fetchedProperty: nil
    }
  }

  static func hash(of attribute: AttributeDescription) -> VersionHash {
    if let expression = attribute.hashedDerivation {
      return VersionHash(digestOf: Array(expression.utf8))
    }
    if let elements = attribute.compositeElements {
      let content = elements.sorted { $0.name.precedesInUnits($1.name) }
        .flatMap { hash(of: $0).bytes }
      return VersionHash(digestOf: content)
    }
    var content = base(attribute.traits)
    append(attribute.type.rawValue, to: &content)
    if attribute.allowsExternalBinaryDataStorage || attribute.preservesValueInHistoryOnDeletion {
      content.append(1)
    }
    return VersionHash(digestOf: content)
  }

  static func hash(of relationship: RelationshipDescription) -> VersionHash {
    var content = base(relationship.traits)
    content += relationship.destinationEntity.rawValue.utf8
    content += (relationship.inverseName ?? "").utf8
    append(relationship.maxCount, to: &content)
    append(relationship.minCount, to: &content)
    if relationship.isOrdered { content += [1, 0] }
    return VersionHash(digestOf: content)
  }

  private static func base(_ traits: PropertyTraits) -> [UInt8] {
    var content = Array(traits.name.utf8)
    content.append(traits.isOptional ? 1 : 0)
    content.append(traits.isTransient ? 1 : 0)
    content += (traits.versionHashModifier ?? "").utf8
    return VersionHash(digestOf: content).bytes
  }

  /// 32 bits, little-endian, as Core Data stores counts and types.
  private static func append(_ number: Int, to content: inout [UInt8]) {
    let word = UInt32(truncatingIfNeeded: number)
    for shift in stride(from: UInt32(0), to: 32, by: 8) {
      content.append(UInt8(truncatingIfNeeded: word >> shift))
    }
  }

  static func hash(
    of entity: EntityDescription, superentityHash: VersionHash?,
    properties: [EntityHierarchy.Declared]
  ) -> VersionHash {
    var content = Array(entity.name.rawValue.utf8)
    content.append(entity.isAbstract ? 1 : 0)
    content += superentityHash?.bytes ?? []
    let stored = properties.map(\.property).filter(\.isStored)
    for property in stored.sorted(by: { $0.name.precedesInUnits($1.name) }) {
      content += hash(of: property)?.bytes ?? []
    }
    content += (entity.versionHashModifier ?? "").utf8
    let constraints = entity.uniquenessConstraints.map { $0.joined(separator: ".") }
    for constraint in constraints.sorted(by: { $0.precedesInBytes($1) }) {
      content += constraint.utf8
    }
    return VersionHash(digestOf: content)
  }
}

extension String {
  /// The order of UTF-16 code units, by which properties enter a hash. It differs from the byte
  /// order only beyond the basic plane.
  func precedesInUnits(_ other: String) -> Bool {
    utf16.lexicographicallyPrecedes(other.utf16)
  }
}

extension EntityHierarchy {
  /// Whether it is not known for certain how Core Data computes the entity's hash. Source: `core-data-models.md` §6, "Not
  /// settled".
  package func hasUnsettledHash(_ name: EntityName) -> Bool {
    guard let entity = self[name] else { return false }
    let constraints = entity.uniquenessConstraints
    return constraints.count > 1 || constraints.contains { $0.count > 1 }
      || (entity.versionHashModifier != nil && !constraints.isEmpty)
      || !name.rawValue.isASCII
      || properties(of: name).contains { $0.property.hasUnsettledHash }
      || entity.superentity.map(hasUnsettledHash) ?? false
  }

  /// Whether a record of version hashes may be of this model: where it says otherwise of an entity that is computed for
  /// certain, it is another version's.
  func mayHave(_ recorded: [EntityName: VersionHash]) -> Bool {
    Set(recorded.keys) == Set(order)
      && order.allSatisfy { recorded[$0] == versionHashes[$0] || hasUnsettledHash($0) }
  }

  /// The version hash of every entity: the recorded one, else the computed one.
  /// - Complexity: O(*n*) in the number of own and inherited properties, the first time.
  package var versionHashes: [EntityName: VersionHash] {
    hashes.value {
      recordedHashes.isEmpty
        ? computed()
        : computed().merging(recordedHashes.filter { contains($0.key) }) { $1 }
    }
  }

  /// The version hash of every entity by the rules alone: equal for entities that are described alike.
  package var computedHashes: [EntityName: VersionHash] {
    recordedHashes.isEmpty ? versionHashes : computed()
  }

  private func computed() -> [EntityName: VersionHash] {
    var hashes: [EntityName: VersionHash] = [:]
    // Superentities come first in the order of numbers.
    for name in order {
      guard let entity = self[name] else { continue }
      hashes[name] = VersionHashRecipe.hash(
        of: entity, superentityHash: entity.superentity.flatMap { hashes[$0] },
        properties: properties(of: name))
    }
    return hashes
  }
}

extension PropertyDescription {
  fileprivate var hasUnsettledHash: Bool {
    guard isStored else { return false }
    var names = [name]
    switch self {
    case .attribute(let attribute):
      if attribute.hasUnsettledHash { return true }
    case .relationship(let relationship):
      names += [relationship.destinationEntity.rawValue, relationship.inverseName ?? ""]
    case .fetchedProperty: break
    }
    return !names.allSatisfy(\.isASCII)
  }
}

extension AttributeDescription {
  fileprivate var hasUnsettledHash: Bool {
    if derivationExpression != nil { return countedRelationship == nil }
    if let elements = compositeElements {
      return elements.contains {
        $0.compositeElements != nil || $0.hasUnsettledHash || !$0.name.isASCII
      }
    }
    return otherFlags != 0 || allowsExternalBinaryDataStorage && preservesValueInHistoryOnDeletion
  }
}

extension String {
  fileprivate var isASCII: Bool { utf8.allSatisfy { $0 < 0x80 } }
}
