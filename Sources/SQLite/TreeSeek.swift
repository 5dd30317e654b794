private import Glibc

/// Single rows of a table by their keys, read from the file's own pages.
///
/// The pages between root and leaves are kept, and the leaf that was read last, so that a look-up reads
/// one page at most. It goes the way that SQLite goes. What it does not understand, and rows that go on
/// beyond their page, are SQLite's to read. The file must not change meanwhile.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
public final class TreeSeek {
  /// Of pages between root and leaves: those of a table of a few gigabytes.
  private static let mostKeptBytes = 16 << 20

  private let pages: PageReader
  private let format: CellFormat
  private let root: UInt32
  @exclusivity(unchecked) private var kept: [UInt32: UnsafeMutableRawPointer] = [:]

  /// - Parameters:
  ///   - descriptor: The database file, open for reading as long as this lives.
  ///   - root: The table's root page.
  /// - Returns: nil when the file's header says what only SQLite should read.
  public init?(descriptor: Int32, root: UInt32) {
    guard let file = RawFile(descriptor: descriptor), root > 1 else { return nil }
    pages = PageReader(
      descriptor: descriptor, pageSize: file.header.pageSize, lastPage: file.lastPage)
    format = CellFormat(.table, usable: file.header.usableBytes, fileSize: Int(file.size))
    self.root = root
  }

  deinit { for page in kept.values { page.deallocate() } }

  /// - Returns: The row, valid until the next look-up; nil where there is none of the key.
  /// - Throws: ``TreeScan/NotUnderstood``.
  public func row(_ key: Int64) throws -> TreeScan.Cell? {
    do {
      var number = root
      for _ in 0..<TreeScan.mostLevels {
        let page = try kept[number].map { UnsafeRawPointer($0) } ?? pages.page(number)
        switch page.load(as: UInt8.self) {
        case format.leafType: return try row(key, on: page)
        case format.interiorType:
          if kept[number] == nil, kept.count < Self.mostKeptBytes / pages.pageSize {
            keep(page, number)
          }
          number = try child(for: key, on: page)
        default: throw TreeScan.NotUnderstood()
        }
      }
    } catch is PageReader.Unreadable {}
    throw TreeScan.NotUnderstood()
  }

  private func keep(_ page: UnsafeRawPointer, _ number: UInt32) {
    let copy = UnsafeMutableRawPointer.allocate(byteCount: pages.pageSize, alignment: 16)
    copy.copyMemory(from: page, byteCount: pages.pageSize)
    kept[number] = copy
  }

  private func child(for key: Int64, on page: UnsafeRawPointer) throws -> UInt32 {
    let count = be16(3, of: page)
    let place = try firstCell(of: page, count, head: 12) {
      try format.dividerKey(of: page, at: $0).key >= key
    }
    let offset = place == count ? 8 : be16(12 + 2 * place, of: page)
    return UInt32(bigEndian: (page + offset).loadUnaligned(as: UInt32.self))
  }

  private func row(_ key: Int64, on page: UnsafeRawPointer) throws -> TreeScan.Cell? {
    let count = be16(3, of: page)
    let place = try firstCell(of: page, count, head: 8) {
      try format.row(of: page, at: $0).key >= key
    }
    guard place < count else { return nil }
    let entry = try format.row(of: page, at: be16(8 + 2 * place, of: page))
    guard entry.key == key else { return nil }
    guard entry.local == entry.count else { throw TreeScan.NotUnderstood() }
    return TreeScan.Cell(key: key, start: page + entry.start, count: entry.count)
  }

  /// The first cell of which something holds that holds of all behind it.
  @inline(__always)
  private func firstCell(
    of page: UnsafeRawPointer, _ count: Int, head: Int, _ holds: (Int) throws -> Bool
  ) throws -> Int {
    let cells = head + 2 * count
    guard cells <= format.usable else { throw TreeScan.NotUnderstood() }
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      let offset = be16(head + 2 * middle, of: page)
      guard offset >= cells, offset + 4 < format.usable else { throw TreeScan.NotUnderstood() }
      if try holds(offset) { high = middle } else { low = middle + 1 }
    }
    return low
  }

  @inline(__always)
  private func be16(_ offset: Int, of page: UnsafeRawPointer) -> Int {
    Int(UInt16(bigEndian: (page + offset).loadUnaligned(as: UInt16.self)))
  }
}
