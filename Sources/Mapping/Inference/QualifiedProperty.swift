import GodwitObjectModel

/// What two properties must agree on to correspond: an attribute never becomes a relationship.
struct QualifiedProperty: Hashable {
  enum Kind: Hashable {
    case attribute, relationship, fetchedProperty

    init(_ property: PropertyDescription) {
      switch property {
      case .attribute: self = .attribute
      case .relationship: self = .relationship
      case .fetchedProperty: self = .fetchedProperty
      }
    }
  }

  let kind: Kind
  let identifier: NameKey

  init(_ property: PropertyDescription) {
    kind = Kind(property)
    identifier = NameKey(property.traits.mappingKey)
  }
}
