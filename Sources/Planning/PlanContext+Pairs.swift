import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Places in an ordered relationship, as Core Data gives them out when objects are inserted in
/// order. Source: `core-data-sqlite-format.md` §6.
package enum OrderPlace {
  /// - Parameter index: Place in the list, from 0.
  package static func value(at index: Int64) -> Int64 { 2048 + 1024 * index }

  /// The same in SQL.
  static func sql(at index: String) -> String { "2048 + 1024 * (\(index))" }
}

/// A destination relationship or its inverse, whichever comes first: they have the same pairs.
struct PairKey: Hashable {
  var entity: EntityName
  var relationship: NameKey

  init(_ pairs: RelationshipPairs) {
    entity = pairs.entity
    relationship = NameKey(pairs.relationship.name)
    guard let (other, inverse) = pairs.inverse else { return }
    if other < entity || (other == entity && inverse.name.precedesInBytes(pairs.relationship.name))
    {
      entity = other
      relationship = NameKey(inverse.name)
    }
  }
}

/// What has been found out about the pairs of each destination relationship.
final class PairCache {
  struct Found {
    var pairs: RelationshipPairs
    var key: PairKey
    var set: PairSet
  }

  private var known: [[NameKey]: Found] = [:]

  func found(_ key: [NameKey], _ find: () -> Found) -> Found {
    if let found = known[key] { return found }
    let found = find()
    known[key] = found
    return found
  }
}

extension PlanContext {
  /// The pairs of a destination relationship.
  ///
  /// - Parameter entity: Declares it.
  func pairSet(of relationship: RelationshipDescription, declaredBy entity: EntityName) -> PairSet {
    let found = foundPairs(of: relationship, declaredBy: entity)
    var set = found.set
    set.isCrowded = crowded.contains(found.key)
    return set
  }

  /// Whether the relationship's pairs may not all have room, or both sides must be brought together.
  func needsMatching(_ relationship: RelationshipDescription, declaredBy entity: EntityName) -> Bool
  {
    foundPairs(of: relationship, declaredBy: entity).pairs.needsMatching
  }

  private func foundPairs(
    of relationship: RelationshipDescription, declaredBy entity: EntityName
  ) -> PairCache.Found {
    pairs.found([NameKey(entity.rawValue), NameKey(relationship.name)]) {
      let pairs = inference.pairs(of: relationship, declaredBy: entity)
      let key = PairKey(pairs)
      var set = PairSet(
        parts: parts(pairs.parts, of: pairs), laterParts: parts(pairs.laterParts, of: pairs),
        limit: pairs.limit, isReflexive: pairs.isReflexive)
      set.lists = lists(of: pairs)
      set.joinLists(
        ofTargets: pairs.inverse?.relationship.isOrdered == true,
        ofOwners: relationship.isOrdered && pairs.limit == .none)
      set.isFlipped =
        pairs.limit == .oneToOne && !pairs.isReflexive
        && (key.entity != entity || key.relationship != NameKey(relationship.name))
      return PairCache.Found(pairs: pairs, key: key, set: set)
    }
  }

  /// The source's lists of the inverse, where its pairs are not looked at.
  private func lists(of pairs: RelationshipPairs) -> [PairSet.Part] {
    guard pairs.inverse?.relationship.isOrdered == true else { return [] }
    return parts(pairs.unusedParts.filter(\.isSwapped), of: pairs)
      .filter { $0.storage.inverseOrderColumn != nil }
  }

  /// Without those that cannot have a pair, since no entity remains on one side.
  func parts(_ found: [RelationshipPairs.Part], of pairs: RelationshipPairs) -> [PairSet.Part] {
    found.compactMap { part in
      let old = part.source.relationship
      let new = part.isSwapped ? pairs.inverse?.relationship : pairs.relationship
      guard let new, let storage = storage(of: old, declaredBy: part.source.entity) else {
        return nil
      }
      var owners: [Int: Int64] = [:]
      for entity in part.source.owners {
        guard let next = successor[entity] else { continue }
        owners[Int(sourceNumber(entity))] = destinationNumber(next)
      }
      var straight = PairSet.Part(
        source: part.source, storage: storage, owners: owners,
        targets: surviving(old.destinationEntity, as: new.destinationEntity), isSwapped: false)
      guard !straight.owners.isEmpty, !straight.targets.isEmpty else { return nil }
      let newOwner = part.isSwapped ? pairs.inverse?.entity : pairs.entity
      let isJoin = if case .none = pairs.limit { true } else { false }
      takeDamage(&straight, as: (newOwner ?? pairs.entity, new), isJoin: isJoin)
      return part.isSwapped ? straight.swapped : straight
    }
  }

  /// References that lead to no object, or to one of a wrong entity, are carried as found where there is room
  /// for them; not where another relationship might carry them as well.
  ///
  /// - Parameter isJoin: The destination has a join table for the pairs.
  private func takeDamage(
    _ part: inout PairSet.Part, as new: (owner: EntityName, relationship: RelationshipDescription),
    isJoin: Bool
  ) {
    let old = part.source
    let target = old.relationship.destinationEntity
    func isWhole(_ entity: EntityName, _ numbers: [Int: Int64]) -> Bool {
      source.hierarchy.concrete(of: entity).allSatisfy {
        successor[$0] == nil || numbers[Int(sourceNumber($0))] != nil
      }
    }
    let hasAllOwners = isWhole(old.entity, part.owners)
    part.keepsDangling =
      isJoin && part.storage.isJoinTable && hasAllOwners && isWhole(target, part.targets)
    // A row that has the key is of no wrong entity: what others have in its column is nobody's.
    if part.storage.targetColumn != "Z_PK" {
      let strays = strays(beside: target, as: new.relationship.destinationEntity)
      part.targets.merge(strays) { known, _ in known }
    }
    if part.storage.ownerColumn != "Z_PK", hasAllOwners {
      part.owners.merge(strays(beside: old.entity, as: new.owner)) { known, _ in known }
    }
  }

  /// True when every pair of the part's source relationship is a pair of the part.
  func keepsEveryPair(_ part: PairSet.Part) -> Bool {
    let (owners, targets) =
      part.isSwapped ? (part.targets, part.owners) : (part.owners, part.targets)
    func keeps(_ entity: EntityName, _ numbers: [Int: Int64]) -> Bool {
      source.hierarchy.concrete(of: entity).allSatisfy {
        numbers[Int(sourceNumber($0))] != nil || rows(ofSource: $0) == 0
      }
    }
    return keeps(part.source.entity, owners)
      && keeps(part.source.relationship.destinationEntity, targets)
  }
}
