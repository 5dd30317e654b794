import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// The model that a damaged store was written under.
struct ModelChoice {
  let hierarchy: EntityHierarchy
  /// A given version's name, or `cached model`.
  let version: String
  /// False where the store's version hashes do not tell, so that tables and columns decided.
  let isProven: Bool

  private static let cachedName = "cached model"

  /// By version hash: a given version, else the store's own model. Where the hashes are lost, the
  /// model whose tables and columns the store has.
  ///
  /// - Returns: nil where no model fits.
  init?(_ store: SourceStore, _ models: [ModelVersion], store path: FilePath) throws {
    let hashes = store.metadata.versionHashes
    var candidates: [(hierarchy: EntityHierarchy, version: String)] = []
    for model in models {
      let hierarchy = StoreBinding.fitting(try model.hierarchy(), to: store)
      if !hashes.isEmpty, hierarchy.versionHashes == hashes {
        self.init(hierarchy: hierarchy, version: model.name, isProven: true)
        return
      }
      candidates.append((hierarchy, model.name))
    }
    var isCached = false
    if let cached = Self.cached(store) {
      isCached = true
      let hierarchy = StoreBinding.fitting(cached, to: store)
      if !hashes.isEmpty, hierarchy.versionHashes == hashes {
        self.init(hierarchy: hierarchy, version: Self.cachedName, isProven: true)
        return
      }
      // A given version of the same hashes tells more: an old cache lacks indexes.
      let same = candidates.firstIndex { $0.hierarchy.versionHashes == hierarchy.versionHashes }
      if let same {
        candidates.insert(candidates.remove(at: same), at: 0)
      } else {
        candidates.insert((hierarchy, Self.cachedName), at: 0)
      }
    }
    let judged = candidates.map { candidate in
      (candidate, Self.misfit(candidate.hierarchy, store, hashes))
    }.enumerated().filter { place, judged in
      // Another version than the store's has other hashes, and mostly other columns.
      let misfit = judged.1
      return (isCached && place == 0) || hashes.isEmpty || misfit.different == 0
        || misfit.hashes * 2 < hashes.count
    }.map { $0.element }
    guard let best = judged.min(by: { $0.1 < $1.1 }), best.1.missing < best.1.tables else {
      return nil
    }
    self.init(hierarchy: best.0.hierarchy, version: best.0.version, isProven: false)
  }

  private init(hierarchy: EntityHierarchy, version: String, isProven: Bool) {
    self.hierarchy = hierarchy
    self.version = version
    self.isProven = isProven
  }

  /// The model of `Z_MODELCACHE`, whole: metadata that are damaged may name fewer entities.
  private static func cached(_ store: SourceStore) -> EntityHierarchy? {
    guard store.columns(of: "Z_MODELCACHE").contains(where: { $0.name == "Z_CONTENT" }),
      let rows = try? store.connection.rows("SELECT Z_CONTENT FROM Z_MODELCACHE"),
      let content = rows.lazy.compactMap({ $0[0].blob }).first
    else { return nil }
    return try? EntityHierarchy(modelCache: content)
  }

  /// How badly a model fits, by what the store's tables say first.
  private struct Misfit: Comparable {
    /// Tables of the model that the store does not have, and tables of the model.
    var missing: Int
    var tables: Int
    /// Tables and columns that only one of the two has.
    var different: Int
    var hashes: Int

    static func < (a: Misfit, b: Misfit) -> Bool {
      (a.missing * b.tables, a.different, a.hashes) < (b.missing * a.tables, b.different, b.hashes)
    }
  }

  private static func misfit(
    _ hierarchy: EntityHierarchy, _ store: SourceStore, _ hashes: [EntityName: VersionHash]
  ) -> Misfit {
    let binding = StoreBinding(store, hierarchy)
    let names = Set(binding.layout.tables.map(\.name) + binding.layout.joinTables.map(\.name))
    let have = store.schemaObjects.filter {
      $0.kind == .table && SchemaObject.isApplicationTable($0.name)
        && !["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains($0.name)
    }
    var extra = have.count { !names.contains($0.name) }
    for table in binding.layout.tables {
      let known = Set(table.columns.map(\.name) + EntityTable.systemColumns)
      extra += store.columns(of: table.name).count { !known.contains($0.name) }
    }
    let computed = hierarchy.versionHashes
    return Misfit(
      missing: binding.missing.count { $0.hasPrefix("table ") },
      tables: binding.layout.tables.count,
      different: binding.missing.count + extra,
      hashes: Set(computed.keys).union(hashes.keys).count { computed[$0] != hashes[$0] })
  }
}
