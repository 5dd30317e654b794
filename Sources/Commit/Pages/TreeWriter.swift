import GodwitSQLite

/// Writes one b-tree bottom-up out of entries that come in order.
///
/// The page at the top goes where SQLite has put the empty root; all others are appended to the
/// file. No page but the root is ever without a cell, which SQLite would take for damage: what does
/// not fit any more takes the last cell along to the next page, or makes it the divider.
///
/// Source: https://sqlite.org/fileformat2.html §1.6; the bounds of a cell's local payload too.
final class TreeWriter {
  enum Kind { case table, index }

  private let kind: Kind
  private let file: PageFile
  private let root: UInt32
  private let largestLocal: Int
  /// Leaves first. Each level has one page, the one being filled.
  private var levels: [TreePage]
  private var lastKey: Int64 = 0

  init(_ kind: Kind, root: UInt32, in file: PageFile) {
    self.kind = kind
    self.file = file
    self.root = root
    let usable = PageNumbering.pageSize
    largestLocal = kind == .table ? usable - 35 : (usable - 12) * 64 / 255 - 23
    levels = [TreePage(kind == .table ? .tableLeaf : .indexLeaf)]
  }
}

extension TreeWriter {
  /// Appends a row to a table. Keys ascend.
  func append(key: Int64, _ record: UnsafeRawBufferPointer) throws {
    let keySize = Varint.size(of: UInt64(bitPattern: key))
    try append(record, keySize: keySize) { place in
      _ = Varint.write(UInt64(bitPattern: key), to: place)
    } whenFull: {
      var divider = [UInt8](repeating: 0, count: Varint.size(of: UInt64(bitPattern: lastKey)))
      divider.withUnsafeMutableBytes { bytes in
        guard let start = bytes.baseAddress else { return }
        _ = Varint.write(UInt64(bitPattern: lastKey), to: start)
      }
      try rise(divider, overflow: 0)
    }
    lastKey = key
  }

  /// Appends an entry to an index. Entries ascend.
  func append(_ record: UnsafeRawBufferPointer) throws {
    try append(record, keySize: 0) { _ in
    } whenFull: {
      let (bytes, overflow) = levels[0].removeLast()
      try rise(Array(bytes), overflow: overflow)
    }
  }

  @inline(__always)
  private func append(
    _ record: UnsafeRawBufferPointer, keySize: Int,
    writeKey: (UnsafeMutableRawPointer) -> Void, whenFull: () throws -> Void
  ) throws {
    guard let start = record.baseAddress else { return }
    let count = record.count
    var local = count
    var overflow: UInt32 = 0
    if count > largestLocal {
      local = localSize(of: count)
      overflow = try writeOverflow(UnsafeRawBufferPointer(rebasing: record[local...]))
    }
    let countSize = Varint.size(of: UInt64(count))
    let size = countSize + keySize + local + (overflow == 0 ? 0 : 4)
    var place = levels[0].addCell(size, overflow: overflow)
    if place == nil {
      try whenFull()
      place = levels[0].addCell(size, overflow: overflow)
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

  /// Bytes that a record leaves on its b-tree page when it does not fit there.
  private func localSize(of count: Int) -> Int {
    let usable = PageNumbering.pageSize
    let least = (usable - 12) * 32 / 255 - 23
    let local = least + (count - least) % (usable - 4)
    return local <= largestLocal ? local : least
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
  /// Finishes the leaf and enters it, with the divider behind it, on the level above; and so on as
  /// long as pages are full.
  private func rise(_ divider: [UInt8], overflow: UInt32) throws {
    var (child, divider, overflow) = (try complete(0), divider, overflow)
    var level = 1
    while true {
      if levels.count == level {
        levels.append(TreePage(kind == .table ? .tableInterior : .indexInterior))
      }
      let page = levels[level]
      if enter(child, divider, overflow, on: page) { return }
      let (bytes, lastOverflow) = page.removeLast()
      page.rightMost = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
      let raised = Array(bytes[4...])
      let full = try complete(level)
      guard enter(child, divider, overflow, on: page) else {
        preconditionFailure("a page has room for four cells")
      }
      (child, divider, overflow) = (full, raised, lastOverflow)
      level += 1
    }
  }

  private func enter(
    _ child: UInt32, _ divider: [UInt8], _ overflow: UInt32, on page: TreePage
  ) -> Bool {
    guard let place = page.addCell(4 + divider.count, overflow: overflow) else { return false }
    place.storeBytes(of: child.bigEndian, as: UInt32.self)
    divider.withUnsafeBytes { bytes in
      if let start = bytes.baseAddress {
        (place + 4).copyMemory(from: start, byteCount: bytes.count)
      }
    }
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
    guard levels.count > 1 || levels[0].cellCount > 0 else { return }
    for level in 0..<levels.count - 1 { levels[level + 1].rightMost = try complete(level) }
    guard let top = levels.last else { return }
    try file.write(top.finished(), at: root)
    try mapChildren(of: top, root)
  }
}
