import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage

extension SourceModelSearch.Found {
  /// The entities of a store of ``configuration`` in another version; nil for all.
  ///
  /// - Throws: ``PlanError/ambiguousConfiguration(_:version:)`` where the store may be of another
  ///   configuration, which has other entities there: no store says of which one it is.
  ///   ``PlanError/missingConfiguration(_:version:)`` where the version has configurations, and not
  ///   one that the store's has become. ``PlanError/emptyConfiguration(_:version:)`` and
  ///   ``PlanError/incompleteConfiguration(_:version:lacking:)`` where the one that it has become has no
  ///   entities, or sub-entities without their superentities.
  func members(in version: ModelVersion) throws -> Members? {
    guard let configuration else { return nil }
    let names = [configuration] + alternatives
    let members = names.map { version.model.entities(inConfiguration: $0).map { Set($0) } }
    guard members.allSatisfy({ $0 == members[0] }) else {
      throw PlanError.ambiguousConfiguration(names, version: version.name)
    }
    if let known = members[0] {
      return Members(
        entities: try Self.requireWhole(known, configuration, version),
        note: try noteMoved(from: known, of: configuration, in: version))
    }
    // Without configurations there is but one way to open a store: with all entities.
    if version.model.configurations.isEmpty {
      return Members(
        note: "The store holds the entities of the configuration \(configuration), and "
          + "\(version.name) has no configurations: the new store gets all of its entities.")
    }
    let renamed = try renamedConfigurations(in: version)
    guard let first = renamed.first else {
      throw PlanError.missingConfiguration(names, version: version.name)
    }
    guard renamed.allSatisfy({ $0.entities == first.entities }) else {
      throw PlanError.ambiguousConfiguration(renamed.map(\.name), version: version.name)
    }
    return Members(
      entities: try Self.requireWhole(first.entities, first.name, version),
      note:
        "The configuration \(configuration) is taken for \(first.name) in \(version.name), which has "
        + "the successors of its entities.")
  }

  /// A store has a table for each root entity, and Core Data compares the entities that a configuration lists:
  /// where these are not the same, what was written might not open.
  private static func requireWhole(
    _ entities: Set<EntityName>, _ configuration: String, _ version: ModelVersion
  ) throws -> Set<EntityName> {
    guard !entities.isEmpty else {
      throw PlanError.emptyConfiguration(configuration, version: version.name)
    }
    let lacking = version.model.entities.filter { entities.contains($0.name) }.compactMap {
      entity in
      entity.superentity.flatMap {
        entities.contains($0) ? nil : (entity: entity.name, superentity: $0)
      }
    }
    guard lacking.isEmpty else {
      throw PlanError.incompleteConfiguration(
        configuration, version: version.name, lacking: lacking)
    }
    return entities
  }

  /// Entities that the version has, and not in the configuration of that name.
  private func noteMoved(
    from entities: Set<EntityName>, of configuration: String, in version: ModelVersion
  ) throws -> String? {
    let moved = try successors(in: version).own.subtracting(entities).sorted()
    guard !moved.isEmpty else { return nil }
    return
      "\(Loss.list(moved.map(\.rawValue))) of \(version.name) \(moved.count == 1 ? "is" : "are") not in its "
      + "configuration \(configuration), which the store is of: objects that would go there are dropped."
  }

  /// What entities become in another version, whatever its configurations have: all, and the store's own.
  private func successors(
    in version: ModelVersion
  ) throws -> (all: Set<EntityName>, own: Set<EntityName>) {
    let successors = InferredMapping(source: whole, destination: try version.hierarchy()).successors
    let listed = configuration.flatMap(whole.model.entities(inConfiguration:)) ?? []
    return (Set(successors.values), Set(listed.compactMap { successors[$0] }))
  }

  /// Configurations of another version that have the successors of all the store's entities, and
  /// beside them none but new entities.
  private func renamedConfigurations(
    in version: ModelVersion
  ) throws -> [(name: String, entities: Set<EntityName>)] {
    let (all, own) = try successors(in: version)
    guard !own.isEmpty else { return [] }
    return version.model.configurations.sorted { $0.key.precedesInBytes($1.key) }
      .map { (name: $0.key, entities: Set($0.value)) }
      .filter { $0.entities.intersection(all) == own }
  }

