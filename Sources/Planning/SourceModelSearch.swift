import GodwitObjectModel
import GodwitPersistentStore

extension SourceModelSearch.Found {
  /// The entities of a store of ``configuration`` in another version; nil for all.
  ///
  /// - Throws: ``PlanError/ambiguousConfiguration(_:version:)`` where the store may be of another
  ///   configuration, which has other entities there: no store says of which one it is.
  func members(in version: ModelVersion) throws -> Set<EntityName>? {
    guard let configuration else { return nil }
    let names = [configuration] + alternatives
    let members = names.map { version.model.configurations[$0].map { Set($0) } }
    guard members.allSatisfy({ $0 == members[0] }) else {
      throw PlanError.ambiguousConfiguration(names, version: version.name)
    }
    return members[0]
  }
}

/// Finds the model that a store was written under.
///
/// Source: `core-data-migration.md` §1.3 (3) and §6.2.
struct SourceModelSearch {
  struct Found {
    var hierarchy: EntityHierarchy
    var versionName: String?
    /// The configuration whose entities the store holds, where it does not hold all.
    var configuration: String?
    /// Further configurations of the same entities.
    var alternatives: [String] = []
    /// Where a given model and the store's own differ in parts that no hash covers.
    var notes: [String]
  }

  let store: SourceStore
  let models: [ModelVersion]

  /// The given version whose hashes are the store's, else the store's cached model.
  ///
  /// - Throws: ``PlanError/missingSourceModel(store:differing:)`` with the entities in which the
  ///   nearest given version differs.
  func find() throws -> Found {
    let hashes = store.metadata.versionHashes
    guard !hashes.isEmpty else {
      throw PlanError.missingSourceModel(
        store: store.files.store.string,
        differing: [
          Reason(reason: "metadata", message: "the store's metadata records no version hashes")
        ])
    }
    let hasCache = try store.readableModel() != nil
    for version in models {
      if var found = try match(version.hierarchy(), hashes) {
        found.versionName = version.name
        if hasCache, let own = try? store.cachedHierarchy().flatMap({ try match($0, hashes) }) {
          found.notes += difference(given: found.hierarchy, own: own.hierarchy)
        }
        return found
      }
    }
    if hasCache, var found = try store.cachedHierarchy().flatMap({ try match($0, hashes) }) {
      found.notes.append(
        "The store's version, \(found.hierarchy.versionChecksum), is not among the models given. "
          + "The model cached in the store is used.")
      return found
    }
    throw PlanError.missingSourceModel(
      store: store.files.store.string, differing: try nearest(hashes))
  }

  /// Whether one of the given versions has the store's hashes.
  func matchesGivenModel() throws -> Bool {
    try models.contains { try match($0.hierarchy(), store.metadata.versionHashes) != nil }
  }

  private func match(
    _ hierarchy: EntityHierarchy, _ hashes: [EntityName: VersionHash]
  ) throws -> Found? {
    let model = hierarchy.model
    let computed = hierarchy.versionHashes
    if computed == hashes {
      return Found(hierarchy: hierarchy, versionName: nil, configuration: nil, notes: [])
    }
    // A store of one configuration holds that configuration's entities only.
    let names = Set(hashes.keys)
    guard names.isStrictSubset(of: Set(computed.keys)),
      names.allSatisfy({ computed[$0] == hashes[$0] })
    else { return nil }
    let configurations = model.configurations.keys.sorted().filter {
      Set(model.configurations[$0] ?? []) == names
    }
    guard let configuration = configurations.first else { return nil }
    return Found(
      hierarchy: try EntityHierarchy(model.restricted(to: names)), versionName: nil,
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
          message: hashes[name] == nil
            ? "\(name) is in version \(version.name) and not in the store"
            : computed[name] == nil
              ? "\(name) is in the store and not in version \(version.name)"
              : "\(name) has another version hash in version \(version.name)")
      }
      if reasons.count < best?.count ?? Int.max { best = reasons }
    }
    return best ?? []
  }

  /// What no version hash covers and migration depends on: renaming identifiers and defaults.
  private func difference(given: EntityHierarchy, own: EntityHierarchy) -> [String] {
    var notes: [String] = []
    for name in given.order {
      guard let a = given[name], let b = own[name] else { continue }
      if !a.mappingKey.isSameName(as: b.mappingKey) {
        notes.append(
          "\(name): the given model's renaming identifier is \(a.mappingKey), the store's own model says \(b.mappingKey); the given one is used"
        )
      }
      for property in a.properties {
        guard let other = b.properties.first(where: { $0.name.isSameName(as: property.name) })
        else { continue }
        if !property.traits.mappingKey.isSameName(as: other.traits.mappingKey) {
          notes.append(
            "\(name).\(property.name): the given model's renaming identifier is \(property.traits.mappingKey), the store's own model says \(other.traits.mappingKey); the given one is used"
          )
        }
        if let x = property.attribute, let y = other.attribute, x.defaultValue != y.defaultValue {
          notes.append(
            "\(name).\(property.name): the given model and the store's own model have different default values; the given one is used"
          )
        }
      }
    }
    return notes
  }
}
