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
  /// Relationships whose pairs in the source are more than the destination has room for.
  var crowded: Set<PairKey> = []
  /// Pairs of relationships, found once: they are asked for by every column of every entity.
  let pairs = PairCache()
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

  /// Likewise of source entities that may not be targets, and whose rows lie in the same tables as those that
  /// may, before and after: what leads to one of them is damage, and carried as found where that is accepted.
  func strays(beside oldTarget: EntityName, as newTarget: EntityName) -> [Int: Int64] {
    let root = destination.hierarchy.root(of: newTarget)
    var numbers: [Int: Int64] = [:]
    for entity in source.table(of: oldTarget)?.entities ?? [] {
      guard !source.hierarchy.isKind(entity, of: oldTarget),
        source.hierarchy[entity]?.isAbstract == false, let next = successor[entity],
        destination.hierarchy.root(of: next) == root,
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
}

extension PlanContext {
  /// The storage of a relationship that `declaring` declares; nil where the store lacks it.
  func storage(of relationship: RelationshipDescription, declaredBy declaring: EntityName)
    -> PairStorage?
  {
    source.pairStorage(of: relationship, declaredBy: declaring)
  }
}
