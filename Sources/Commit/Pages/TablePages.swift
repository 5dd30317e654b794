import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Writes one table and its indexes as pages, out of rows in the order of their keys.
final class TablePages {
  /// Bytes of index entries in memory, for all indexes of a table together.
  static let memoryBudget = 96 << 20

  private let table: CoveredTable
  private let file: PageFile
  private let tree: TreeWriter
  private let roots: [String: UInt32]
  private let entries: [IndexEntries]
  private let budget: Int
  private let converter = AffinityConverter()
  private var record = RawBuffer(capacity: 1 << 16)
  private let fields: UnsafeMutablePointer<RawValue>
  /// As ``CoveredTable/recordPlaces``, with -1 for the row's key.
  private let places: UnsafeMutablePointer<Int>
  private let affinities: UnsafeMutablePointer<ColumnAffinity>
  private let columnCount: Int
  private let rowCount: Int
  private var untilCheck = TablePages.checkInterval

  private static let checkInterval = 1024

  /// - Parameters:
  ///   - roots: Root pages by the name of the table or index.
  ///   - folder: Where index entries go that do not fit in memory.
  init(
    _ table: CoveredTable, roots: [String: UInt32], in file: PageFile, folder: FilePath,
    budget: Int = TablePages.memoryBudget
  ) throws {
    guard let root = roots[table.name],
      table.indexes.allSatisfy({ roots[$0.name] != nil })
    else { throw CommitError.unusablePlan("\(table.name) went missing from sqlite_master") }
    self.table = table
    self.file = file
    self.roots = roots
    self.budget = budget
    tree = TreeWriter(.table, root: root, in: file)
    entries = table.indexes.map { IndexEntries($0, folder: folder) }
    fields = .allocate(capacity: table.recordPlaces.count)
    fields.initialize(repeating: .null, count: table.recordPlaces.count)
    // Arrays cost a reference count and a check each time, and this is done for each value.
    columnCount = table.recordPlaces.count
    places = .allocate(capacity: columnCount)
    for (number, place) in table.recordPlaces.enumerated() { places[number] = place ?? -1 }
    rowCount = table.affinities.count
    affinities = .allocate(capacity: rowCount)
    for (place, affinity) in table.affinities.enumerated() {
      (affinities + place).initialize(to: affinity)
    }
  }

  deinit {
    fields.deallocate()
    places.deallocate()
    affinities.deallocate()
  }
}

extension TablePages {
  /// SQLite's own bound on a record.
  ///
  /// Source: https://sqlite.org/limits.html §1.
  private static let largestRecord = 1_000_000_000

  /// Adds a row.
  ///
  /// - Parameter row: The row's key, and the other columns as the table has them. Values get the
  ///   form that SQLite would give them.
  func append(_ row: UnsafeMutablePointer<RawValue>) throws {
    converter.beginRow()
    for place in 1..<rowCount { try converter.convert(&row[place], affinities[place]) }
    for number in 0..<columnCount {
      let place = places[number]
      fields[number] = place < 0 ? .null : row[place]
    }
    record.removeAll()
    let size = RecordFormat.encode(fields, count: columnCount, into: &record)
    guard size <= TablePages.largestRecord else {
      throw SQLiteError.failed(
        code: 18, message: "string or blob too big", statement: "a row of \(table.name)",
        database: "")
    }
    try tree.append(key: row[0].bits, record.bytes)
    for entry in entries { entry.add(row) }
    untilCheck -= 1
    if untilCheck == 0 || size > 1 << 16 { try checkMemory() }
  }

  private func checkMemory() throws {
    untilCheck = TablePages.checkInterval
    guard entries.reduce(0, { $0 + $1.byteCount }) > budget else { return }
    for entry in entries { try entry.spill() }
  }

  /// Writes what is left of the table, and then its indexes.
  ///
  /// - Parameter violation: Says what to throw for a unique index with equal entries.
  func finish(violation: (CoveredTable.Index, RowTally) -> any Error) throws {
    try tree.finish()
    for entry in entries {
      let index = entry.index
      guard let root = roots[index.name] else { continue }
      let tree = TreeWriter(.index, root: root, in: file)
      let repeated = try entry.forEach { try tree.append($0) }
      if repeated.count > 0 { throw violation(index, repeated) }
      try tree.finish()
    }
  }
}
