import GodwitSQLite

/// Writes one b-tree bottom-up out of entries that come in order.
///
/// The page at the top goes where SQLite has put the empty root; all others are appended to the
/// file. No page but the root is ever without a cell, which SQLite would take for damage: what does
/// not fit any more takes the last cell along to the next page, or makes it the divider.
///
/// Source: https://sqlite.org/fileformat2.html §1.6; the bounds of a cell's local payload too.
final class TreeWriter {
  private let kind: TreeScan.Kind
  private let file: PageFile
  private let root: UInt32
  private let format: CellFormat
  private let leaf: TreePage
  /// The leaf first. Each level has one page, the one being filled.
  @exclusivity(unchecked) private var levels: [TreePage]
  @exclusivity(unchecked) private var lastKey: Int64 = 0
  /// What divides the page that was finished last from the next.
  @exclusivity(unchecked) private var divider = RawBuffer(capacity: 64)
  @exclusivity(unchecked) private var raised = RawBuffer(capacity: 64)

  init(_ kind: TreeScan.Kind, root: UInt32, in file: PageFile) {
    self.kind = kind
    self.file = file
    self.root = root
    format = CellFormat(kind, usable: PageNumbering.pageSize)
    leaf = TreePage(kind == .table ? .tableLeaf : .indexLeaf)
    levels = [leaf]
  }
}

extension TreeWriter {
  /// Appends a row to a table. Keys ascend.
  func append(key: Int64, _ record: UnsafeRawBufferPointer) throws {
    let keySize = Varint.size(of: UInt64(bitPattern: key))
    try append(record, keySize: keySize) { place in
      _ = Varint.write(UInt64(bitPattern: key), to: place)
    } whenFull: {
      divider.removeAll()
      divider.appendVarint(UInt64(bitPattern: lastKey))
      try rise(overflow: 0)
    }
    lastKey = key
  }

  /// Appends an entry to an index. Entries ascend.
  func append(_ record: UnsafeRawBufferPointer) throws {
    try append(record, keySize: 0) { _ in
    } whenFull: {
      let (bytes, overflow) = leaf.removeLast()
      divider.removeAll()
      divider.append(bytes)
      try rise(overflow: overflow)
    }
  }

  @inline(__always)
  private func append(
    _ record: UnsafeRawBufferPointer, keySize: Int,
    writeKey: (UnsafeMutableRawPointer) -> Void, whenFull: () throws -> Void
  ) throws {
    guard let start = record.baseAddress else { return }
    let count = record.count
    let local = format.localSize(of: count)
    var overflow: UInt32 = 0
    if local < count {
      overflow = try writeOverflow(UnsafeRawBufferPointer(rebasing: record[local...]))
    }
    let countSize = Varint.size(of: UInt64(count))
    let size = countSize + keySize + local + (overflow == 0 ? 0 : 4)
    var place = leaf.addCell(size, overflow: overflow)
    if place == nil {
      try whenFull()
      place = leaf.addCell(size, overflow: overflow)
    }
    guard let place else { preconditionFailure("a page has room for four cells") }
    _ = Varint.write(UInt64(count), to: place)
    writeKey(place + countSize)
    let content = place + countSize + keySize
    content.copyMemory(from: start, byteCount: local)
    if overflow != 0 {
      (content + local).storeBytes(of: overflow.bigEndian, as: UInt32.self)
    }
  }

  private func writeOverflow(_ bytes: UnsafeRawBufferPointer) throws -> UInt32 {
    let room = PageNumbering.pageSize - 4
    var first: UInt32 = 0
    var before: UInt32 = 0
    var done = 0
    while done < bytes.count {
      let (number, place) = try file.append()
      let part = UnsafeRawBufferPointer(rebasing: bytes[done..<min(done + room, bytes.count)])
      done += part.count
      let next = done < bytes.count ? file.successor(of: number) : 0
      place.storeBytes(of: next.bigEndian, as: UInt32.self)
      if let start = part.baseAddress { (place + 4).copyMemory(from: start, byteCount: part.count) }
      (place + 4 + part.count).initializeMemory(
        as: UInt8.self, repeating: 0, count: room - part.count)
      if before == 0 {
        first = number
      } else {
        try file.map(number, as: .laterOverflow, parent: before)
      }
      before = number
    }
    return first
  }
}

extension TreeWriter {
  /// Finishes the leaf and enters it, with ``divider`` behind it, on the level above; and so on as
  /// long as pages are full.
  private func rise(overflow: UInt32) throws {
    var (child, overflow) = (try complete(0), overflow)
    var level = 1
    while true {
      if levels.count == level {
        levels.append(TreePage(kind == .table ? .tableInterior : .indexInterior))
      }
      let page = levels[level]
      if enter(child, overflow, on: page) { return }
      let (bytes, lastOverflow) = page.removeLast()
      page.rightMost = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
      raised.removeAll()
      raised.append(UnsafeRawBufferPointer(rebasing: bytes[4...]))
      let full = try complete(level)
      guard enter(child, overflow, on: page) else {
        preconditionFailure("a page has room for four cells")
      }
      swap(&divider, &raised)
      (child, overflow) = (full, lastOverflow)
      level += 1
    }
  }

  private func enter(_ child: UInt32, _ overflow: UInt32, on page: TreePage) -> Bool {
    guard let place = page.addCell(4 + divider.count, overflow: overflow) else { return false }
    place.storeBytes(of: child.bigEndian, as: UInt32.self)
    (place + 4).copyMemory(from: divider.base, byteCount: divider.count)
    return true
  }

  /// Writes the page of a level, and empties it for the next.
  private func complete(_ level: Int) throws -> UInt32 {
    let page = levels[level]
    let (number, place) = try file.append()
    let bytes = page.finished()
    if let start = bytes.baseAddress { place.copyMemory(from: start, byteCount: bytes.count) }
    try mapChildren(of: page, number)
    page.removeAll()
    return number
  }

  private func mapChildren(of page: TreePage, _ number: UInt32) throws {
    try page.forEachChild { try file.map($0, as: .tree, parent: number) }
    for (_, overflow) in page.overflows {
      try file.map(overflow, as: .firstOverflow, parent: number)
    }
  }

  /// Writes what is left of each level, the top one as the root. A tree without entries stays as
  /// SQLite has made it.
  func finish() throws {
    guard levels.count > 1 || leaf.cellCount > 0 else { return }
    for level in 0..<levels.count - 1 { levels[level + 1].rightMost = try complete(level) }
    guard let top = levels.last else { return }
    try file.write(top.finished(), at: root)
    try mapChildren(of: top, root)
  }
}
