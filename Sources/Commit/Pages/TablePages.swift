import Dispatch
import GodwitObjectModel
import GodwitPages
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Makes the trees of one table and its indexes out of rows in the order of their keys.
final class TablePages {
  /// Bytes of index entries in memory, for all indexes of a table together.
  static let memoryBudget = 96 << 20

  private let table: CoveredTable
  private let feed: TreeFeed
  private let roots: [NameKey: UInt32]
  private let entries: [IndexEntries]
  /// The same, for the loop over rows: arrays cost a reference count and a check each time.
  private let unownedEntries: UnsafeMutableBufferPointer<Unmanaged<IndexEntries>>
  private let budget: Int
  private lazy var finisher = RowFinisher(table)
  /// Where the values of a finished record go that indexes are made of; −1 for those they are not.
  private let indexedPlaces: UnsafeMutablePointer<Int32>
  /// How many values of a record have to be looked at for that.
  private let indexedCount: Int
  private let indexed: UnsafeMutablePointer<RawValue>
  @exclusivity(unchecked) private var untilCheck = TablePages.checkInterval

  private static let checkInterval = 1024

  /// - Parameters:
  ///   - roots: Root pages by the name of the table or index.
  ///   - feed: What writes the trees as pages.
  ///   - folder: Where index entries go that do not fit in memory.
  init(
    _ table: CoveredTable, roots: [NameKey: UInt32], to feed: TreeFeed, folder: FilePath,
    budget: Int = TablePages.memoryBudget
  ) throws {
    guard let root = roots[NameKey(table.name)],
      table.indexes.allSatisfy({ roots[NameKey($0.name)] != nil })
    else { throw CommitError.unusablePlan("\(table.name) went missing from sqlite_master") }
    self.table = table
    self.feed = feed
    self.roots = roots
    self.budget = budget
    feed.begin(.table, root: root)
    entries = table.indexes.map { IndexEntries($0, folder: folder) }
    unownedEntries = .allocate(capacity: entries.count)
    _ = unownedEntries.initialize(from: entries.map { Unmanaged.passUnretained($0) })
    let wanted = Set(table.indexes.flatMap { $0.fields.map(\.place) })
    let places = table.recordPlaces.map { place in
      place.map { wanted.contains($0) ? Int32($0) : -1 } ?? -1
    }
    indexedCount = (places.lastIndex { $0 >= 0 } ?? -1) + 1
    indexedPlaces = .allocate(capacity: max(1, places.count))
    indexedPlaces.initialize(from: places, count: places.count)
    indexed = .allocate(capacity: table.affinities.count)
    indexed.initialize(repeating: .null, count: table.affinities.count)
  }

  deinit {
    unownedEntries.deallocate()
    indexedPlaces.deallocate()
    indexed.deallocate()
  }
}

extension TablePages {
  /// Adds a row whose values are still to get their form, see ``RowFinisher``.
  func append(_ row: UnsafeMutablePointer<RawValue>) throws {
    let record = try finisher.record(of: row)
    try feed.append(key: row[0].bits, record)
    try index(row, record.count)
  }

  /// Adds a row whose record is finished; false when it is no record.
  func append(key: Int64, _ record: UnsafeRawBufferPointer) throws -> Bool {
    guard
      RecordFormat.scatter(
        record: record, into: indexed, places: indexedPlaces, count: indexedCount)
    else { return false }
    try feed.append(key: key, record)
    indexed[0] = .integer(key)
    try index(indexed, record.count)
    return true
  }

  private func index(_ row: UnsafeMutablePointer<RawValue>, _ size: Int) throws {
    for entry in unownedEntries { try entry._withUnsafeGuaranteedRef { try $0.add(row) } }
    untilCheck -= 1
    if untilCheck == 0 || size > 1 << 16 { try checkMemory() }
  }

  private func checkMemory() throws {
    untilCheck = TablePages.checkInterval
    guard entries.reduce(0, { $0 + $1.byteCount }) > budget else { return }
    sortEntries()
    for entry in entries { try entry.spill() }
  }

  /// Half of what an index costs is sorting.
  private func sortEntries() {
    guard entries.count > 1, entries.reduce(0, { $0 + $1.byteCount }) > 4 << 20 else { return }
    // Each is sorted by one thread, and shares nothing with the others.
    nonisolated(unsafe) let entries = entries
    DispatchQueue.concurrentPerform(iterations: entries.count) { entries[$0].sort() }
  }

  /// Writes what is left of the table, and then its indexes.
  ///
  /// - Parameter violation: Says what to throw for a unique index with equal entries.
  func finish(violation: (CoveredTable.Index, RowTally) -> any Error) throws {
    try feed.end()
    sortEntries()
    for entry in entries {
      let index = entry.index
      guard let root = roots[NameKey(index.name)] else { continue }
      feed.begin(.index, root: root)
      let repeated = try entry.forEach { try feed.append($0) }
      if repeated.count > 0 { throw violation(index, repeated) }
      try feed.end()
    }
  }
}
