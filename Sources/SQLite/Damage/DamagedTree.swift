/// Reads the b-trees of a ``DamagedFile`` as far as they can be followed.
package struct DamagedTreeReader {
  package typealias Body = (DamagedCell) throws -> Void

  private static let mostLevels = 20

  let file: DamagedFile
  let kind: TreeScan.Kind
  /// What pages are claimed for.
  let tree: Int32
  /// Where rows may be lost. Empty when every page proved whole.
  package private(set) var gaps: [KeyGap] = []
  /// Whether a leaf's rows can be the tree's; one whose cannot is left to other trees. What it can ask is whether
  /// the leaf is in its place: sound pages lead to it, and its keys are those that they bound.
  package var isOwn: (UInt32, _ isInPlace: () -> Bool) throws -> Bool = { _, _ in true }
  let format: CellFormat
  private let extents: CellExtents
  let chain = RecordChain()

  package init(_ file: DamagedFile, _ kind: TreeScan.Kind, tree: Int32) {
    self.file = file
    self.kind = kind
    self.tree = tree
    format = kind == .table ? file.tableFormat : file.indexFormat
    // Cells of a damaged page may share bytes: only its cell pointers, of 2 bytes, need room.
    extents = CellExtents(capacity: file.pageSize / 2)
  }

  /// Reads the tree below a root page.
  ///
  /// - Parameter after: No key of the tree is as low as this.
  package mutating func read(root: UInt32, after: Int64? = nil, _ body: Body) throws {
    try visit(root, after: after, upTo: nil, level: 0, from: nil, isLed: true, body)
  }

  /// Reads a leaf that no page leads to any more.
  package mutating func read(orphan: UInt32, after: Int64? = nil, _ body: Body) throws {
    guard file.isOpen(orphan), let page = try? file.pages.page(orphan),
      leafQuality(page, orphan) == 1
    else { return }
    file.claim(orphan, for: tree)
    try readLeaf(page, orphan, after: after, upTo: nil, isRoot: false, body)
  }

  /// Rows of one leaf below a page, of which nothing is claimed: for a look at what they are. The
  /// ends of long records are left out.
  ///
  /// - Parameter atEnd: Whether it is the leaf with the highest keys, and not the one with the lowest.
  package func sample(below root: UInt32, atEnd: Bool = false, _ body: Body) rethrows {
    var next = root
    for _ in 0..<Self.mostLevels {
      guard file.isOpen(next), let page = try? file.pages.page(next) else { return }
      switch shape(of: page, next) {
      case .neither: return
      case .interior:
        let offsets = offsets(page, next, pointers: 12)
        let last = be32(page, head(of: next) + 8)
        if atEnd, file.isOpen(last) {
          next = last
          continue
        }
        next =
          offsets.lazy.filter { $0 + 4 <= format.usable }.map { be32(page, $0) }
          .first { file.isOpen($0) } ?? last
      case .leaf:
        for offset in offsets(page, next, pointers: 8) where offset + 4 <= format.usable {
          guard
            let entry = kind == .table
              ? try? format.row(of: page, at: offset) : try? format.entry(of: page, at: offset)
          else { continue }
          guard let record = beginning(of: entry, on: page, next) else { continue }
          try body(DamagedCell(key: entry.key, record: record, keyState: .sound, page: next))
        }
        return
      }
    }
  }

  /// Whether a page that no page leads to reads as a leaf of this kind from end to end.
  package func isLeaf(_ number: UInt32) -> Bool {
    guard file.isOpen(number), let page = try? file.pages.page(number) else { return false }
    return byte(page, head(of: number)) == format.leafType && leafQuality(page, number) == 1
      && count(page, number) > 0
  }

  /// The pages that a page above leaves leads to; nil for another one.
  package func children(of number: UInt32) -> [UInt32]? {
    guard let page = try? file.pages.page(number),
      byte(page, head(of: number)) == format.interiorType, count(page, number) > 0,
      interiorQuality(page, number) == 1
    else { return nil }
    return offsets(page, number, pointers: 12).map { be32(page, $0) }
      + [be32(page, head(of: number) + 8)]
  }

  /// Whether what lies on an index's page lies on another page, too: one of the two was written where it does
  /// not belong.
  package func isCopied(_ number: UInt32) -> Bool { file.copiedIndexPages.contains(number) }

  /// - Parameters:
  ///   - parent: The page that leads to it; nil for a root.
  ///   - isLed: Whether all pages above are sound.
  private mutating func visit(
    _ number: UInt32, after: Int64?, upTo: Int64?, level: Int, from parent: UInt32?, isLed: Bool,
    _ body: Body
  ) throws {
    guard level < Self.mostLevels, file.isOpen(number), file.knownBytes(of: number) > 0,
      let page = try? file.pages.page(number)
    else {
      gaps.append(KeyGap(page: number, after: after, upTo: upTo))
      return
    }
    let shape = shape(of: page, number)
    if case .leaf = shape,
      try !isOwn(number, { isLed && isInPlace(page, number, after, upTo, below: parent) })
    {
      gaps.append(KeyGap(page: number, after: after, upTo: upTo))
      return
    }
    file.claim(number, for: tree)
    switch shape {
    case .leaf:
      try readLeaf(page, number, after: after, upTo: upTo, isRoot: level == 0, body)
    case .interior:
      try readInterior(
        page, number, after: after, upTo: upTo, level: level, isLed: isLed, body)
    case .neither: gaps.append(KeyGap(page: number, after: after, upTo: upTo))
    }
  }
}

