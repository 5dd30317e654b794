import GodwitObjectModel
import GodwitPersistentStore

/// Finds out which of several models given a store is of, whether it was written under the merger of some
/// of them, and what it becomes.
///
/// The order in which models were given decides between versions of one model alone.
struct MergedModels {
  /// Models given that are versions of one, and that the store has a part of.
  private struct Part {
    /// Places among the models given, in their order.
    var members: [Int]
    /// Those of them that have the store's version; none where it is not among those given.
    var holders: [Int] = []
  }

  private let request: MigrationRequest
  private let store: SourceStore
  private let families: ModelFamilies
  private var bundles: [[ModelVersion]] { request.given.bundles }

  /// The request for a store, with its own destination, and with the mergers among its models where the
  /// store is one of a merged model.
  static func resolve(_ request: MigrationRequest, for store: SourceStore) throws
    -> MigrationRequest
  {
    guard request.given.bundles.count > 1 else { return request }
    let models = MergedModels(
      request: request, store: store, families: try request.given.families())
    return try models.resolved()
  }

  private func resolved() throws -> MigrationRequest {
    var resolved = request
    var parts: [Part] = []
    if let part = try partOfGivenVersion() {
      parts = [part]
    } else if let found = try request.given.parts(of: store.metadata.versionHashes) {
      let merger = try ModelVersion.merging(found.compactMap(\.self), isRead: true)
      resolved.isOfMergedModel = true
      resolved.models.append(merger)
      parts = self.parts(of: found)
    } else {
      parts = try partsByNames()
    }
    guard let chosen = try destinations(of: parts) else { return resolved }
    let destination = try ModelVersion.merging(chosen)
    if chosen.count > 1 { resolved.models.append(destination) }
    resolved.destination = destination
    if parts.count == 1 { resolved.line = parts[0].members.flatMap { bundles[$0] } }
    return resolved
  }
}

// What the store is of.
extension MergedModels {
  /// The model of which a given version has the store's hashes; nil where none has.
  private func partOfGivenVersion() throws -> Part? {
    var holders = try bundles.indices.filter { place in
      try SourceModelSearch(store: store, models: bundles[place]).matchesGivenModel()
    }
    guard !holders.isEmpty else { return nil }
    if Set(holders.map { families.likely[$0] }).count > 1 {
      // The entities of one configuration, which several models have alike.
      let found = try SourceModelSearch(store: store, models: request.models).find()
      let own = holders.filter { place in
        bundles[place].contains { $0.isAtPath(of: found.version) }
      }
      if !own.isEmpty { holders = own }
    }
    let family = families.likely[holders[0]]
    return Part(members: members(of: family, in: families.likely), holders: holders)
  }

  /// The models that a store of a merger has a part of.
  ///
  /// - Parameter found: The part's version for each model given.
  private func parts(of found: [ModelVersion?]) -> [Part] {
    let places = found.indices.filter { found[$0] != nil }
    let families = Set(places.map { self.families.probable[$0] }).sorted()
    return families.flatMap { family -> [Part] in
      let holders = places.filter { self.families.probable[$0] == family }
      // Copies of a version, and what another has whole, are no part of their own.
      let names = holders.map { Set(found[$0]?.model.entities.map(\.name) ?? []) }
      let apart = holders.indices.filter { place in
        !holders.indices.contains { other in
          names[other].isStrictSuperset(of: names[place])
            || (other > place && names[other] == names[place])
        }
      }
      guard apart.count > 1 else {
        return [Part(members: members(of: family, in: self.families.probable), holders: holders)]
      }
      // What a store has side by side is no two versions of one model: a third may have entities of both.
      return apart.map { place in
        let own = self.families.certain[holders[place]]
        return Part(
          members: members(of: own, in: self.families.certain), holders: [holders[place]])
      }
    }
  }

