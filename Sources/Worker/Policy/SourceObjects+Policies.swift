import GodwitExpressions
import GodwitObjectModel

// What policies ask of the objects of a store, beside what expressions do.
extension SourceObjects {
  func performPolicy(
    selector: String, arguments: [ExpressionValue], in scope: EvaluationScope
  ) throws -> ExpressionValue? {
    try policy?(selector, arguments)
  }

  /// Calls the body with the objects of an entity that fulfil a predicate, by ascending key.
  ///
  /// - Returns: False when there is no such entity.
  func forEachObject(
    of entity: EntityName, where predicate: PredicateExpression?,
    _ body: (ObjectReference) throws -> Void
  ) throws -> Bool {
    let evaluator = predicate.map { _ in Evaluator(access: self, runDate: context.runDate) }
    return try forEachKey(of: entity) { object in
      if let predicate, let evaluator {
        guard try evaluator.holds(predicate, in: .filter(of: object)) else { return }
      }
      try body(object)
    }
  }

  /// As `destinationInstances(forEntityMappingNamed:sourceInstances:)` of a migration manager, for
  /// which nil means all.
  func destinations(ofMapping mapping: String, _ sources: [ObjectReference]?) throws
    -> [ObjectReference]?
  {
    if let sources {
      return try destinationInstances(forEntityMappingNamed: mapping, sourceInstances: sources)
    }
    return try ends(ofMapping: mapping) { _, destination in destination }
  }

  /// As `sourceInstances(forEntityMappingNamed:destinationInstances:)`; nil means all.
  func sources(ofMapping mapping: String, _ destinations: [ObjectReference]?) throws
    -> [ObjectReference]?
  {
    if let destinations {
      return try sourceInstances(
        forEntityMappingNamed: mapping, destinationInstances: destinations)
    }
    return try ends(ofMapping: mapping) { source, _ in source }
  }

  /// One end of every pair, each object once; nil where there is no such mapping.
  private func ends(
    ofMapping mapping: String, _ end: (ObjectReference, ObjectReference) -> ObjectReference
  ) throws -> [ObjectReference]? {
    let indexes = context.mappings(named: mapping, pass: pass)
    guard !indexes.isEmpty else { return nil }
    var found: [ObjectReference] = []
    var seen: Set<ObjectReference> = []
    for index in indexes {
      try forEachPair(of: index) { source, destination in
        let object = end(source, destination)
        if seen.insert(object).inserted { found.append(object) }
      }
    }
    return found
  }

  private func forEachPair(
    of index: Int, _ body: (ObjectReference, ObjectReference) throws -> Void
  ) throws {
    let mapping = context.mappings[index]
    guard mapping.policy == nil else {
      try context.policyAssociation(index).forEach { entity, source, number, key in
        guard let from = context.sourceNames[entity], let to = context.destinationNames[number]
        else { return }
        try body(
          ObjectReference(from, source, in: .source), ObjectReference(to, key, in: .destination))
      }
      return
    }
    guard let from = mapping.source, let to = mapping.destination else { return }
    try context.association(index).forEach { source, key in
      try body(
        ObjectReference(from, source, in: .source), ObjectReference(to, key, in: .destination))
    }
  }

  /// What a policy's mapping made of a source object.
  func forEachDestination(
    of object: ObjectReference, mapping index: Int, _ body: (ObjectReference) throws -> Void
  ) throws {
    guard object.store == .source, let entity = context.sourceNumbers[object.entity] else { return }
    try context.policyAssociation(index).forEachDestination(of: entity, object.primaryKey) {
      guard let name = context.destinationNames[$0] else { return }
      try body(ObjectReference(name, $1, in: .destination))
    }
  }

  /// What a policy's mapping made a destination object of.
  func forEachSource(
    of object: ObjectReference, mapping index: Int, _ body: (ObjectReference) throws -> Void
  ) throws {
    guard let entity = context.destinationNumbers[object.entity] else { return }
    try context.policyAssociation(index).forEachSource(of: entity, object.primaryKey) {
      guard let name = context.sourceNames[$0] else { return }
      try body(ObjectReference(name, $1, in: .source))
    }
  }
}
