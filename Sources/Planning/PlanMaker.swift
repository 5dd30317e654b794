import FoundationEssentials
import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Puts a plan together once nothing stands against it.
struct PlanMaker {
  let request: MigrationRequest
  let found: SourceModelSearch.Found
  /// The destination's model, uncut.
  let whole: EntityHierarchy
  let context: PlanContext
  let binding: StoreBinding
  /// Of the control tables and the schema.
  let acceptedDamage: [StoreFinding]
  /// Counted before.
  var losses: [Loss] = []

  func plan() throws -> MigrationPlan {
    let store = context.store
    try requireOwnTables()
    var tables = TablePlanner(context: context).plans()
    name(&tables)
    let joins = JoinTablePlanner(context: context).plans()
    let schema = DestinationSchema(context.destination)
    let foreign = try foreignTables(beside: schema)
    let triggers = try schema.carriedTriggers(
      from: binding, successors: SuccessorNames(context.inference))
    let history = try store.soundHistoryKeys()
    let notes =
      try found.notes + context.inference.notes.map(\.message) + schemaNotes(triggers)
      + context.carriedDerivationNotes + foreignKeyNotes(schema)
    var plan = MigrationPlan(
      sourcePath: store.files.store.string, sourceIdentity: store.identity,
      readPath: store.readPath.string,
      externalDataPath: store.files.externalDataFolder.string,
      destinationPath: (request.output ?? request.store).string,
      source: ModelIdentity(
        versionName: found.versionName,
        checksum: context.source.hierarchy.versionChecksum),
      destination: ModelIdentity(
        versionName: request.destination?.name,
        checksum: context.destination.hierarchy.versionChecksum),
      isLightweight: true, schema: schema.statements, control: try control(schema, history),
      tables: tables, joinTables: joins, foreignTables: foreign.map(\.table),
      triggers: triggers.statements, foreignIndexes: foreign.flatMap(\.indexes), units: [],
      audits: StoreSoundness.jobs(binding, findsKeys: false), notes: notes + history.notes)
    plan.rowLosses = losses
    plan.losses =
      try losses
      + LossCounter(
        binding: binding, census: context.census,
        successors: Succession([context.inference])
      ).losses()
    plan.acceptedDamage = acceptedDamage
    plan.units = try units(of: plan)
    plan.fingerprint =
      try request.keepsCheckpoints ? fingerprint(of: plan) : nameOfWork(plan)
    return plan
  }

  /// Tells programs what Core Data calls their entity mappings.
  private func name(_ tables: inout [TablePlan]) {
    let names = Dictionary(
      context.inference.mappingModel.entityMappings.compactMap { mapping in
        mapping.destinationEntity.map { ($0, mapping.name) }
      }, uniquingKeysWith: { first, _ in first })
    for table in tables.indices {
      for program in tables[table].entities.indices {
        guard let entity = tables[table].entities[program].destination else { continue }
        tables[table].entities[program].mapping = names[entity]
      }
    }
  }

  // MARK: Shards

  private func units(of plan: MigrationPlan) throws -> [Shard] {
    var units: [Shard] = []
    for (index, table) in plan.tables.enumerated() {
      guard let name = table.sourceTable, let census = context.census.tables[name] else { continue }
      units += try shards(
        .table(index), table: name, key: "Z_PK", keys: census.keys, rows: census.rows,
        bytes: census.bytes)
    }
    for (index, join) in plan.joinTables.enumerated() where join.way != .empty {
      let (keys, rows) = try JoinTablePlanner(context: context).extent(of: join)
      guard let source = join.keySources.first else { continue }
      units += try shards(
        .joinTable(index), table: source.table, key: source.column, keys: keys, rows: rows,
        bytes: rows * 32)
    }
    for (index, table) in plan.foreignTables.enumerated() {
      let size = try extent(ofForeign: table)
      units += try shards(
        .foreignTable(index), table: table.name, key: table.rowIDName ?? "", keys: size.keys,
        rows: size.rows, bytes: table.rowIDName == nil ? 1 : size.rows * 128)
    }
    return units
  }

