import GodwitMapping
import GodwitObjectModel
import GodwitSQLite

/// By mapping models. What cannot be proven to be lost counts as kept.
///
/// An entity without an entity mapping is lost, and so is a property whose name no expression of
/// the mapping models reads, of whatever object. An expression for a relationship that stores no
/// pairs does not count: nothing of what it gives is written. What a policy reads nobody sees:
/// properties of an entity that a policy takes count as kept. Of a composite attribute the elements
/// count: what reads one of them does not keep the others.
struct MappedSuccession: Successors {
  let source: EntityHierarchy
  let entityWords = "is taken by no entity mapping"
  let propertyWords = "is read by no expression of the mapping models"
  /// Source entities that a mapping takes.
  private var taken: Set<EntityName> = []
  /// Those of them that a policy takes.
  private var open: Set<EntityName> = []
  /// Every name that a property is read by, and by how many expressions.
  private var readers: [String: Int] = [:]
  /// The same for names that key paths end with: a composite attribute with all its elements.
  private var wholes: [String: Int] = [:]
  /// What a source attribute is handed over to as it is.
  private var handedTo: [EntityName: [String: PropertyDescription]] = [:]

  init(_ models: [MappingModel], source: EntityHierarchy, destination: EntityHierarchy) {
    self.source = source
    for mapping in models.flatMap(\.entityMappings) {
      switch mapping.sourceSelection {
      case .all: break
      case .filter(let predicate): read(predicate.keys, wholes: predicate.lastKeys)
      case .expression(let expression): read(expression.keys, wholes: expression.lastKeys)
      }
      let properties = mapping.properties
      for row in properties.attributes + properties.relationships {
        guard let expression = row.expression, !Self.leadsNowhere(row.name, mapping, destination)
        else { continue }
        read(expression.keys, wholes: expression.lastKeys)
      }
      guard let entity = mapping.sourceEntity else { continue }
      if mapping.policy != nil { open.insert(entity) }
      guard mapping.policy != nil || mapping.destinationEntity != nil else { continue }
      taken.insert(entity)
      for row in properties.attributes {
        guard let key = row.expression?.plainSourceKey, let target = mapping.destinationEntity
        else { continue }
        handedTo[entity, default: [:]][key] =
          destination.property(row.name, of: target)?.property
      }
    }
  }

  /// Whether what sets the property is forgotten: a relationship that stores no pairs.
  private static func leadsNowhere(
    _ property: String, _ mapping: EntityMapping, _ destination: EntityHierarchy
  ) -> Bool {
    guard mapping.policy == nil, let entity = mapping.destinationEntity,
      let relationship = destination.property(property, of: entity)?.property.relationship
    else { return false }
    return !destination.storesPairs(of: relationship)
  }

  private mutating func read(_ keys: Set<String>, wholes last: Set<String>) {
    for key in keys { readers[key, default: 0] += 1 }
    for key in last { wholes[key, default: 0] += 1 }
  }

  func keeps(_ entity: EntityName) -> Bool { taken.contains(entity) }

  func path(of property: String, in entity: EntityName) -> [PropertyDescription]? {
    guard keeps(entity) else { return nil }
    if open.contains(entity) { return [] }
    guard readers[property] != nil else { return nil }
    let isComposite = source.property(property, of: entity)?.property.attribute?.type == .composite
    // A second expression may save what the first one cuts.
    guard (isComposite ? wholes : readers)[property] == 1, let next = handedTo[entity]?[property]
    else { return [] }
    return [next]
  }

  func keepsWhole(_ composite: String, in entity: EntityName) -> Bool {
    open.contains(entity) || wholes[composite] != nil
  }

  func names(element path: [String]) -> Bool { path.allSatisfy { readers[$0] != nil } }

  var convertsElements: Bool { true }

  func fate(
    of relationship: String, from owner: EntityName, to target: EntityName, inverse: String?
  ) -> PairFate {
    if open.contains(owner) || open.contains(target) { return .kept }
    guard keeps(owner), keeps(target) else { return .withoutObject }
    let isRead = readers[relationship] != nil || inverse.map { readers[$0] != nil } ?? false
    return isRead ? .kept : .withoutRelationship
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
    let transactions = tables.contains("ATRANSACTION") ? try rows("ATRANSACTION") : 0
    if transactions > 0 {
      losses.append(
        Loss(
          .history, count: transactions,
          message: "Persistent history is not carried by a mapping model: "
            + "\(number(transactions, "transaction")) \(transactions == 1 ? "is" : "are") dropped.")
      )
    }
    let mirrored = try tables.filter { $0.hasPrefix("ANSCK") }.reduce(0) { try $0 + rows($1) }
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