// MARK: - What a page is

extension DamagedTreeReader {
  private enum Shape { case leaf, interior, neither }

  /// By the page's type, or, where that byte is damaged, by what its cells look like.
  private func shape(of page: UnsafeRawPointer, _ number: UInt32) -> Shape {
    let type = byte(page, head(of: number))
    let (leaf, interior) = (leafQuality(page, number), interiorQuality(page, number))
    // A file in which nothing was made, and a table without rows, have a leaf without cells.
    if type == format.leafType, leaf >= 0.5 || interior < 0.9 { return .leaf }
    if type == format.interiorType, interior >= 0.5 || leaf < 0.9 { return .interior }
    if leaf >= 0.9, count(page, number) > 0 { return .leaf }
    return interior >= 0.9 && count(page, number) > 0 ? .interior : .neither
  }

  /// The share of cells that can be a leaf's; 1 without cells.
  private func leafQuality(_ page: UnsafeRawPointer, _ number: UInt32) -> Double {
    quality(page, number, pointers: 8) { offset in
      let entry =
        kind == .table
        ? try? format.row(of: page, at: offset) : try? format.entry(of: page, at: offset)
      return entry.map { $0.count > 0 } ?? false
    }
  }

  private func interiorQuality(_ page: UnsafeRawPointer, _ number: UInt32) -> Double {
    quality(page, number, pointers: 12) { offset in
      let child = be32(page, offset)
      guard child > 0, child <= file.pageCount else { return false }
      return kind == .table
        ? (try? format.dividerKey(of: page, at: offset)) != nil
        : (try? format.entry(of: page, at: offset + 4)) != nil
    }
  }

  /// Whether a leaf of rows is whole, has only keys that the pages above bound, and is where the pointer map
  /// says.
  private func isInPlace(
    _ page: UnsafeRawPointer, _ number: UInt32, _ after: Int64?, _ upTo: Int64?,
    below parent: UInt32?
  ) -> Bool {
    guard kind == .table, byte(page, head(of: number)) == format.leafType,
      leafQuality(page, number) == 1, file.knownBytes(of: number) == file.pageSize,
      file.isPlaced(number, below: parent)
    else { return false }
    var low = after
    return offsets(page, number, pointers: 8).allSatisfy { offset in
      guard let key = try? format.row(of: page, at: offset).key else { return false }
      defer { low = key }
      return low.map { $0 < key } ?? true && key <= upTo ?? .max
    }
  }

  private func quality(
    _ page: UnsafeRawPointer, _ number: UInt32, pointers: Int, _ isGood: (Int) -> Bool
  ) -> Double {
    let offsets = offsets(page, number, pointers: pointers)
    if offsets.isEmpty { return 1 }
    let first = head(of: number) + pointers
    let good = offsets.count { $0 >= first && $0 + 5 <= format.usable && isGood($0) }
    return Double(good) / Double(offsets.count)
  }

  /// Where the cells of a page begin, by its cell pointers. SQLite takes those past the page from its beginning
  /// again, so that a damaged bit there does no harm.
  private func offsets(_ page: UnsafeRawPointer, _ number: UInt32, pointers: Int) -> [Int] {
    cellPointers(page, number, pointers: pointers).map { $0 & (file.pageSize - 1) }
  }

  private func cellPointers(
    _ page: UnsafeRawPointer, _ number: UInt32, pointers: Int
  ) -> some Collection<Int> {
    let first = head(of: number) + pointers
    let room = max(0, (format.usable - first) / 2)
    return (0..<min(count(page, number), room)).lazy.map { be16(page, first + 2 * $0) }
  }
}

// MARK: - Interior pages

