/// The rows of a table, or the entries of an index, in the order of the b-tree, read from the file's
/// own pages.
///
/// A third of what stepping through a statement costs. It reads what it proves to understand and
/// nothing else: page types, cells within their page, keys that ascend within the bounds of the
/// pages above, overflow chains of the right length. Whatever else it meets it throws
/// ``NotUnderstood``, and the caller asks SQLite, which reads the same rows or says what is wrong.
///
/// With a ``PageLedger`` it proves all that SQLite's own check of a b-tree proves, and the ledger
/// learns of every page.
///
/// The file must not change meanwhile: a private clone, or a store opened as immutable.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
public final class TreeScan {
  /// An interior page on the way to the leaf.
  private struct Level {
    var number: UInt32
    var bytes: UnsafeMutableRawPointer
    var cellCount: Int
    /// The child that comes next; the right-most one is number `cellCount`.
    var next: Int
    /// The highest key that may lie below.
    var highest: Int64
  }

  /// A leaf, or what of it comes next.
  private struct Leaf {
    var number: UInt32
    var page: UnsafeRawPointer
    /// The highest key that it may hold.
    var highest: Int64
    /// The cell that comes next.
    var next = 0
    /// Bytes of the cells before.
    var bytesUsed = 0
  }

  /// SQLite's own bound: `BTCURSOR_MAX_DEPTH`.
  static let mostLevels = 20

  private let kind: Kind
  private let pages: PageReader
  private let cellFormat: CellFormat
  private let root: UInt32
  private let keys: ClosedRange<Int64>
  private let ledger: PageLedger?
  @exclusivity(unchecked) private var levels: [Level] = []
  @exclusivity(unchecked) private var unused: [UnsafeMutableRawPointer] = []
  @exclusivity(unchecked) private var isBegun = false
  @exclusivity(unchecked) private var isAtEnd = false
  /// The entry between the children of an index's page before and behind it comes next.
  @exclusivity(unchecked) private var isDividerDue = false
  @exclusivity(unchecked) private var leafDepth: Int?
  /// Pages seen, those of overflow chains too. No page is seen twice in a sound tree.
  @exclusivity(unchecked) private var visited = 0
  @exclusivity(unchecked) private var lastKey: Int64?
  private let cells: UnsafeMutablePointer<Cell>
  private let extents: CellExtents
  private let mostCells: Int
  private let overflow: OverflowRecords
  /// The leaf in hand, where not all of it has been given.
  @exclusivity(unchecked) private var rest: Leaf?

  /// The rows of the leaf in hand whose keys were asked for. Of large ones so many as come at a time.
  @exclusivity(unchecked) public private(set) var rows: UnsafeBufferPointer<Cell>

  /// - Parameters:
  ///   - descriptor: The database file, open for reading as long as this lives.
  ///   - root: The root page.
  ///   - keys: The rows of a table that are asked for.
  ///   - columns: How many values of each record are asked for, from its first. Of pages of a record's
  ///     own no more are read, but for a ledger.
  ///   - ledger: Learns of all pages; for a scan of all rows.
  /// - Returns: nil when the file's header says what only SQLite should read.
  public init?(
    _ kind: Kind = .table, descriptor: Int32, root: UInt32,
    keys: ClosedRange<Int64> = .min ... .max, columns: Int = .max, ledger: PageLedger? = nil
  ) {
    guard let file = RawFile(descriptor: descriptor), root > 0 else { return nil }
    let header = file.header
    self.kind = kind
    pages = PageReader(descriptor: descriptor, pageSize: header.pageSize, lastPage: file.lastPage)
    overflow = OverflowRecords(
      PageReader(descriptor: descriptor, pageSize: header.pageSize, lastPage: file.lastPage),
      usable: header.usableBytes, columns: ledger == nil ? columns : .max)
    cellFormat = CellFormat(kind, usable: header.usableBytes, fileSize: Int(file.size))
    self.root = root
    self.keys = keys
    self.ledger = ledger
    mostCells = header.pageSize / 4
    cells = .allocate(capacity: mostCells)
    extents = CellExtents(capacity: mostCells)
    rows = UnsafeBufferPointer(start: cells, count: 0)
  }

  deinit {
    for level in levels { level.bytes.deallocate() }
    for bytes in unused { bytes.deallocate() }
    cells.deallocate()
  }
}

