/// How cells lie on the pages of one b-tree.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
public struct CellFormat: BitwiseCopyable {
  /// A row on a leaf, or an entry of an index.
  struct Entry: BitwiseCopyable {
    var key: Int64
    /// Where the record begins.
    var start: Int
    /// Bytes of the record.
    var count: Int
    /// Those that lie on this page; the number of an overflow page follows where there are more.
    var local: Int
    /// Bytes of the cell, without the number of a child.
    var size: Int
  }

  public let usable: Int
  /// The most of a record that lies on its page.
  public let largestLocal: Int
  private let leastLocal: Int
  private let largestRecord: UInt64
  let leafType: UInt8
  let interiorType: UInt8

  /// - Parameters:
  ///   - usable: Bytes of each page that SQLite uses.
  ///   - fileSize: No record has more.
  public init(_ kind: TreeScan.Kind, usable: Int, fileSize: Int = .max) {
    self.usable = usable
    largestLocal = kind == .table ? usable - 35 : (usable - 12) * 64 / 255 - 23
    leastLocal = (usable - 12) * 32 / 255 - 23
    largestRecord = UInt64(fileSize)
    leafType = kind == .table ? 0x0D : 0x0A
    interiorType = kind == .table ? 0x05 : 0x02
  }

  /// Bytes of a record that lie on its b-tree page.
  @inline(__always)
  public func localSize(of count: Int) -> Int {
    if count <= largestLocal { return count }
    let local = leastLocal + (count - leastLocal) % (usable - 4)
    return local <= largestLocal ? local : leastLocal
  }
}

extension CellFormat {
  /// A row of a table.
  @inline(__always)
  func row(of page: UnsafeRawPointer, at offset: Int) throws -> Entry {
    var place = page + offset
    guard let size = Varint.read(&place, end: page + usable), size <= largestRecord,
      let key = Varint.read(&place, end: page + usable)
    else { throw TreeScan.NotUnderstood() }
    return try entry(Int(truncatingIfNeeded: size), Int64(bitPattern: key), offset, place - page)
  }

  /// An entry of an index.
  @inline(__always)
  func entry(of page: UnsafeRawPointer, at offset: Int) throws -> Entry {
    var place = page + offset
    guard let size = Varint.read(&place, end: page + usable), size <= largestRecord else {
      throw TreeScan.NotUnderstood()
    }
    return try entry(Int(truncatingIfNeeded: size), 0, offset, place - page)
  }

  @inline(__always)
  private func entry(_ count: Int, _ key: Int64, _ offset: Int, _ start: Int) throws -> Entry {
    let local = localSize(of: count)
    let end = start &+ (local == count ? local : local &+ 4)
    guard end <= usable else { throw TreeScan.NotUnderstood() }
    return Entry(
      key: key, start: start, count: count, local: local, size: max(4, end &- offset))
  }

  /// What divides the children of a table's page: the highest key on the left, behind 4 bytes.
  @inline(__always)
  func dividerKey(of page: UnsafeRawPointer, at offset: Int) throws -> (key: Int64, size: Int) {
    var place = page + offset + 4
    guard let key = Varint.read(&place, end: page + usable) else {
      throw TreeScan.NotUnderstood()
    }
    return (Int64(bitPattern: key), place - page - offset)
  }
}

/// The bytes of a page that its cells take, to prove that each byte is taken once.
final class CellExtents {
  private let items: UnsafeMutablePointer<UInt64>
  @exclusivity(unchecked) private var count = 0
  /// Where the cell before begins, as long as each one ends where the one before begins.
  @exclusivity(unchecked) private var tiledFrom = -1
  @exclusivity(unchecked) private var isTiled = true
  /// A bit for each byte of the largest page.
  private let taken: UnsafeMutablePointer<UInt64>
  private static let words = 65_536 / 64

  init(capacity: Int) {
    items = .allocate(capacity: capacity)
    taken = .allocate(capacity: Self.words)
    taken.initialize(repeating: 0, count: Self.words)
  }

  deinit {
    items.deallocate()
    taken.deallocate()
  }

  @inline(__always)
  func begin() { (count, tiledFrom, isTiled) = (0, -1, true) }

  @inline(__always)
  func add(_ offset: Int, _ size: Int) {
    items[count] = UInt64(truncatingIfNeeded: offset) &<< 32 | UInt64(truncatingIfNeeded: size)
    if count == 0 { tiledFrom = offset &+ size }
    isTiled = isTiled && offset &+ size == tiledFrom
    tiledFrom = offset
    count &+= 1
  }

  /// - Parameters:
  ///   - head: Where the b-tree header of the page begins.
  ///   - start: The end of the cell pointers.
  /// - Throws: ``TreeScan/NotUnderstood``.
  func check(_ page: UnsafeRawPointer, head: Int, cellsFrom start: Int, usable: Int) throws {
    func number(_ offset: Int) -> Int {
      Int(UInt16(bigEndian: (page + offset).loadUnaligned(as: UInt16.self)))
    }
    let stated = number(head + 5)
    let content = stated == 0 ? 65_536 : stated
    let firstFree = number(head + 1)
    let fragments = Int((page + head + 7).load(as: UInt8.self))
    guard content >= start, content <= usable else { throw TreeScan.NotUnderstood() }
    let top = count == 0 ? usable : Int(items[0] &>> 32 &+ items[0] & 0xFFFF_FFFF)
    if isTiled, top == usable, firstFree == 0, fragments == 0,
      content == (count == 0 ? usable : tiledFrom)
    {
      return
    }
    // What is not taken in the end is what the header calls fragments.
    taken.update(repeating: 0, count: (usable + 63) / 64)
    var rest = usable - content - fragments
    func take(_ offset: Int, _ size: Int) throws {
      guard offset >= content, size > 0, offset + size <= usable, mark(offset, size) else {
        throw TreeScan.NotUnderstood()
      }
      rest -= size
    }
    for number in 0..<count {
      try take(Int(items[number] &>> 32), Int(items[number] & 0xFFFF_FFFF))
    }
    var free = firstFree
    while free != 0 {
      guard free >= content, free + 4 <= usable else { throw TreeScan.NotUnderstood() }
      let (next, size) = (number(free), number(free + 2))
      guard size >= 4, next == 0 || next > free + size + 3 else { throw TreeScan.NotUnderstood() }
      try take(free, size)
      free = next
    }
    guard rest == 0 else { throw TreeScan.NotUnderstood() }
  }

  /// False where one of the bytes is taken already.
  @inline(__always)
  private func mark(_ offset: Int, _ size: Int) -> Bool {
    let end = offset &+ size &- 1
    var word = offset &>> 6
    var mask = ~UInt64(0) &<< UInt64(truncatingIfNeeded: offset & 63)
    var both: UInt64 = 0
    while word < end &>> 6 {
      both |= taken[word] & mask
      taken[word] |= mask
      mask = ~0
      word &+= 1
    }
    mask &= ~UInt64(0) &>> UInt64(truncatingIfNeeded: 63 &- end & 63)
    both |= taken[word] & mask
    taken[word] |= mask
    return both == 0
  }
}
