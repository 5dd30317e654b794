import FoundationEssentials
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Where in the source a finding about the destination may come from: the entities and properties
/// that the mapping makes the destination's of.
///
/// By it, what the source had already is told from what the migration made.
package struct FindingOrigins: Sendable {
  private struct Place: Hashable {
    var entity: String
    var property: String?
  }

  private let source: EntityHierarchy
  private let destination: EntityHierarchy
  private let inference: InferredMapping?
  /// Destination entity → the source entities that its objects come from.
  private let sources: [EntityName: Set<EntityName>]

  /// - Parameter store: The source of the plan, or its private clone.
  /// - Throws: As ``Planner/plan(_:)`` does for a store without a model.
  package init(
    _ plan: MigrationPlan, _ request: MigrationRequest, store: SourceStore
  ) throws {
    let request = try MergedModels.resolve(request, for: store)
    self.init(
      source: try SourceModelSearch(store: store, models: request.models).find().hierarchy,
      destination: try plan.control.hierarchy(),
      mapped: plan.mapped)
  }

  init(source: EntityHierarchy, destination: EntityHierarchy, mapped: MappedPlan?) {
    self.source = source
    self.destination = destination
    var sources: [EntityName: Set<EntityName>] = [:]
    if let mapped {
      inference = nil
      for mapping in mapped.mappings {
        if let old = mapping.source, let new = mapping.destination {
          sources[new, default: []].insert(old)
        }
      }
    } else {
      let inference = InferredMapping(source: source, destination: destination)
      self.inference = inference
      sources = inference.entityPairs.mapValues { [$0] }
    }
    self.sources = sources
  }

  /// The source's findings, judged under its own model.
  package func findings(of store: SourceStore) throws -> [StoreFinding] {
    let binding = StoreBinding(store, source)
    let jobs = StoreSoundness.jobs(binding, aspects: Set(StoreFinding.Kind.allCases))
    return try StoreSoundness.structure(of: binding)
      + jobs.flatMap { try StoreSoundness.run($0, on: store.connection) }
      + StoreSoundness.externalFiles(of: binding, needsFolder: true)
  }

  /// How many of the rows of a finding about the destination none of the source's findings of the
  /// same kind accounts for.
  package func newRows(_ finding: StoreFinding, beside found: [StoreFinding]) -> Int64 {
    let places = places(of: finding)
    let known = found.reduce(Int64(0)) { sum, other in
      let place = Place(entity: other.entity ?? "", property: other.property)
      return other.kind == finding.kind && places.contains(place) ? sum + other.count : sum
    }
    return max(0, finding.count - known)
  }

  private func places(of finding: StoreFinding) -> Set<Place> {
    guard let text = finding.entity else { return [Place(entity: "", property: finding.property)] }
    let entity = EntityName(text)
    let places = places(of: finding.property, in: entity)
    // Pairs may come from either side, whichever of the two is new.
    guard let property = finding.property,
      let relationship = destination.property(property, of: entity)?.property.relationship,
      let inverse = destination.inverse(of: relationship)
    else { return places }
    return places.union(self.places(of: inverse.relationship.name, in: inverse.entity))
  }

  private func places(of property: String?, in entity: EntityName) -> Set<Place> {
    var places: Set<Place> = []
    for name in destination.contains(entity) ? destination.subtree(of: entity) : [entity] {
      for old in sources[name] ?? [] where source.contains(old) {
        let lineage = source.ancestors(andSelf: old)
        guard let property else {
          places.formUnion(lineage.map { Place(entity: $0.rawValue, property: nil) })
          continue
        }
        for origin in origins(of: property, in: name) {
          places.formUnion(lineage.map { Place(entity: $0.rawValue, property: origin) })
          // Pairs of a join table are told of the side that the table is named after.
          guard
            let relationship = source.property(origin, of: old)?.property.relationship,
            let inverse = source.inverse(of: relationship)
          else { continue }
          places.insert(
            Place(entity: inverse.entity.rawValue, property: inverse.relationship.name))
        }
      }
    }
    return places
  }

  /// Names as findings spell them: `name`, `place.street` of a composite, `name, year` of a
  /// uniqueness constraint.
  private func origins(of text: String, in name: EntityName) -> [String] {
    func origin(_ property: Substring) -> String {
      guard let inference else { return String(property) }
      return inference.correspondence(of: String(property), in: name)?.property.name
        ?? String(property)
    }
    if destination.property(text, of: name) != nil { return [origin(text[...])] }
    let listed = text.components(separatedBy: ", ")
    if listed.count > 1 { return [listed.map { origin($0[...]) }.joined(separator: ", ")] }
    guard let dot = text.unicodeScalars.firstIndex(of: ".") else { return [origin(text[...])] }
    return [origin(text[..<dot]) + text[dot...]]
  }
}

extension EntityHierarchy {
  fileprivate func ancestors(andSelf name: EntityName) -> [EntityName] {
    var names: [EntityName] = []
    var next: EntityName? = name
    while let current = next, !names.contains(current) {
      names.append(current)
      next = self[current]?.superentity
    }
    return names
  }
}
