/// What pointer maps say of pages: hints, for a map may be the damaged page.
///
/// Source: https://sqlite.org/fileformat2.html §1.8.
extension DamagedFile {
  private var lockBytePage: UInt32 { UInt32(0x4000_0000 / pageSize + 1) }

  /// The map that tells of a page, and where in it.
  private func mapEntry(of page: UInt32) -> (map: UInt32, offset: Int)? {
    guard hasPointerMaps, page > 2 else { return nil }
    let pagesPerMap = UInt32(usableBytes / 5 + 1)
    var map = (page - 2) / pagesPerMap * pagesPerMap + 2
    // Where the lock-byte page would be a map, the next page is.
    if map == lockBytePage { map += 1 }
    guard page > map else { return nil }
    return (map, 5 * Int(page - map - 1))
  }

  func isPointerMap(_ page: UInt32) -> Bool {
    guard hasPointerMaps, page >= 2 else { return false }
    let pagesPerMap = UInt32(usableBytes / 5 + 1)
    let map = (page - 2) / pagesPerMap * pagesPerMap + 2
    return page == map || (map == lockBytePage && page == map + 1)
  }

  /// What the pointer map says of a page; nil where there is none, or it cannot be read or believed.
  package func entry(of page: UInt32) -> (role: PageRole, parent: UInt32)? {
    guard let found = unjudgedEntry(of: page) else { return nil }
    let isOverflow = found.role == .firstOverflow || found.role == .laterOverflow
    return isOverflow && treeType(of: page) != nil ? nil : found
  }

  /// The same without a look at the page.
  func unjudgedEntry(of page: UInt32) -> (role: PageRole, parent: UInt32)? {
    guard let place = mapEntry(of: page), state(ofMap: place.map) != .unbelieved,
      let bytes = try? mapPages.page(place.map)
    else { return nil }
    return Self.entry(bytes + place.offset)
  }

  private static func entry(_ bytes: UnsafeRawPointer) -> (role: PageRole, parent: UInt32)? {
    guard let role = PageRole(rawValue: bytes.load(as: UInt8.self)) else { return nil }
    return (role, UInt32(bigEndian: (bytes + 1).loadUnaligned(as: UInt32.self)))
  }

  /// Whether no pointer map says that a leaf of a tree is anything else, or that it led to other pages.
  ///
  /// - Parameter parent: The page that leads to it; nil for a root.
  func isPlaced(_ leaf: UInt32, below parent: UInt32?) -> Bool {
    guard hasPointerMaps else { return !isListedFree(leaf) }
    guard !isListedFree(leaf), !mapParents.contains(leaf) else { return false }
    guard let entry = entry(of: leaf) else { return true }
    return parent.map { entry.role == .tree && entry.parent == $0 } ?? (entry.role == .root)
  }

  func findMapParents() -> Set<UInt32> {
    guard pageCount > 2 else { return [] }
    return Set(
      (3...pageCount).compactMap { page in
        entry(of: page).flatMap { $0.role == .tree ? $0.parent : nil }
      })
  }

  /// Whether a number of a page stands anywhere on a page that is said to be its parent.
  func leads(_ parent: UInt32, to page: UInt32) -> Bool {
    guard parent >= 1, parent <= pageCount, let bytes = try? mapPages.page(parent) else {
      return false
    }
    return (0...usableBytes - 4).contains { offset in
      UInt32(bigEndian: (bytes + offset).loadUnaligned(as: UInt32.self)) == page
    }
  }

  /// Whether the page is free: what lies on it was deleted.
  package func isFree(_ page: UInt32) -> Bool {
    entry(of: page).map { $0.role == .free } ?? isListedFree(page)
  }

  /// Whether a pointer map says so of a page that the whole list of free pages does not name: one of the two is
  /// wrong.
  package func isFreeByMapAlone(_ page: UInt32) -> Bool {
    entry(of: page)?.role == .free && isFreeListWhole && !isListedFree(page)
  }

  /// The type of a page of a tree; nil for one that begins as none does.
  private func treeType(of page: UInt32) -> UInt8? {
    guard page >= 1, page <= pageCount, let bytes = try? mapPages.page(page) else { return nil }
    return treeType(of: page, bytes)
  }

