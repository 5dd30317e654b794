import GodwitCheckpoints
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// `plan.json` of a run directory: written once, before the first checkpoint.
struct PlanFile {
  private let path: FilePath

  init(_ directory: RunDirectory) { path = directory.plan }

  /// The plan of an earlier run; nil when there is none.
  ///
  /// - Throws: Whatever makes it unreadable, `SealedJSONError` where it is not as it was written; the checkpoints
  ///   beside it are then of no use.
  func read() throws -> MigrationPlan? {
    try RegularFile.bytesIfPresent(of: path, limit: RunDirectory.largestFileBytes, isPrivate: true)
      .map(MigrationPlan.init(stored:))
  }

  func write(_ plan: MigrationPlan) throws {
    try DurableFile.write(plan.stored(), to: path)
  }
}

extension StoreAttempt {
  /// Compares the plan with the one in the run directory: the same, and its checkpoints count;
  /// another, and they are discarded.
  ///
  /// - Returns: The plan to go by, and whether work of an earlier run counts.
  mutating func takeUp(_ plan: MigrationPlan, _ folder: RunFolder) throws -> (
    plan: MigrationPlan, isResumed: Bool
  ) {
    if directory.memory != nil {
      try directory.discardDerived()
      return (plan, false)
    }
    let file = PlanFile(directory)
    do {
      if let earlier = try file.read() {
        if earlier.formatVersion == plan.formatVersion, earlier.fingerprint == plan.fingerprint {
          var plan = plan
          // The rows of its checkpoints have its time.
          if let runDate = earlier.mapped?.runDate { plan.mapped?.runDate = runDate }
          // Workers read the file: what stands in it must be this plan to the last byte.
          try file.write(plan)
          // Made of checkpoints alone, and without a digest of their own.
          try directory.discardDerived()
          return (plan, true)
        }
        discarded(
          "The store, a model or an option has changed since an earlier run; its work "
            + "is discarded.")
      }
    } catch {
      discarded("The plan of an earlier run cannot be read; its work is discarded.")
    }
    for stage in Stage.allCases { try folder.discard(stage) }
    try directory.discardDerived()
    try file.write(plan)
    return (plan, false)
  }

  private mutating func discarded(_ text: String) {
    result.notes.append(text)
    var event = RunEvent(.planDiscarded)
    event.message = text
    emit(event)
  }
}

extension MigrationPlan {
  /// Whether every path is the request's: what a run directory says is not taken for granted.
  func isOf(_ request: MigrationRequest, in directory: RunDirectory) -> Bool {
    let read = FilePath(readPath)
    return FilePath(sourcePath).isSamePlace(as: request.store)
      && FilePath(destinationPath).isSamePlace(as: request.destinationPath)
      && FilePath(externalDataPath).isSamePlace(as: StoreFiles(request.store).externalDataFolder)
      && (read.isSamePlace(as: request.store)
        || read.lastComponent.map { directory.snapshot.appending($0).isSamePlace(as: read) } == true)
  }
}

extension MigrationResult {
  mutating func take(_ plan: MigrationPlan, diskBytes: Int64?, withTables: Bool = false) {
    self.plan = Plan(plan, diskBytes: diskBytes, withTables: withTables)
    source = plan.source.versionName ?? plan.source.checksum
    destination = plan.destination.versionName ?? plan.destination.checksum
    notes += plan.notes
    losses += plan.losses
    storeUUID = plan.control.storeUUID
    sourceUUID = plan.mapped?.sourceUUID ?? storeUUID
  }
}

extension MigrationResult.Plan {
  fileprivate init(_ plan: MigrationPlan, diskBytes: Int64?, withTables: Bool) {
    fingerprint = plan.fingerprint
    sourceVersion = plan.source.versionName
    sourceChecksum = plan.source.checksum
    destinationVersion = plan.destination.versionName
    destinationChecksum = plan.destination.checksum
    shards = plan.units.count
    bytes = plan.rowBytes
    self.diskBytes = diskBytes
    guard withTables else { return }
    mappingModels = plan.mapped?.files ?? []
    mappings = plan.mapped?.mappings.map { mapping in
      Mapping(
        name: mapping.name, source: mapping.source?.rawValue,
        destination: mapping.destination?.rawValue, takes: mapping.filter ?? mapping.selection,
        policy: mapping.policy, hasNewKeys: mapping.table != nil && mapping.assignsKeys)
    }
    var costs: [String: (shards: Int, bytes: Int64)] = [:]
    for unit in plan.units {
      let name = plan.tableName(of: unit.subject) ?? ""
      costs[name, default: (0, 0)].shards += 1
      costs[name, default: (0, 0)].bytes += plan.rowBytes(of: unit)
    }
    let ways =
      plan.tables.map { ($0.name, $0.way.rawValue) }
      + plan.joinTables.map { ($0.name, $0.way.rawValue) }
      + plan.foreignTables.map { ($0.name, TableStrategy.carried.rawValue) }
    tables = ways.map { name, way in
      Table(
        name: name, way: way, shards: costs[name]?.shards ?? 0,
        bytes: min(bytes, costs[name]?.bytes ?? 0))
    }
  }
}

extension MigrationPlan {
  /// Bytes of the source's rows, an estimate: rows that several entity mappings take count once.
  var rowBytes: Int64 {
    var mappings: [Int: Int64] = [:]
    var bytes: Int64 = 0
    for unit in units {
      if case .mapping(let index) = unit.subject {
        mappings[index, default: 0] += unit.estimatedBytes
      } else {
        bytes += rowBytes(of: unit)
      }
    }
    var entities: [EntityName?: Int64] = [:]
    for (index, taken) in mappings {
      let source = mapped?.mappings[index].source
      entities[source] = max(entities[source] ?? 0, taken)
    }
    return min(entities.values.reduce(bytes, +), sourceIdentity.bytes)
  }

  /// Bytes of rows that a unit reads from the source. With mapping models, what units of tables and of pairs
  /// are estimated at is for scheduling alone.
  fileprivate func rowBytes(of unit: Shard) -> Int64 {
    switch unit.subject {
    case .mapping, .foreignTable: unit.estimatedBytes
    case .table, .joinTable, .inserted: mapped == nil ? unit.estimatedBytes : 0
    }
  }

  /// The destination's table that rows go to; nil for an entity mapping that makes none.
  func tableName(of subject: Shard.Subject) -> String? {
    switch subject {
    case .table(let index), .inserted(let index): tables[index].name
    case .joinTable(let index): joinTables[index].name
    case .foreignTable(let index): foreignTables[index].name
    case .mapping(let index): mapped?.mappings[index].table.map { tables[$0].name }
    }
  }
}