  /// As much of a version as the store would hold. Planning a step says what is wrong with a version that has
  /// no such configuration: here it is whole.
  func part(of version: ModelVersion) throws -> EntityHierarchy {
    guard let configuration else { return try version.hierarchy() }
    let named = version.model.entities(inConfiguration: configuration).map { Set($0) }
    guard let entities = named ?? (try? members(in: version))?.entities else {
      return try version.hierarchy()
    }
    return try version.hierarchy().restricted(to: entities)
  }

  /// The store's own version. One that none of those given is has its configurations from the cache.
  func ownVersion(unnamed name: String, path: FilePath) -> ModelVersion {
    let model = version == nil && configuration != nil ? whole : hierarchy
    return ModelVersion(
      name: versionName ?? name, model: model.model, isCurrent: false,
      recordedHashes: model.versionHashes, path: path.string)
  }

  /// What of another version a store of one configuration becomes.
  struct Members {
    /// Nil for all.
    var entities: Set<EntityName>?
    /// What a person should know of the choice.
    var note: String?
  }
}

/// Finds the model that a store was written under.
///
/// Source: `core-data-migration.md` §1.3 (3) and §6.2.
struct SourceModelSearch {
  struct Found {
    var hierarchy: EntityHierarchy
    /// The model that ``hierarchy`` is of: more where the store holds one configuration's entities.
    var whole: EntityHierarchy
    /// The given version that has the store's hashes.
    var version: ModelVersion?
    var versionName: String? { version?.name }
    /// The model cached in the store, where it has the store's hashes.
    var own: EntityHierarchy?
    /// The configuration whose entities the store holds, where it does not hold all.
    var configuration: String?
    /// Further configurations of the same entities.
    var alternatives: [String] = []
    /// Where a given model and the store's own differ in parts that no hash covers.
    var notes: [String]
  }

  let store: SourceStore
  let models: [ModelVersion]

  /// The given version whose hashes are the store's, else the store's cached model. Of several the one
  /// most like the cached model, which wrote the store: hashes do not cover everything.
  ///
  /// - Throws: ``PlanError/missingSourceModel(store:differing:)`` with the entities in which the
  ///   nearest given version differs. ``PlanError/damaged(store:_:)`` for a store with entities and without hashes.
  func find() throws -> Found {
    let hashes = store.metadata.versionHashes
    // One of a model without entities has none, either: Core Data compares the two sets as any others.
    guard !hashes.isEmpty || store.isWithoutEntities else {
      throw PlanError.damaged(
        store: store.files.store.string,
        [
          StoreFinding(
            kind: .metadata,
            message: (store.metadata.whyUnread ?? "Z_METADATA has no version hashes")
              + ", so nothing tells the store's version, and --accept-damage cannot take it: restore the store "
              + "from a backup, or save what can be saved with `godwit repair`")
        ])
    }
    let hasCache = try store.readableModel() != nil
    var given: [Found] = []
    for version in models {
      guard var found = try match(version.hierarchy(), hashes) else { continue }
      found.version = version
      given.append(found)
    }
    let own =
      hasCache
      ? try? store.cachedHierarchy().flatMap {
        try match($0, hashes)?.hierarchy ?? $0.own(under: hashes, of: given.map(\.hierarchy))
      } : nil
    if let found = choice(among: given, own) { return found }
    if hasCache, var found = try matchCache(hashes) {
      found.own = own
      found.notes.append(
        "The store's version, \(found.hierarchy.versionChecksum), is not among the models given. "
          + "The model cached in the store is used.")
      return found
    }
    throw PlanError.missingSourceModel(
      store: store.files.store.string, differing: try nearest(hashes))
  }

