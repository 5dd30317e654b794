/// Which of several models that were given are versions of one model.
///
/// By content and never by the order in which they were given: see the documentation, Decisions,
/// "Merged models". Each list has a number for each model given; those of one number are of one model.
package struct ModelFamilies: Sendable {
  /// Those that have a version in common: copies of one bundle; bundles of one name that have an entity in
  /// common; a version given by itself and what has an entity of it in another form.
  ///
  /// Other bundles stay apart: several applications may have an entity of one name.
  package let certain: [Int]
  /// The same, and a version given by itself and what has all of its entities, or of which it has all.
  package let probable: [Int]
  /// The same, and a version given by itself and whatever it has any entity in common with. Not to be
  /// asked of what may be merged: what is has entities in common, too.
  package let likely: [Int]

  private typealias Content = [NameKey: VersionHash]

  /// How sure it is that two bundles are of one model.
  private enum Kinship: Int { case none, likely, probable, certain }

  /// - Throws: ``ModelError``.
  init(_ bundles: [[ModelVersion]]) throws {
    let contents = try bundles.map { try $0.map(Self.content) }
    let names = bundles.map { $0.first?.bundleName }
    let pairs = bundles.indices.map { other in
      (0..<other).map { one in
        let hasOneName = names[one] != nil && names[one] == names[other]
        let isSingle = contents[one].count == 1 || contents[other].count == 1
        return contents[one].flatMap { first in
          contents[other].map {
            Self.kinship(first, $0, hasOneName: hasOneName, isSingle: isSingle).rawValue
          }
        }.max() ?? Kinship.none.rawValue
      }
    }
    func families(_ least: Kinship) -> [Int] {
      Self.families(bundles.count) { one, other in pairs[other][one] >= least.rawValue }
    }
    (certain, probable, likely) = (families(.certain), families(.probable), families(.likely))
  }

  /// - Parameters:
  ///   - hasOneName: Their bundles have.
  ///   - isSingle: One of them was given by itself.
  private static func kinship(
    _ one: Content, _ other: Content, hasOneName: Bool, isSingle: Bool
  ) -> Kinship {
    if one == other, !one.isEmpty { return .certain }
    let common = one.keys.filter { other[$0] != nil }
    guard hasOneName || isSingle, !common.isEmpty else { return .none }
    if hasOneName || common.contains(where: { one[$0] != other[$0] }) { return .certain }
    return common.count == min(one.count, other.count) ? .probable : .likely
  }

  /// Entities by what a mapping is inferred by.
  private static func content(_ version: ModelVersion) throws -> Content {
    let hashes = try version.hierarchy().versionHashes
    return Dictionary(
      version.model.entities.compactMap { entity in
        hashes[entity.name].map { (NameKey(entity.mappingKey), $0) }
      }, uniquingKeysWith: { first, _ in first })
  }

  private static func families(_ count: Int, _ areOne: (Int, Int) -> Bool) -> [Int] {
    var families = Array(0..<count)
    for other in 0..<count {
      for one in 0..<other where families[one] != families[other] && areOne(one, other) {
        // The number of the first that was given.
        let kept = min(families[one], families[other])
        let replaced = max(families[one], families[other])
        families = families.map { $0 == replaced ? kept : $0 }
      }
    }
    return families
  }
}
