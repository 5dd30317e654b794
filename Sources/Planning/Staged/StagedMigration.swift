/// Versions that lie one lightweight migration after the other. `NSLightweightMigrationStage`.
public struct LightweightMigrationStage: Sendable {
  /// Version checksums, the oldest first, in Base64 as `godwit model hash` prints them.
  public var versionChecksums: [String]
  /// For people.
  public var label: String?

  /// Makes a stage of versions. Whether models have these checksums is not checked.
  public init(_ versionChecksums: [String], label: String? = nil) {
    self.versionChecksums = versionChecksums
    self.label = label
  }
}

/// A lightweight migration with code of the team's own before and after it.
/// `NSCustomMigrationStage`.
public struct CustomMigrationStage: Sendable {
  /// Code over a store. What it throws ends the migration, and the store is as it was.
  public typealias Handler = @Sendable (StageContext) throws -> Void

  /// The version that the stage begins with.
  public var source: ModelReference
  /// The version that the stage ends with.
  public var destination: ModelReference
  /// For people.
  public var label: String?
  /// Sees the store under the source model.
  public var willMigrate: Handler?
  /// Sees the store under the destination model.
  public var didMigrate: Handler?

  /// Makes a stage between two versions. A handler that is nil does nothing.
  public init(
    from source: ModelReference, to destination: ModelReference, label: String? = nil,
    willMigrate: Handler? = nil, didMigrate: Handler? = nil
  ) {
    self.source = source
    self.destination = destination
    self.label = label
    self.willMigrate = willMigrate
    self.didMigrate = didMigrate
  }
}

/// One stage of a ``StagedMigration``.
public enum MigrationStage: Sendable {
  /// Versions that need no code between them.
  case lightweight(LightweightMigrationStage)
  /// Two versions with code before and after the migration between them.
  case custom(CustomMigrationStage)
}

/// Stages in an order that is the total order of a model's versions. `NSStagedMigrationManager`.
///
/// There is no mapping model in a stage: between two versions a mapping is always inferred. What
/// needs code is split into a version before and one after it, and a custom stage between them.
///
/// Source: `core-data-migration.md` §6.3.
public struct StagedMigration: Sendable {
  /// The stages in the order given.
  public let stages: [MigrationStage]
  /// Version checksums, the oldest first.
  package let order: [String]

  /// Checks the stages' checksums.
  ///
  /// - Throws: ``StagedMigrationError/duplicateChecksum(_:)``. A custom stage may begin with the
  ///   version that the stage before it ended with; that is one version, named twice.
  public init(_ stages: [MigrationStage]) throws(StagedMigrationError) {
    var order: [String] = []
    var seen: Set<String> = []
    var lastIsCustom = false
    for stage in stages {
      let checksums: [String]
      let isCustom: Bool
      switch stage {
      case .lightweight(let stage): (checksums, isCustom) = (stage.versionChecksums, false)
      case .custom(let stage):
        checksums = [stage.source.versionChecksum, stage.destination.versionChecksum]
        isCustom = true
      }
      for (place, checksum) in checksums.enumerated() {
        if place == 0, checksum == order.last, isCustom || lastIsCustom { continue }
        guard seen.insert(checksum).inserted else { throw .duplicateChecksum(checksum) }
        order.append(checksum)
      }
      lastIsCustom = isCustom
    }
    self.stages = stages
    self.order = order
  }

  /// One migration of a staged one.
  package enum Step: Sendable, Equatable {
    /// A mapping is inferred from one version to the other, over all between.
    case inferred(source: String, destination: String)
    /// The custom stage of that place in ``StagedMigration/stages``.
    case custom(stage: Int, source: String, destination: String)
  }

  /// The steps from a store's version to a destination.
  ///
  /// Versions of lightweight stages are no break points, however they are listed: one mapping is
  /// inferred from the oldest to the newest, and only a custom stage divides the way. A store that
  /// is already past a custom stage's source does not run it.
  ///
  /// - Parameters:
  ///   - store: What the store records as its version checksum; nil where it records none.
  ///   - destination: Nil: the newest version.
  package func steps(
    from store: String?, to destination: String? = nil
  ) throws(StagedMigrationError) -> [Step] {
    guard let store else { throw .frameworkVersionMismatch }
    guard let first = order.firstIndex(of: store) else { throw .unknownVersion(checksum: store) }
    var last = order.count - 1
    if let destination {
      guard let place = order.firstIndex(of: destination) else {
        throw .unknownVersion(checksum: destination)
      }
      last = place
    }
    guard first <= last else {
      throw .backwardMigration(store: store, destination: order[last])
    }
    var steps: [Step] = []
    var current = first
    func infer(to place: Int) {
      guard place > current else { return }
      steps.append(.inferred(source: order[current], destination: order[place]))
      current = place
    }
    for (number, stage) in stages.enumerated() {
      guard case .custom(let stage) = stage,
        let from = order.firstIndex(of: stage.source.versionChecksum),
        let to = order.firstIndex(of: stage.destination.versionChecksum),
        from >= current, to <= last
      else { continue }
      infer(to: from)
      steps.append(.custom(stage: number, source: order[from], destination: order[to]))
      current = to
    }
    infer(to: last)
    return steps
  }
}
