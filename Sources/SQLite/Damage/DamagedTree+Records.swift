/// A record that lies on several pages.
final class RecordChain {
  var bytes = RawBuffer(capacity: 64)
}

extension DamagedTreeReader {
  /// Whether a page reads as such a leaf, and has only such records.
  package func isLeaf(_ number: UInt32, allOf isRow: (DamagedRecord) -> Bool) -> Bool {
    guard isLeaf(number) else { return false }
    var (rows, fitting) = (0, 0)
    sample(below: number) { cell in
      rows += 1
      if isRow(cell.record) { fitting += 1 }
    }
    return rows > 0 && fitting == rows
  }

  /// As much of a cell's record as lies on its page; nil where none of it is known.
  func beginning(
    of entry: CellFormat.Entry, on page: UnsafeRawPointer, _ number: UInt32
  ) -> DamagedRecord? {
    let known = file.knownBytes(of: number) - entry.start
    guard known > 0 else { return nil }
    let bytes = UnsafeRawBufferPointer(start: page + entry.start, count: min(entry.local, known))
    return DamagedRecord(bytes: bytes, size: entry.count)
  }

  /// The record of a cell, as much of it as there is. Valid until the next one.
  mutating func record(
    of entry: CellFormat.Entry, on page: UnsafeRawPointer, _ number: UInt32
  ) -> DamagedRecord {
    let start = page + entry.start
    let known = file.knownBytes(of: number) - entry.start
    // The rest of the cell is missing, and what it says of overflow pages with it.
    if known < (entry.local < entry.count ? entry.local + 4 : entry.local) {
      return DamagedRecord(
        bytes: UnsafeRawBufferPointer(start: start, count: max(0, min(known, entry.local))),
        size: entry.count)
    }
    guard entry.local < entry.count else {
      return DamagedRecord(
        bytes: UnsafeRawBufferPointer(start: start, count: entry.count), size: entry.count)
    }
    chain.bytes.removeAll()
    chain.bytes.append(UnsafeRawBufferPointer(start: start, count: entry.local))
    let owner = OverflowChain(
      page: number, start: Int32(entry.start), kind: kind, key: entry.key, count: entry.count)
    var (last, next) = (number, be32(start, entry.local))
    var (zerosFrom, doubtfulFrom): (Int?, Int?)
    while chain.bytes.count < entry.count, let bytes = try? file.overflowPages.page(next),
      case let state = file.claim(next, bytes, of: owner, after: last, for: tree), state != .none
    {
      let part = min(entry.count - chain.bytes.count, format.usable - 4)
      let there = min(part, file.knownBytes(of: next) - 4)
      guard there > 0 else { break }
      if isZeros(bytes, 4 + there) { zerosFrom = zerosFrom ?? chain.bytes.count }
      if state == .doubtful { doubtfulFrom = doubtfulFrom ?? chain.bytes.count }
      chain.bytes.append(UnsafeRawBufferPointer(start: bytes + 4, count: there))
      guard there == part else { break }
      (last, next) = (next, be32(bytes, 0))
    }
    // A chain ends with its record: one that goes on is another's, or was.
    if chain.bytes.count == entry.count, next != 0 { doubtfulFrom = entry.local }
    return DamagedRecord(
      bytes: UnsafeRawBufferPointer(start: chain.bytes.base, count: chain.bytes.count),
      size: entry.count, zerosFrom: zerosFrom, doubtfulFrom: doubtfulFrom)
  }

  private func isZeros(_ bytes: UnsafeRawPointer, _ count: Int) -> Bool {
    UnsafeRawBufferPointer(start: bytes, count: count).allSatisfy { $0 == 0 }
  }

  /// Gives rows that lie anywhere on a leaf of a table, whether or not its cell pointers say so. One that has
  /// become an interior page has only old ones.
  ///
  /// - Parameter isRow: Whether what reads as a cell is one, by the beginning of its record.
  package mutating func search(
    _ number: UInt32, _ isRow: (DamagedRecord) -> Bool, _ body: Body
  ) throws {
    guard let page = try? file.pages.page(number),
      byte(page, head(of: number)) != format.interiorType
    else { return }
    var offset = head(of: number) + 8
    while offset + 4 <= format.usable {
      guard let entry = try? format.row(of: page, at: offset),
        let record = beginning(of: entry, on: page, number), isRow(record)
      else {
        offset += 1
        continue
      }
      let whole = self.record(of: entry, on: page, number)
      try body(DamagedCell(key: entry.key, record: whole, keyState: .doubtful, page: number))
      offset += entry.size
    }
  }
}
