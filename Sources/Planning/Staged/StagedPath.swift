import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage

/// How a store goes through the stages of a staged migration: the models on its way, and where
/// handlers are called.
///
/// Source: `core-data-migration.md` §6.3.
package struct StagedPath: Sendable {
  package enum Step: Sendable {
    /// A lightweight migration.
    case migration(source: ModelVersion, destination: ModelVersion)
    /// A handler of the custom stage of that place, under the model.
    case handler(StageHandlerError.Phase, stage: Int, model: ModelVersion)
  }

  /// In order; empty when the store is of the destination's version.
  package let steps: [Step]
  package let stages: StagedMigration
  /// The store's own version.
  package let source: ModelVersion
  package let destination: ModelVersion
  /// What the whole way drops; nil where a handler may save it.
  package private(set) var losses: [Loss]?
  /// True where the store's version is not among the models given.
  package let isOfUnknownVersion: Bool

  /// Looks at the store's metadata and finds every model that is needed, before anything is done.
  ///
  /// The destination is the request's, as it is the model that Core Data is given beside its
  /// stages; else the newest version of the stages.
  ///
  /// - Throws: ``StagedMigrationError``, ``PlanError``, `StoreError`, `ModelError`.
  package init(_ request: MigrationRequest, _ stages: StagedMigration) throws {
    let store = try SourceStore(path: request.store, snapshotFolder: request.snapshotFolder)
    let request = try MergedModels.resolve(request, for: store)
    let found = try SourceModelSearch(store: store, models: request.models).find()
    // What the destination opens needs no stage, whatever versions they name.
    let wanted = try request.destination.map { try found.part(of: $0) }
    // Stages name whole versions, and a store of one configuration records the checksum of its part.
    let checksum = store.metadata.checksum.map {
      found.configuration == nil ? $0 : found.whole.versionChecksum
    }
    let planned =
      wanted?.versionHashes == store.metadata.versionHashes
      ? []
      : try stages.steps(from: checksum, to: request.destination?.hierarchy().versionChecksum)
    let own = found.ownVersion(
      unnamed: String(found.hierarchy.versionChecksum.prefix(8)), path: request.store)
    var models = try StageModels(
      stages, own: own, destination: request.destination,
      given: [found.version].compactMap(\.self) + request.models)
    var steps: [Step] = []
    for step in planned {
      switch step {
      case .inferred(let from, let to):
        steps.append(
          .migration(
            source: try models.version(of: from), destination: try models.version(of: to)))
      case .custom(let place, let from, let to):
        guard case .custom(let stage) = stages.stages[place] else { continue }
        let (old, new) = (try models.version(of: from), try models.version(of: to))
        if stage.willMigrate != nil {
          steps.append(.handler(.willMigrate, stage: place, model: old))
        }
        steps.append(.migration(source: old, destination: new))
        if stage.didMigrate != nil {
          steps.append(.handler(.didMigrate, stage: place, model: new))
        }
      }
    }
    self.steps = steps
    self.stages = stages
    source = own
    isOfUnknownVersion = found.versionName == nil
    destination =
      try planned.last.map { try models.version(of: $0.destination) } ?? request.destination ?? own
    try checkMappings(request, found)
    let migrations = steps.compactMap { step in
      if case .migration(let source, let destination) = step { (source, destination) } else { nil }
    }
    if migrations.count > 1, migrations.count == steps.count {
      let passed = [migrations[0].0] + migrations.map(\.1)
      losses = try LossCounter.losses(
        of: store, over: try passed.map { try found.part(of: $0) })
    }
  }

  /// Every mapping is inferred, so what cannot be is said before a handler is called.
  private func checkMappings(
    _ request: MigrationRequest, _ found: SourceModelSearch.Found
  ) throws {
    for case .migration(let source, let destination) in steps {
      guard request.infersMapping else {
        throw StagedMigrationError.missingMapping(
          source: source.name, destination: destination.name,
          [
            Reason(
              reason: "missing-mapping",
              message: "inferring is not permitted, and a stage has no mapping model.")
          ])
      }
      let inference = InferredMapping(
        source: try found.part(of: source), destination: try found.part(of: destination))
      guard inference.isPossible else {
        throw StagedMigrationError.missingMapping(
          source: source.name, destination: destination.name,
          inference.refusals.map(Reason.init(refusal:)))
      }
    }
  }
}

extension StagedPath {
  /// The label of a custom stage, or its two versions.
  package func name(ofStage place: Int) -> String {
    guard case .custom(let stage) = stages.stages[place] else { return "\(place + 1)" }
    return stage.label ?? "\(stage.source.name) → \(stage.destination.name)"
  }

  package func handler(_ phase: StageHandlerError.Phase, ofStage place: Int)
    -> CustomMigrationStage.Handler?
  {
    guard case .custom(let stage) = stages.stages[place] else { return nil }
    return phase == .willMigrate ? stage.willMigrate : stage.didMigrate
  }

  /// A line for each step: `Shop: willMigrate of fill titles`, `Shop → Shop 2: inferred`.
  package var lines: [String] {
    steps.map { step in
      switch step {
      case .migration(let source, let destination):
        "\(source.name) → \(destination.name): inferred"
      case .handler(let phase, let stage, let model):
        "\(model.name): \(phase.rawValue) of \(name(ofStage: stage))"
      }
    }
  }
}

extension StagedMigration.Step {
  /// The checksum of the version that the step leads to.
  fileprivate var destination: String {
    switch self {
    case .inferred(_, let destination), .custom(_, _, let destination): destination
    }
  }
}

/// The models of a staged migration by their checksums.
private struct StageModels {
  private let candidates: [ModelVersion]
  private let references: [ModelReference]
  private var known: [String: ModelVersion] = [:]

  /// - Parameter destination: The version of its checksum, whichever others have that.
  init(
    _ stages: StagedMigration, own: ModelVersion, destination: ModelVersion?, given: [ModelVersion]
  ) throws {
    // Of versions with one checksum the store's own comes first, or what it is a part of.
    candidates = [own] + given
    if let destination { known[try destination.hierarchy().versionChecksum] = destination }
    references = stages.stages.flatMap { stage -> [ModelReference] in
      guard case .custom(let stage) = stage else { return [] }
      return [stage.source, stage.destination]
    }
  }

  mutating func version(of checksum: String) throws -> ModelVersion {
    if let version = known[checksum] { return version }
    let reference =
      references.first { $0.versionChecksum == checksum }
      ?? ModelReference(name: "of a lightweight stage", versionChecksum: checksum)
    let version = try reference.resolved(among: candidates)
    known[checksum] = version
    return version
  }
}
