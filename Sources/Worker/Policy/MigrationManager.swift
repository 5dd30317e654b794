import GodwitExpressions
import GodwitObjectModel

/// What a policy asks of the migration that it is part of. Core Data's `NSMigrationManager`.
///
/// Of one stage of one shard, and of no use beyond it. Objects of the source are there at all times; objects of the
/// destination that other shards and mappings made are known from the link stage on, when every
/// one of them exists. Source: `core-data-migration.md` §5.1, §5.2.
public final class MigrationManager {
  let engine: PolicyEngine

  init(_ engine: PolicyEngine) { self.engine = engine }

  /// The entity mapping that the policy runs for.
  public var currentEntityMapping: CurrentEntityMapping { engine.mapping }

  /// The model that the source store was written under.
  public var sourceModel: ManagedObjectModel { model(ofSource: true) }

  /// The model of the destination.
  public var destinationModel: ManagedObjectModel { model(ofSource: false) }

  /// The entity that a mapping takes objects of; nil for one without a source.
  public func sourceEntity(for mapping: CurrentEntityMapping) -> EntityDescription? {
    mapping.sourceEntityName.flatMap { entity($0, ofSource: true) }
  }

  /// The entity that a mapping makes objects of; nil for one without a destination.
  public func destinationEntity(for mapping: CurrentEntityMapping) -> EntityDescription? {
    mapping.destinationEntityName.flatMap { entity($0, ofSource: false) }
  }

  private func model(ofSource isSource: Bool) -> ManagedObjectModel {
    engine.reach { $0.model(ofSource: isSource) } ?? ManagedObjectModel(entities: [])
  }

  private func entity(_ name: String, ofSource isSource: Bool) -> EntityDescription? {
    engine.reach { $0.hierarchy(ofSource: isSource)?[EntityName(name)] } ?? nil
  }

  /// How far the stage has come in this shard, from 0 to 1.
  public var migrationProgress: Float { engine.reach(\.progress) ?? 0 }

  /// What policies tell each other. What is here at the end of a stage is here again in the
  /// next, for the policies of all mappings; where two shards say different things, the later
  /// one in the order of the mappings is heard. Within a stage every shard has its own.
  ///
  /// Values are those of attributes, objects, and arrays and dictionaries of them; anything else
  /// ends the migration with an error, since it could not reach the next stage's process.
  public var userInfo: [String: Any] {
    get { engine.reach(\.userInfo)?.compactMapValues { $0.native(in: engine) } ?? [:] }
    set {
      engine.reach { stage in
        stage.attempt {
          stage.userInfo = try newValue.mapValues { try ExpressionValue(native: $0) }
        }
      }
    }
  }

  /// One entry of ``userInfo``, without a look at the others.
  public subscript(userInfo key: String) -> Any? {
    get { (engine.reach { $0.userInfo[key] } ?? nil)?.native(in: engine) }
    set {
      engine.reach { stage in
        stage.attempt { stage.userInfo[key] = try newValue.map(ExpressionValue.init(native:)) }
      }
    }
  }

  /// Makes an object in the destination: `NSEntityDescription.insertNewObject(forEntityName:into:)`.
  /// Attributes have the defaults of the model.
  ///
  /// - Parameter entity: Any concrete entity of the destination model.
  /// - Throws: ``PolicyError`` outside the copy stage, or where there is no such entity.
  public func insertNewObject(forEntityName entity: String) throws -> ManagedObject {
    ManagedObject(engine, try engine.use { try $0.insert(EntityName(entity)) })
  }

  /// Says that the current mapping has made `destination` of `source`: one becomes several, or
  /// several become one, by as many calls.
  ///
  /// - Parameter mapping: The current one.
  public func associate(
    sourceInstance source: ManagedObject, withDestinationInstance destination: ManagedObject,
    for mapping: CurrentEntityMapping
  ) throws {
    try engine.use {
      try $0.associate(source.usedReference, destination.usedReference, mapping)
    }
  }

  /// What an entity mapping made of these source objects, in their order; of all where they are
  /// nil. In the copy stage only what the current mapping has made so far is known.
  public func destinationInstances(
    forEntityMappingName mapping: String, sourceInstances: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    try engine.use {
      try $0.destinations(mapping, sourceInstances.map { references($0, in: .source) })
    }.map { ManagedObject(engine, $0) }
  }

  /// What all mappings of a source relationship's destination entity made of these objects.
  public func destinationInstances(
    forSourceRelationshipNamed relationship: String, sourceInstances: [ManagedObject]
  ) throws -> [ManagedObject] {
    try engine.use {
      try $0.destinations(ofRelationship: relationship, references(sourceInstances, in: .source))
    }.map { ManagedObject(engine, $0) }
  }

  /// The source objects that an entity mapping made these objects of.
  public func sourceInstances(
    forEntityMappingName mapping: String, destinationInstances: [ManagedObject]? = nil
  ) throws -> [ManagedObject] {
    try engine.use {
      try $0.sources(mapping, destinationInstances.map { references($0, in: .destination) })
    }.map { ManagedObject(engine, $0) }
  }

  /// Objects of the other store have no part in a question: their keys are those of others here.
  private func references(
    _ objects: [ManagedObject], in store: ObjectReference.Store
  ) -> [ObjectReference] {
    objects.compactMap {
      let reference = $0.usedReference
      return reference.store == store ? reference : nil
    }
  }

  /// Calls the body with the source objects of an entity, without those of its sub-entities, by
  /// ascending `Z_PK`: a fetch of the source context.
  ///
  /// - Parameter predicate: A predicate format without arguments, such as `isDraft == NO`.
  public func forEachSourceObject(
    ofEntity entity: String, where predicate: String? = nil,
    _ body: (ManagedObject) throws -> Void
  ) throws {
    try engine.use { stage in
      try stage.forEachSource(EntityName(entity), predicate) { try body(ManagedObject(engine, $0)) }
    }
  }

  /// Calls the body with the objects of an entity of the whole destination, without those of its
  /// sub-entities, by ascending `Z_PK`. In `performCustomValidation` and `endEntityMapping` only.
  public func forEachDestinationObject(
    ofEntity entity: String, _ body: (ManagedObject) throws -> Void
  ) throws {
    try engine.use { stage in
      try stage.forEachDestination(EntityName(entity)) { try body(ManagedObject(engine, $0)) }
    }
  }

  /// Ends the migration when the current hook returns; it then fails with exactly this error.
  public func cancelMigration(with error: any Error) { engine.reach { $0.cancel(with: error) } }
}
