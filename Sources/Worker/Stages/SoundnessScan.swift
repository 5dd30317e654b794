import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Gathers, from the rows of one verify unit, what makes soundness jobs needless: the keys that the
/// table's indexes must have, and that references lead somewhere. The b-trees of the table and its
/// indexes are shared out among the units, page by page: what SQLite's own check would prove.
struct SoundnessScan {
  /// The row ids that the unit goes over.
  let rowIDs: ClosedRange<Int64>
  private let trees: () throws -> RawTrees?
  private let targets: TargetFinder
  private let table: VerifiedTable
  private let part: Int
  private var keys: IndexKeys?
  private var references: [ReferenceScan] = []
  /// Which of the destination's jobs each of them answers.
  private var jobs: [Int] = []

  /// - Parameters:
  ///   - columns: Of the rows that will be added, by place.
  ///   - rowID: The place of the row id.
  init(_ context: ShardContext, _ unit: Int, columns: [String], rowID: Int) throws {
    trees = { try context.assembled?.trees() }
    targets = try context.destinationTargets()
    table = try context.verifiedTable(of: unit)
    part = table.units.firstIndex(of: unit) ?? 0
    rowIDs = table.rowIDs[part]
    keys = table.indexes.flatMap { IndexKeys($0, columns: columns, rowID: rowID) }
    for (number, job) in try context.destinationJobs().enumerated() {
      guard case .references(let rule) = job.answeredBy, rule.table.isSameName(as: table.name)
      else { continue }
      let target = try targets.table(rule.target)
      try targets.expect(table.width, inTable: target)
      if let scan = ReferenceScan(rule, columns, target, targets.map(ofTable: target)) {
        references.append(scan)
        jobs.append(number)
      }
    }
  }

  mutating func add(_ row: UnsafeMutablePointer<RawValue>) throws {
    keys?.add(row)
    for index in references.indices { try references[index].check(row, targets) }
  }

  /// Reads the unit's share of the b-trees. All rows must have been added.
  func evidence() throws -> SoundnessEvidence {
    var evidence = SoundnessEvidence()
    evidence.answered = zip(references, jobs).filter(\.0.isClean).map(\.1)
    guard let keys, let trees = try trees() else { return evidence }
    for (index, digest) in zip(keys.indexes, keys.digests) { evidence.keys[index.name] = digest }
    // A tree that cannot be read is a matter of its job, and of SQLite's own check.
    if part == 0, let found = try trees.digest(ofRows: table.name) {
      evidence.add(tree: table.name, pages: found.pages)
      evidence.rows = found.rows
    }
    for (place, index) in keys.indexes.enumerated()
    where (place + 1) % table.units.count == part {
      guard let found = try trees.digests(of: index) else { continue }
      evidence.entries[index.name] = found.entries
      evidence.add(tree: index.name, pages: found.pages)
    }
    return evidence
  }
}

/// A table of the assembled destination, as its verify units share it.
struct VerifiedTable {
  let name: String
  /// Ascending.
  let units: [Int]
  /// Those of each unit.
  let rowIDs: [ClosedRange<Int64>]
  /// Nil where only SQLite's own check can say whether they agree with the table.
  let indexes: [TableIndex]?

  /// How many row ids there may be.
  var width: Int64 {
    guard let low = rowIDs.first?.lowerBound, let high = rowIDs.last?.upperBound else { return 0 }
    let (width, overflow) = high.subtractingReportingOverflow(low)
    return overflow ? .max : width
  }

  init(of subject: Shard.Subject, _ plan: MigrationPlan, in assembled: Connection) throws {
    units = plan.units(in: .verify).filter { plan.units[$0].subject == subject }
    var rowIDs = units.map { plan.units[$0].keys }
    switch subject {
    case .table(let index): name = plan.tables[index].name
    case .joinTable(let index):
      name = plan.joinTables[index].name
      // Shards of pairs are cut by the first key, which is not the order of the rows.
      rowIDs = try Self.cut(name, units.count, assembled)
    case .foreignTable(let index): name = plan.foreignTables[index].name
    case .mapping, .inserted: throw StageError.outOfOrder("a verification of objects as rows")
    }
    self.rowIDs = rowIDs
    indexes = try TableIndex.all(of: name, in: assembled)
  }

  /// The row ids of a table in as many ranges, which meet without a gap.
  private static func cut(_ name: String, _ parts: Int, _ assembled: Connection) throws
    -> [ClosedRange<Int64>]
  {
    let extent = try assembled.extent(of: name, key: "rowid") ?? 0...0
    // So wide that there is a range for each part, though it may be one of no rows.
    let low = min(extent.lowerBound, .max - Int64(parts))
    var ranges = (low...max(extent.upperBound, low + Int64(parts))).divided(into: parts)
    ranges[0] = .min...ranges[0].upperBound
    ranges[ranges.count - 1] = ranges[ranges.count - 1].lowerBound ... .max
    return ranges
  }
}