extension DamagedTreeReader {
  private struct Child {
    var page: UInt32
    /// Inclusive.
    var upTo: Int64?
  }

  private mutating func readInterior(
    _ page: UnsafeRawPointer, _ number: UInt32, after: Int64?, upTo: Int64?, level: Int,
    isLed: Bool, _ body: Body
  ) throws {
    let offsets = offsets(page, number, pointers: 12)
    let first = head(of: number) + 12
    let known = file.knownBytes(of: number)
    // What does not fit beside the header of the file lies below page 1 on one page, without a key to divide it.
    var isSound =
      offsets.count == count(page, number) && (!offsets.isEmpty || number == 1)
      && known == file.pageSize
      && cellPointers(page, number, pointers: 12).allSatisfy { $0 < file.pageSize }
    var (children, entries): ([Child], [(offset: Int, entry: CellFormat.Entry)]) = ([], [])
    var last = after
    extents.begin()
    for offset in offsets {
      guard offset >= first + 2 * offsets.count, offset + 5 <= min(format.usable, known) else {
        isSound = false
        continue
      }
      if kind == .index {
        guard let entry = try? format.entry(of: page, at: offset + 4) else {
          isSound = false
          children.append(Child(page: be32(page, offset), upTo: nil))
          continue
        }
        extents.add(offset, entry.size + 4)
        children.append(Child(page: be32(page, offset), upTo: nil))
        entries.append((offset, entry))
        continue
      }
      guard let (key, size) = try? format.dividerKey(of: page, at: offset), offset + size <= known
      else {
        isSound = false
        continue
      }
      extents.add(offset, size)
      isSound = isSound && last.map { key > $0 } ?? true && upTo.map { key <= $0 } ?? true
      last = key
      children.append(Child(page: be32(page, offset), upTo: key))
    }
    children.append(Child(page: be32(page, head(of: number) + 8), upTo: upTo))
    isSound =
      isSound
      && (try? extents.check(
        page, head: head(of: number), cellsFrom: first + 2 * offsets.count, usable: format.usable))
        != nil
    if !isSound { gaps.append(KeyGap(page: number, after: after, upTo: upTo)) }
    for (_, entry) in entries {
      let record = record(of: entry, on: page, number)
      try body(DamagedCell(key: 0, record: record, keyState: .sound, page: number))
    }
    var low = after
    for child in children {
      // Bounds of a damaged page mean nothing.
      try visit(
        child.page, after: isSound ? low : after, upTo: isSound ? child.upTo : upTo,
        level: level + 1, from: number, isLed: isLed && isSound, body)
      low = child.upTo
    }
  }
}

// MARK: - Leaves

extension DamagedTreeReader {
  private mutating func readLeaf(
    _ page: UnsafeRawPointer, _ number: UInt32, after: Int64?, upTo: Int64?, isRoot: Bool,
    _ body: Body
  ) throws {
    let offsets = offsets(page, number, pointers: 8)
    let first = head(of: number) + 8
    let known = file.knownBytes(of: number)
    // SQLite removes a leaf with its last cell; only a root stays.
    var isSound =
      offsets.count == count(page, number) && known == file.pageSize && (isRoot || !offsets.isEmpty)
      && cellPointers(page, number, pointers: 8).allSatisfy { $0 < file.pageSize }
    var entries: [CellFormat.Entry] = []
    extents.begin()
    for offset in offsets {
      guard offset >= first, offset < format.usable,
        let entry = kind == .table
          ? try? format.row(of: page, at: offset) : try? format.entry(of: page, at: offset),
        entry.start < known
      else {
        isSound = false
        continue
      }
      isSound = isSound && offset >= first + 2 * offsets.count
      extents.add(offset, entry.size)
      entries.append(entry)
    }
    let isTiled =
      isSound
      && (try? extents.check(
        page, head: head(of: number), cellsFrom: first + 2 * offsets.count, usable: format.usable))
        != nil
    guard kind == .table else {
      if !isTiled { gaps.append(KeyGap(page: number)) }
      for entry in entries {
        let record = record(of: entry, on: page, number)
        try body(DamagedCell(key: 0, record: record, keyState: .sound, page: number))
      }
      return
    }
    let keys = KeySequence(entries.map(\.key), after: after, upTo: upTo)
    if !isTiled || !keys.isAscending || byte(page, head(of: number)) != format.leafType {
      gaps.append(KeyGap(page: number, after: after, upTo: upTo))
    }
    for (place, entry) in entries.enumerated() {
      let record = record(of: entry, on: page, number)
      try body(
        DamagedCell(
          key: keys.keys[place], record: record, keyState: keys.states[place], page: number))
    }
  }
}
