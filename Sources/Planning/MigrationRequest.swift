import GodwitObjectModel
import SystemPackage

/// One store and what is wanted of it.
package struct MigrationRequest: Sendable {
  package var store: FilePath
  /// Every model version that was given, in the order given.
  package var models: [ModelVersion]
  /// The same, apart by the MODEL that each was given in: see ``MergedModels``.
  package var given = GivenModels.none
  /// True where the store is of a merger of the models given: see ``MergedModels``.
  package var isOfMergedModel = false
  /// The destination version. Nil: the current version of the models given. Where several models were
  /// given, a store's own follows from the two below, see ``MergedModels``.
  package var destination: ModelVersion?
  /// The versions of the name that somebody asked for, in the order given; none where nobody did.
  package var named: [ModelVersion] = []
  /// The current versions of the models given; of those of one model the last one counts.
  package var currents: [ModelVersion] = []
  /// The versions of the model that the store is of, which a chain may go through; nil for all that
  /// were given.
  package var line: [ModelVersion]?
  /// Core Data's `NSInferMappingModelAutomaticallyOption`.
  package var infersMapping: Bool
  /// Core Data's `NSMigratePersistentStoresAutomaticallyOption`.
  package var migrates: Bool
  /// Nil: the destination takes the source's place.
  package var output: FilePath?
  /// The run directory's `snapshot` folder, for a private clone of a store with a WAL.
  package var snapshotFolder: FilePath
  /// Row bytes that one shard should hold at most.
  package var shardBytes: Int64
  /// The operator's word that no other process has the store open. It only counts where that cannot
  /// be found out.
  package var isStoreOffline = false
  /// Carries on with a store that is not sound: what can be rebuilt is rebuilt, the rest is
  /// carried as found and reported.
  package var acceptsDamage: Bool
  /// Mapping models. Those that are for this pair of models win over inference, and are run one
  /// after the other.
  package var mappings: [MappingFile]
  /// Whether the mapping models are for several stores of different versions, as a pipeline's are:
  /// one that was made for other models than a store's is left out with a note, not refused.
  package var sharesMappings = false
  /// Gives every destination table new keys, as Core Data does. Otherwise `Z_PK` is kept where one
  /// source object gives one destination object.
  package var renumbersKeys: Bool
  /// False where all work is done again after a crash: nothing is compared with an earlier plan.
  package var keepsCheckpoints = true
  /// Whether the versions between the store's and the destination's are gone through.
  package var chain = Chain.direct
  /// What is done about rows, values and references that would be dropped.
  package var losses = LossPolicy.warn
  /// Whether a store whose version is none of the given ones may lose nothing, whatever ``losses`` is: a
  /// pipeline that does not say otherwise knows nothing of it.
  package var guardsUnknownVersions = false
  /// True in the steps of a chain whose store is of such a version: the steps' models have it.
  package var isOfUnknownVersion = false
  /// What the UUID of a mapping model's destination follows from; nil for the plan's fingerprint.
  package var identitySeed: String?
  /// What is done about rows that the destination's validation refuses.
  package var invalid = InvalidPolicy.fail
  /// The entity migration policies that mapping models may name.
  package var policies = RegisteredPolicies.none
  /// What ``Chain/staged`` goes by.
  package var stages: StagedMigration?

  /// 16 MiB. Large enough that opening a shard costs nothing beside its rows, small enough that
  /// a killed worker loses less than a second.
  package static let defaultShardBytes: Int64 = 16 << 20
  /// 2 MiB. No store is cut finer unless it is asked for.
  package static let leastShardBytes: Int64 = 2 << 20

  /// A store of so many bytes is never cut, see ``PlanMaker``.
  var undividedBytes: Int64 { min(shardBytes, Self.leastShardBytes) }

  package init(
    store: FilePath, models: [ModelVersion], destination: ModelVersion?,
    infersMapping: Bool = true, migrates: Bool = true, output: FilePath?,
    snapshotFolder: FilePath, shardBytes: Int64 = MigrationRequest.defaultShardBytes,
    acceptsDamage: Bool = false, mappings: [MappingFile] = [], renumbersKeys: Bool = false
  ) {
    self.store = store
    self.models = models
    self.destination = destination
    self.infersMapping = infersMapping
    self.migrates = migrates
    self.output = output
    self.snapshotFolder = snapshotFolder
    self.shardBytes = shardBytes
    self.acceptsDamage = acceptsDamage
    self.mappings = mappings
    self.renumbersKeys = renumbersKeys
  }
}

