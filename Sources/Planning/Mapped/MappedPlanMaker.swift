import FoundationEssentials
import GodwitDigests
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Puts the plan of a migration by mapping models together.
///
/// Source: `core-data-migration.md` §5; keys, store UUID and history: §5.4.
struct MappedPlanMaker {
  let maker: PlanMaker
  let mapped: MappedPlanner

  private var context: PlanContext { maker.context }
  private var request: MigrationRequest { maker.request }

  func plan() throws -> MigrationPlan {
    try maker.requireOwnTables()
    let schema = DestinationSchema(context.destination)
    let triggers = try schema.carriedTriggers(
      from: maker.binding,
      successors: SuccessorNames(mapped.models, source: context.source.hierarchy),
      without: Self.isCoreDataOwn)
    let foreign = try maker.foreignTables(beside: schema)
    let carried = foreign.filter { !Self.isCoreDataOwn($0.table.name) }
    let dropped = foreign.map(\.table.name).filter(Self.isCoreDataOwn)
    var notes = mapped.notes + mapped.warnings()
    notes += mapped.repetitions.compactMap { repetition in
      let count = context.census.entities[repetition.source]?.count ?? 0
      return count > 0 ? repetition.note(mapped.files, count: count) : nil
    }
    notes += try maker.found.notes + maker.schemaNotes(triggers)
    notes += try maker.foreignKeyNotes(nil, dropping: dropped)
    if !dropped.isEmpty {
      notes.append(
        "History and CloudKit tables are not carried by a migration with a mapping model: "
          + dropped.sorted { $0.precedesInBytes($1) }.joined(separator: ", ") + ".")
    }
    var builder = try MappedBuilder(
      context: context, models: mapped.models, renumbers: request.renumbersKeys,
      policies: request.policies)
    try builder.build()
    notes += builder.notes
    let store = context.store
    let (source, destination) = (context.source.hierarchy, context.destination.hierarchy)
    var plan = MigrationPlan(
      sourcePath: store.files.store.string, sourceIdentity: store.identity,
      readPath: store.readPath.string,
      externalDataPath: store.files.externalDataFolder.string,
      destinationPath: (request.output ?? request.store).string,
      source: ModelIdentity(
        versionName: maker.found.versionName, checksum: source.versionChecksum),
      destination: ModelIdentity(
        versionName: request.destination?.name, checksum: destination.versionChecksum),
      isLightweight: false, schema: schema.statements,
      control: try ControlRows(
        primaryKeys: schema.primaryKeys(highestKeys: [:]), storeUUID: "",
        metadata: store.metadata.bytes(migratedTo: destination, keepsHistory: false),
        modelCache: try maker.whole.modelCacheBytes(), of: store),
      tables: builder.tables, joinTables: builder.joinTables,
      foreignTables: carried.map(\.table),
      triggers: triggers.statements,
      foreignIndexes: carried.flatMap(\.indexes), units: [],
      audits: StoreSoundness.jobs(maker.binding), notes: notes)
    plan.mapped = builder.mapped
    plan.mapped?.files = mapped.files.map {
      FilePath($0.file).named.lastComponent?.string ?? $0.file
    }
    plan.acceptedDamage = maker.acceptedDamage
    plan.units = try units(of: plan)
    plan.control.storeUUID = Self.uuid(
      of: try request.identitySeed ?? maker.fingerprint(of: plan), store.metadata.uuid)
    plan.losses =
      try LossCounter(
        binding: maker.binding, census: context.census,
        successors: MappedSuccession(
          mapped.models.flatMap(\.entityMappings), source: source, destination: destination)
      ).losses() + Loss.history(of: context, dropping: dropped)
    plan.fingerprint = try maker.fingerprint(of: plan)
    // Two plans that differ in nothing else are one: whoever resumes takes the time of the earlier.
    if readsClock {
      plan.mapped?.runDate = Date().timeIntervalSinceReferenceDate
    }
    return plan
  }

  /// Whether a row may depend on when the store is migrated, policies and derivations included.
  private var readsClock: Bool {
    mapped.models.contains { model in
      model.entityMappings.contains { mapping in
        let isSelectedByTime =
          switch mapping.sourceSelection {
          case .all: false
          case .filter(let predicate): predicate.readsClock
          case .expression(let expression): expression.readsClock
          }
        let rows = mapping.properties.attributes + mapping.properties.relationships
        return mapping.policy != nil || isSelectedByTime
          || rows.contains { $0.expression?.readsClock ?? false }
      }
    }
      || context.destination.hierarchy.model.entities.contains { entity in
        entity.properties.contains {
          $0.attribute?.derivationExpression?.contains("now") ?? false
        }
      }
  }

  /// History and CloudKit mirroring refer to objects by keys and entity numbers of the source.
  static func isCoreDataOwn(_ table: String) -> Bool {
    table.isHistoryTable || table.isMirroringTable
  }

  /// A new store UUID that follows from the plan, so that a rerun gives the same: the form of a
  /// random UUID (version 4), made of a SHA-256.
  static func uuid(of fingerprint: String, _ source: String?) -> String {
    var bytes = Array(
      SHA256.digest(of: Array((fingerprint + (source ?? "")).utf8)).prefix(16))
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = Array(Hexadecimal.text(of: bytes).uppercased())
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
      .joined(separator: "-")
  }

  // MARK: Shards

