import GodwitCheckpoints
import GodwitDigests
import GodwitDurableFiles
import GodwitExpressions
import GodwitPages
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What every stage of one run works with: the plan, the source, and where checkpoints go.
///
/// The source is opened so that SQLite can write nothing beside it.
final class ShardContext {
  let plan: MigrationPlan
  let run: RunDirectory
  let source: Connection
  /// Kept over the units of a run, so that a map of a table is made once.
  let targets: TargetFinder
  private let tables: DestinationTables
  private var rawTables: [SourceColumns: RawTable?] = [:]
  private(set) var assembled: AssembledStore?
  private var assembledTargets: TargetFinder?
  private var verifiedTables: [Shard.Subject: VerifiedTable] = [:]
  let fingerprint: [UInt8]
  let policies: PolicyRegistry
  /// Offsets, associations and expressions, where the plan has entity mappings.
  private(set) lazy var mapped = MappedContext(
    plan: plan, run: run, source: source, targets: targets)

  /// - Parameters:
  ///   - plan: Nil for the one in the run directory.
  ///   - source: The file that the plan says is read, where it is open.
  init(
    run: RunDirectory, plan: MigrationPlan? = nil, policies: PolicyRegistry = PolicyRegistry(),
    source: Connection? = nil
  ) throws {
    self.policies = policies
    self.run = run
    let plan = try plan ?? Self.readPlan(run.plan)
    self.plan = plan
    tables = DestinationTables.of(plan)
    guard let fingerprint = Hexadecimal.bytes(of: plan.fingerprint), fingerprint.count == 32 else {
      throw StageError.unreadablePlan(path: run.plan.string, reason: "it has no fingerprint")
    }
    self.fingerprint = fingerprint
    let source = try source ?? Connection(path: plan.readPath, mode: .immutable)
    self.source = source
    // 24 MiB: look-ups and index checks go over the whole file again and again.
    try source.execute("PRAGMA cache_size = -24576")
    try source.execute("PRAGMA temp_store = FILE")
    for derivation in TextDerivation.allCases {
      try source.registerTextFunction(derivation.sqlName, derivation.apply)
    }
    targets = TargetFinder(source)
  }

  /// A source table whose pages can be read; nil where SQLite has to read it.
  func rawTable(_ columns: SourceColumns) throws -> RawTable? {
    // A pass reads the same columns for every shard of a table.
    if let known = rawTables[columns] { return known }
    let raw =
      columns.expressions.isEmpty
      ? try RawTable(columns.table, columns: columns.all, in: source) : nil
    rawTables[columns] = .some(raw)
    return raw
  }

  /// A destination table that is written by pages; nil where SQLite has to write it.
  func covered(_ table: TablePlan) throws -> CoveredTable? { try tables.covered(table) }

  func openAssembled(_ path: String) throws {
    try openAssembled(
      AssembledStore(
        at: FilePath(path), model: plan.control.hierarchy(), snapshotFolder: run.snapshot))
  }

  func openAssembled(_ store: AssembledStore) throws {
    let connection = store.binding.store.connection
    try connection.execute("PRAGMA cache_size = -8192")
    try connection.execute("PRAGMA temp_store = FILE")
    assembled = store
    verifiedTables = [:]
    // The maps of the source have served: those of the destination get their memory.
    targets.removeMaps()
    assembledTargets = nil
  }

  /// - Parameter what: What wants it, for the message of the error.
  func openedAssembled(_ what: String) throws -> Connection {
    guard let assembled else {
      throw StageError.outOfOrder("\(what) before the destination was assembled")
    }
    return assembled.binding.store.connection
  }

  /// What is to be asked of the assembled destination. Every process makes the same list.
  func destinationJobs() throws -> [StoreSoundness.DestinationJob] {
    guard let assembled else {
      throw StageError.outOfOrder("a look at the destination before it was assembled")
    }
    return assembled.jobs
  }