  /// An overflow page begins with the number of a page, which none is that begins with such a type.
  func treeType(of page: UInt32, _ bytes: UnsafeRawPointer) -> UInt8? {
    let type = (bytes + (page == 1 ? DatabaseHeader.byteCount : 0)).load(as: UInt8.self)
    let next = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
    return [2, 5, 10, 13].contains(type) && next > pageCount ? type : nil
  }

  // MARK: Whether a map is one

  private static let mostSamples = 100

  /// How far the pages of which a pointer map tells bear it out: it may be damaged itself, and what reads well is
  /// not given up for it.
  enum MapState {
    /// Most entries are wrong.
    case unbelieved
    /// They tell whose lost pages are.
    case possible
    /// Nearly all are right, so that one that contradicts a row casts doubt on it.
    case credible
  }

  /// What the map is that tells of a page; nil where there is none.
  func mapState(of page: UInt32) -> MapState? { mapEntry(of: page).map { state(ofMap: $0.map) } }

  /// Whether a map that is right elsewhere says that a page of a tree lies below another one.
  package func isBelowAnother(_ page: UInt32) -> Bool {
    mapState(of: page) == .credible && entry(of: page)?.role == .tree
  }

  private func state(ofMap map: UInt32) -> MapState {
    if let known = mapStates[map] { return known }
    guard map <= pageCount, let bytes = try? mapPages.page(map) else { return .unbelieved }
    let entries = min(usableBytes / 5, Int(pageCount - map))
    let samples = stride(from: 0, to: entries, by: max(1, entries / Self.mostSamples)).map {
      (page: map + 1 + UInt32($0), entry: Self.entry(bytes + 5 * $0))
    }
    var (right, wrong) = (0, 0)
    for (page, entry) in samples {
      switch entry.map({ isBorneOut($0, page) }) {
      case .some(true?): right += 1
      case .some(false?), .none: wrong += 1
      case .some(nil): break
      }
    }
    let state: MapState =
      wrong > 3 * (right + 1) ? .unbelieved : wrong * 4 <= right + 4 ? .credible : .possible
    mapStates[map] = state
    return state
  }

  /// Whether a page and its parent are what a pointer map says; nil where they cannot be read themselves.
  private func isBorneOut(_ entry: (role: PageRole, parent: UInt32), _ page: UInt32) -> Bool? {
    if isBlank(page) { return nil }
    let type = treeType(of: page)
    switch entry.role {
    case .root: return type != nil
    case .free: return isListedFree(page) ? true : nil
    case .tree where type == nil: return false
    case .firstOverflow where type != nil, .laterOverflow where type != nil: return false
    case .tree, .firstOverflow, .laterOverflow: break
    }
    if isBlank(entry.parent) { return nil }
    let parentType = treeType(of: entry.parent)
    return switch entry.role {
    case .tree: (parentType == 2 || parentType == 5) && leads(entry.parent, to: page)
    case .firstOverflow: parentType != nil && leads(entry.parent, to: page)
    default: parentType == nil && leads(entry.parent, to: page)
    }
  }

  private func isBlank(_ page: UInt32) -> Bool {
    guard page >= 1, page <= pageCount, let bytes = try? mapPages.page(page) else { return false }
    return UnsafeRawBufferPointer(start: bytes, count: usableBytes).allSatisfy { $0 == 0 }
  }

  /// - Parameter isStated: Whether the header says so.
  static func hasPointerMaps(
    _ pages: PageReader, usable: Int, pageCount: UInt32, isStated: Bool
  ) -> Bool {
    let places = (0..<64).map { 2 + $0 * UInt32(usable / 5 + 1) }.filter { $0 < pageCount }
    return places.contains { map in
      looksLikePointerMap(pages, map, usable: usable, pageCount: pageCount, isStated: isStated)
    }
  }

  /// Whether a page reads as a pointer map.
  ///
  /// - Parameter isStated: Whether the header says that there are some: a map of few entries proves little alone.
  private static func looksLikePointerMap(
    _ pages: PageReader, _ map: UInt32, usable: Int, pageCount: UInt32, isStated: Bool
  ) -> Bool {
    let entries = min(usable / 5, Int(pageCount - map))
    guard entries >= (isStated ? 1 : 8), let bytes = try? pages.page(map) else { return false }
    var good = 0
    for place in 0..<entries {
      guard let (role, parent) = entry(bytes + 5 * place) else { continue }
      let hasParent = role != .root && role != .free
      if hasParent == (parent > 0), parent <= pageCount { good += 1 }
    }
    return good * 10 >= entries * 9
  }
}