  /// So many that one long one at the end keeps no worker waiting for another, whatever the number of
  /// workers: the cut is part of the plan.
  var shardBytes: Int64 {
    let all = context.census.tables.values.reduce(0) { $0 + $1.bytes }
    return max(1, min(request.shardBytes, max(MigrationRequest.leastShardBytes, all / 16)))
  }

  /// - Parameter entity: `Z_ENT` of the rows that count; nil for all rows of the table.
  func shards(
    _ subject: Shard.Subject, table: String, key: String, keys: ClosedRange<Int64>?, rows: Int64,
    bytes: Int64, entity: Int64? = nil
  ) throws -> [Shard] {
    let column = quoted(key)
    let condition = entity.map { " AND Z_ENT = \($0)" } ?? ""
    // Each search goes on behind the one before: together they walk the table once.
    var last = (place: Int64(0), key: keys?.lowerBound ?? .min)
    let plan = try ShardPlan(
      keys: keys, rows: rows, bytes: bytes, budgetBytes: shardBytes
    ) { place in
      let row = try context.store.connection.rows(
        """
        SELECT \(column)
          FROM \(quoted(table))
         WHERE \(column) > ?1\(condition)
         ORDER BY \(column)
         LIMIT 1 OFFSET ?2
        """, [.integer(last.key), .integer(place - last.place - 1)]
      ).first
      guard case .integer(let found)? = row?.first else { return nil }
      last = (place, found)
      return found
    }
    let each = plan.ranges.isEmpty ? 0 : bytes / Int64(plan.ranges.count)
    return plan.ranges.map { Shard(subject: subject, keys: $0, estimatedBytes: each) }
  }

  /// What of the two schemas a person should know.
  func schemaNotes(_ triggers: CarriedTriggers) throws -> [String] {
    try triggers.notes + context.destination.notes + context.store.foreignIssues()
      + binding.emptyTableNotes() + binding.constraintNotes()
  }

  // MARK: Foreign tables

  /// Each with the SQL of its indexes.
  ///
  /// - Throws: ``PlanError/unsupported(store:what:)`` for a table that cannot stand in the destination, or
  ///   that SQLite cannot make, read and fill without the application.
  func foreignTables(
    beside schema: DestinationSchema
  ) throws -> [(table: ForeignTablePlan, indexes: [String])] {
    let taken = Set(schema.statements.map { LayoutProblem.folded($0.name) })
    func unsupported(_ what: String) -> PlanError {
      .unsupported(store: request.store.string, what: what)
    }
    let tables = try context.store.foreignTables()
    guard !tables.isEmpty else { return [] }
    let trial = try Connection(path: ":memory:", mode: .create)
    try trial.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
    let numbers = EntityRenumbering(
      context.store, context.source, context.destination, successor: { context.successor[$0] })
    return try tables.map { table in
      if table.isVirtual {
        throw unsupported(
          "the virtual table \(table.name) cannot be carried faithfully: what its rows are only its "
            + "module knows. Drop it in a copy of the store, migrate that, and have the application "
            + "make it again")
      }
      let own = context.store.schemaObjects.first { object in
        (object.kind == .table || object.kind == .index && object.sql != nil)
          && object.table.isSameName(as: table.name)
          && taken.contains(LayoutProblem.folded(object.name))
      }
      if let own {
        throw unsupported(
          "the \(own.kind.rawValue) \(own.name) is none of the model's, and its name is one that the "
            + "destination needs; rename it")
      }
      try requireMakeable(table, in: trial)
      let plan = ForeignTablePlan(
        name: table.name, sql: table.sql, columns: table.columns,
        expressions: try table.columns.map { try expression($0, in: table.name, numbers) },
        rowIDName: table.rowIDName)
      return (plan, table.indexes)
    }
  }

  /// - Throws: ``PlanError/unsupported(store:what:)``.
  private func requireMakeable(_ table: ForeignTable, in trial: Connection) throws {
    do {
      try tryOut(table, in: trial)
    } catch let error as SQLiteError where error.isRefused {
      let reason =
        error.isDenied
        ? "its statement in the store's schema, or that of an index of it, would do something else than make it "
          + "in the store: \(error.message). Make it again in a copy of the store, and migrate that"
        : "SQLite cannot work with it without the application: \(error.message). Drop what needs it, the index "
          + "or the table, in a copy of the store, migrate that, and have the application make it again"
      throw PlanError.unsupported(
        store: request.store.string,
        what: "the table \(table.name) cannot be carried, because \(reason)")
    }
  }

