import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// What every part of planning looks at: both layouts, the correspondence, the source's rows.
struct PlanContext {
  let store: SourceStore
  let source: StoreLayout
  let destination: StoreLayout
  let inference: InferredMapping
  let census: StoreCensus
  /// False where ``source`` is a layout that the store at hand does not have.
  var isOfStore = true

  /// The destination looked at as a source: how the objects that will be written are read.
  var ofDestination: PlanContext {
    PlanContext(
      store: store, source: destination, destination: destination, inference: inference,
      census: census, isOfStore: false)
  }

  /// Source entity → its successor.
  var successor: [EntityName: EntityName] { inference.successors }

  /// The source entity of a destination entity.
  func predecessor(of entity: EntityName) -> EntityName? { inference.entityPairs[entity] }

  func sourceNumber(_ entity: EntityName) -> Int64 { Int64(source.entityNumbers[entity] ?? 0) }

  func destinationNumber(_ entity: EntityName) -> Int64 {
    Int64(destination.entityNumbers[entity] ?? 0)
  }

  func rows(ofSource entity: EntityName) -> Int64 { census.rows[entity] ?? 0 }

  /// `Z_ENT` in the source → `Z_ENT` in the destination, of the source entities below
  /// `oldTarget` whose successors may be targets of a relationship to `newTarget`.
  func surviving(_ oldTarget: EntityName, as newTarget: EntityName) -> [Int: Int64] {
    var numbers: [Int: Int64] = [:]
    for entity in source.hierarchy.concrete(of: oldTarget) {
      guard let next = successor[entity], destination.hierarchy.isKind(next, of: newTarget),
        destination.hierarchy[next]?.isAbstract == false
      else { continue }
      numbers[Int(sourceNumber(entity))] = destinationNumber(next)
    }
    return numbers
  }

  /// `Z_ENT` in the source of everything that may be a target of a relationship to `entity`.
  func allowed(_ entity: EntityName) -> [Int64] {
    source.hierarchy.concrete(of: entity).map(sourceNumber).sorted()
  }

  /// True when every row that may be a target keeps its existence.
  func losesTargets(_ oldTarget: EntityName, as newTarget: EntityName) -> Bool {
    let alive = surviving(oldTarget, as: newTarget)
    return source.hierarchy.concrete(of: oldTarget).contains {
      alive[Int(sourceNumber($0))] == nil && rows(ofSource: $0) > 0
    }
  }
}

extension PlanContext {
  /// The storage of a relationship that `declaring` declares; nil where the store lacks it.
  func storage(of relationship: RelationshipDescription, declaredBy declaring: EntityName)
    -> PairStorage?
  {
    source.pairStorage(of: relationship, declaredBy: declaring)
  }

  /// The source relationship that a destination relationship comes from, and the source entities
  /// whose objects have it. Asks every concrete entity, since a relationship may have moved in
  /// the hierarchy.
  func origin(of relationship: String, in entity: EntityName) -> (
    declared: EntityHierarchy.Declared, owners: [EntityName]
  )? {
    var found: EntityHierarchy.Declared?
    var owners: [EntityName] = []
    for below in destination.hierarchy.concrete(of: entity) {
      guard let old = predecessor(of: below),
        let match = inference.correspondence(of: relationship, in: below)
      else { continue }
      found = found ?? match
      owners.append(old)
    }
    return found.map { ($0, owners) }
  }

  /// Pairs of a destination relationship, read from the source: its own storage, or that of the
  /// inverse where only the inverse has a predecessor.
  func pairs(of relationship: RelationshipDescription, declaredBy entity: EntityName) -> (
    storage: PairStorage, owners: [Int64], targets: [Int: Int64], isOrdered: Bool,
    isInverseOrdered: Bool
  )? {
    if let (declared, owners) = origin(of: relationship.name, in: entity),
      let old = declared.property.relationship,
      let storage = storage(of: old, declaredBy: declared.entity)
    {
      return (
        storage, owners.map(sourceNumber),
        surviving(old.destinationEntity, as: relationship.destinationEntity),
        old.isOrdered && storage.orderColumn != nil, storage.inverseOrderColumn != nil
      )
    }
    guard let inverse = destination.hierarchy.inverse(of: relationship),
      let (declared, targets) = origin(of: inverse.relationship.name, in: inverse.entity),
      let old = declared.property.relationship,
      let storage = storage(of: old, declaredBy: declared.entity)?.swapped
    else { return nil }
    let owners = surviving(old.destinationEntity, as: entity)
    let numbers = targets.compactMap { target in
      successor[target].map { (Int(sourceNumber(target)), destinationNumber($0)) }
    }
    return (
      storage, owners.keys.sorted().map(Int64.init),
      Dictionary(numbers, uniquingKeysWith: { first, _ in first }),
      storage.orderColumn != nil, storage.inverseOrderColumn != nil
    )
  }
}
