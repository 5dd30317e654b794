private import Glibc

/// The rows of a table, leaf by leaf in the order of their keys, read from the file's own pages.
///
/// A third of what stepping through a statement costs. It reads what it proves to understand and
/// nothing else: page types, cells within their page, keys that ascend within the bounds of the
/// pages above, overflow chains of the right length. Whatever else it meets it throws
/// ``NotUnderstood``, and the caller asks SQLite, which reads the same rows or says what is wrong.
///
/// The file must not change meanwhile: a private clone, or a store opened as immutable.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
public final class TableScan {
  /// The page is for SQLite to read.
  public struct NotUnderstood: Error {
    public init() {}
  }

  /// A row: its key and its record.
  public struct Cell: BitwiseCopyable {
    public var key: Int64
    @usableFromInline var start: UnsafeRawPointer
    @usableFromInline var count: Int

    /// Valid until the next leaf.
    @inlinable @inline(__always)
    public var record: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
  }

  /// An interior page on the way to the leaf.
  private struct Level {
    var bytes: UnsafeMutableRawPointer
    var cellCount: Int
    /// The child that comes next; the right-most one is number `cellCount`.
    var next: Int
    /// The highest key that may lie below.
    var highest: Int64
  }

  /// SQLite's own bound: `BTCURSOR_MAX_DEPTH`.
  private static let mostLevels = 20
  /// A larger record than SQLite makes unless it was built to.
  private static let largestRecord: UInt64 = 1_000_000_000

  private let pages: PageReader
  private let overflowPages: PageReader
  private let usable: Int
  private let root: UInt32
  private let keys: ClosedRange<Int64>
  private var levels: [Level] = []
  private var unused: [UnsafeMutableRawPointer] = []
  private var isBegun = false
  private var isAtEnd = false
  private var lastKey: Int64?
  private let cells: UnsafeMutablePointer<Cell>
  private let mostCells: Int
  private var overflow = RawBuffer(capacity: 16)
  /// The cells in this leaf that lie in ``overflow``, with their places there.
  private var spilled: [(cell: Int, place: Int)] = []

  /// The rows of the leaf in hand whose keys were asked for.
  public private(set) var rows: UnsafeBufferPointer<Cell>

  /// - Parameters:
  ///   - descriptor: The database file, open for reading as long as this lives.
  ///   - root: The table's root page.
  /// - Returns: nil when the file's header says what only SQLite should read.
  public init?(descriptor: Int32, root: UInt32, keys: ClosedRange<Int64>) {
    var header = [UInt8](repeating: 0, count: 100)
    var status = stat()
    guard pread(descriptor, &header, 100, 0) == 100, fstat(descriptor, &status) == 0,
      header.starts(with: Array("SQLite format 3\0".utf8))
    else { return nil }
    let stated = Int(header[16]) << 8 | Int(header[17])
    let pageSize = stated == 1 ? 65_536 : stated
    let isUTF8 = header[56..<60].elementsEqual([0, 0, 0, 1])
    guard (512...65_536).contains(pageSize), pageSize & (pageSize - 1) == 0, isUTF8,
      header[20] <= 32, root > 1
    else { return nil }
    usable = pageSize - Int(header[20])
    let lastPage = UInt32(clamping: Int64(status.st_size) / Int64(pageSize))
    pages = PageReader(descriptor: descriptor, pageSize: pageSize, lastPage: lastPage)
    overflowPages = PageReader(descriptor: descriptor, pageSize: pageSize, lastPage: lastPage)
    self.root = root
    self.keys = keys
    mostCells = pageSize / 4
    cells = .allocate(capacity: mostCells)
    rows = UnsafeBufferPointer(start: cells, count: 0)
  }

  deinit {
    for level in levels { level.bytes.deallocate() }
    for bytes in unused { bytes.deallocate() }
    cells.deallocate()
  }
}

extension TableScan {
  /// Moves to the next leaf that has rows, and gives false when there are no more.
  ///
  /// - Throws: ``NotUnderstood``.
  public func nextLeaf() throws -> Bool {
    do {
      while !isAtEnd {
        guard let (leaf, highest) = try nextPage() else { break }
        try read(leaf, highest)
        if !rows.isEmpty { return true }
      }
    } catch is PageReader.Unreadable {
      throw NotUnderstood()
    }
    isAtEnd = true
    rows = UnsafeBufferPointer(start: cells, count: 0)
    return false
  }

  /// The next leaf, and the highest key that it may hold.
  private func nextPage() throws -> (UnsafeRawPointer, Int64)? {
    var (number, highest) = (root, Int64.max)
    if isBegun {
      while let last = levels.last, last.next > last.cellCount {
        unused.append(last.bytes)
        levels.removeLast()
      }
      guard !levels.isEmpty else { return nil }
      (number, highest) = try nextChild()
    }
    isBegun = true
    while true {
      let page = try pages.page(number)
      switch page.load(as: UInt8.self) {
      case 0x0D: return (page, highest)
      case 0x05:
        try enter(page, highest)
        (number, highest) = try nextChild()
      default: throw NotUnderstood()
      }
    }
  }

