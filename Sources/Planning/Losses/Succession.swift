import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// What becomes of the source's entities and properties, as far as models and mapping models say.
protocol Successors {
  var source: EntityHierarchy { get }
  /// Why objects are dropped, after the entity's name: `has no successor`.
  var entityWords: String { get }
  /// The same for a property.
  var propertyWords: String { get }
  /// The same of references to objects of an entity that is kept.
  func words(ofReferencesTo target: EntityName) -> String

  /// Whether objects of the entity may live on.
  func keeps(_ entity: EntityName) -> Bool
  /// Every way that a property of an entity goes: what it is, step by step. None where its values are
  /// dropped, an empty one where nothing more is known.
  func paths(of property: String, in entity: EntityName) -> [[PropertyDescription]]
  /// Whether the values of an attribute that becomes derived, or is derived in another way, are computed anew;
  /// false where they stay NULL until Core Data saves the object. Nil where the values stay the source's.
  func derivesAnew(_ attribute: AttributeDescription, in entity: EntityName) -> Bool?
  /// Whether elements of the composite attribute that nothing names go where the whole goes.
  func keepsWhole(_ composite: String, in entity: EntityName) -> Bool
  /// Whether something names an element of the composite attribute, from its own elements down.
  func names(element path: [String], of composite: String, in entity: EntityName) -> Bool
  /// Whether the number in an element becomes one of another type.
  var convertsElements: Bool { get }
  /// Whether a number beyond the range of its new type ends the migration; else it becomes the type's
  /// nearest one.
  var refusesOutOfRange: Bool { get }
  /// What becomes of the pair of two objects that a relationship connects.
  ///
  /// - Parameters:
  ///   - inverse: Name of the inverse in the target's entity, where there is one.
  ///   - isAlone: The pair is in the owner's column of a one-to-one, and not in the target's.
  func fate(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?,
    isAlone: Bool
  ) -> PairFate
  /// Whether the pair stays, but not the target's place in the owner's ordered relationship.
  func losesPlace(
    in relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> Bool
  /// All pairs of the owners and the targets. What becomes of the pairs of a group, and of the places in
  /// them, is the same, and so is what an owner's relationship without a successor loses by them.
  ///
  /// - Parameter inverse: Name of the inverse in the targets' entities, where there is one.
  func groups(
    of relationship: String, from owners: [EntityName], to targets: [EntityName], inverse: String?
  ) -> [PairGroup]
}

/// Pairs of one owner's entity.
struct PairGroup {
  var owner: EntityName
  /// At least one.
  var targets: [EntityName]
}

extension Successors {
  func fate(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> PairFate {
    fate(of: relationship, from: owner, to: target, inverse: inverse, isAlone: false)
  }
  func losesPlace(
    in relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> Bool { false }
  func groups(
    of relationship: String, from owners: [EntityName], to targets: [EntityName], inverse: String?
  ) -> [PairGroup] {
    owners.flatMap { owner in targets.map { PairGroup(owner: owner, targets: [$0]) } }
  }
  func words(ofReferencesTo target: EntityName) -> String { "may no longer point to \(target)" }
  func keepsWhole(_ composite: String, in entity: EntityName) -> Bool { true }
  func names(element path: [String], of composite: String, in entity: EntityName) -> Bool { false }
  var convertsElements: Bool { false }
  var refusesOutOfRange: Bool { false }
}

/// What becomes of a pair of objects that a relationship connects.
enum PairFate: Equatable {
  case kept
  /// Both objects stay and neither side of the relationship has a successor.
  case withoutRelationship
  /// The relationship has a successor, and one of the objects is dropped or is no longer of an
  /// entity that it may point to.
  case withoutObject
  /// The relationship has a successor that takes its pairs from the inverse's column, which lacks this one.
  case leftToInverse
}

/// By inference, in one step or several. No value is looked at.
struct Succession: Successors {
  /// One inferred step, looked at from its source.
  private struct Step {
    let mapping: InferredMapping
    /// Source entity → source property → the destination property that it becomes.
    var properties: [EntityName: [String: PropertyDescription]] = [:]

    init(_ mapping: InferredMapping) {
      self.mapping = mapping
      for (name, old) in mapping.entityPairs {
        for declared in mapping.destination.properties(of: name) where declared.property.isStored {
          // What is stored elsewhere, or nowhere, keeps no pair.
          if let relationship = declared.property.relationship,
            !mapping.destination.storesPairs(of: relationship)
          {
            continue
          }
          guard let hit = mapping.correspondence(of: declared.property.name, in: name) else {
            continue
          }
          properties[old, default: [:]][hit.property.name] = declared.property
        }
      }
    }

    /// Whether objects of the entity may be what a relationship points to. Those that might not be before,
    /// and lie in the same table, are damage that is carried as found.
    ///
    /// - Parameter name: What `owner` calls the relationship in the source.
    func mayPoint(
      _ relationship: RelationshipDescription, to next: EntityName, was target: EntityName,
      _ name: String?, of owner: EntityName
    ) -> Bool {
      let hierarchy = mapping.destination
      if hierarchy.isKind(next, of: relationship.destinationEntity) { return true }
      let old = name.flatMap { mapping.source.property($0, of: owner)?.property.relationship }
      guard let old, !mapping.source.isKind(target, of: old.destinationEntity) else { return false }
      return hierarchy.root(of: next) == hierarchy.root(of: relationship.destinationEntity)
    }

    /// What a relationship of a destination entity takes its pairs from.
    func pairs(of relationship: String, in entity: EntityName) -> RelationshipPairs? {
      mapping.destination.property(relationship, of: entity).flatMap { declared in
        declared.property.relationship.map { mapping.pairs(of: $0, declaredBy: declared.entity) }
      }
    }

    /// Whether the destination has a column for the places of a relationship's members.
    func storesPlaces(in relationship: RelationshipDescription?, of entity: EntityName) -> Bool {
      guard let relationship, relationship.isOrdered else { return false }
      return StoreLayout(mapping.destination).storesPlaces(in: relationship, of: entity)
    }
  }

  let source: EntityHierarchy
  private let steps: [Step]

  /// - Parameter steps: At least one; each begins with the model that the one before ends with.
  init(_ steps: [InferredMapping]) {
    precondition(!steps.isEmpty, "a succession has a step")
    source = steps[0].source
    self.steps = steps.map(Step.init)
  }

  var destination: EntityHierarchy { steps[steps.count - 1].mapping.destination }

  /// The entity that objects of a source entity belong to after each step; nil where they are
  /// dropped on the way.
  private func entities(of entity: EntityName) -> [EntityName]? {
    var path: [EntityName] = []
    for step in steps {
      guard let next = step.mapping.successors[path.last ?? entity] else { return nil }
      path.append(next)
    }
    return path
  }

  var entityWords: String { "has no successor" }
  var propertyWords: String { "has no successor" }

  func keeps(_ entity: EntityName) -> Bool { entities(of: entity) != nil }

  /// What a source property of an entity is after each step; none where it or the entity has no
  /// successor.
  func paths(of property: String, in entity: EntityName) -> [[PropertyDescription]] {
    var (path, owner): ([PropertyDescription], EntityName) = ([], entity)
    for step in steps {
      guard let next = step.properties[owner]?[path.last?.name ?? property],
        let entity = step.mapping.successors[owner]
      else { return [] }
      path.append(next)
      owner = entity
    }
    return [path]
  }

  func derivesAnew(_ attribute: AttributeDescription, in entity: EntityName) -> Bool? {
    let path = paths(of: attribute.name, in: entity).first ?? []
    var (isComputed, was): (Bool?, String?) = (nil, attribute.derivationExpression)
    for (place, owner) in (entities(of: entity) ?? []).enumerated() where place < path.count {
      guard let new = path[place].attribute else { return nil }
      if new.derivationExpression != nil, new.derivationExpression != was {
        isComputed = steps[place].mapping.destination.computes(new, of: owner)
      }
      was = new.derivationExpression
    }
    return isComputed
  }

  func fate(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?,
    isAlone: Bool
  ) -> PairFate {
    passage(of: relationship, from: owner, to: target, inverse: inverse, isAlone: isAlone).fate
  }

  func losesPlace(
    in relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> Bool {
    let (fate, path) = passage(
      of: relationship, from: owner, to: target, inverse: inverse, isAlone: false)
    guard fate == .kept, let owners = entities(of: owner) else { return false }
    return path.indices.contains { place in
      !steps[place].storesPlaces(in: path[place], of: owners[place])
    }
  }

  func groups(
    of relationship: String, from owners: [EntityName], to targets: [EntityName], inverse: String?
  ) -> [PairGroup] {
    let targets = targets.map { (name: $0, path: entities(of: $0)) }
    // Owners mostly have the same destinations: targets are looked at once for all of them.
    var known: [[EntityName]: [[EntityName]]] = [:]
    return owners.flatMap { owner -> [PairGroup] in
      let destinations = (paths(of: relationship, in: owner).first ?? [])
        .compactMap { $0.relationship?.destinationEntity }
      let isGone = steps[0].properties[owner]?[relationship] == nil
      // Where it goes on the way, that depends on each target.
      guard isGone || destinations.count == steps.count else {
        return targets.map { PairGroup(owner: owner, targets: [$0.name]) }
      }
      let found =
        known[destinations]
        ?? alike(targets) { target, path in
          if isGone { return inverse.map { steps[0].properties[target]?[$0] == nil } ?? true }
          return path.indices.allSatisfy { place in
            steps[place].mapping.destination.isKind(path[place], of: destinations[place])
          }
        }
      known[destinations] = found
      return found.map { PairGroup(owner: owner, targets: $0) }
    }
  }

  /// The dropped targets, those that a condition holds for, and each of the others.
  private func alike(
    _ targets: [(name: EntityName, path: [EntityName]?)],
    where isAlike: (EntityName, [EntityName]) -> Bool
  ) -> [[EntityName]] {
    var (dropped, alike, others): ([EntityName], [EntityName], [[EntityName]]) = ([], [], [])
    for (name, path) in targets {
      if let path {
        if isAlike(name, path) { alike.append(name) } else { others.append([name]) }
      } else {
        dropped.append(name)
      }
    }
    return [dropped, alike].filter { !$0.isEmpty } + others
  }

  /// What becomes of a pair; and the owner's relationship that has it after each step, nil where
  /// only the target's has.
  private func passage(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?,
    isAlone: Bool
  ) -> (fate: PairFate, path: [RelationshipDescription?]) {
    var isAlone = isAlone
    guard let owners = entities(of: owner), let targets = entities(of: target) else {
      return (.withoutObject, [])
    }
    var path: [RelationshipDescription?] = []
    var (forward, backward): (String?, String?) = (relationship, inverse)
    var (x, y) = (owner, target)
    for (place, step) in steps.enumerated() {
      let hierarchy = step.mapping.destination
      let (nextX, nextY) = (owners[place], targets[place])
      let ahead = forward.flatMap { step.properties[x]?[$0]?.relationship }
      let back = isAlone ? nil : backward.flatMap { step.properties[y]?[$0]?.relationship }
      guard ahead != nil || back != nil else { return (.withoutRelationship, path) }
      let keepsAhead =
        ahead.map { step.mayPoint($0, to: nextY, was: y, forward, of: x) } ?? false
      let keepsBack =
        back.map { step.mayPoint($0, to: nextX, was: x, backward, of: y) } ?? false
      guard keepsAhead || keepsBack else { return (.withoutObject, path) }
      if isAlone, let ahead, let name = forward, let pairs = step.pairs(of: ahead.name, in: nextX) {
        // What two relationships that become inverses lose is counted where rows are asked.
        let isTaken = (pairs.parts + pairs.laterParts + pairs.unusedParts).contains {
          !$0.isSwapped && $0.source.relationship.name.isSameName(as: name)
            && $0.source.owners.contains(x)
        }
        guard isTaken else { return (.leftToInverse, path) }
        isAlone = pairs.limit == .oneToOne && !pairs.needsMatching && !pairs.isReflexive
      }
      // A side that is new is filled from the other one.
      let onward =
        keepsAhead ? ahead : back.flatMap { hierarchy.inverse(of: $0) }?.relationship
      path.append(onward)
      forward = onward?.name
      backward =
        keepsBack ? back?.name : ahead.flatMap { hierarchy.inverse(of: $0) }?.relationship.name
      (x, y) = (nextX, nextY)
    }
    return (.kept, path)
  }
}