  /// Of versions that have the store's hashes, the one most like the store's own model, and the first
  /// one where nothing tells them apart; nil where there is none.
  ///
  /// Where each of them would look for values, or for their form, otherwise than the store's own
  /// model wrote them, the store is read by its own model.
  private func choice(among given: [Found], _ own: EntityHierarchy?) -> Found? {
    guard var found = given.first else { return nil }
    guard let own else {
      if let note = Self.rivalNote(found, given.dropFirst()) { found.notes.append(note) }
      return found
    }
    if let place = UnhashedDifference.closest(to: own, among: given.map(\.hierarchy)) {
      found = given[place]
      let difference = UnhashedDifference.between(given: found.hierarchy, own: own)
      found.notes += difference.identifiers + difference.defaults
    } else {
      let difference = UnhashedDifference.between(given: found.hierarchy, own: own)
      found.notes.append(
        "\(found.versionName ?? "") has the store's version hashes, and other places or forms of "
          + "values or other constraints than the model cached in the store, which is used. By \(found.versionName ?? ""), "
          + difference.storage.map(\.description).joined(separator: "; ") + ".")
      found.hierarchy = own
      if found.configuration == nil { found.whole = own }
    }
    found.own = own
    return found
  }

  /// What is said where nothing tells which of two versions wrote the store, and they read it otherwise.
  private static func rivalNote(_ found: Found, _ others: ArraySlice<Found>) -> String? {
    for other in others {
      let difference = UnhashedDifference.between(given: other.hierarchy, own: found.hierarchy)
      guard !difference.storage.isEmpty, let name = found.versionName, let rival = other.versionName
      else { continue }
      return
        "\(name) and \(rival) have the store's version hashes, and no cached model tells which of them wrote "
        + "it: \(name) is used, the first one given. By \(rival), "
        + difference.storage.map(\.description).joined(separator: "; ") + "."
    }
    return nil
  }

  /// The cached model, uncut where a configuration of it has the store's entities.
  private func matchCache(_ hashes: [EntityName: VersionHash]) throws -> Found? {
    guard let whole = try store.wholeCachedHierarchy() else { return nil }
    if let found = try match(whole, hashes) { return found }
    guard var found = try store.cachedHierarchy().flatMap({ try match($0, hashes) }) else {
      return nil
    }
    found.whole = whole
    found.notes.append(
      "The store holds a part of the entities of the model in its cache, and no configuration of "
        + "that model has just them: the new store gets all entities of the destination.")
    return found
  }

  /// Whether one of the given versions has the store's hashes.
  func matchesGivenModel() throws -> Bool {
    try models.contains { try match($0.hierarchy(), store.metadata.versionHashes) != nil }
  }

  private func match(
    _ hierarchy: EntityHierarchy, _ hashes: [EntityName: VersionHash]
  ) throws -> Found? {
    let model = hierarchy.model
    let known = hierarchy.versionHashes
    if known == hashes {
      return Found(
        hierarchy: hierarchy, whole: hierarchy, configuration: nil, notes: [])
    }
    // A store of one configuration holds that configuration's entities only.
    let names = Set(hashes.keys)
    guard !names.isEmpty, names.isStrictSubset(of: Set(known.keys)),
      names.allSatisfy({ known[$0] == hashes[$0] })
    else { return nil }
    let configurations = model.configurations.keys.sorted().filter {
      Set(model.entities(inConfiguration: $0) ?? []) == names
    }
    guard let configuration = configurations.first else { return nil }
    return Found(
      hierarchy: try hierarchy.restricted(to: names), whole: hierarchy,
      configuration: configuration, alternatives: Array(configurations.dropFirst()), notes: [])
  }

  /// The entities in which the given version with the fewest differences differs.
  private func nearest(_ hashes: [EntityName: VersionHash]) throws -> [Reason] {
    var best: [Reason]?
    for version in models {
      let computed = try version.hierarchy().versionHashes
      let names = Set(hashes.keys).union(computed.keys).filter { hashes[$0] != computed[$0] }
      let reasons = names.sorted().map { name in
        Reason(
          reason: "version-hash", entity: name.rawValue,
          message: store.metadata.problems.contains(.oddHash(name))
            ? "the version hash of \(name) in the store's metadata is not 32 bytes of data. Restore the "
              + "store from a copy, or save what can be saved with `godwit repair`"
            : hashes[name] == nil
              ? "\(name) is in version \(version.name) and not in the store"
              : computed[name] == nil
                ? "\(name) is in the store and not in version \(version.name)"
                : "\(name) has another version hash in version \(version.name)")
      }
      if reasons.count < best?.count ?? Int.max { best = reasons }
    }
    return best ?? []
  }
}
