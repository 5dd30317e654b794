import GodwitPages
import GodwitSQLite

/// A table of the source whose rows go over as they are: raw records, and the raw entries of each
/// index that the source has too.
///
/// The trees are read in order and written anew, as full pages without what deleted rows have left.
struct CarriedTrees {
  /// The destination's table, with the indexes that are made of the rows.
  let table: CoveredTable
  private let descriptor: Int32
  private let root: UInt32
  /// Indexes of the destination, with where the source's begin.
  private let indexes: [(index: CoveredTable.Index, root: UInt32)]

  /// - Parameters:
  ///   - table: The destination's.
  ///   - key: The source's column that is the row's key, when there is one.
  ///   - columns: The source's other columns, in the order of the destination's.
  ///   - source: Open as immutable, for as long as this is used.
  /// - Returns: nil where the two tables do not keep the same values in the same way.
  init?(
    _ table: CoveredTable, from name: String, key: String?, columns: [String], in source: Connection
  ) throws {
    guard let old = try CoveredTable(name, key: key, columns: columns, in: source),
      old.recordPlaces == table.recordPlaces, old.affinities == table.affinities,
      let root = try source.rootPage(of: name), let descriptor = source.rawDescriptor
    else { return nil }
    self.root = root
    self.descriptor = descriptor
    var (carried, made) = ([(index: CoveredTable.Index, root: UInt32)](), table)
    try made.indexes.removeAll { index in
      guard let equal = old.indexes.first(where: { $0.hasEntries(of: index) }),
        let root = try source.rootPage(of: equal.name)
      else { return false }
      carried.append((index, root))
      return true
    }
    indexes = carried
    self.table = made
  }
}

extension CoveredTable.Index {
  /// Whether an index over the same rows has the same entries in the same order.
  fileprivate func hasEntries(of other: Self) -> Bool {
    fields == other.fields && isUnique == other.isUnique
  }
}

extension CarriedTrees {
  /// Gives every row to the table's pages.
  ///
  /// - Throws: ``TreeScan/NotUnderstood`` where SQLite must read the source.
  func forEachRow(_ body: (TreeScan.Cell) throws -> Bool) throws {
    try forEachCell(.table, root) { cell in
      guard try body(cell) else { throw TreeScan.NotUnderstood() }
    }
  }

  /// Gives every entry of the indexes that are not made of the rows.
  func forEachIndex(
    begin: (CoveredTable.Index) throws -> Void, entry: (UnsafeRawBufferPointer) throws -> Void,
    end: () throws -> Void
  ) throws {
    for (index, root) in indexes {
      try begin(index)
      try forEachCell(.index, root) { try entry($0.record) }
      try end()
    }
  }

  @inline(__always)
  private func forEachCell(
    _ kind: TreeScan.Kind, _ root: UInt32, _ body: (TreeScan.Cell) throws -> Void
  ) throws {
    guard let scan = TreeScan(kind, descriptor: descriptor, root: root) else {
      throw TreeScan.NotUnderstood()
    }
    while try scan.nextLeaf() { for cell in scan.rows { try body(cell) } }
  }
}