  func destinationTargets() throws -> TargetFinder {
    let finder = try assembledTargets ?? TargetFinder(openedAssembled("a verification"))
    assembledTargets = finder
    return finder
  }

  func verifiedTable(of unit: Int) throws -> VerifiedTable {
    let subject = try shard(unit).subject
    let table =
      try verifiedTables[subject]
      ?? VerifiedTable(of: subject, plan, in: openedAssembled("a verification"))
    verifiedTables[subject] = table
    return table
  }

  func table(_ unit: Int) throws -> (Shard, TablePlan) {
    let shard = try shard(unit)
    guard case .table(let index) = shard.subject, plan.tables.indices.contains(index) else {
      throw StageError.outOfOrder("unit \(unit), which is not a table")
    }
    return (shard, plan.tables[index])
  }

  func shard(_ unit: Int) throws -> Shard {
    guard plan.units.indices.contains(unit) else {
      throw StageError.outOfOrder("unit \(unit) of \(plan.units.count)")
    }
    return plan.units[unit]
  }

  func writer(_ stage: Stage, _ unit: Int) throws -> CheckpointWriter {
    try run.writer(stage, unit, fingerprint: fingerprint)
  }

  func reader(_ stage: Stage, _ unit: Int) throws -> CheckpointReader {
    try run.reader(stage, unit, fingerprint: fingerprint)
  }

  private static func readPlan(_ path: FilePath) throws -> MigrationPlan {
    do {
      let bytes = try RegularFile.bytes(
        of: path, limit: RunDirectory.largestFileBytes, isPrivate: true)
      return try MigrationPlan(stored: bytes)
    } catch {
      throw StageError.unreadablePlan(path: path.string, reason: "\(error)")
    }
  }
}

/// Values of one row, without ownership: the working memory of a stage.
package struct RowValues: ~Copyable {
  package let values: UnsafeMutablePointer<RawValue>
  let count: Int

  package init(count: Int) {
    self.count = count
    values = .allocate(capacity: max(count, 1))
    values.initialize(repeating: .null, count: max(count, 1))
  }

  deinit { values.deallocate() }
}

/// Which entity program serves a row, by the row's `Z_ENT`: an array, not a dictionary, since it
/// is asked once a row.
package struct ProgramTable {
  /// Index of the program; −1 for an entity that another table plan serves; −2 for a number that
  /// no entity of this table has.
  private let indexes: [Int32]

  /// The entity numbers that a table may be made for.
  static let numbers: ClosedRange<Int64> = 0...100_000
  static let elsewhere: Int32 = -1
  static let unknown: Int32 = -2

  /// - Parameters:
  ///   - numbers: `Z_ENT` of each program, in their order.
  ///   - elsewhere: `Z_ENT` of rows that are nobody's concern here.
  package init(numbers: [Int64], elsewhere: [Int64]) {
    // Entity numbers are small; the bound keeps a damaged plan from asking for a huge array.
    let highest = max(numbers.max() ?? 0, elsewhere.max() ?? 0)
    let size = Int(max(0, min(highest, Self.numbers.upperBound))) + 1
    var indexes = [Int32](repeating: Self.unknown, count: size)
    for number in elsewhere where (0..<Int64(size)).contains(number) {
      indexes[Int(number)] = Self.elsewhere
    }
    for (index, number) in numbers.enumerated() where (0..<Int64(size)).contains(number) {
      indexes[Int(number)] = Int32(index)
    }
    self.indexes = indexes
  }

  /// By the numbers that rows have in the source.
  init(_ table: TablePlan) {
    self.init(numbers: table.entities.map(\.sourceNumber), elsewhere: table.elsewhere)
  }

  @inline(__always)
  package func program(for value: RawValue) -> Int32 {
    guard value.kind == .integer, value.bits >= 0, value.bits < Int64(indexes.count) else {
      return Self.unknown
    }
    return indexes[Int(value.bits)]
  }
}
