/// The records of a leaf that go on beyond it, put together one behind the other.
final class OverflowRecords {
  /// A leaf whose records take more is given in parts. One record may be larger.
  private static let mostBytes = 1 << 20

  private let pages: PageReader
  /// Bytes of a record on each page of its own.
  private let pageBytes: Int
  private let columns: Int
  @exclusivity(unchecked) private var bytes = RawBuffer(capacity: 16)
  /// Where the records begin, by the numbers of their cells.
  @exclusivity(unchecked) private var places: [(cell: Int, place: Int)] = []

  /// - Parameter columns: How many values of each record are asked for, from its first.
  init(_ pages: PageReader, usable: Int, columns: Int) {
    (self.pages, pageBytes, self.columns) = (pages, usable - 4, columns)
  }

  @inline(__always)
  func begin() {
    bytes.removeAll()
    if !places.isEmpty { places.removeAll(keepingCapacity: true) }
  }

  var isFull: Bool { bytes.count >= Self.mostBytes }

  /// Puts a record together, as far as it is asked for.
  ///
  /// - Parameters:
  ///   - start: Where `local` bytes of the record lie, and the number of its first page behind them.
  ///   - visit: Learns of each page, with the one before; nil for that of the cell.
  /// - Returns: Bytes of the record that there are.
  func add(
    cell: Int, _ start: UnsafeRawPointer, _ local: Int, _ size: Int,
    visit: (UInt32, _ before: UInt32?) throws -> Void
  ) throws -> Int {
    let place = bytes.count
    places.append((cell, place))
    bytes.append(UnsafeRawBufferPointer(start: start, count: local))
    var next = UInt32(bigEndian: (start + local).loadUnaligned(as: UInt32.self))
    var before: UInt32?
    var (count, end, isKnown) = (local, size, columns == .max)
    while true {
      if !isKnown,
        let found = RecordFormat.size(
          ofFirst: columns,
          beginning: UnsafeRawBufferPointer(start: bytes.base + place, count: count))
      {
        (end, isKnown) = (min(size, found), true)
      }
      guard count < end else { break }
      // What a damaged record says of its size takes no memory: so many pages must have been there.
      if count >= size / 16 { bytes.reserve(end - count) }
      let page = try pages.page(next)
      try visit(next, before)
      (before, next) = (next, UInt32(bigEndian: page.loadUnaligned(as: UInt32.self)))
      let part = min(end - count, pageBytes)
      bytes.append(UnsafeRawBufferPointer(start: page + 4, count: part))
      count += part
    }
    guard count < size || next == 0 else { throw TreeScan.NotUnderstood() }
    return count
  }

  /// Tells the cells where their records are, once all are there.
  @inline(__always)
  func settle(_ body: (_ cell: Int, UnsafeRawPointer) -> Void) {
    for (cell, place) in places { body(cell, UnsafeRawPointer(bytes.base + place)) }
  }
}
