import GodwitObjectModel

/// Values that two models allow.
extension StoreOptions {
  /// The attribute with the rules of ``validFor`` added to its own.
  func narrowed(_ attribute: AttributeDescription, of entity: EntityName) -> AttributeDescription {
    guard let other = validFor?.property(attribute.name, of: entity)?.property.attribute else {
      return attribute
    }
    var narrowed = attribute
    narrowed.validation += other.validation
    if !other.traits.isOptional { narrowed.traits.isOptional = false }
    if let range = Self.range(of: other.type) {
      narrowed.validation += [
        .minimum(ValidationBound(range.lowerBound)), .maximum(ValidationBound(range.upperBound)),
      ]
    }
    return narrowed
  }

  /// True when ``validFor`` has a relationship of this name and needs it.
  func requires(_ relationship: String, of entity: EntityName) -> Bool {
    let other = validFor?.property(relationship, of: entity)?.property.relationship
    return other.map { !$0.traits.isOptional } ?? false
  }

  private static func range(of type: AttributeType) -> ClosedRange<Double>? {
    switch type {
    case .integer16: -0x8000...0x7FFF
    case .integer32: -0x8000_0000...0x7FFF_FFFF
    default: nil
    }
  }
}
