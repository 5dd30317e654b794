import GodwitObjectModel

/// A source relationship that gives pairs to a destination relationship, and the source entities
/// whose objects have it there.
package struct RelationshipSource: Sendable, Equatable {
  /// Declares ``relationship``.
  package var entity: EntityName
  /// The source relationship that the pairs come from.
  package var relationship: RelationshipDescription
  /// Concrete source entities; their successors have the destination relationship.
  package var owners: [EntityName]
}

/// Where an inferred migration takes the pairs (owner, target) of a destination relationship from,
/// and how many of them its storage has room for.
///
/// A relationship and its inverse share one place in the store, so one of the two decides: the
/// to-one side of a one-to-many, the side that names the join table of a many-to-many, both sides
/// of a one-to-one. Source: `core-data-sqlite-format.md` §4.3, §4.4, §7.
package struct RelationshipPairs: Sendable {
  /// What one source relationship contributes.
  package struct Part: Sendable, Equatable {
    /// The source relationship, with its owners.
    package var source: RelationshipSource
    /// True when ``source`` gives pairs of the inverse: its owners are targets here.
    package var isSwapped: Bool
  }

  /// What the destination's storage has room for.
  package enum Limit: Sendable {
    /// Any number of pairs: they are rows of a join table.
    case none
    /// One target for each owner: the key is in the owner's row.
    case oneTarget
    /// One owner for each target: the key is in the target's row.
    case oneOwner
    /// One key on each side.
    case oneToOne
  }

  /// The destination entity that declares ``relationship``.
  package var entity: EntityName
  /// The destination relationship that the pairs are for.
  package var relationship: RelationshipDescription
  /// The inverse of ``relationship`` in the destination; nil for none.
  package var inverse: (entity: EntityName, relationship: RelationshipDescription)?
  /// What the destination's storage has room for.
  package var limit: Limit
  /// Parts that decide. Where ``limit`` is ``Limit/oneToOne``, those of the side that comes first.
  package var parts: [Part] = []
  /// Parts of the other side of a one-to-one.
  package var laterParts: [Part] = []
  /// Parts of the other side that are not looked at, although their pairs may differ.
  package var unusedParts: [Part] = []
  /// True when the source may have more pairs than ``limit`` has room for, or when both sides of a
  /// one-to-one must be brought together.
  package var needsMatching = false

  /// A relationship that is its own inverse.
  package var isReflexive: Bool {
    inverse?.entity == entity
      && inverse?.relationship.name.isSameName(as: relationship.name) == true
  }
}

extension InferredMapping {
  /// The source relationships that a destination relationship comes from, by the concrete entities
  /// that have it: a relationship that moved up in the hierarchy may come from several.
  package func sources(of relationship: String, in entity: EntityName) -> [RelationshipSource] {
    var found: [RelationshipSource] = []
    for below in destination.concrete(of: entity) {
      guard let old = entityPairs[below],
        let match = correspondence(of: relationship, in: below),
        let was = match.property.relationship
      else { continue }
      let known = found.firstIndex {
        $0.entity == match.entity && $0.relationship.name.isSameName(as: was.name)
      }
      if let known {
        found[known].owners.append(old)
      } else {
        found.append(RelationshipSource(entity: match.entity, relationship: was, owners: [old]))
      }
    }
    return found
  }

