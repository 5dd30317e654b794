import GodwitObjectModel

/// What an evaluator asks of its surroundings: the engine of a migration, or a test's memory.
///
/// Answers must not depend on the order of questions; collections come in an order that every
/// run repeats. Errors thrown here keep their identity: an ``EvaluationProblem`` becomes an
/// ``EvaluationError``, every other error is passed on as it is.
package protocol ObjectAccess {
  /// An attribute's value, or a relationship's objects: `.object` or `.null` for a to-one, `.set`
  /// or `.orderedSet` for a to-many. A composite attribute is a `.dictionary` of its elements that have a
  /// value, `.null` where none has, and each of its elements answers to its key path, as `place.street`.
  ///
  /// - Returns: nil when the entity has no such property, own or inherited.
  func value(forKey key: String, of object: ObjectReference) throws -> ExpressionValue?

  /// True for the key path of a composite attribute, or of a composite in one: its elements are then
  /// asked for by their own key paths, so that no other is read.
  func isComposite(_ key: String, of object: ObjectReference) -> Bool

  /// Where the object lives, as `-[NSManagedObjectID URIRepresentation]` spells it.
  func uri(of object: ObjectReference) throws -> String

  /// What an entity mapping made of these source objects, in their order; of all where
  /// `sourceInstances` is nil. Nothing twice.
  ///
  /// - Returns: nil when there is no such mapping.
  func destinationInstances(
    forEntityMappingNamed mapping: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]?

  /// What all mappings of the relationship's destination entity and its sub-entities made of
  /// these source objects. Nothing twice.
  ///
  /// - Returns: nil when the current source entity has no such relationship.
  func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]?

  /// The source objects that an entity mapping made these objects of.
  ///
  /// - Returns: nil when there is no such mapping.
  func sourceInstances(
    forEntityMappingNamed mapping: String, destinationInstances: [ObjectReference]?
  ) throws -> [ObjectReference]?

  /// The source objects of an entity, without those of its sub-entities, for which `predicate`
  /// holds; `holds` evaluates it. By ascending `Z_PK`.
  ///
  /// - Returns: nil when there is no such entity.
  func sourceObjects(
    of entity: EntityName, where predicate: PredicateExpression,
    holds: (ObjectReference) throws -> Bool
  ) throws -> [ObjectReference]?

  /// `$manager.userInfo`.
  var managerUserInfo: [String: ExpressionValue] { get throws }

  /// Runs a method of the entity's migration policy.
  ///
  /// - Returns: nil when there is no policy or it has no such method.
  func performPolicy(
    selector: String, arguments: [ExpressionValue], in scope: EvaluationScope
  ) throws -> ExpressionValue?
}

extension ObjectAccess {
  /// False: there are no composite attributes.
  package func isComposite(_ key: String, of object: ObjectReference) -> Bool { false }

  /// Empty.
  package var managerUserInfo: [String: ExpressionValue] { [:] }

  /// Nil: there is no policy.
  package func performPolicy(
    selector: String, arguments: [ExpressionValue], in scope: EvaluationScope
  ) throws -> ExpressionValue? { nil }
}

/// The same where there are no entity mappings, of which nothing can be asked then.
package protocol UnmappedObjectAccess: ObjectAccess {}

extension UnmappedObjectAccess {
  package func destinationInstances(
    forEntityMappingNamed mapping: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? { nil }

  package func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? { nil }

  package func sourceInstances(
    forEntityMappingNamed mapping: String, destinationInstances: [ObjectReference]?
  ) throws -> [ObjectReference]? { nil }
}

/// What the variables of one evaluation mean. Source: `core-data-migration.md` §4.1.
package struct EvaluationScope: Sendable {
  /// `$source`; nil where there is no source object.
  package var source: ObjectReference?
  /// `$destination`; nil where there is no destination object yet.
  package var destination: ObjectReference?
  /// `SELF`, and what a bare key path starts from: in a filter, the source object.
  package var evaluatedObject: ExpressionValue?
  /// `$entityMapping.name` and `$entityMapping.userInfo`.
  package var entityMapping: String?
  /// `$entityMapping.userInfo`.
  package var entityMappingUserInfo: [String: String] = [:]
  /// The destination property: `$propertyMapping.name`.
  package var property: String?
  /// Variables beyond the six of Core Data.
  package var variables: [String: ExpressionValue] = [:]

  /// Makes the scope of one evaluation. Nil leaves a variable without meaning.
  package init(
    source: ObjectReference? = nil, destination: ObjectReference? = nil,
    evaluatedObject: ExpressionValue? = nil, entityMapping: String? = nil,
    entityMappingUserInfo: [String: String] = [:], property: String? = nil
  ) {
    self.source = source
    self.destination = destination
    self.evaluatedObject = evaluatedObject
    self.entityMapping = entityMapping
    self.entityMappingUserInfo = entityMappingUserInfo
    self.property = property
  }

  /// For the filter of an entity mapping.
  package static func filter(of object: ObjectReference, entityMapping: String? = nil) -> Self {
    EvaluationScope(
      source: object, evaluatedObject: .object(object), entityMapping: entityMapping)
  }
}