  private func enter(_ page: UnsafeRawPointer, _ highest: Int64) throws {
    guard levels.count < Self.mostLevels else { throw NotUnderstood() }
    let bytes =
      unused.popLast() ?? .allocate(byteCount: pages.pageSize, alignment: 16)
    bytes.copyMemory(from: page, byteCount: pages.pageSize)
    let count = number(at: 3, of: UnsafeRawPointer(bytes))
    levels.append(Level(bytes: bytes, cellCount: count, next: 0, highest: highest))
    guard 12 + 2 * count <= usable else { throw NotUnderstood() }
    // The first child that may hold a key that is asked for.
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if try divider(middle).key < keys.lowerBound { low = middle + 1 } else { high = middle }
    }
    levels[levels.count - 1].next = low
  }

  private func nextChild() throws -> (UInt32, Int64) {
    let place = levels.count - 1
    let level = levels[place]
    levels[place].next += 1
    if level.next == level.cellCount {
      let child = (level.bytes + 8).loadUnaligned(as: UInt32.self)
      return (UInt32(bigEndian: child), level.highest)
    }
    let (child, key) = try divider(level.next)
    guard key <= level.highest else { throw NotUnderstood() }
    return (child, key)
  }

  private func divider(_ cell: Int) throws -> (child: UInt32, key: Int64) {
    let bytes = UnsafeRawPointer(levels[levels.count - 1].bytes)
    let offset = number(at: 12 + 2 * cell, of: bytes)
    guard offset >= 12, offset + 4 < usable else { throw NotUnderstood() }
    var place = bytes + offset + 4
    guard let key = Varint.read(&place, end: bytes + usable) else { throw NotUnderstood() }
    let child = (bytes + offset).loadUnaligned(as: UInt32.self)
    return (UInt32(bigEndian: child), Int64(bitPattern: key))
  }

  @inline(__always)
  private func number(at offset: Int, of page: UnsafeRawPointer) -> Int {
    Int(UInt16(bigEndian: (page + offset).loadUnaligned(as: UInt16.self)))
  }
}

extension TableScan {
  private func read(_ page: UnsafeRawPointer, _ highest: Int64) throws {
    let count = number(at: 3, of: page)
    let cellStart = 8 + 2 * count
    guard cellStart <= usable, count <= mostCells else { throw NotUnderstood() }
    let end = page + usable
    let largestLocal = usable - 35
    var found = 0
    var bytesUsed = cellStart
    overflow.removeAll()
    if !spilled.isEmpty { spilled.removeAll(keepingCapacity: true) }
    for cell in 0..<count {
      let offset = number(at: 8 + 2 * cell, of: page)
      guard offset >= cellStart, offset < usable else { throw NotUnderstood() }
      var place = page + offset
      guard let size = Varint.read(&place, end: end), size <= Self.largestRecord,
        let bits = Varint.read(&place, end: end)
      else { throw NotUnderstood() }
      let key = Int64(bitPattern: bits)
      if let lastKey, key <= lastKey { throw NotUnderstood() }
      lastKey = key
      let size64 = Int(truncatingIfNeeded: size)
      let local = size64 <= largestLocal ? size64 : localSize(of: size64)
      let stored = local == size64 ? local : local + 4
      guard stored <= end - place else { throw NotUnderstood() }
      bytesUsed &+= max(4, (place - page) &- offset &+ stored)
      if key < keys.lowerBound { continue }
      if key > keys.upperBound {
        isAtEnd = true
        break
      }
      cells[found] = Cell(key: key, start: place, count: size64)
      if local != size64 {
        spilled.append((found, overflow.count))
        try assemble(place, local, size64)
      }
      found &+= 1
    }
    // Cells that share bytes take more than there are.
    guard bytesUsed <= usable else { throw NotUnderstood() }
    if let lastKey, lastKey > highest { throw NotUnderstood() }
    for (cell, place) in spilled { cells[cell].start = UnsafeRawPointer(overflow.base + place) }
    rows = UnsafeBufferPointer(start: cells, count: found)
  }

  /// Bytes of a record that does not fit on its page that lie there all the same.
  private func localSize(of size: Int) -> Int {
    let least = (usable - 12) * 32 / 255 - 23
    let local = least + (size - least) % (usable - 4)
    return local <= usable - 35 ? local : least
  }

  private func assemble(_ start: UnsafeRawPointer, _ local: Int, _ size: Int) throws {
    overflow.append(UnsafeRawBufferPointer(start: start, count: local))
    var next = UInt32(bigEndian: (start + local).loadUnaligned(as: UInt32.self))
    var left = size - local
    while left > 0 {
      let page = try overflowPages.page(next)
      next = UInt32(bigEndian: page.loadUnaligned(as: UInt32.self))
      let part = min(left, usable - 4)
      overflow.append(UnsafeRawBufferPointer(start: page + 4, count: part))
      left -= part
    }
    guard next == 0 else { throw NotUnderstood() }
  }
}