  /// What a destination relationship takes its pairs from.
  ///
  /// - Parameter entity: Declares the destination relationship.
  package func pairs(
    of relationship: RelationshipDescription, declaredBy entity: EntityName
  ) -> RelationshipPairs {
    let inverse = destination.inverse(of: relationship)
    var pairs = RelationshipPairs(
      entity: entity, relationship: relationship, inverse: inverse, limit: .none)
    let own = sources(of: relationship.name, in: entity).map {
      RelationshipPairs.Part(source: $0, isSwapped: false)
    }
    let back =
      inverse.map { sources(of: $0.relationship.name, in: $0.entity) }?.map {
        RelationshipPairs.Part(source: $0, isSwapped: true)
      } ?? []
    switch (relationship.isToMany, inverse?.relationship.isToMany) {
    case (false, nil), (false, true?):
      pairs.limit = .oneTarget
      (pairs.parts, pairs.unusedParts) = own.isEmpty ? (back, []) : (own, back)
    case (true, nil), (true, false?):
      pairs.limit = .oneOwner
      (pairs.parts, pairs.unusedParts) = back.isEmpty ? (own, []) : (back, own)
    case (true, true?):
      let isFirst = pairs.isReflexive || isFirstOfJoin(relationship, entity, inverse)
      let (first, second) = isFirst ? (own, back) : (back, own)
      (pairs.parts, pairs.unusedParts) = first.isEmpty ? (second, []) : (first, second)
    case (false, false?):
      pairs.limit = .oneToOne
      pairs.parts = own
      pairs.laterParts = pairs.isReflexive ? [] : back
    }
    pairs.unusedParts.removeAll { unused in
      pairs.parts.contains { isSame(unused.source, $0.source) }
    }
    pairs.needsMatching = needsMatching(pairs)
    return pairs
  }

  /// The side of a many-to-many that gives the join table its name: the entity with the lower
  /// number; within one entity the later relationship. Source: `core-data-sqlite-format.md` §7.
  private func isFirstOfJoin(
    _ relationship: RelationshipDescription, _ entity: EntityName,
    _ inverse: (entity: EntityName, relationship: RelationshipDescription)?
  ) -> Bool {
    guard let inverse else { return true }
    if entity == inverse.entity {
      return inverse.relationship.name.precedesInBytes(relationship.name)
    }
    return (destination.numbers[entity] ?? 0) < (destination.numbers[inverse.entity] ?? 0)
  }

  /// True when both are one relationship of the source, or one and its inverse.
  private func isSame(_ a: RelationshipSource, _ b: RelationshipSource) -> Bool {
    if a.entity == b.entity && a.relationship.name.isSameName(as: b.relationship.name) {
      return true
    }
    guard let inverse = source.inverse(of: a.relationship) else { return false }
    return inverse.entity == b.entity
      && inverse.relationship.name.isSameName(as: b.relationship.name)
  }

  private func needsMatching(_ pairs: RelationshipPairs) -> Bool {
    switch pairs.limit {
    case .none: return false
    // Several parts share no owner, but their targets may be the same.
    case .oneTarget:
      return pairs.parts.contains { mayHaveTargets($0) || ($0.isSwapped && pairs.parts.count > 1) }
    case .oneOwner:
      return pairs.parts.contains { mayHaveOwners($0) || (!$0.isSwapped && pairs.parts.count > 1) }
    case .oneToOne:
      let parts = pairs.parts + pairs.laterParts
      guard let first = parts.first else { return false }
      let isWhole =
        pairs.isReflexive
        ? parts.count == 1 && isReflexive(first.source)
        : pairs.parts.count == 1 && pairs.laterParts.count == 1
          && !isReflexive(first.source)
          && isSame(pairs.parts[0].source, pairs.laterParts[0].source)
      return !isWhole || parts.contains { $0.source.relationship.isToMany }
    }
  }

  private func isReflexive(_ found: RelationshipSource) -> Bool {
    guard let inverse = source.inverse(of: found.relationship) else { return false }
    return inverse.entity == found.entity
      && inverse.relationship.name.isSameName(as: found.relationship.name)
  }

  /// Whether an owner of the part may have several targets.
  private func mayHaveTargets(_ part: RelationshipPairs.Part) -> Bool {
    part.isSwapped ? mayBeShared(part.source.relationship) : part.source.relationship.isToMany
  }

  /// Whether a target of the part may have several owners.
  private func mayHaveOwners(_ part: RelationshipPairs.Part) -> Bool {
    part.isSwapped ? part.source.relationship.isToMany : mayBeShared(part.source.relationship)
  }

  /// Whether the source has room for several owners of one target.
  private func mayBeShared(_ relationship: RelationshipDescription) -> Bool {
    let inverse = source.inverse(of: relationship)?.relationship
    // Without inverse, a to-many's key is in the target's row and a to-one's in the owner's.
    return inverse?.isToMany ?? !relationship.isToMany
  }
}
