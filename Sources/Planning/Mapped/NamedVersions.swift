import GodwitMapping
import GodwitObjectModel

/// The versions at hand with their names, which mapping models record.
///
/// Which mapping models are for two versions is said here alone, for a migration in one step and for
/// every step of a chain.
struct NamedVersions {
  private struct Version {
    let name: String
    let hashes: [EntityName: VersionHash]
    /// Of the versions that it is the merger of.
    let parts: [[EntityName: VersionHash]]
  }

  /// One side of a step.
  struct End {
    /// The model that mapping models are made for.
    let whole: EntityHierarchy
    /// The versions of its hashes, and of those of the parts that it was merged from.
    let names: Set<String>
    /// Further versions in which the store's part of the model is the same: a store of one
    /// configuration may be of any of them.
    let alternatives: Set<String>
  }

  let given: Set<String>
  private let versions: [Version]

  /// - Throws: `ModelError`.
  init(_ versions: [ModelVersion]) throws {
    given = Set(versions.map(\.name))
    self.versions = try versions.map { version in
      Version(
        name: version.name, hashes: try version.hierarchy().versionHashes,
        parts: try version.parts.map { try $0.hierarchy().versionHashes })
    }
  }

  /// - Parameter part: What a store has of the model: less than all of it where it is of one
  ///   configuration.
  func end(_ whole: EntityHierarchy, part: EntityHierarchy) -> End {
    let hashes = whole.versionHashes
    let own = names { $0 == hashes }
    guard part.order.count < whole.order.count else {
      return End(whole: whole, names: own, alternatives: [])
    }
    let held = part.versionHashes
    let alike = names { other in held.allSatisfy { other[$0.key] == $0.value } }
    return End(whole: whole, names: own, alternatives: alike.subtracting(own))
  }

  private func names(where isSame: ([EntityName: VersionHash]) -> Bool) -> Set<String> {
    let found = versions.filter { isSame($0.hashes) }
    let parts = found.flatMap(\.parts)
    // Versions that differ in what no hash covers may bear several names.
    return Set((found + versions.filter { parts.contains($0.hashes) }).map(\.name))
  }

  /// The mapping models for a step.
  func choice(among files: [MappingFile], from source: End, to destination: End) -> MappingChoice {
    func choice(_ names: Set<String>) -> MappingChoice {
      MappingChoice(
        among: files.map { ($0.file, $0.document) }, source: source.whole,
        destination: destination.whole,
        versions: VersionNames(source: names, destination: destination.names, given: given))
    }
    let own = choice(source.names)
    guard own.matching.isEmpty, !source.alternatives.isEmpty else { return own }
    return choice(source.names.union(source.alternatives))
  }
}