extension TreeScan {
  /// Moves to the next leaf that has rows, and gives false when there are no more. Of an index the
  /// entries between leaves come as leaves, too.
  ///
  /// - Throws: ``NotUnderstood``.
  public func nextLeaf() throws -> Bool {
    do {
      while !isAtEnd {
        if let leaf = rest {
          try read(leaf)
        } else if isDividerDue {
          try readDivider()
          return true
        } else {
          guard let leaf = try nextPage() else { break }
          try read(leaf)
          try rise()
        }
        if !rows.isEmpty { return true }
      }
    } catch is PageReader.Unreadable {
      throw NotUnderstood()
    }
    isAtEnd = true
    rows = UnsafeBufferPointer(start: cells, count: 0)
    return false
  }

  /// Leaves the pages whose children have all been seen.
  private func rise() throws {
    while let last = levels.last, last.next > last.cellCount {
      unused.append(last.bytes)
      levels.removeLast()
    }
    isDividerDue = kind == .index && !levels.isEmpty
  }

  private func nextPage() throws -> Leaf? {
    var (number, highest) = (root, Int64.max)
    if isBegun {
      guard !levels.isEmpty else { return nil }
      (number, highest) = try nextChild()
    }
    isBegun = true
    while true {
      let page = try pages.page(number)
      try visit(number, role: levels.isEmpty ? .root : .tree, parent: levels.last?.number ?? 0)
      switch (page + start(of: number)).load(as: UInt8.self) {
      case cellFormat.leafType:
        guard ledger == nil || leafDepth ?? levels.count == levels.count else {
          throw NotUnderstood()
        }
        leafDepth = levels.count
        return Leaf(number: number, page: page, highest: highest)
      case cellFormat.interiorType:
        try enter(page, number, highest)
        (number, highest) = try nextChild()
      default: throw NotUnderstood()
      }
    }
  }

  private func visit(_ number: UInt32, role: PageRole, parent: UInt32) throws {
    visited &+= 1
    guard visited <= Int(pages.lastPage) else { throw NotUnderstood() }
    ledger?.add(number, role, parent: parent)
  }

  /// Where the b-tree header of a page begins: that of page 1 lies behind the file's.
  private func start(of page: UInt32) -> Int { page == 1 ? DatabaseHeader.byteCount : 0 }

  private func enter(_ page: UnsafeRawPointer, _ number: UInt32, _ highest: Int64) throws {
    guard levels.count < Self.mostLevels else { throw NotUnderstood() }
    let bytes =
      unused.popLast() ?? .allocate(byteCount: pages.pageSize, alignment: 16)
    bytes.copyMemory(from: page, byteCount: pages.pageSize)
    let head = start(of: number)
    let count = be16(head + 3, of: UnsafeRawPointer(bytes))
    levels.append(
      Level(number: number, bytes: bytes, cellCount: count, next: 0, highest: highest))
    guard head + 12 + 2 * count <= cellFormat.usable, count <= mostCells else {
      throw NotUnderstood()
    }
    if ledger != nil { try checkInterior(levels.count - 1) }
    // The first child that may hold a key that is asked for.
    guard kind == .table, keys.lowerBound > .min else { return }
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
    if kind == .table, level.next > 0 {
      // Keys behind a divider are higher.
      let before = try divider(level.next - 1).key
      lastKey = max(lastKey ?? before, before)
    }
    if level.next == level.cellCount {
      let head = start(of: level.number)
      let child = (level.bytes + head + 8).loadUnaligned(as: UInt32.self)
      return (UInt32(bigEndian: child), level.highest)
    }
    let (child, key) = try divider(level.next)
    guard kind == .index || key <= level.highest else { throw NotUnderstood() }
    return (child, key)
  }

  /// A child of the lowest level, and what divides it from the next.
  private func divider(_ cell: Int) throws -> (child: UInt32, key: Int64) {
    let (offset, bytes) = try interiorCell(cell, of: levels[levels.count - 1])
    let child = UInt32(bigEndian: (bytes + offset).loadUnaligned(as: UInt32.self))
    if kind == .index { return (child, .max) }
    return (child, try cellFormat.dividerKey(of: bytes, at: offset).key)
  }

  private func interiorCell(_ cell: Int, of level: Level) throws -> (Int, UnsafeRawPointer) {
    let bytes = UnsafeRawPointer(level.bytes)
    let head = start(of: level.number)
    let offset = be16(head + 12 + 2 * cell, of: bytes)
    guard offset >= head + 12 + 2 * level.cellCount, offset + 4 < cellFormat.usable else {
      throw NotUnderstood()
    }
    return (offset, bytes)
  }

