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
  @exclusivity(unchecked) private var records = RawBuffer(capacity: 1 << 12)
  /// Whether ``records`` is in use. Until then the place of an item is the row's key.
  @exclusivity(unchecked) private var hasRecords: Bool
  @exclusivity(unchecked) private var coarseNumbers = false
  @exclusivity(unchecked) private var isSorted = false
  private let isDescending: Bool
  private let firstPlace: Int
  private let fieldCount: Int
  private let places: UnsafeMutablePointer<Int>
  private let fields: UnsafeMutablePointer<RawValue>
  @exclusivity(unchecked) private var runs: [EntryRun] = []
  private let folder: FilePath

  /// - Parameter folder: Where runs of entries that do not fit in memory go.
  init(_ index: CoveredTable.Index, folder: FilePath) {
    self.index = index
    self.folder = folder
    comparison = EntryComparison(index)
    hasRecords = index.keyCount > 1
    isDescending = index.fields[0].isDescending
    firstPlace = index.fields[0].place
    fieldCount = index.fields.count
    places = .allocate(capacity: fieldCount)
    for (number, field) in index.fields.enumerated() { places[number] = field.place }
    fields = .allocate(capacity: index.fields.count)
    fields.initialize(repeating: .null, count: index.fields.count)
  }

  deinit {
    places.deallocate()
    fields.deallocate()
  }
}

extension IndexEntries {
  /// Bytes in memory, with those that sorting will take.
  var byteCount: Int { records.count + 2 * MemoryLayout<SortItem>.stride * items.count }

  /// Adds the entry of a row. Rows come in the order of their keys.
  @inline(__always)
  func add(_ row: UnsafePointer<RawValue>) throws {
    let first = row[firstPlace]
    let key = KeyOrder.key(of: first, piece: 0, isDescending: isDescending)
    if !hasRecords {
      if first.isNull || (first.kind == .integer && !KeyOrder.isCoarse(first)) {
        return items.append(SortItem(key: key, place: row[0].bits))
      }
      try makeRecords()
    }
    items.append(SortItem(key: key, place: Int64(records.count)))
    for number in 0..<fieldCount {
      let value = row[places[number]]
      if KeyOrder.isCoarse(value) { coarseNumbers = true }
      fields[number] = value
    }
    appendRecord()
  }

  /// Behind a record's size, 4 bytes.
  private func appendRecord() {
    let place = records.count
    records.append(number: UInt32(0))
    let size = RecordFormat.encode(fields, count: fieldCount, into: &records)
    (records.base + place).storeBytes(of: UInt32(truncatingIfNeeded: size), as: UInt32.self)
  }

  /// A value came that needs a record, so those before it get theirs.
  private func makeRecords() throws {
    runs = try runs.map { run in
      let new = try EntryRun(in: folder, hasRecords: true)
      var piece = RawBuffer(capacity: EntryRun.pieceSize)
      while try run.next() {
        append(SortItem(key: run.key, place: run.place), to: &piece)
        if piece.count >= EntryRun.pieceSize { try flush(&piece, to: new) }
      }
      try flush(&piece, to: new)
      return new
    }
    for number in 0..<items.count {
      let item = items.base[number]
      items.base[number].place = Int64(records.count)
      setFields(item)
      appendRecord()
    }
    hasRecords = true
  }

  /// An item as an entry of a run with records.
  private func append(_ item: SortItem, to piece: inout RawBuffer) {
    setFields(item)
    piece.append(number: item.key)
    let place = piece.count
    piece.append(number: UInt32(0))
    let size = RecordFormat.encode(fields, count: index.fields.count, into: &piece)
    (piece.base + place).storeBytes(of: UInt32(truncatingIfNeeded: size), as: UInt32.self)
  }

  private func flush(_ piece: inout RawBuffer, to run: EntryRun) throws {
    try run.write(piece.bytes)
    piece.removeAll()
  }

  @inline(__always)
  private func setFields(_ item: SortItem) {
    fields[0] = smallNumber(item.key)
    fields[1] = .integer(item.place)
  }

  /// The value of a key that says all of it.
  @inline(__always)
  private func smallNumber(_ key: UInt64) -> RawValue {
    let key = isDescending ? ~key : key
    guard key &>> 62 == 1 else { return .null }
    let ordered = key &<< 2
    let bits = ordered &>> 63 == 1 ? ordered & ~(1 &<< 63) : ~ordered
    return .integer(Int64(Double(bitPattern: bits)))
  }
}

extension IndexEntries {
  /// Takes the entries out of memory, as a sorted run in a file.
  func spill() throws {
    let count = items.count
    guard count > 0 else { return }
    let run = try EntryRun(in: folder, hasRecords: hasRecords)
    sort()
    if hasRecords {
      var piece = RawBuffer(capacity: EntryRun.pieceSize)
      let (base, records) = (items.base, UnsafeRawPointer(records.base))
      let first = index.fields[0]
      for number in 0..<count {
        let start = records + Int(base[number].place)
        let size = Int(start.loadUnaligned(as: UInt32.self))
        // Sorting puts later pieces of the key in its place.
        let record = UnsafeRawBufferPointer(start: start + 4, count: size)
        piece.append(
          number: KeyOrder.key(
            of: comparison.value(0, of: record), piece: 0, isDescending: first.isDescending))
        piece.append(UnsafeRawBufferPointer(start: start, count: 4 + size))
        if piece.count >= EntryRun.pieceSize { try flush(&piece, to: run) }
      }
      try flush(&piece, to: run)
    } else {
      try run.write(UnsafeRawBufferPointer(start: items.base, count: 16 * count))
    }
    runs.append(run)
    items.removeAll()
    isSorted = false
    records.removeAll()
  }

  /// Gives every entry once, in order, until a unique index has two that are equal.
  ///
  /// - Returns: The rows of such entries, all of them.
  @inline(__always)
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

  @inline(__always)
  private func forEachUnchecked(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    var scratch = RawBuffer(capacity: 64)
    func give(_ item: SortItem) throws {
      setFields(item)
      scratch.removeAll()
      RecordFormat.encode(fields, count: 2, into: &scratch)
      try body(scratch.bytes)
    }
    guard runs.isEmpty else {
      let merge = EntryMerge(runs, comparison)
      if hasRecords { return try merge.forEach { try body($0.record) } }
      return try merge.forEach { try give(SortItem(key: $0.key, place: $0.place)) }
    }
    sort()
    let (base, count) = (items.base, items.count)
    guard hasRecords else {
      for number in 0..<count { try give(base[number]) }
      return
    }
    let records = UnsafeRawPointer(records.base)
    for number in 0..<count {
      let start = records + Int(base[number].place)
      try body(
        UnsafeRawBufferPointer(
          start: start + 4, count: Int(start.loadUnaligned(as: UInt32.self))))
    }
  }

  /// Sorts what is in memory. Indexes may be sorted beside each other.
  func sort() {
    guard !isSorted else { return }
    isSorted = true
    EntrySort(
      items, comparison, coarseNumbers: coarseNumbers, records: UnsafeRawPointer(records.base)
    ).sort()
  }
}
