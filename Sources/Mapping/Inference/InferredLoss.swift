import GodwitObjectModel

/// Something of the source model that has no place in the destination: a store that has objects, values,
/// references or places in an order of it loses them.
package struct InferredLoss: Sendable, Hashable, Codable {
  /// The entity of the source model.
  package let entity: EntityName
  /// The attribute, for an element of a composite one with the path to it, or the relationship; nil for
  /// the entity.
  package let property: String?
  /// What would be dropped, as a sentence without its full stop.
  package let message: String

  package init(entity: EntityName, property: String?, message: String) {
    self.entity = entity
    self.property = property
    self.message = message
  }
}
