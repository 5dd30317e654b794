import GodwitCheckpoints
import GodwitDigests
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Reads the rows of one computed table's checkpoints, in the order of their keys.
///
/// Values go from the checkpoint's record to their place without becoming Swift values of any size:
/// one table may be most of a store.
struct CheckpointRows {
  private let plan: MigrationPlan
  private let run: RunDirectory
  private let table: String
  private let fingerprint: [UInt8]
  /// Keys ascend over all units of a table: they are then appended to the b-tree.
  private var lastKey: Int64?

  init(plan: MigrationPlan, run: RunDirectory, table: String) {
    self.plan = plan
    self.run = run
    self.table = table
    fingerprint = Hexadecimal.bytes(of: plan.fingerprint) ?? []
  }
}

extension CheckpointRows {
  /// Gives the rows of an entity table's unit: `Z_PK`, `Z_ENT`, `Z_OPT` and then `table.columns`,
  /// those that no stage fills as NULL. Values are valid until the body returns, which may change
  /// them.
  ///
  /// - Parameter hasLinks: True when the unit's relationship columns are in a link checkpoint.
  mutating func forEach(
    of table: TablePlan, unit: Int, hasLinks: Bool,
    _ body: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    let copies = try reader(.copy, unit)
    let links = hasLinks ? try reader(.link, unit) : nil
    let copyPlaces = [1, 2] + (try places(table.attributePlaces, of: table))
    let linkPlaces = try places(table.relationshipPlaces, of: table)
    let columnCount = table.columns.count + 3
    try withUnsafeTemporaryAllocation(
      of: RawValue.self, capacity: columnCount + max(copyPlaces.count, linkPlaces.count)
    ) { buffer in
      buffer.initialize(repeating: .null)
      guard let row = buffer.baseAddress else { return }
      let values = row + columnCount
      while let copy = try nextRow(copies) {
        try ascend(to: copy.key, unit)
        row[0] = .integer(copy.key)
        try decode(copy.payload, copyPlaces, values, into: row, key: copy.key, unit)
        if let links {
          guard let link = try nextRow(links), link.key == copy.key else {
            throw CommitError.unequalStages(table: self.table, unit: unit, row: copy.key)
          }
          try decode(link.payload, linkPlaces, values, into: row, key: copy.key, unit)
        }
        try body(row)
      }
    }
    if let links, let extra = try nextRow(links) {
      throw CommitError.unequalStages(table: self.table, unit: unit, row: extra.key)
    }
  }

  /// Gives the rows of a join table's unit: a place for a key, and then `table.columns`. The keys
  /// in the checkpoint are running numbers, made again for each unit.
  mutating func forEach(
    of table: JoinTablePlan, unit: Int,
    _ body: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    // The pairs of entity mappings are sorted before they are validated.
    let links = try reader(plan.mapped == nil ? .link : .validate, unit)
    let count = table.columns.count
    lastKey = nil
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: count + 1) { buffer in
      buffer.initialize(repeating: .null)
      guard let row = buffer.baseAddress else { return }
      while let link = try nextRow(links) {
        try ascend(to: link.key, unit)
        guard RecordFormat.decode(record: link.payload, into: row + 1, count: count) else {
          throw CommitError.damagedRow(table: self.table, unit: unit, row: link.key)
        }
        try body(row)
      }
    }
  }
}

extension CheckpointRows {
  private func reader(_ stage: Stage, _ unit: Int) throws -> CheckpointReader {
    do {
      return try run.reader(stage, unit, fingerprint: fingerprint)
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

  private func decode(
    _ record: UnsafeRawBufferPointer, _ places: [Int], _ values: UnsafeMutablePointer<RawValue>,
    into row: UnsafeMutablePointer<RawValue>, key: Int64, _ unit: Int
  ) throws {
    guard RecordFormat.decode(record: record, into: values, count: places.count) else {
      throw CommitError.damagedRow(table: table, unit: unit, row: key)
    }
    for index in 0..<places.count { row[places[index]] = values[index] }
  }

  /// Places in a row that begins with `Z_PK`, `Z_ENT` and `Z_OPT`.
  private func places(_ places: [Int], of table: TablePlan) throws -> [Int] {
    try places.map { place in
      guard table.columns.indices.contains(place) else {
        throw CommitError.unusablePlan("\(table.name) has no column number \(place)")
      }
      return place + 3
    }
  }
}

/// Counts rows, and now and then says so and sees whether the work is to stop.
struct RowCounter {
  /// A call for each row would cost more than the row.
  private static let interval: Int64 = 1 << 15

  private let isStopped: () -> Bool
  private let progress: (Int64) -> Void
  private(set) var count: Int64 = 0

  init(isStopped: @escaping () -> Bool, _ progress: @escaping (Int64) -> Void) {
    self.isStopped = isStopped
    self.progress = progress
  }

  /// - Throws: `CancellationError`.
  @inline(__always)
  mutating func add() throws {
    count &+= 1
    if count & (RowCounter.interval - 1) == 0 { try tell() }
  }

  mutating func add(count added: Int64) throws {
    count += added
    try tell()
  }

  private func tell() throws {
    if isStopped() { throw CancellationError() }
    progress(count)
  }

  func report() { progress(count) }
}
