import GodwitExpressions
import GodwitObjectModel

/// Why a mapping model is not for a pair of models.
package struct MappingMismatch: Sendable, Equatable {
  /// Which of the two models does not fit.
  package enum Side: String, Sendable {
    /// The model before, and the model after the migration.
    case source, destination
  }

  /// What does not fit.
  package enum Reason: Sendable, Equatable {
    /// The version hash differs.
    case otherVersion
    /// The model has no entity of this name.
    case unknownEntity
    /// The entity has no property of this name.
    case unknownProperty(String)
  }

  /// The mapping model's file.
  package var file: String
  /// The entity mapping.
  package var mapping: String
  /// The model that does not fit.
  package var side: Side
  /// The entity that the mapping model names.
  package var entity: EntityName
  /// What does not fit.
  package var reason: Reason
  /// A name that the model has and that is spelled much like the one it does not have.
  package var suggestion: String?
  /// Whether the file says by a version hash, or by the names of its models, that it was made for
  /// others than these: then it may be left out where files for several pairs were given.
  package var namesOtherModels: Bool
  /// The version that the file names in place of the model; nil where something else does not fit.
  package var recordedName: String?

  /// Makes a mismatch. Nothing is checked.
  package init(
    file: String, mapping: String, side: Side, entity: EntityName, reason: Reason,
    suggestion: String? = nil, namesOtherModels: Bool = false
  ) {
    self.file = file
    self.mapping = mapping
    self.side = side
    self.entity = entity
    self.reason = reason
    self.suggestion = suggestion
    self.namesOtherModels = namesOtherModels
  }
}

extension MappingMismatch {
  /// The property that the model does not have; nil where the entity is what differs.
  package var property: String? {
    if case .unknownProperty(let name) = reason { name } else { nil }
  }
}

extension MappingMismatch: CustomStringConvertible {
  /// Why the file is not used.
  package var description: String {
    let hint = suggestion.map { " Did you mean \($0)?" } ?? ""
    if let recordedName {
      return "\(file) is not used: it names \(recordedName) as its \(side.rawValue) model."
    }
    return switch reason {
    case .otherVersion:
      "\(file) is not used: it was made for another version of the \(side.rawValue) entity \(entity) (\(mapping))."
    case .unknownEntity:
      "\(file) is not used: it names the \(side.rawValue) entity \(entity) (\(mapping)), which the "
        + "model does not have." + hint
    case .unknownProperty(let name):
      "\(file) is not used: it names \(entity).\(name) (\(mapping)), which the \(side.rawValue) model "
        + "does not have." + hint
    }
  }
}

/// What the two versions of a migration are called, and every version at hand: what a mapping model
/// records of its models is compared with these.
package struct VersionNames: Sendable {
  /// Of the versions that have the source's hashes.
  package var source: Set<VersionName>
  /// Of the versions that have the destination's hashes.
  package var destination: Set<VersionName>
  /// Of all versions that were given. A name that is not among them says nothing.
  package var given: Set<VersionName>

  package init(
    source: Set<VersionName>, destination: Set<VersionName>, given: Set<VersionName>
  ) {
    self.source = source
    self.destination = destination
    self.given = given
  }

  /// The first model of a file that is one at hand, and not the one of this pair.
  fileprivate func other(
    in document: MappingDocument
  ) -> (side: MappingMismatch.Side, name: String)? {
    let recorded = document.modelNames
    if let name = recorded.source, isOther(name, than: source) {
      return (.source, text(of: name))
    }
    if let name = recorded.destination, isOther(name, than: destination) {
      return (.destination, text(of: name))
    }
    return nil
  }

  private func isOther(_ name: VersionName, than own: Set<VersionName>) -> Bool {
    let meant = given.meant(by: name)
    return !meant.isEmpty && meant.isDisjoint(with: own)
  }

  /// With its bundle where the name alone is that of several.
  private func text(of name: VersionName) -> String {
    let isShared = given.count(where: { $0.name == name.name }) > 1
    return name.name + (isShared ? name.bundle.map { " of \($0)" } ?? "" : "")
  }

  /// Whether a file names a version that is none of these, at hand or not. Nothing is known of versions
  /// without a name.
  fileprivate func isOther(_ name: VersionName?, thanKnown own: Set<VersionName>) -> Bool {
    guard let name, !own.isEmpty else { return false }
    return given.meant(by: name).isDisjoint(with: own)
  }
}

