import GodwitObjectModel

/// Something that the rows of the source store must fulfil, so that an inferred mapping can be
/// carried out; and the refusal that it becomes where they do not.
///
/// Entities mean objects of exactly that entity, without its sub-entities.
/// Source: `core-data-migration.md` §2.2.
package struct RowCondition: Sendable, Hashable {
  /// What is asked of the rows.
  package enum Question: Sendable, Hashable {
    /// The source entity has no objects.
    case noRows(of: EntityName)
    /// No object of the source entity lacks a value (or, for a to-one, a target).
    case noNulls(entity: EntityName, property: String)
    /// Every object of the source entity has an object in the to-many relationship.
    case noneEmpty(entity: EntityName, relationship: String)
    /// The destination has room for every pair of the relationship that `entity`, of the
    /// destination, declares. See ``InferredMapping/pairs(of:declaredBy:)``.
    case room(entity: EntityName, relationship: String)
    /// No object of the source entity will have more objects than `most` in a relationship of the destination,
    /// whose derived count holds no higher number.
    case countable(entity: EntityName, relationship: String, most: Int64)
    /// No two rows of all parts together agree in every term. A row with a NULL among its terms
    /// agrees with none.
    case unique([UniquePart])
  }

  /// What the rows must fulfil.
  package var question: Question
  /// What the condition becomes where the rows do not fulfil it.
  package var refusal: Refusal

  /// Makes a condition with its refusal.
  package init(_ question: Question, refusal: Refusal) {
    self.question = question
    self.refusal = refusal
  }
}

/// What one source entity contributes to the values under a uniqueness constraint.
package struct UniquePart: Sendable, Hashable {
  /// Where the value of one property of the constraint comes from.
  package enum Term: Sendable, Hashable {
    /// The value of the source property, converted to another numeric type where one is given, or taken
    /// out of its file where that is Binary; `default` takes the place of NULL.
    case source(property: String, convertedTo: AttributeType?, default: StoredDefault?)
    /// The target of a to-one relationship of the destination that is not a to-one of the source.
    case target(relationship: String)
    /// The number of objects in a to-many relationship of the destination.
    case count(relationship: String)
    /// The same value for every object: what a new property gets.
    case constant(StoredDefault?)
  }

  /// The source entity.
  package var entity: EntityName
  /// One for each property of the constraint, in its order.
  package var terms: [Term]

  /// Names what one source entity contributes. Nothing is checked.
  package init(entity: EntityName, terms: [Term]) {
    self.entity = entity
    self.terms = terms
  }
}
