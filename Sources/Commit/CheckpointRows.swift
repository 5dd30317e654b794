import GodwitCheckpoints
import GodwitDigests
import GodwitPages
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
  /// Gives the finished rows of an entity table's unit: the key and the record, valid until the
  /// body returns; false from the body for what is no record.
  mutating func forEach(
    unit: Int, _ body: (Int64, UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let rows = try reader(.rows, unit)
    while let entry = try nextRow(rows) {
      try ascend(to: entry.key, unit)
      guard try body(entry.key, entry.payload) else {
        throw CommitError.damagedRow(table: table, unit: unit, row: entry.key)
      }
    }
  }

  /// Gives the rows of an entity table's unit as values: `Z_PK`, `Z_ENT`, `Z_OPT` and then
  /// `table.columns`. Values are valid until the body returns.
  ///
  /// - Parameter covered: The table, where its rows were finished for being written by pages.
  mutating func forEach(
    of table: TablePlan, covered: CoveredTable?, unit: Int,
    _ body: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    let count = 3 + table.columns.count
    let places = covered?.recordPlaces.map { Int32($0 ?? -1) } ?? (1..<Int32(count)).map { $0 }
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: count) { buffer in
      buffer.initialize(repeating: .null)
      guard let row = buffer.baseAddress else { return }
      try forEach(unit: unit) { key, record in
        let isRecord = places.withUnsafeBufferPointer { places in
          places.baseAddress.map {
            RecordFormat.scatter(record: record, into: row, places: $0, count: places.count)
          } ?? false
        }
        row[0] = .integer(key)
        if isRecord { try body(row) }
        return isRecord
      }
    }
  }

  /// Gives the rows of a join table's unit: a place for a key, and then `table.columns`. The keys
  /// in the checkpoint are running numbers, made again for each unit.
  mutating func forEach(
    of table: JoinTablePlan, unit: Int,
    _ body: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    // The pairs of entity mappings are sorted before they are validated.
    let links = try reader(plan.isOnePass ? .rows : .validate, unit)
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
