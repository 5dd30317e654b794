/// A page of a b-tree that is being filled, cells from its end and their places from its start.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
final class TreePage {
  enum Kind: UInt8 {
    case indexInterior = 0x02
    case tableInterior = 0x05
    case indexLeaf = 0x0A
    case tableLeaf = 0x0D
  }

  let isInterior: Bool
  /// The last child, for interior pages.
  @exclusivity(unchecked) var rightMost: UInt32 = 0
  @exclusivity(unchecked) private(set) var cellCount = 0
  /// First pages of the overflow chains of the cells, with the number of the cell.
  @exclusivity(unchecked) private(set) var overflows: [(cell: Int, page: UInt32)] = []
  private let kind: Kind
  private let start: UnsafeMutableRawPointer
  private let headerSize: Int
  @exclusivity(unchecked) private var contentStart = PageNumbering.pageSize

  init(_ kind: Kind) {
    self.kind = kind
    isInterior = kind == .indexInterior || kind == .tableInterior
    headerSize = isInterior ? 12 : 8
    start = .allocate(byteCount: PageNumbering.pageSize, alignment: 16)
  }

  deinit { start.deallocate() }
}

extension TreePage {
  /// Where the bytes of one more cell are to be put, or `nil` when it does not fit.
  ///
  /// - Parameter overflow: The first page of the cell's overflow chain, if it has one.
  @inline(__always)
  func addCell(_ size: Int, overflow: UInt32) -> UnsafeMutableRawPointer? {
    let places = headerSize &+ 2 &* cellCount
    guard places &+ 2 &+ size <= contentStart else { return nil }
    contentStart &-= size
    start.storeBytes(
      of: UInt16(truncatingIfNeeded: contentStart).bigEndian, toByteOffset: places,
      as: UInt16.self)
    if overflow != 0 { overflows.append((cellCount, overflow)) }
    cellCount &+= 1
    return start + contentStart
  }

  /// Takes the last cell off. Its bytes stay where they are until the next cell is added.
  func removeLast() -> (bytes: UnsafeRawBufferPointer, overflow: UInt32) {
    let end = cellCount > 1 ? place(ofCell: cellCount - 2) : PageNumbering.pageSize
    let bytes = UnsafeRawBufferPointer(start: start + contentStart, count: end - contentStart)
    cellCount -= 1
    contentStart = end
    var overflow: UInt32 = 0
    if let last = overflows.last, last.cell == cellCount {
      overflow = last.page
      overflows.removeLast()
    }
    return (bytes, overflow)
  }

  private func place(ofCell number: Int) -> Int {
    Int(
      UInt16(bigEndian: start.load(fromByteOffset: headerSize + 2 * number, as: UInt16.self)))
  }

  /// All children, the right-most one last.
  func forEachChild(_ body: (UInt32) throws -> Void) rethrows {
    guard isInterior else { return }
    for cell in 0..<cellCount {
      let child = (start + place(ofCell: cell)).loadUnaligned(as: UInt32.self)
      try body(UInt32(bigEndian: child))
    }
    try body(rightMost)
  }

  /// Completes the page and gives its bytes.
  func finished() -> UnsafeRawBufferPointer {
    start.storeBytes(of: kind.rawValue, as: UInt8.self)
    store(0, at: 1)
    store(cellCount, at: 3)
    store(contentStart, at: 5)
    start.storeBytes(of: 0, toByteOffset: 7, as: UInt8.self)
    if isInterior {
      start.storeBytes(of: rightMost.bigEndian, toByteOffset: 8, as: UInt32.self)
    }
    let places = headerSize + 2 * cellCount
    // Nothing of an earlier page is left between: files are the same every time.
    (start + places).initializeMemory(as: UInt8.self, repeating: 0, count: contentStart - places)
    return UnsafeRawBufferPointer(start: start, count: PageNumbering.pageSize)
  }

  private func store(_ field: Int, at offset: Int) {
    start.storeBytes(
      of: UInt16(truncatingIfNeeded: field).bigEndian, toByteOffset: offset, as: UInt16.self)
  }

  func removeAll() {
    cellCount = 0
    contentStart = PageNumbering.pageSize
    overflows.removeAll(keepingCapacity: true)
  }
}
