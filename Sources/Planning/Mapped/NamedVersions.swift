import GodwitMapping
import GodwitObjectModel

/// The versions at hand with their names, which mapping models record.
///
/// Which mapping models are for two versions is said here alone, for a migration in one step and for
/// every step of a chain.
struct NamedVersions {
  private struct Version {
    let name: VersionName
    let hashes: [EntityName: VersionHash]
    /// Of the versions that it is the merger of.
    let parts: [[EntityName: VersionHash]]
  }

  /// One side of a step.
  struct End {
    /// The model that mapping models are made for.
    let whole: EntityHierarchy
    /// The versions of its hashes, and of those of the parts that it was merged from.
    let names: Set<VersionName>
    /// Further versions in which the store's part of the model is the same: a store of one
    /// configuration may be of any of them.
    let alternatives: Set<VersionName>
  }

  let given: Set<VersionName>
  private let versions: [Version]

  /// - Throws: `ModelError`.
  init(_ versions: [ModelVersion]) throws {
    given = Set(versions.map { VersionName($0) })
    self.versions = try versions.map { version in
      Version(
        name: VersionName(version), hashes: try version.hierarchy().versionHashes,
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

  private func names(where isSame: ([EntityName: VersionHash]) -> Bool) -> Set<VersionName> {
    let found = versions.filter { isSame($0.hashes) }
    let parts = found.flatMap(\.parts)
    // Versions that differ in what no hash covers may bear several names.
    return Set((found + versions.filter { parts.contains($0.hashes) }).map(\.name))
  }

  /// The mapping models for a step.
  ///
  /// Hashes say more than names, but a file of entities that no version changes fits every step by
  /// them. So where its hashes fit the versions that it names, it is for these.
  ///
  /// - Parameter isInChain: Whether there are further steps that a file may be for. Where there are
  ///   none, hashes alone are enough, as in Core Data, unless another file names this step.
  func choice(
    among files: [MappingFile], from source: End, to destination: End, isInChain: Bool
  ) -> MappingChoice {
    func choice(
      _ names: Set<VersionName>, _ namesDecide: (MappingDocument) -> Bool
    ) -> MappingChoice {
      MappingChoice(
        among: files.map { ($0.file, $0.document) }, source: source.whole,
        destination: destination.whole,
        versions: VersionNames(source: names, destination: destination.names, given: given),
        namesDecide: namesDecide)
    }
    func choice(_ namesDecide: (MappingDocument) -> Bool) -> MappingChoice {
      let own = choice(source.names, namesDecide)
      guard own.matching.isEmpty, !source.alternatives.isEmpty else { return own }
      return choice(source.names.union(source.alternatives), namesDecide)
    }
    let named = choice { !$0.hasHashes || fitsItsNames($0) }
    guard named.matching.isEmpty, !isInChain else { return named }
    return choice { !$0.hasHashes }
  }

  /// Whether both versions that a file names are at hand, with the entities and hashes that it says.
  private func fitsItsNames(_ document: MappingDocument) -> Bool {
    func fits(
      _ name: VersionName?,
      _ end: (MappingDocument.Entry) -> (entity: EntityName?, hash: VersionHash?)
    ) -> Bool {
      let meant = name.map { given.meant(by: $0) } ?? []
      return versions.contains { version in
        meant.contains(version.name)
          && document.entityMappings.allSatisfy { entry in
            guard let entity = end(entry).entity else { return true }
            guard let actual = version.hashes[entity] else { return false }
            return end(entry).hash.map { $0 == actual } ?? true
          }
      }
    }
    let recorded = document.modelNames
    return fits(recorded.source) { ($0.source, $0.sourceHash) }
      && fits(recorded.destination) { ($0.destination, $0.destinationHash) }
  }
}
