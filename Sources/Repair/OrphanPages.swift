import GodwitSQLite

extension DamagedFile {
  /// Leaves that no page leads to, and whose pages above belong to a tree, however damaged.
  func orphans(below tree: Int32, of reader: DamagedTreeReader) -> [UInt32] {
    guard hasPointerMaps, pageCount > 2 else { return [] }
    return (2...pageCount).filter { page in
      owners[Int(page)] == Self.unclaimed && entry(of: page)?.role == .tree
        && top(of: page).owner == tree && reader.isLeaf(page)
    }
  }

  /// Leaves that no page leads to, by the highest page above them that the pointer maps tell.
  func orphanGroups(of reader: DamagedTreeReader) -> [(top: UInt32, owner: Int32, leaves: [UInt32])]
  {
    guard pageCount >= 2 else { return [] }
    var groups: [UInt32: (owner: Int32, leaves: [UInt32])] = [:]
    for page in 2...pageCount where owners[Int(page)] == Self.unclaimed && !isFree(page) {
      let role = entry(of: page)?.role
      guard role == nil || role == .tree || role == .root, reader.isLeaf(page) else { continue }
      let found = top(of: page)
      groups[found.page, default: (found.owner, [])].leaves.append(page)
    }
    return groups.sorted { $0.key < $1.key }.map { ($0.key, $0.value.owner, $0.value.leaves) }
  }

  /// Follows the pointer maps upwards to a page that a tree has claimed, or to a root.
  private func top(of page: UInt32) -> (page: UInt32, owner: Int32) {
    var page = page
    for _ in 0..<20 {
      guard let entry = entry(of: page), entry.role == .tree, entry.parent > 0,
        entry.parent <= pageCount
      else { break }
      page = entry.parent
      if owners[Int(page)] != Self.unclaimed { return (page, owners[Int(page)]) }
    }
    return (page, Self.unclaimed)
  }
}