/// Finds the mapping models for a pair of models.
///
/// All version hashes of a file must agree with both models. Xcode's source form has none; there
/// every entity and every destination property that it names must exist, and the models that it
/// names must be those of the pair, as far as versions of these names are at hand: a file of one
/// step mostly fits the next one, too. So does one with hashes of entities alone that no version
/// changes. Entities that a file does not mention are not compared, by Core Data neither, so
/// ``MappingCheck`` says what is uncovered.
///
/// Source: `core-data-migration.md` §3.5.
package struct MappingChoice: Sendable {
  /// Places in the list of candidates, in its order.
  package let matching: [Int]
  /// Of the candidates that do not match; the first of each.
  package let mismatches: [MappingMismatch]

  /// Chooses among several files for one step.
  ///
  /// - Parameter names: The names of the versions that have the source's hashes, and of those that
  ///   have the destination's. A file without hashes that names one of these for the other is not
  ///   for this step.
  package init(
    among candidates: [(file: String, document: MappingDocument)], source: EntityHierarchy,
    destination: EntityHierarchy,
    names: (source: Set<VersionName>, destination: Set<VersionName>) = ([], [])
  ) {
    self.init(
      among: candidates, source: source, destination: destination,
      versions: VersionNames(
        source: names.source, destination: names.destination,
        given: names.source.union(names.destination)))
  }

  /// Likewise, where further versions are at hand: a file that names one of them is for that one.
  ///
  /// - Parameter namesDecide: Whether what a file with fitting entities names as its models counts.
  package init(
    among candidates: [(file: String, document: MappingDocument)], source: EntityHierarchy,
    destination: EntityHierarchy, versions: VersionNames,
    namesDecide: (MappingDocument) -> Bool = { !$0.hasHashes }
  ) {
    var matching: [Int] = []
    var mismatches: [MappingMismatch] = []
    let hashes = (source.versionHashes, destination.versionHashes)
    for (place, candidate) in candidates.enumerated() {
      let document = candidate.document
      let all = document.entityMappings.compactMap {
        Self.mismatch($0, of: candidate.file, source, destination, hashes)
      }
      let other = versions.other(in: document)
      guard var first = all.first else {
        if namesDecide(document), let other,
          let mismatch = Self.mismatch(of: candidate.file, document, naming: other)
        {
          mismatches.append(mismatch)
        } else {
          matching.append(place)
        }
        continue
      }
      let recorded = document.modelNames
      first.namesOtherModels =
        other != nil || all.contains { $0.reason == .otherVersion }
        || versions.isOther(recorded.source, thanKnown: versions.source)
        || versions.isOther(recorded.destination, thanKnown: versions.destination)
      mismatches.append(first)
    }
    self.matching = matching
    self.mismatches = mismatches
  }

  /// Nil for a file that names no entity: it is for no models at all, which ``MappingCheck`` says.
  private static func mismatch(
    of file: String, _ document: MappingDocument,
    naming other: (side: MappingMismatch.Side, name: String)
  ) -> MappingMismatch? {
    for entry in document.entityMappings {
      let own = other.side == .source ? entry.source : entry.destination
      guard let entity = own ?? entry.source ?? entry.destination else { continue }
      var mismatch = MappingMismatch(
        file: file, mapping: entry.effectiveName, side: other.side, entity: entity,
        reason: .otherVersion, namesOtherModels: true)
      mismatch.recordedName = other.name
      return mismatch
    }
    return nil
  }

  private static func mismatch(
    _ entry: MappingDocument.Entry, of file: String, _ source: EntityHierarchy,
    _ destination: EntityHierarchy,
    _ hashes: ([EntityName: VersionHash], [EntityName: VersionHash])
  ) -> MappingMismatch? {
    func mismatch(
      _ side: MappingMismatch.Side, _ entity: EntityName, _ reason: MappingMismatch.Reason
    ) -> MappingMismatch {
      MappingMismatch(
        file: file, mapping: entry.effectiveName, side: side, entity: entity, reason: reason,
        suggestion: suggestion(side, entity, reason))
    }
    func suggestion(
      _ side: MappingMismatch.Side, _ entity: EntityName, _ reason: MappingMismatch.Reason
    ) -> String? {
      let model = side == .source ? source : destination
      return switch reason {
      case .otherVersion: nil
      case .unknownEntity:
        Spelling.closest(to: entity.rawValue, among: model.order.map(\.rawValue))
      case .unknownProperty(let name):
        Spelling.closest(to: name, among: model.properties(of: entity).map(\.property.name))
      }
    }
    if let entity = entry.source {
      guard let actual = hashes.0[entity] else { return mismatch(.source, entity, .unknownEntity) }
      if let hash = entry.sourceHash, hash != actual {
        return mismatch(.source, entity, .otherVersion)
      }
    }
    guard let entity = entry.destination else { return nil }
    guard let actual = hashes.1[entity] else {
      return mismatch(.destination, entity, .unknownEntity)
    }
    if let hash = entry.destinationHash {
      return hash == actual ? nil : mismatch(.destination, entity, .otherVersion)
    }
    // Without source objects no row is evaluated, so nothing in it decides.
    guard entry.source != nil || entry.policy != nil else { return nil }
    for row in entry.attributes + entry.relationships
    where destination.property(row.name, of: entity) == nil {
      return mismatch(.destination, entity, .unknownProperty(row.name))
    }
    return nil
  }
}
