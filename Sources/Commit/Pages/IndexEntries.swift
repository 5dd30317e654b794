import GodwitPages
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Collects the entries of one index while rows go by, and gives them back in order.
///
/// An index over one column of keys or small numbers needs no records: the sorted number and the
/// row's key say all. Others keep their records one behind the other.
final class IndexEntries {
  let index: CoveredTable.Index
  private let comparison: EntryComparison
  private let items = SortItems()
  private var records = RawBuffer(capacity: 1 << 12)
  /// Whether ``records`` is in use. Until then the place of an item is the row's key.
  private var hasRecords: Bool
  private var coarseNumbers = false
  private var scratch = RawBuffer(capacity: 64)
  private let fields: UnsafeMutablePointer<RawValue>
  private var runs: [EntryRun] = []
  private let folder: FilePath

  /// - Parameter folder: Where runs of entries that do not fit in memory go.
  init(_ index: CoveredTable.Index, folder: FilePath) {
    self.index = index
    self.folder = folder
    comparison = EntryComparison(index)
    hasRecords = index.keyCount > 1
    fields = .allocate(capacity: index.fields.count)
    fields.initialize(repeating: .null, count: index.fields.count)
  }

  deinit { fields.deallocate() }
}

extension IndexEntries {
  /// Bytes in memory, with those that sorting will take.
  var byteCount: Int { records.count + 2 * MemoryLayout<SortItem>.stride * items.count }

  /// Adds the entry of a row. Rows come in the order of their keys.
  @inline(__always)
  func add(_ row: UnsafePointer<RawValue>) {
    let first = row[index.fields[0].place]
    let isDescending = index.fields[0].isDescending
    let key = KeyOrder.key(of: first, piece: 0, isDescending: isDescending)
    if !hasRecords {
      if first.isNull || (first.kind == .integer && !KeyOrder.isCoarse(first)) {
        return items.append(SortItem(key: key, place: row[0].bits))
      }
      makeRecords()
    }
    items.append(SortItem(key: key, place: Int64(records.count)))
    for number in 0..<index.fields.count {
      let value = row[index.fields[number].place]
      if KeyOrder.isCoarse(value) { coarseNumbers = true }
      fields[number] = value
    }
    appendRecord()
  }

  /// Behind a record's size, 4 bytes.
  private func appendRecord() {
    let place = records.count
    records.append(number: UInt32(0))
    let size = RecordFormat.encode(fields, count: index.fields.count, into: &records)
    (records.base + place).storeBytes(of: UInt32(truncatingIfNeeded: size), as: UInt32.self)
  }

  /// A value came that needs a record, so those before it get theirs.
  private func makeRecords() {
    for number in 0..<items.count {
      let item = items.base[number]
      items.base[number].place = Int64(records.count)
      setFields(item)
      appendRecord()
    }
    hasRecords = true
  }

  private func setFields(_ item: SortItem) {
    fields[0] = smallNumber(item.key)
    fields[1] = .integer(item.place)
  }

  /// The value of a key that says all of it.
  private func smallNumber(_ key: UInt64) -> RawValue {
    let key = index.fields[0].isDescending ? ~key : key
    guard key &>> 62 == 1 else { return .null }
    let ordered = key &<< 2
    let bits = ordered &>> 63 == 1 ? ordered & ~(1 &<< 63) : ~ordered
    return .integer(Int64(Double(bitPattern: bits)))
  }

  private func record(at place: Int64) -> UnsafeRawBufferPointer {
    let start = records.base + Int(place)
    return UnsafeRawBufferPointer(
      start: start + 4, count: Int(start.loadUnaligned(as: UInt32.self)))
  }
}

extension IndexEntries {
  /// Takes the entries out of memory, as a sorted run in a file.
  func spill() throws {
    guard items.count > 0 else { return }
    let run = try EntryRun(in: folder)
    try forEachInMemory { try run.append($0) }
    try run.finish()
    runs.append(run)
    items.removeAll()
    records = RawBuffer(capacity: 1 << 12)
  }

  /// Gives every entry once, in order, until a unique index has two that are equal.
  ///
  /// - Returns: The rows of such entries, all of them.
  func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> RowTally {
    if !runs.isEmpty { try spill() }
    var repeated = RowTally()
    guard index.isUnique else {
      try forEachUnchecked(body)
      return repeated
    }
    var last = RawBuffer(capacity: 256)
    var isLastKnown = false
    try forEachUnchecked { entry in
      let isViolation = !last.isEmpty && comparison.isViolation(last.bytes, entry)
      if isViolation {
        if !isLastKnown { repeated.add(primaryKey(of: last.bytes)) }
        repeated.add(primaryKey(of: entry))
      }
      isLastKnown = isViolation
      last.removeAll()
      last.append(entry)
      if repeated.count == 0 { try body(entry) }
    }
    return repeated
  }

  /// The row of an entry stands behind its values.
  private func primaryKey(of entry: UnsafeRawBufferPointer) -> Int64 {
    comparison.value(index.fields.count - 1, of: entry).bits
  }

  private func forEachUnchecked(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    if runs.isEmpty { return try forEachInMemory(body) }
    try EntryMerge(runs, comparison).forEach(body)
  }

  private func forEachInMemory(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    EntrySort(items, comparison, coarseNumbers: coarseNumbers) { [unowned self] in
      record(at: $0)
    }.sort()
    if hasRecords {
      for number in 0..<items.count { try body(record(at: items.base[number].place)) }
    } else {
      for number in 0..<items.count {
        setFields(items.base[number])
        scratch.removeAll()
        RecordFormat.encode(fields, count: 2, into: &scratch)
        try body(scratch.bytes)
      }
    }
  }
}
