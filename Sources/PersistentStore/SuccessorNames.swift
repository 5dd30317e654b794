import GodwitObjectModel

/// What the source's entities and properties are called in the destination.
package struct SuccessorNames {
  /// Nil for an entity without a successor, or with several.
  package let entity: (EntityName) -> EntityName?
  /// The name of a property that an entity declares, under the entity's successor; nil where it has
  /// none, or several.
  package let property: (EntityName, String) -> String?

  package init(
    entity: @escaping (EntityName) -> EntityName?,
    property: @escaping (EntityName, String) -> String?
  ) {
    self.entity = entity
    self.property = property
  }

  /// Everything stays what it is.
  package static var same: SuccessorNames {
    SuccessorNames(entity: { $0 }, property: { $1 })
  }
}
