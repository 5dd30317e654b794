/// Models among which the version of a store is found, each with its versions.
///
/// An application may open its store with `NSManagedObjectModel.mergedModel(from:)`; the store then
/// records the hashes of all bundles' entities. Source: `core-data-migration.md` §1.3 (3).
package struct GivenModels: Sendable {
  package let bundles: [[ModelVersion]]
  private let known = Memo<ModelFamilies>()

  /// 4 096. More than one version of a bundle that the store has whole is rare.
  static let combinationLimit = 4_096

  package init(_ bundles: [[ModelVersion]]) { self.bundles = bundles }

  /// None: the model cached in a store tells.
  package static let none = GivenModels([])

  /// Every version of everything that was given, in the order given.
  package var versions: [ModelVersion] { bundles.flatMap(\.self) }

  /// Which of them are versions of one model; found out once.
  ///
  /// - Throws: ``ModelError``.
  package func families() throws -> ModelFamilies {
    try known.value { try ModelFamilies(bundles) }
  }

  /// The merger of which a store is that has such hashes: one version of each of two or more bundles,
  /// which have these hashes and no others. Nil where there is none.
  ///
  /// - Throws: ``ModelError/tooLarge(what:limit:)``; ``ModelError`` where they cannot be merged.
  package func merger(of hashes: [EntityName: VersionHash]) throws -> ModelVersion? {
    guard let parts = try parts(of: hashes) else { return nil }
    return try .merging(parts.compactMap(\.self), isRead: true)
  }

  /// For each bundle the version that a store of these hashes has, nil for bundles that it has nothing
  /// of; nil where no combination of two or more has all of the store's entities.
  ///
  /// Versions that the store does not have whole are left out first, so that few combinations remain.
  ///
  /// - Throws: ``ModelError/tooLarge(what:limit:)``.
  package func parts(of hashes: [EntityName: VersionHash]) throws -> [ModelVersion?]? {
    guard bundles.count > 1 else { return nil }
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
      if names == wanted, chosen.count(where: { $0 != nil }) > 1 {
        return zip(bundles, chosen).map { bundle, place in place.map { bundle[$0] } }
      }
    }
    return nil
  }
}