  private func units(of plan: MigrationPlan) throws -> [Shard] {
    var units: [Shard] = []
    let hasPolicies = plan.mapped?.policyCode != nil
    for (index, mapping) in (plan.mapped?.mappings ?? []).enumerated()
    where mapping.table != nil || mapping.policy != nil {
      // A policy's hooks run without source objects, too.
      if mapping.policy != nil, mapping.isWhole || !hasRows(mapping) {
        let bytes = mapping.sourceTable.flatMap { context.census.tables[$0]?.bytes } ?? 0
        units.append(
          Shard(
            subject: .mapping(index), keys: Int64.min...Int64.max, estimatedBytes: bytes))
        continue
      }
      guard let source = mapping.source, let name = mapping.sourceTable,
        let table = context.census.tables[name], let rows = context.census.entities[source],
        let keys = rows.keys, rows.count > 0
      else { continue }
      if mapping.selection != nil {
        units.append(
          Shard(subject: .mapping(index), keys: keys, estimatedBytes: table.bytes))
        continue
      }
      let bytes =
        table.rows > 0
        ? Int64(Double(table.bytes) * min(1, Double(rows.count) / Double(table.rows))) : 0
      units += try maker.shards(
        .mapping(index), table: name, key: "Z_PK", keys: keys, rows: rows.count, bytes: bytes,
        entity: context.sourceNumber(source))
    }
    for (index, table) in plan.tables.enumerated() where table.way == .computed {
      units += try verifyUnits(of: index, table, plan)
      if hasPolicies {
        units.append(
          Shard(subject: .inserted(index), keys: Int64.min...Int64.max, estimatedBytes: 1))
      }
    }
    for (index, join) in plan.joinTables.enumerated() where join.way == .computed {
      units += try joinUnits(of: index, plan)
    }
    for (index, table) in plan.foreignTables.enumerated() {
      let size = try maker.extent(ofForeign: table)
      units += try maker.shards(
        .foreignTable(index), table: table.name, key: table.rowIDName ?? "", keys: size.keys,
        rows: size.rows, bytes: table.rowIDName == nil ? 1 : size.rows * 128)
    }
    return units
  }

  private func hasRows(_ mapping: EntityMappingPlan) -> Bool {
    mapping.source.flatMap { context.census.entities[$0]?.count } ?? 0 > 0
  }

  /// Ranges of a join table's first keys: those of the objects that they are keys of.
  private func joinUnits(of index: Int, _ plan: MigrationPlan) throws -> [Shard] {
    let owner = (plan.mapped?.groups ?? []).first {
      if case .join(index, _, _, _) = $0.target { true } else { false }
    }
    let name = owner.flatMap { context.destination.table(of: $0.entity)?.name }
    let table = plan.tables.firstIndex { $0.name == name }
    let ranges = try table.map { try verifyUnits(of: $0, plan.tables[$0], plan) } ?? []
    guard ranges.count > 1 else {
      return [
        Shard(subject: .joinTable(index), keys: Int64.min...Int64.max, estimatedBytes: 1 << 20)
      ]
    }
    return ranges.map {
      Shard(subject: .joinTable(index), keys: $0.keys, estimatedBytes: 1 << 20)
    }
  }

  /// Ranges of destination keys in which the written file is read back: those of the source where
  /// keys are kept, else 1 to the most that there may be. A filter may leave the last ones empty.
  private func verifyUnits(of index: Int, _ table: TablePlan, _ plan: MigrationPlan) throws
    -> [Shard]
  {
    let mappings = (plan.mapped?.mappings ?? []).filter { $0.table == index }
    var bytes: Int64 = 0
    var keys: ClosedRange<Int64>?
    var rows: Int64 = 0
    for mapping in mappings {
      guard let source = mapping.source, let found = context.census.entities[source],
        let all = mapping.sourceTable.flatMap({ context.census.tables[$0] }), let range = found.keys
      else { continue }
      rows += found.count
      bytes +=
        all.rows > 0
        ? Int64(Double(all.bytes) * Double(found.count) / Double(all.rows)) : 0
      keys =
        keys.map {
          min($0.lowerBound, range.lowerBound)...max($0.upperBound, range.upperBound)
        } ?? range
    }
    guard rows > 0, let keys, let first = mappings.first else {
      // Only a policy may make rows where no source object does.
      return plan.mapped?.policyCode == nil
        ? []
        : [
          Shard(subject: .table(index), keys: Int64.min...Int64.max, estimatedBytes: 1)
        ]
    }
    let range = first.assignsKeys ? 1...rows : keys
    let budget = maker.shardBytes
    let pieces = bytes / budget + (bytes % budget > 0 ? 1 : 0)
    let wanted = max(1, min(pieces, rows, 10_000))
    // Whatever the numbers say, every key that a policy may have given is looked at.
    // Equal ranges will do: where keys are sparse some hold fewer rows.
    let width = UInt64(bitPattern: range.upperBound) &- UInt64(bitPattern: range.lowerBound)
    let cut = ShardPlan(
      keys: range, rows: max(rows, Int64(clamping: width)), bytes: wanted, budgetBytes: 1,
      boundary: { _ in nil })
    return cut.ranges.enumerated().map { place, part in
      Shard(
        subject: .table(index),
        keys: (place == 0 ? Int64.min : part.lowerBound)...(place == cut.ranges.count - 1
          ? Int64.max : part.upperBound), estimatedBytes: bytes / Int64(cut.ranges.count))
    }
  }
}
