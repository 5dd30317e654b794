import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// What a policy's hooks work with in one stage of one shard, see ``PolicyEngine``. Each stage has a
/// subclass; what this class answers is what no stage allows.
///
/// The getters and setters of objects do not throw, as Core Data's do not: their first error is
/// kept here and thrown when the hook has returned.
class PolicyStageEngine {
  let context: ShardContext
  let mapping: EntityMappingPlan
  /// What objects and managers lead here by.
  let shared: PolicyEngine
  let kinds: DestinationKinds
  /// The objects that the stage can read by SQL.
  let stored: SourceObjects
  @exclusivity(unchecked) var userInfo: [String: ExpressionValue]
  private let earlierUserInfo: [String: ExpressionValue]
  @exclusivity(unchecked) var progress: Float = 0
  /// What the hook at hand was called for.
  @exclusivity(unchecked) var atHand: ObjectReference?
  @exclusivity(unchecked) private var failure: (any Error)?
  @exclusivity(unchecked) private(set) var cancellation: (any Error)?

  init(
    _ context: ShardContext, _ mapping: EntityMappingPlan, _ kinds: DestinationKinds,
    _ stored: SourceObjects, userInfo: [String: ExpressionValue]
  ) {
    self.context = context
    self.mapping = mapping
    self.kinds = kinds
    self.stored = stored
    self.userInfo = userInfo
    earlierUserInfo = userInfo
    shared = PolicyEngine(CurrentEntityMapping(mapping))
    shared.begin(self)
    stored.readUserInfo = { [unowned self] in self.userInfo }
  }

  deinit { shared.end() }

  /// What the next stage has to be passed: only that, since other shards change other entries.
  final var changedUserInfo: [String: ExpressionValue]? {
    var changed = userInfo.filter { earlierUserInfo[$0.key] != $0.value }
    for key in earlierUserInfo.keys where userInfo[key] == nil { changed[key] = .null }
    return changed.isEmpty ? nil : changed
  }

  // MARK: Failures

  final func fail(_ error: PolicyError) { if failure == nil { failure = error } }

  /// Does something whose error is told when the hook returns.
  final func attempt(_ body: () throws -> Void) {
    do { try body() } catch { if failure == nil { failure = error } }
  }

  final func cancel(with error: any Error) { if cancellation == nil { cancellation = error } }

  /// Throws what came up since the last call.
  final func throwFailure() throws {
    if let cancellation { throw cancellation }
    if let failure { throw failure }
  }

  /// As errors name it: 0 for an object that has no key yet.
  func primaryKey(of object: ObjectReference) -> Int64 { object.primaryKey }

  // MARK: Objects

  /// A property's value; nil after an error.
  final func value(_ key: String, _ object: ObjectReference) -> ExpressionValue? {
    do {
      if let found = try read(key, object) { return found }
      fail(
        .unknownKey(entity: object.entity.rawValue, primaryKey: primaryKey(of: object), key: key))
    } catch let problem as EvaluationProblem {
      let place = "\(object.entity) with Z_PK \(primaryKey(of: object))"
      fail(.notNow("\(place): \(key) cannot be read: \(problem)"))
    } catch {
      attempt { throw error }
    }
    return nil
  }

  /// - Returns: nil when the entity has no such property.
  func read(_ key: String, _ object: ObjectReference) throws -> ExpressionValue? {
    try stored.value(forKey: key, of: object)
  }

  /// Takes down what is said of a relationship of one of the shard's own objects.
  func say(
    _ word: RelationshipWord, _ targets: [LinkTargets.Target], _ relationship: Int,
    _ object: WorkingObject
  ) throws {}

  func set(_ value: ExpressionValue, _ key: String, _ object: ObjectReference) throws {
    throw PolicyError.notNow(
      "objects can be changed in createDestinationInstances and createRelationships only")
  }

  func add(_ member: ObjectReference, _ key: String, _ object: ObjectReference) throws {
    try set(.null, key, object)
  }

  func remove(_ member: ObjectReference, _ key: String, _ object: ObjectReference) throws {
    try set(.null, key, object)
  }

  func uri(of object: ObjectReference) -> String? { try? stored.uri(of: object) }

  func insert(_ entity: EntityName) throws -> ObjectReference {
    throw PolicyError.notNow(
      "objects can be inserted until endInstanceCreation only: their keys are then given out")
  }

  // MARK: Associations

  func associate(
    _ source: ObjectReference, _ destination: ObjectReference, _ mapping: CurrentEntityMapping
  ) throws {
    throw PolicyError.notNow("objects can be associated until endInstanceCreation only")
  }

  func destinations(_ mapping: String, _ sources: [ObjectReference]?) throws -> [ObjectReference] {
    guard let found = try stored.destinations(ofMapping: mapping, sources) else {
      throw PolicyError.unknownMapping(mapping)
    }
    return found
  }

  func destinations(ofRelationship relationship: String, _ sources: [ObjectReference]) throws
    -> [ObjectReference]
  {
    guard
      let found = try stored.destinationInstances(
        forSourceRelationshipNamed: relationship, sourceInstances: sources)
    else {
      guard let source = mapping.source else {
        throw PolicyError.notNow(
          "\(mapping.name) has no source entity, whose relationships could be followed")
      }
      throw PolicyError.unknownKey(entity: source.rawValue, primaryKey: 0, key: relationship)
    }
    return found
  }

  func sources(_ mapping: String, _ destinations: [ObjectReference]?) throws -> [ObjectReference] {
    guard let found = try stored.sources(ofMapping: mapping, destinations) else {
      throw PolicyError.unknownMapping(mapping)
    }
    return found
  }

  // MARK: Fetches

  func forEachSource(
    _ entity: EntityName, _ predicate: String?, _ body: (ObjectReference) throws -> Void
  ) throws {
    let filter = try predicate.map { try PredicateExpression(parsing: $0) }
    var isAsked = false
    do {
      let isKnown = try stored.forEachObject(of: entity, where: filter) { object in
        isAsked = true
        try body(object)
        isAsked = false
      }
      guard isKnown else { throw PolicyError.unknownEntity(entity.rawValue) }
    } catch let error as EvaluationError where !isAsked {
      // The policy's own question, and no expression of the mapping model.
      throw PolicyError.notNow("the predicate has no value for an object: \(error)")
    }
  }

  func forEachDestination(
    _ entity: EntityName, _ body: (ObjectReference) throws -> Void
  ) throws {
    throw PolicyError.notNow(
      "the whole destination is there in performCustomValidation and endEntityMapping only")
  }

  // MARK: What the hooks of the base class do

  func createByDefault(_ source: ObjectReference) throws {
    throw PolicyError.notNow("createDestinationInstances can be called by the copy stage only")
  }

  func linkByDefault(_ destination: ObjectReference) throws {
    throw PolicyError.notNow("createRelationships can be called by the link stage only")
  }
}
