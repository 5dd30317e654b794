import GodwitSQLite
import SystemPackage

/// Pages of tables that cannot be read or are out of order, and the keys of the rows in them.
///
/// SQLite names a damaged page by its number at best. The keys follow from the interior pages above
/// it, which hold the highest key of each child.
/// Source: https://sqlite.org/fileformat2.html §1.6.
struct DamagedPages {
  /// One damaged page.
  struct Page: Equatable {
    var table: String
    var number: UInt32
    /// Exclusive; nil for the first page of a table.
    var after: Int64?
    /// Inclusive; nil for the last page of a table.
    var upTo: Int64?
    /// The page can be read, but has keys that do not ascend or belong on another page.
    var isOutOfOrder = false
  }

  /// 20. Enough to see where the damage lies.
  static let mostPages = 20
  /// Deeper than any b-tree of a file of 2³² pages.
  private static let mostLevels = 20

  private let file: FileDescriptor
  private let pageSize: Int
  private let usableSize: Int
  private let pageCount: UInt32
  private var seen: Set<UInt32> = []
  private var found: [Page] = []

  /// Looks at the pages of every table with row ids, those of overflow chains excepted.
  ///
  /// - Returns: ``mostPages`` at most; none where the file or its schema cannot be read at all.
  static func search(_ connection: Connection) -> [Page] {
    guard
      let row = try? connection.rows("PRAGMA database_list").first(where: { $0[1].text == "main" }),
      let path = row[2].text, !path.isEmpty,
      let tables = try? connection.rows(
        """
        SELECT CAST(name AS TEXT), CAST(rootpage AS INTEGER)
          FROM sqlite_master
         WHERE CAST(type AS TEXT) = 'table'
         ORDER BY name
        """),
      let file = try? FileDescriptor.open(
        FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
    else { return [] }
    defer { try? file.close() }
    guard var search = DamagedPages(file) else { return [] }
    for row in tables {
      guard let name = row[0].text, let root = row[1].integer.flatMap(UInt32.init(exactly:))
      else { continue }
      search.visit(root, of: name, after: nil, upTo: nil, level: 0)
    }
    return search.found
  }

  /// One sentence for each page.
  static func text(of pages: [Page]) -> String {
    let sentences = pages.prefix(StoreFinding.mostExamples).map { page in
      let key = page.table.utf8.first == UInt8(ascii: "Z") ? "Z_PK" : "rowid"
      let rows =
        switch (page.after, page.upTo) {
        case (nil, nil): "all its rows"
        case (let after?, nil): "rows with \(key) above \(after)"
        case (nil, let last?): "rows with \(key) up to \(last)"
        case (let after?, let last?):
          "rows with \(key) \(after + (after == .max ? 0 : 1)) to \(last)"
        }
      return "Table \(page.table), page \(page.number): \(rows) are "
        + (page.isOutOfOrder ? "out of order" : "unreadable")
    }
    let rest = pages.count - sentences.count
    return sentences.joined(separator: ". ") + (rest > 0 ? ". \(rest) more pages are damaged" : "")
  }

  private init?(_ file: FileDescriptor) {
    self.file = file
    guard
      let header = Self.read(file, at: 0, count: DatabaseHeader.byteCount)
        .flatMap({ DatabaseHeader($0) }),
      header.hasPossiblePageSize, header.hasPossibleUsableBytes,
      let end = try? file.seek(offset: 0, from: .end)
    else { return nil }
    (pageSize, usableSize) = (header.pageSize, header.usableBytes)
    pageCount = UInt32(clamping: end / Int64(pageSize))
  }

  private static func read(_ file: FileDescriptor, at offset: Int64, count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let read = bytes.withUnsafeMutableBytes { buffer in
        try? file.read(
          fromAbsoluteOffset: offset + Int64(filled),
          into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      }
      guard let read, read > 0 else { return nil }
      filled += read
    }
    return bytes
  }
}

extension DamagedPages {
  private mutating func visit(
    _ number: UInt32, of table: String, after: Int64?, upTo: Int64?, level: Int
  ) {
    guard found.count < Self.mostPages else { return }
    guard number > 0, number <= pageCount, level < Self.mostLevels, seen.insert(number).inserted,
      let bytes = Self.read(
        file, at: Int64(number - 1) * Int64(pageSize), count: pageSize),
      let page = TablePage(bytes, usableSize: usableSize, isFirst: number == 1)
    else {
      found.append(Page(table: table, number: number, after: after, upTo: upTo))
      return
    }
    if page.isForeign { return }
    var low = after
    for key in page.keys {
      guard low.map({ key > $0 }) ?? true, upTo.map({ key <= $0 }) ?? true else {
        found.append(
          Page(table: table, number: number, after: after, upTo: upTo, isOutOfOrder: true))
        return
      }
      low = key
    }
    low = after
    for (child, key) in zip(page.children, page.keys) {
      visit(child, of: table, after: low, upTo: key, level: level + 1)
      low = key
    }
    if let last = page.lastChild {
      visit(last, of: table, after: low, upTo: upTo, level: level + 1)
    }
  }
}

/// A page of a table's b-tree, as far as its keys and children go.
private struct TablePage {
  /// A page of an index, or of a table without row ids.
  let isForeign: Bool
  let children: [UInt32]
  let lastChild: UInt32?
  let keys: [Int64]

  /// Nil for a page that is not well formed.
  init?(_ bytes: [UInt8], usableSize: Int, isFirst: Bool) {
    let head = isFirst ? 100 : 0
    let kind = bytes[head]
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | Int($1) }
    }
    isForeign = kind == 0x02 || kind == 0x0A
    guard isForeign || kind == 0x05 || kind == 0x0D else { return nil }
    let isInterior = kind == 0x05
    let headSize = isInterior ? 12 : 8
    let count = isForeign ? 0 : number(head + 3, 2)
    let start = head + headSize + 2 * count
    guard start <= usableSize else { return nil }
    var (children, keys): ([UInt32], [Int64]) = ([], [])
    for cell in 0..<count {
      var place = number(head + headSize + 2 * cell, 2)
      guard place >= start, place + 4 <= usableSize else { return nil }
      if isInterior {
        children.append(UInt32(number(place, 4)))
        place += 4
      } else {
        guard let payload = Self.varint(bytes, &place, usableSize), payload >= 0 else { return nil }
        let size = Int(clamping: payload)
        guard let key = Self.varint(bytes, &place, usableSize) else { return nil }
        // Longer payloads go on in overflow pages.
        let most = CellFormat(.table, usable: usableSize).largestLocal
        if size <= most, place + size > usableSize { return nil }
        keys.append(key)
        continue
      }
      guard let key = Self.varint(bytes, &place, usableSize) else { return nil }
      keys.append(key)
    }
    self.children = children
    self.keys = keys
    lastChild = isInterior ? UInt32(number(head + 8, 4)) : nil
  }

  private static func varint(_ bytes: [UInt8], _ place: inout Int, _ end: Int) -> Int64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard place < end else { return nil }
      let byte = bytes[place]
      place += 1
      if index == 8 {
        value = value << 8 | UInt64(byte)
        return Int64(bitPattern: value)
      }
      value = value << 7 | UInt64(byte & 0x7F)
      if byte & 0x80 == 0 { return Int64(bitPattern: value) }
    }
    return nil
  }
}
