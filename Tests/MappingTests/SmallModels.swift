import GodwitMapping
import GodwitObjectModel

extension VersionName: ExpressibleByStringLiteral {
  /// Of no bundle that is known.
  public init(stringLiteral name: String) { self.init(name) }
}

/// Short words to write small models with.
func model(_ entities: EntityDescription...) throws -> EntityHierarchy {
  try EntityHierarchy(ManagedObjectModel(entities: entities))
}

func entity(
  _ name: EntityName, _ properties: PropertyDescription..., id: String? = nil,
  parent: EntityName? = nil, isAbstract: Bool = false, unique: [[String]] = [],
  modifier: String? = nil
) -> EntityDescription {
  EntityDescription(
    name: name, superentity: parent, isAbstract: isAbstract, renamingIdentifier: id,
    versionHashModifier: modifier, properties: properties, uniquenessConstraints: unique)
}

func attribute(
  _ name: String, _ type: AttributeType = .string, optional: Bool = true, transient: Bool = false,
  default value: StoredDefault? = nil, id: String? = nil, derived: String? = nil
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(
        name: name, isOptional: optional, isTransient: transient, renamingIdentifier: id),
      type: type, defaultValue: value, derivationExpression: derived))
}

func toOne(
  _ name: String, _ destination: EntityName, optional: Bool = true, inverse: String? = nil,
  id: String? = nil
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name, isOptional: optional, renamingIdentifier: id),
      destinationEntity: destination, inverseName: inverse))
}

func toMany(
  _ name: String, _ destination: EntityName, optional: Bool = true, minimum: Int = 0,
  ordered: Bool = false, inverse: String? = nil, id: String? = nil
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name, isOptional: optional, renamingIdentifier: id),
      destinationEntity: destination, inverseName: inverse, minCount: minimum, maxCount: 0,
      isOrdered: ordered))
}
