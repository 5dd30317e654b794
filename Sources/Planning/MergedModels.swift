import GodwitObjectModel
import GodwitPersistentStore

/// Finds out whether a store was written under the merger of several of the models given, and what
/// it becomes then.
///
/// An application may open its store with `NSManagedObjectModel.mergedModel(from:)`; the store then
/// records the hashes of all bundles' entities. Source: `core-data-migration.md` §1.3 (3).
///
/// Its version is one version of each of some bundles, with the store's hashes and no others.
/// Versions that the store does not have whole are left out first, so that few combinations remain.
struct MergedModels {
  /// 4 096. More than one version of a bundle that the store has whole is rare.
  static let combinationLimit = 4_096

  private let bundles: [[ModelVersion]]
  private let hashes: [EntityName: VersionHash]

  /// The request for a store, with the mergers among its models and as its destination, where the
  /// store is one of a merged model.
  static func resolve(_ request: MigrationRequest, for store: SourceStore) throws
    -> MigrationRequest
  {
    guard request.bundles.count > 1 else { return request }
    let merged = MergedModels(
      bundles: request.bundles, hashes: store.metadata.versionHashes)
    let search = SourceModelSearch(store: store, models: request.models)
    guard try !search.matchesGivenModel() else {
      var request = request
      if let own = try merged.ownDestination(request, for: store) { request.destination = own }
      return request
    }
    let parts = try merged.parts()
    var request = request
    if let parts {
      request.isOfMergedModel = true
      let versions = zip(request.bundles, parts).compactMap { bundle, place in
        place.map { bundle[$0] }
      }
      request.models.append(try .merging(versions))
    }
    if let destination = request.destination ?? request.models.last(where: \.isCurrent),
      let whole = try merged.destination(destination, parts: parts)
    {
      request.models.append(whole)
      request.destination = whole
    }
    return request
  }
}

extension MergedModels {
  /// For each bundle the version that the store has, nil for bundles that it has nothing of; nil
  /// where no combination of two or more has all of the store's entities.
  private func parts() throws -> [Int?]? {
    var candidates: [[(version: Int?, names: Set<EntityName>)]] = []
    var count = 1
    for bundle in bundles {
      var fitting: [(version: Int?, names: Set<EntityName>)] = []
      for (place, version) in bundle.enumerated() {
        let own = try version.hierarchy().versionHashes
        let names = Set(own.keys)
        guard !own.isEmpty, own.allSatisfy({ hashes[$0.key] == $0.value }),
          !fitting.contains(where: { $0.names == names })
        else { continue }
        fitting.append((place, names))
      }
      candidates.append(fitting.isEmpty ? [(nil, [])] : fitting)
      count =
        count.multipliedReportingOverflow(by: candidates[candidates.count - 1].count)
        .partialValue
      guard count > 0, count <= Self.combinationLimit else {
        throw ModelError.tooLarge(
          what: "combinations of versions that the store may be of", limit: Self.combinationLimit)
      }
    }
    let wanted = Set(hashes.keys)
    for combination in 0..<count {
      var rest = combination
      var chosen: [Int?] = []
      var names: Set<EntityName> = []
      for fitting in candidates {
        let one = fitting[rest % fitting.count]
        rest /= fitting.count
        chosen.append(one.version)
        names.formUnion(one.names)
      }
      if names == wanted, chosen.count(where: { $0 != nil }) > 1 { return chosen }
    }
    return nil
  }

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
      throw PlanError.noDestination(models: last.map(\.name))
    }
    return current
  }

  /// The merger that the destination is a part of: the version that was asked for, and the current
  /// ones of the other models.
  ///
  /// - Returns: Nil where the destination is a model of its own, or nothing is to be merged with it.
  private func destination(_ version: ModelVersion, parts: [Int?]?) throws -> ModelVersion? {
    let families = try families()
    let home = bundles.lastIndex { $0.contains { $0.path == version.path } }.map { families[$0] }
    guard let home else { return nil }
    let own = names(of: families.indices.filter { families[$0] == home })
    // The store's own model is all that is known of its version: it says which models have a part.
    if parts == nil, own.isSuperset(of: hashes.keys) { return nil }
    var chosen: [ModelVersion] = []
    for family in Set(families).sorted() {
      let members = families.indices.filter { families[$0] == family }
      if family == home {
        chosen.append(version)
      } else if parts != nil || !names(of: members).isDisjoint(with: hashes.keys) {
        let current = members.reversed().lazy.compactMap { bundles[$0].first(where: \.isCurrent) }
        guard let current = current.first else {
          throw PlanError.noDestination(models: members.flatMap { bundles[$0].map(\.name) })
        }
        chosen.append(current)
      }
    }
    guard chosen.count > 1 else { return nil }
    return parts == nil ? try? .merging(chosen) : try .merging(chosen)
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