  /// The models that have entities of a store whose own version is not among those given. One of whose
  /// entities in the store another has all and more has no part.
  private func partsByNames() throws -> [Part] {
    let model = try store.readableModel()
    let keys = Dictionary(
      (model?.entities ?? []).map { ($0.name, NameKey($0.mappingKey)) },
      uniquingKeysWith: { first, _ in first })
    let entities = store.metadata.versionHashes.keys
    let known = Set(families.probable).sorted().map { family in
      let names = Set(
        members(of: family, in: families.probable).flatMap { bundles[$0] }
          .flatMap(\.model.entities).flatMap {
            [NameKey($0.name.rawValue), NameKey($0.mappingKey)]
          }
      )
      let had = entities.filter { entity in
        names.contains(NameKey(entity.rawValue)) || keys[entity].map { names.contains($0) } == true
      }
      return (family: family, had: Set(had))
    }
    let own = known.filter { one in
      !one.had.isEmpty && !known.contains { $0.had.isStrictSuperset(of: one.had) }
    }
    return try own.indices.compactMap { place in
      let alike = own.filter { $0.had == own[place].had }.map(\.family)
      guard alike.first == own[place].family else { return nil }
      return try Part(members: members(ofOneAmong: alike, entities: own[place].had))
    }
  }

  /// Of several models that have the same entities of the store the one that has the version asked for.
  private func members(
    ofOneAmong alike: [Int], entities: Set<EntityName>
  ) throws -> [Int] {
    let members = alike.map { self.members(of: $0, in: families.probable) }
    if members.count == 1 { return members[0] }
    let all = members.flatMap(\.self).sorted()
    if Set(all.map { families.likely[$0] }).count == 1 { return all }
    let asked = members.filter { places in request.named.contains { isOf($0, places) } }
    guard asked.count == 1 else {
      throw PlanError.ambiguousModel(
        members.compactMap { $0.last.flatMap { bundles[$0].last?.bundlePath } },
        entities: entities.sorted())
    }
    return asked[0]
  }

  private func members(of family: Int, in numbers: [Int]) -> [Int] {
    numbers.indices.filter { numbers[$0] == family }
  }
}

// What the store becomes.
extension MergedModels {
  /// For each part the version asked for, or its current one. Nil for the request's own destination,
  /// which is a version of something else, or of nothing that is known of the store.
  ///
  /// - Throws: ``PlanError/ambiguousDestination(_:of:)`` for a name that several models have a version
  ///   of, and none that the store is of. ``PlanError/noDestination(models:)``.
  private func destinations(of parts: [Part]) throws -> [ModelVersion]? {
    let asked = parts.map { part in
      request.named.last { isOf($0, part.holders) }
        ?? request.named.last { isOf($0, part.members) }
    }
    if !request.named.isEmpty, asked.allSatisfy({ $0 == nil }) {
      let homes = Dictionary(
        request.named.compactMap { version in
          home(of: version).map { (families.likely[$0], version) }
        }, uniquingKeysWith: { $1 })
      guard homes.count > 1 else { return nil }
      throw PlanError.ambiguousDestination(
        request.named[0].name, of: homes.values.map(\.bundlePath).sorted())
    }
    guard !parts.isEmpty else { return nil }
    var chosen: [ModelVersion] = []
    for (part, asked) in zip(parts, asked) {
      let current = request.currents.last { isOf($0, part.members) }
      guard let version = asked ?? current else {
        throw try PlanError.noDestination(among: part.members.flatMap { bundles[$0] })
      }
      if !chosen.contains(where: { $0.isAtPath(of: version) }) { chosen.append(version) }
    }
    return chosen
  }

  private func isOf(_ version: ModelVersion, _ places: [Int]) -> Bool {
    places.contains { bundles[$0].contains { $0.isAtPath(of: version) } }
  }

  private func home(of version: ModelVersion) -> Int? {
    bundles.indices.last { isOf(version, [$0]) }
  }
}

extension GivenModels {
  /// The versions of the model that a version is of; nil for one that is not among those given.
  package func family(of version: ModelVersion) throws -> [ModelVersion]? {
    let home = bundles.lastIndex { $0.contains { $0.isAtPath(of: version) } }
    guard let home else { return nil }
    let families = try families().probable
    return zip(bundles, families).flatMap { $1 == families[home] ? $0 : [] }
  }
}
