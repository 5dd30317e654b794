import GodwitSQLite

/// The roots of the trees that pages lie in, as the pages above them tell.
struct TreeTops {
  private static let mostLevels = 20

  private let file: DamagedFile
  /// By the kind of the tree: the page above each page; 0 where there are several. Only for a file without
  /// pointer maps.
  private var parents: [TreeScan.Kind: [UInt32: UInt32]] = [:]

  init(_ file: DamagedFile) { self.file = file }

  /// What rows of `sqlite_master` whose root page is none say of it.
  struct Judgement {
    /// By the place of the row: the page at the top of the tree, which no other row names.
    var moved: [(place: Int, top: UInt32)] = []
    /// Tables whose page is another one's.
    var strays: [Int] = []
    /// Tables whose page lies below one that does not lead to it any more.
    var cut: [Int] = []
  }

  /// - Parameter isOfRows: Whether a row's tree is one of rows, and not of the form of an index.
  mutating func judge(
    _ entries: [SchemaSalvage.Entry], isOfRows: (SchemaSalvage.Entry) -> Bool
  ) -> Judgement {
    var found = Judgement()
    let named = Set(entries.map(\.root))
    var leading: [UInt32: [Int]] = [:]
    for (place, entry) in entries.enumerated() where mayBeBelow(entry.root) {
      if let top = top(of: entry.root, isOfRows(entry) ? .table : .index) {
        leading[top, default: []].append(place)
      } else if entry.kind == .table, file.isBelowAnother(entry.root) {
        found.cut.append(place)
      }
    }
    for (top, places) in leading.sorted(by: { $0.key < $1.key }) {
      // A page that several rows lead to is that of one of them, and nothing tells whose.
      if places.count == 1, !named.contains(top) {
        found.moved.append((places[0], top))
      } else {
        found.strays += places.filter { entries[$0].kind == .table }
      }
    }
    return found
  }

  /// Whether another page may lead to a page: false where a pointer map says that it is a root.
  private func mayBeBelow(_ page: UInt32) -> Bool {
    guard page > 1, page <= file.pageCount else { return false }
    return file.hasPointerMaps ? file.entry(of: page)?.role == .tree : true
  }

  /// The highest page above a page; nil where no page leads to it, or what does is no whole tree.
  private mutating func top(of page: UInt32, _ kind: TreeScan.Kind) -> UInt32? {
    let reader = DamagedTreeReader(file, kind, tree: 0)
    var top = page
    for _ in 0..<Self.mostLevels {
      guard let parent = parent(of: top, reader, kind) else { break }
      top = parent
    }
    guard top != page, !file.isFree(top), !file.hasPointerMaps || file.entry(of: top)?.role == .root
    else { return nil }
    return top
  }

  private mutating func parent(
    of page: UInt32, _ reader: DamagedTreeReader, _ kind: TreeScan.Kind
  ) -> UInt32? {
    if file.hasPointerMaps {
      guard let entry = file.entry(of: page), entry.role == .tree, entry.parent > 1,
        entry.parent <= file.pageCount, reader.children(of: entry.parent)?.contains(page) == true
      else { return nil }
      return entry.parent
    }
    let known = parents[kind] ?? listParents(reader)
    parents[kind] = known
    return known[page].flatMap { $0 > 0 ? $0 : nil }
  }

  private func listParents(_ reader: DamagedTreeReader) -> [UInt32: UInt32] {
    var parents: [UInt32: UInt32] = [:]
    guard file.pageCount > 1 else { return parents }
    for page in 2...file.pageCount where !file.isFree(page) {
      for child in reader.children(of: page) ?? [] {
        parents[child] = parents[child] == nil ? page : 0
      }
    }
    return parents
  }
}