  private func checkInterior(_ place: Int) throws {
    let level = levels[place]
    let head = start(of: level.number)
    // Page 1 has less room than the page below it may need.
    guard level.cellCount > 0 || level.number == 1 else { throw NotUnderstood() }
    extents.begin()
    for cell in 0..<level.cellCount {
      let (offset, bytes) = try interiorCell(cell, of: level)
      let size =
        kind == .table
        ? try cellFormat.dividerKey(of: bytes, at: offset).size
        : try 4 + cellFormat.entry(of: bytes, at: offset + 4).size
      extents.add(offset, size)
    }
    try extents.check(
      UnsafeRawPointer(level.bytes), head: head, cellsFrom: head + 12 + 2 * level.cellCount,
      usable: cellFormat.usable)
  }

  /// The entry between the child that was just read and the next.
  private func readDivider() throws {
    isDividerDue = false
    guard let level = levels.last else { throw NotUnderstood() }
    let (offset, bytes) = try interiorCell(level.next - 1, of: level)
    let entry = try cellFormat.entry(of: bytes, at: offset + 4)
    overflow.begin()
    cells[0] = Cell(key: 0, start: bytes + entry.start, count: entry.count)
    if entry.local != entry.count { try assemble(0, entry.local, page: level.number) }
    overflow.settle { cells[$0].start = $1 }
    rows = UnsafeBufferPointer(start: cells, count: 1)
  }

  @inline(__always)
  private func be16(_ offset: Int, of page: UnsafeRawPointer) -> Int {
    Int(UInt16(bigEndian: (page + offset).loadUnaligned(as: UInt16.self)))
  }
}

extension TreeScan {
  private func read(_ leaf: Leaf) throws {
    let (page, number) = (leaf.page, leaf.number)
    let head = start(of: number)
    let count = be16(head + 3, of: page)
    let cellStart = head + 8 + 2 * count
    guard cellStart <= cellFormat.usable, count <= mostCells,
      count > 0 || ledger == nil || number == root
    else { throw NotUnderstood() }
    let isTable = kind == .table
    let isChecked = ledger != nil
    let (format, cells, extents) = (cellFormat, cells, extents)
    var (found, bytesUsed) = (0, cellStart + leaf.bytesUsed)
    var last = lastKey ?? .min
    var isFirst = lastKey == nil
    overflow.begin()
    rest = nil
    if isChecked, leaf.next == 0 { extents.begin() }
    for cell in leaf.next..<count {
      let offset = be16(head + 8 + 2 * cell, of: page)
      guard offset >= cellStart, offset < format.usable else { throw NotUnderstood() }
      let entry =
        try isTable ? format.row(of: page, at: offset) : format.entry(of: page, at: offset)
      bytesUsed &+= entry.size
      if isChecked { extents.add(offset, entry.size) }
      if isTable {
        guard isFirst || entry.key > last else { throw NotUnderstood() }
        (last, isFirst) = (entry.key, false)
        if entry.key < keys.lowerBound { continue }
        if entry.key > keys.upperBound {
          isAtEnd = true
          break
        }
      }
      cells[found] = Cell(key: entry.key, start: page + entry.start, count: entry.count)
      found &+= 1
      guard entry.local != entry.count else { continue }
      try assemble(found &- 1, entry.local, page: number)
      if overflow.isFull, cell &+ 1 < count {
        rest = leaf
        rest?.next = cell &+ 1
        rest?.bytesUsed = bytesUsed &- cellStart
        break
      }
    }
    // Cells that share bytes take more than there are.
    guard bytesUsed <= format.usable else { throw NotUnderstood() }
    if isTable, count > 0 {
      lastKey = last
      guard last <= leaf.highest else { throw NotUnderstood() }
    }
    if isChecked, rest == nil {
      try extents.check(page, head: head, cellsFrom: cellStart, usable: format.usable)
    }
    overflow.settle { cells[$0].start = $1 }
    rows = UnsafeBufferPointer(start: cells, count: found)
  }

  /// Puts the record of a cell together whose end lies on pages of its own.
  private func assemble(_ cell: Int, _ local: Int, page: UInt32) throws {
    cells[cell].count = try overflow.add(cell: cell, cells[cell].start, local, cells[cell].count) {
      try visit($0, role: $1 == nil ? .firstOverflow : .laterOverflow, parent: $1 ?? page)
    }
  }
}