  /// Collations and functions are an application's own: what is needed of a table is prepared, on the
  /// source and on an empty database.
  private func tryOut(_ table: ForeignTable, in trial: Connection) throws {
    try trial.define(.table, table.sql)
    for index in table.indexes { try trial.define(.index, index) }
    let columns = table.columns.map(quoted).joined(separator: ", ")
    guard !columns.isEmpty else { return }
    _ = try trial.prepare(
      "INSERT INTO \(quoted(table.name)) (\(columns)) SELECT \(columns) FROM \(quoted(table.name))")
    _ = try context.store.connection.prepare("SELECT \(columns) FROM \(quoted(table.name))")
  }

  /// - Throws: ``PlanError/unsupported(store:what:)`` for a number that changes in a table's key.
  private func expression(
    _ column: String, in table: String, _ numbers: EntityRenumbering
  ) throws -> String {
    guard let expression = try numbers.expression(column, in: table) else { return quoted(column) }
    // Its rows would have other keys, which others refer to.
    let shape = try context.store.connection.shape(of: table)
    if shape?.columns.contains(where: { $0.keyPlace > 0 && $0.name.columnKey == column.columnKey })
      == true
    {
      throw PlanError.unsupported(
        store: request.store.string,
        what:
          "the table \(table) has numbers of entities, which change, in its key \(column): Core Data makes none "
          + "like it")
    }
    return expression
  }

  func extent(ofForeign table: ForeignTablePlan) throws -> (
    keys: ClosedRange<Int64>?, rows: Int64
  ) {
    guard let rowID = table.rowIDName else { return (0...0, 1) }
    let key = quoted(rowID)
    let row =
      try context.store.connection.rows(
        // An index could hold something else than the table.
        "SELECT min(\(key)), max(\(key)), count(*) FROM \(quoted(table.name)) NOT INDEXED"
      ).first ?? []
    guard row.count == 3, case .integer(let low) = row[0], case .integer(let high) = row[1],
      case .integer(let count) = row[2]
    else { return (nil, 0) }
    return (low...high, count)
  }

  // MARK: Control tables

  private func control(_ schema: DestinationSchema, _ history: HistoryKeys) throws -> ControlRows {
    var highest: [EntityName: Int64] = [:]
    for root in context.destination.hierarchy.roots {
      let predecessors = context.destination.hierarchy.subtree(of: root)
        .compactMap(context.predecessor)
      for old in Set(predecessors.map(context.source.hierarchy.root)) {
        let table = context.source.table(of: old)?.name ?? ""
        let recorded = context.store.primaryKeys.first { row in
          row.number == context.sourceNumber(old)
        }?.highestKey
        let seen = context.census.tables[table]?.keys?.upperBound ?? 0
        highest[root] = max(highest[root] ?? 0, recorded ?? 0, seen)
      }
    }
    return try ControlRows(
      primaryKeys: schema.primaryKeys(
        highestKeys: highest, carrying: history.rows),
      storeUUID: context.store.metadata.uuid ?? "",
      metadata: context.store.metadata.bytes(migratedTo: context.destination.hierarchy),
      modelCache: try whole.modelCacheBytes(), of: context.store)
  }

  /// For work that no other run takes up, but for its commit: it tells runs apart, and costs no encoding of the plan.
  private func nameOfWork(_ plan: MigrationPlan) throws -> String {
    var digest = SHA256()
    for text in [
      plan.sourceIdentity.name, plan.sourcePath, plan.destinationPath, plan.source.checksum,
      plan.destination.checksum,
    ] { digest.update(Array(text.utf8) + [0]) }
    // Hashes do not cover defaults and renaming identifiers; the whole models do.
    for model in try [found.version?.hierarchy(), whole] {
      digest.update(try model?.identityBytes() ?? [])
    }
    return Hexadecimal.text(of: digest.finish())
  }

  func fingerprint(of plan: MigrationPlan) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return Hexadecimal.text(of: SHA256.digest(of: [UInt8](try encoder.encode(plan))))
  }
}