extension MigrationRequest {
  /// The versions that stores are to become, unless these are of a merged model: those of the name that somebody asked
  /// for, else the current one of each model.
  ///
  /// - Throws: ``ModelError``.
  package func destinations() throws -> [ModelVersion] {
    if !named.isEmpty { return named }
    let families = try given.families().likely
    var last: [Int: ModelVersion] = [:]
    for version in currents {
      let home = given.bundles.lastIndex { $0.contains { $0.isAtPath(of: version) } }
      if let home { last[families[home]] = version }
    }
    return last.isEmpty ? [destination].compactMap(\.self) : Array(last.values)
  }

  /// SHA-256 of the team's own code, in hexadecimal, where the destination depends on it: by
  /// stages, or by policies that a mapping model names. Nobody can see what code does, so another
  /// build of it counts as another.
  package var ownCodeDigest: String? {
    let namesPolicy = mappings.contains { file in
      file.document.entityMappings.contains { $0.policy != nil }
    }
    guard namesPolicy || (chain == .staged && stages != nil) else { return nil }
    return policies.codeDigest()
  }
}

/// How a store comes over several versions.
package enum Chain: String, Codable, Sendable, CaseIterable {
  /// In one step, as Core Data does. Source: `core-data-migration.md` §1.3.
  case direct
  /// By the cheapest safe way through the versions between, see ``VersionPath``.
  case progressive
  /// Through the stages of a ``StagedMigration``, as Core Data does where a store is opened with
  /// one.
  case staged
}

/// Why a store is not migrated, in the words of the contract's `reasons`.
public struct Reason: Codable, Sendable, Equatable {
  /// A refusal of inference such as `attribute-type`, or a class of damage such as `type`.
  public var reason: String
  /// The entity that is concerned; nil where it is the whole store.
  public var entity: String?
  /// The property of ``entity``; nil where it is the whole entity.
  public var property: String?
  /// `Z_PK` of the first rows that are the reason, 10 at most; nil where no row is.
  public var primaryKeys: [Int64]?
  /// How many rows are the reason; nil where no row is.
  public var count: Int64?
  /// What happened and what to do, in whole sentences.
  public var message: String
  /// The error of a policy's own code that is behind it.
  public var error: OwnError?

  /// How many primary keys a reason or a loss names.
  package static let mostPrimaryKeys = 10

  /// Makes a reason. Nothing is checked.
  package init(
    reason: String, entity: String? = nil, property: String? = nil, message: String,
    primaryKeys: [Int64]? = nil, count: Int64? = nil, error: OwnError? = nil
  ) {
    self.reason = reason
    self.entity = entity
    self.property = property
    self.message = message
    self.primaryKeys = primaryKeys
    self.count = count
    self.error = error
  }

  /// An error of a team's own code, as far as it can leave the process that it was thrown in.
  public struct OwnError: Codable, Sendable, Equatable {
    /// The Swift type with its module.
    public var type: String
    /// As Foundation bridges the error to `NSError`.
    public var domain: String
    /// The `NSError` code, which has its meaning in ``domain``.
    public var code: Int
    /// The error's own words. They are the team's: what they tell is not looked at.
    public var description: String

    /// Describes an error that was thrown in another process.
    package init(type: String, domain: String, code: Int, description: String) {
      self.type = type
      self.domain = domain
      self.code = code
      self.description = description
    }
  }
}

/// The outcome of planning.
package enum PlanOutcome: Sendable {
  /// The store opens under the destination model as it is.
  case sameModel(notes: [String])
  /// The rows, or a missing permission, forbid it. `code` is Core Data's.
  case refused(code: Int, [Reason])
  /// The models forbid inference and no mapping model was given.
  case needsMapping(code: Int, [Reason])
  case migrate(MigrationPlan)

  package var isSameModel: Bool { if case .sameModel = self { true } else { false } }
}
