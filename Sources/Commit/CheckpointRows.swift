import GodwitCheckpoints
import GodwitDigests
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Puts the rows of one computed table's checkpoints into it, in the order of their keys.
///
/// Values go from the checkpoint's record to SQLite without becoming Swift values of any size: one
/// table may be most of a store.
struct CheckpointRows {
  private let plan: MigrationPlan
  private let run: RunDirectory
  private let table: String
  private let fingerprint: [UInt8]
  /// Keys ascend over all units of a table: SQLite then appends to the b-tree.
  private var lastKey: Int64?

  init(plan: MigrationPlan, run: RunDirectory, table: String) {
    self.plan = plan
    self.run = run
    self.table = table
    fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
  }
}

extension CheckpointRows {
  /// Inserts the rows of an entity table's unit.
  ///
  /// - Parameters:
  ///   - hasLinks: True when the unit's relationship columns are in a link checkpoint.
  ///   - statement: Takes `Z_PK`, `Z_ENT`, `Z_OPT` and then `table.columns`.
  mutating func insert(
    _ table: TablePlan, unit: Int, hasLinks: Bool, by statement: Statement,
    _ rows: inout RowCounter
  ) throws {
    let copies = try reader(.copy, unit)
    let links = hasLinks ? try reader(.link, unit) : nil
    // `Z_ENT` and `Z_OPT` are parameters 2 and 3; the first column is parameter 4.
    let copyPlaces: [Int32] = [2, 3] + (try parameters(table.attributePlaces, of: table))
    let linkPlaces = try parameters(table.relationshipPlaces, of: table)
    try withUnsafeTemporaryAllocation(
      of: RawValue.self, capacity: copyPlaces.count + linkPlaces.count
    ) { values in
      values.initialize(repeating: .null)
      guard let first = values.baseAddress else { return }
      while let copy = try nextRow(copies) {
        try ascend(to: copy.key, unit)
        try statement.bind(1, copy.key)
        try bind(copy.payload, copyPlaces, first, statement, row: copy.key, unit)
        if let links {
          guard let link = try nextRow(links), link.key == copy.key else {
            throw CommitError.unequalStages(table: self.table, unit: unit, row: copy.key)
          }
          try bind(
            link.payload, linkPlaces, first + copyPlaces.count, statement, row: copy.key, unit)
        }
        try statement.run()
        rows.add()
      }
    }
    if let links, let extra = try nextRow(links) {
      throw CommitError.unequalStages(table: self.table, unit: unit, row: extra.key)
    }
  }

  /// Inserts the rows of a join table's unit. Their keys are running numbers, made anew for each
  /// unit.
  mutating func insert(
    _ table: JoinTablePlan, unit: Int, by statement: Statement, _ rows: inout RowCounter
  ) throws {
    // The pairs of entity mappings are sorted before they are validated.
    let links = try reader(plan.mapped == nil ? .link : .validate, unit)
    let places = (1...Int32(max(1, table.columns.count))).map { $0 }
    lastKey = nil
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: places.count) { values in
      values.initialize(repeating: .null)
      guard let first = values.baseAddress else { return }
      while let row = try nextRow(links) {
        try ascend(to: row.key, unit)
        try bind(row.payload, places, first, statement, row: row.key, unit)
        try statement.run()
        rows.add()
      }
    }
  }
}

extension CheckpointRows {
  private func reader(_ stage: Stage, _ unit: Int) throws -> CheckpointReader {
    do {
      return try CheckpointReader(
        path: run.path(of: CheckpointName(stage: stage, unit: unit)), fingerprint: fingerprint)
    } catch CheckpointError.unreadable(_, .noSuchFileOrDirectory) {
      throw CommitError.missingCheckpoint(stage: stage.rawValue, unit: unit)
    }
  }

  /// The next entry of channel 0. The others are for other readers.
  private func nextRow(_ reader: CheckpointReader) throws -> CheckpointReader.Entry? {
    while let entry = try reader.next() {
      if entry.channel == 0 { return entry }
    }
    return nil
  }

  private mutating func ascend(to key: Int64, _ unit: Int) throws {
    if let lastKey, lastKey >= key {
      throw CommitError.damagedRow(table: table, unit: unit, row: key)
    }
    lastKey = key
  }

  private func bind(
    _ record: UnsafeRawBufferPointer, _ places: [Int32], _ values: UnsafeMutablePointer<RawValue>,
    _ statement: Statement, row: Int64, _ unit: Int
  ) throws {
    guard RecordFormat.decode(record: record, into: values, count: places.count) else {
      throw CommitError.damagedRow(table: table, unit: unit, row: row)
    }
    for index in 0..<places.count { try statement.bind(places[index], values[index]) }
  }

  private func parameters(_ places: [Int], of table: TablePlan) throws -> [Int32] {
    try places.map { place in
      guard table.columns.indices.contains(place) else {
        throw CommitError.unusablePlan("\(table.name) has no column number \(place)")
      }
      return Int32(place + 4)
    }
  }
}

/// Counts rows and says so now and then.
struct RowCounter {
  /// A call for each row would cost more than the row.
  private static let interval: Int64 = 1 << 15

  private let progress: (Int64) -> Void
  private(set) var count: Int64 = 0

  init(_ progress: @escaping (Int64) -> Void) { self.progress = progress }

  @inline(__always)
  mutating func add() {
    count &+= 1
    if count & (RowCounter.interval - 1) == 0 { progress(count) }
  }

  mutating func add(count added: Int64) {
    count += added
    progress(count)
  }

  func report() { progress(count) }
}
