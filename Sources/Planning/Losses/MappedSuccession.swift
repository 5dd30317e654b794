import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// By mapping models. What cannot be proven to be lost counts as kept.
///
/// An entity without an entity mapping is lost, and so is a property that no row reads of objects of the
/// entity, see ``PropertyReaders``. What a policy reads nobody sees: properties of an entity that a policy
/// takes count as kept. Of a composite attribute the elements count: what reads one of them does not keep
/// the others.
struct MappedSuccession: Successors {
  let source: EntityHierarchy
  let entityWords = "is taken by no entity mapping"
  let propertyWords = "is read by no expression of the mapping models"
  let readers: PropertyReaders
  /// Source entities that a mapping takes.
  private var taken: Set<EntityName> = []
  /// Those of them that a policy takes.
  private var open: Set<EntityName> = []
  private let destination: StoreLayout

  init(_ mappings: [EntityMapping], source: EntityHierarchy, destination: EntityHierarchy) {
    self.source = source
    self.destination = StoreLayout(destination)
    readers = PropertyReaders(mappings, source: source, destination: destination)
    for mapping in mappings {
      guard let entity = mapping.sourceEntity else { continue }
      if mapping.policy != nil { open.insert(entity) }
      if mapping.policy != nil || mapping.destinationEntity != nil { taken.insert(entity) }
    }
  }

  func keeps(_ entity: EntityName) -> Bool { taken.contains(entity) }

  func paths(of property: String, in entity: EntityName) -> [[PropertyDescription]] {
    guard keeps(entity) else { return [] }
    if open.contains(entity) { return [[]] }
    let place = PropertyReaders.Property(entity: entity, name: property)
    let isComposite = source.property(property, of: entity)?.property.attribute?.type == .composite
    // Any other expression may save what a narrower type cuts.
    let isOpen = isComposite ? readers.readsAllOtherwise(place) : readers.readsOtherwise(place)
    if isOpen { return [[]] }
    if let targets = readers.handedTo[place] { return targets.map { [.attribute($0)] } }
    if readers.links(place) || readers.readsOtherwise(place) { return [[]] }
    return readers.derived[place].map { [[.attribute($0)]] } ?? []
  }

  /// What is handed to an attribute whose derivation nobody computes stays there.
  func derivesAnew(_ attribute: AttributeDescription, in entity: EntityName) -> Bool? {
    let place = PropertyReaders.Property(entity: entity, name: attribute.name)
    guard readers.handedTo[place] == nil,
      let derived = paths(of: attribute.name, in: entity).first?.first?.attribute,
      derived.derivationExpression != attribute.derivationExpression
    else { return nil }
    return true
  }

  /// What an attribute gets over a relationship is a value.
  func words(ofReferencesTo target: EntityName) -> String {
    "is read by no expression for a relationship"
  }

  func keepsWhole(_ composite: String, in entity: EntityName) -> Bool {
    let place = PropertyReaders.Property(entity: entity, name: composite)
    return open.contains(entity) || readers.handedTo[place] != nil
      || readers.readsAllOtherwise(place)
  }

  func names(element path: [String], of composite: String, in entity: EntityName) -> Bool {
    readers.names(
      element: path, of: PropertyReaders.Property(entity: entity, name: composite))
  }

  var convertsElements: Bool { true }
  var refusesOutOfRange: Bool { true }

  func fate(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?,
    isAlone: Bool
  ) -> PairFate {
    if open.contains(owner) || open.contains(target) { return .kept }
    // A policy may have associated what no mapping takes.
    let isAsked =
      keeps(owner) && readers.askedOfPolicies.contains(.init(entity: owner, name: relationship))
      || keeps(target)
        && inverse.map { readers.askedOfPolicies.contains(.init(entity: target, name: $0)) }
          ?? false
    if isAsked { return .kept }
    guard keeps(owner), keeps(target) else { return .withoutObject }
    let isRead =
      readers.links(.init(entity: owner, name: relationship))
      || (!isAlone && inverse.map { readers.links(.init(entity: target, name: $0)) } ?? false)
    return isRead ? .kept : .withoutRelationship
  }

  /// Only where all that is made of the owner's members are relationships without places, or nothing is,
  /// and the pair comes from the other side: members then stand in the order of their own rows.
  func losesPlace(
    in relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> Bool {
    let place = PropertyReaders.Property(entity: owner, name: relationship)
    guard keeps(owner), keeps(target), !open.contains(owner), !open.contains(target),
      !readers.readsOtherwise(place)
    else { return false }
    let ahead = readers.links[place] ?? []
    let back = inverse.flatMap { readers.links[.init(entity: target, name: $0)] } ?? []
    guard !ahead.isEmpty || !back.isEmpty else { return false }
    // A to-one keeps the first one: the place decides which it is.
    return ahead.allSatisfy { $0.relationship.isToMany && !storesPlaces(in: $0) }
  }

  private func storesPlaces(in link: PropertyReaders.Link) -> Bool {
    destination.storesPlaces(in: link.relationship, of: link.entity)
  }
}

extension StoreLayout {
  /// Whether there is a column for the places of a relationship's members.
  func storesPlaces(
    in relationship: RelationshipDescription, of entity: EntityName
  ) -> Bool {
    guard relationship.isOrdered, !relationship.traits.isTransient else { return false }
    return pairStorage(of: relationship, declaredBy: entity)?.orderColumn != nil
  }
}

extension Loss {
  /// What a migration with mapping models leaves behind of history and CloudKit mirroring.
  static func history(of context: PlanContext, dropping tables: [String]) throws -> [Loss] {
    func rows(_ table: String) throws -> Int64 {
      try context.store.connection.rows("SELECT count(*) FROM \(quoted(table))").first?.first?
        .integer ?? 0
    }
    var losses: [Loss] = []
    let transactions = try tables.filter { $0.columnKey == "ATRANSACTION".columnKey }.reduce(0) {
      try $0 + rows($1)
    }
    if transactions > 0 {
      losses.append(
        Loss(
          .history, count: transactions,
          message: "Persistent history is not carried by a mapping model: "
            + "\(number(transactions, "transaction")) \(transactions == 1 ? "is" : "are") dropped.")
      )
    }
    let mirrored = try tables.filter(\.isMirroringTable).reduce(0) { try $0 + rows($1) }
    if mirrored > 0 {
      losses.append(
        Loss(
          .history, count: mirrored,
          message: "CloudKit mirroring is not carried by a mapping model: "
            + "\(number(mirrored, "row")) of the ANSCK tables \(mirrored == 1 ? "is" : "are") "
            + "dropped."))
    }
    return losses
  }
}
