import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// The model that a damaged store was written under.
struct ModelChoice {
  let hierarchy: EntityHierarchy
  /// The model that ``hierarchy`` is of: more where the store holds one configuration's entities.
  let whole: EntityHierarchy
  /// A given version's name, or `cached model`.
  let version: String
  /// False where the store's version hashes do not tell, so that tables and columns decided.
  let isProven: Bool
  /// Tables and columns of the model that the store does not have, where they decided.
  let missing: [String]

  private static let cachedName = "cached model"

  /// A choice, or entities that the store names and the closest model given lacks.
  enum Outcome {
    case found(ModelChoice)
    case none(unknownEntities: [String])
  }

  /// By version hash: the given version most like the store's own model, else that. Where the hashes are lost, the
  /// model whose entities, tables and columns the store has.
  ///
  /// - Parameter isTableListWhole: Whether tables that the store does not have were none of its.
  static func among(
    _ models: GivenModels, for store: SourceStore, isTableListWhole: Bool = true
  ) throws -> Outcome {
    let hashes = store.metadata.versionHashes
    // A model without entities has no hashes either.
    let isEmpty = store.isWithoutEntities
    func isProven(_ hierarchy: EntityHierarchy) -> Bool {
      hierarchy.versionHashes == hashes && (isEmpty || !hashes.isEmpty)
    }
    var candidates: [Candidate] = []
    for model in models.versions {
      candidates.append(Candidate(try model.hierarchy(), model.name, for: store))
    }
    if !candidates.contains(where: { isProven($0.hierarchy) }),
      let merged = try models.merger(of: hashes)
    {
      candidates.append(Candidate(try merged.hierarchy(), merged.name, for: store))
    }
    var cached = Self.cached(store).map { Candidate($0, Self.cachedName, for: store) }
    let proven = candidates.filter { isProven($0.hierarchy) }
    if let own = cached?.hierarchy.own(under: hashes, of: proven.map(\.hierarchy)) {
      cached?.hierarchy = own
    }
    if let own = cached, isProven(own.hierarchy) {
      // Hashes do not cover everything: what the store's own model wrote must be read as it was.
      let place = UnhashedDifference.closest(to: own.hierarchy, among: proven.map(\.hierarchy))
      return .found(.init(place.map { proven[$0] } ?? own, isProven: true))
    }
    if let first = proven.first { return .found(.init(first, isProven: true)) }
    var isCached = false
    if var own = cached {
      isCached = true
      // A given version of the same hashes tells more: an old cache lacks indexes.
      let same = candidates.firstIndex {
        $0.hierarchy.computedHashes == own.hierarchy.versionHashes
      }
      if let same {
        candidates.insert(candidates.remove(at: same), at: 0)
        candidates[0].isCached = true
      } else {
        own.isCached = true
        candidates.insert(own, at: 0)
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
    let fitting = judged.filter {
      $0.0.isCached || unknownEntities(in: $0.0.hierarchy, store).isEmpty
    }
    func choice(_ candidate: Candidate) -> Outcome {
      .found(
        .init(
          candidate, isProven: false,
          missing: StoreBinding(store, candidate.hierarchy).missing.sorted()))
    }
    guard let best = fitting.min(by: { $0.1 < $1.1 }), best.1.missing < best.1.tables else {
      // Without tables, only the one that has all entities that the store names, and no other ones.
      let named = Set(store.entityKeys.map { EntityName($0.name) })
      let alike = fitting.map(\.0).filter { candidate in
        candidate.hierarchy.order.allSatisfy(named.contains)
      }
      let own = alike.filter(\.isCached)
      let left = !own.isEmpty ? own : hashes.isEmpty ? alike : []
      if !isTableListWhole, !named.isEmpty, left.count == 1 {
        return choice(left[0])
      }
      let nearest = judged.min { $0.1 < $1.1 }
      return .none(
        unknownEntities: nearest.map { unknownEntities(in: $0.0.hierarchy, store) } ?? [])
    }
    return choice(best.0)
  }

  /// Entities that `Z_PRIMARYKEY` names, and that the model does not have below the same parent and
  /// under the same number. None where the table itself is plainly damaged.
  private static func unknownEntities(
    in hierarchy: EntityHierarchy, _ store: SourceStore
  ) -> [String] {
    let rows = store.entityKeys.filter { $0.number > 0 }
    let names = Dictionary(
      rows.map { ($0.number, EntityName($0.name)) }, uniquingKeysWith: { a, _ in a })
    let known = Set(rows.map { EntityName($0.name) })
    guard known.count == rows.count, names.count == rows.count else { return [] }
    // Numbers follow from the rules unless the store gives all of them itself.
    let givesAll = known == Set(hierarchy.order)
    let numbers = StoreLayout(hierarchy).entityNumbers
    let unknown = rows.filter { row in
      let entity = EntityName(row.name)
      guard hierarchy.contains(entity) else { return true }
      let parent = hierarchy[entity]?.superentity
      // A parent's number that no row has is damaged itself.
      let isBelow =
        row.superNumber == 0 ? parent == nil : names[row.superNumber] ?? parent == parent
      return !isBelow || (!givesAll && numbers[entity].map { Int64($0) } != row.number)
    }
    // A single damaged name or parent of many is no other version's.
    let isSlip =
      unknown.count == 1 && rows.count > 3
      && hierarchy.order.contains { entity in
        guard Int64(numbers[entity] ?? 0) == unknown[0].number else { return false }
        let (found, wanted) = (Array(unknown[0].name.utf8), Array(entity.rawValue.utf8))
        return found.count == wanted.count && zip(found, wanted).count { $0 != $1 } <= 1
      }
    return isSlip ? [] : unknown.map(\.name)
  }

  /// A model that the store may have been written under.
  private struct Candidate {
    var hierarchy: EntityHierarchy
    let whole: EntityHierarchy
    let version: String
    var isCached = false

    init(_ whole: EntityHierarchy, _ version: String, for store: SourceStore) {
      hierarchy = StoreBinding.fitting(whole, to: store)
      self.whole = whole
      self.version = version
    }
  }

  private init(_ candidate: Candidate, isProven: Bool, missing: [String] = []) {
    hierarchy = candidate.hierarchy
    whole = candidate.whole
    version = candidate.version
    self.isProven = isProven
    self.missing = missing
  }

  /// The model of `Z_MODELCACHE`, whole: metadata that are damaged may name fewer entities.
  private static func cached(_ store: SourceStore) -> EntityHierarchy? {
    guard store.columns(of: "Z_MODELCACHE").contains(where: { $0.name == "Z_CONTENT" }),
      let rows = try? store.connection.rows("SELECT Z_CONTENT FROM Z_MODELCACHE")
    else { return nil }
    // Of several, one may be whole.
    for row in rows {
      if let content = row[0].blob, let model = try? EntityHierarchy(modelCache: content) {
        return model
      }
    }
    return nil
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
    let names = Set(
      (binding.layout.tables.map(\.name) + binding.layout.joinTables.map(\.name)).map {
        NameKey($0)
      })
    let have = store.schemaObjects.filter {
      $0.kind == .table && SchemaObject.isApplicationTable($0.name)
        && !LayoutProblem.controlTables.contains($0.name)
    }
    var extra = have.count { !names.contains(NameKey($0.name)) }
    for table in binding.layout.tables {
      let known = Set((table.columns.map(\.name) + EntityTable.systemColumns).map { NameKey($0) })
      extra += store.columns(of: table.name).count { !known.contains(NameKey($0.name)) }
    }
    let computed = hierarchy.versionHashes
    return Misfit(
      missing: binding.missing.count { $0.hasPrefix("table ") },
      tables: binding.layout.tables.count,
      different: binding.missing.count + extra,
      hashes: Set(computed.keys).union(hashes.keys).count { computed[$0] != hashes[$0] })
  }
}
