import GodwitObjectModel
import GodwitPersistentStore

/// Finds out whether a store was written under the merger of several of the models given, see
/// `GivenModels`, and what it becomes then.
struct MergedModels {
  private let bundles: [[ModelVersion]]
  private let hashes: [EntityName: VersionHash]

  /// The request for a store, with the mergers among its models and as its destination, where the
  /// store is one of a merged model.
  static func resolve(_ request: MigrationRequest, for store: SourceStore) throws
    -> MigrationRequest
  {
    guard request.bundles.count > 1 else { return request }
    let hashes = store.metadata.versionHashes
    let merged = MergedModels(bundles: request.bundles, hashes: hashes)
    let search = SourceModelSearch(store: store, models: request.models)
    guard try !search.matchesGivenModel() else {
      var request = request
      if let own = try merged.ownDestination(request, for: store) { request.destination = own }
      return request
    }
    let merger = try GivenModels(request.bundles).merger(of: hashes)
    var request = request
    if let merger {
      request.isOfMergedModel = true
      request.models.append(merger)
    }
    if let destination = request.destination ?? request.models.last(where: \.isCurrent),
      let whole = try merged.destination(destination, isOfMerger: merger != nil)
    {
      request.models.append(whole)
      request.destination = whole
    }
    return request
  }
}

extension MergedModels {
  /// The current version of the bundle that a store is of, where nobody asked for a version and the one
  /// that was given last has no entity in common with the store: it is of another application's model, and
  /// everything would be dropped. Nil where the request's holds.
  private func ownDestination(
    _ request: MigrationRequest, for store: SourceStore
  ) throws -> ModelVersion? {
    guard !request.isDestinationNamed,
      let given = request.destination ?? request.models.last(where: \.isCurrent)
    else { return nil }
    let own = try bundles.filter { bundle in
      try SourceModelSearch(store: store, models: bundle).matchesGivenModel()
    }
    let names = Set(given.model.entities.map { NameKey($0.mappingKey) })
    let isShared = own.joined().contains { version in
      version.model.entities.contains {
        hashes[$0.name] != nil && names.contains(NameKey($0.mappingKey))
      }
    }
    guard !isShared, let last = own.last else { return nil }
    guard let current = last.last(where: \.isCurrent) else {
      throw try PlanError.noDestination(among: last)
    }
    return current
  }

  /// The merger that the destination is a part of: the version that was asked for, and the current
  /// ones of the other models.
  ///
  /// - Returns: Nil where the destination is a model of its own, or nothing is to be merged with it.
  private func destination(_ version: ModelVersion, isOfMerger: Bool) throws -> ModelVersion? {
    let families = try families()
    let home = bundles.lastIndex { $0.contains { $0.path == version.path } }.map { families[$0] }
    guard let home else { return nil }
    let own = names(of: families.indices.filter { families[$0] == home })
    // The store's own model is all that is known of its version: it says which models have a part.
    if !isOfMerger, own.isSuperset(of: hashes.keys) { return nil }
    var chosen: [ModelVersion] = []
    for family in Set(families).sorted() {
      let members = families.indices.filter { families[$0] == family }
      if family == home {
        chosen.append(version)
      } else if isOfMerger || !names(of: members).isDisjoint(with: hashes.keys) {
        let current = members.reversed().lazy.compactMap { bundles[$0].first(where: \.isCurrent) }
        guard let current = current.first else {
          throw try PlanError.noDestination(among: members.flatMap { bundles[$0] })
        }
        chosen.append(current)
      }
    }
    guard chosen.count > 1 else { return nil }
    return isOfMerger ? try .merging(chosen) : try? .merging(chosen)
  }

  private func names(of places: [Int]) -> Set<EntityName> {
    Set(places.flatMap { bundles[$0].flatMap { $0.model.entities.map(\.name) } })
  }

  /// A number for each model given; those of one number are versions of one model.
  ///
  /// Versions may be given one by one. Such a one belongs to whatever has an entity that comes from
  /// one of its own, or that one of its own comes from, and differs. Bundles stay apart.
  private func families() throws -> [Int] {
    var families = Array(bundles.indices)
    let hashes = try bundles.map { try $0.map { try $0.hierarchy().versionHashes } }
    for (place, bundle) in bundles.enumerated() where bundle.count == 1 {
      for other in bundles.indices where families[other] != families[place] {
        let areVersions = bundles[other].indices.contains { version in
          Self.differ(
            (bundle[0], hashes[place][0]), (bundles[other][version], hashes[other][version]))
        }
        guard areVersions else { continue }
        let (kept, replaced) = (families[other], families[place])
        families = families.map { $0 == replaced ? kept : $0 }
      }
    }
    return families
  }

  /// Whether two versions have entities that correspond and differ.
  private static func differ(
    _ a: (version: ModelVersion, hashes: [EntityName: VersionHash]),
    _ b: (version: ModelVersion, hashes: [EntityName: VersionHash])
  ) -> Bool {
    func key(_ entity: EntityDescription) -> NameKey { NameKey(entity.mappingKey) }
    let known = Dictionary(a.version.model.entities.map { (key($0), $0.name) }) { first, _ in first
    }
    return b.version.model.entities.contains { entity in
      known[key(entity)].map { a.hashes[$0] != b.hashes[entity.name] } ?? false
    }
  }
}
