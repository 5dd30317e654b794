import GodwitPages
import GodwitPlanning
import GodwitSQLite

/// Indexes of the destination whose entries are those of an index of the source: every row keeps its
/// key and the values that are indexed.
///
/// An entry that is taken over is neither made of a row nor sorted. Nobody trusts it for that: the
/// audit compares the source's index with the source's rows, and the verification what was written
/// with the destination's.
///
/// The trees are read in order and written anew, as full pages without what deleted rows have left.
struct CarriedIndexes {
  /// The destination's table, with the indexes that are made of its rows.
  let table: CoveredTable
  private let descriptor: Int32
  /// Indexes of the destination, with where the source's begin.
  private let indexes: [(index: CoveredTable.Index, root: UInt32)]

  /// - Parameters:
  ///   - table: The destination's.
  ///   - old: The source's.
  ///   - places: For each place in a row of the destination's table the place in a row of the source's
  ///     that has the same value; nil where values change.
  ///   - source: Open as immutable, for as long as this is used.
  init(
    _ table: CoveredTable, from old: CoveredTable, places: [Int?], in source: Connection,
    _ descriptor: Int32
  ) throws {
    self.descriptor = descriptor
    var (carried, made) = ([(index: CoveredTable.Index, root: UInt32)](), table)
    try made.indexes.removeAll { index in
      let equal = old.indexes.first {
        $0.isUnique == index.isUnique
          && $0.fields.elementsEqual(index.fields) { was, field in
            was.place == places[field.place] && was.isDescending == field.isDescending
              && old.affinities[was.place] == table.affinities[field.place]
          }
      }
      guard let equal, let root = try source.rootPage(of: equal.name)
      else { return false }
      carried.append((index, root))
      return true
    }
    indexes = carried
    self.table = made
  }

  /// - Returns: nil where nothing is known of the source's table, or all entries are made of rows.
  init?(_ table: CoveredTable, of plan: TablePlan, in source: Connection) throws {
    guard let name = plan.sourceTable, plan.keptColumns.contains(where: { $0 != nil }),
      !table.indexes.isEmpty, let descriptor = source.rawDescriptor,
      let columns = try source.shape(of: name)?.columns.map(\.name),
      let old = try CoveredTable(
        name, key: "Z_PK", columns: columns.filter { $0.columnKey != "Z_PK".columnKey }, in: source)
    else { return nil }
    var known: [[UInt8]: Int] = [:]
    for (number, place) in old.recordPlaces.enumerated() {
      known[columns[number].columnKey] = place ?? 0
    }
    let kept = ["Z_PK", plan.keepsNumbers ? "Z_ENT" : nil, "Z_OPT"] + plan.keptColumns
    try self.init(
      table, from: old, places: kept.map { $0.flatMap { known[$0.columnKey] } }, in: source,
      descriptor)
    if indexes.isEmpty { return nil }
  }
}

extension CarriedIndexes {
  /// Gives every entry of the indexes that are not made of the rows.
  func forEach(
    begin: (CoveredTable.Index) throws -> Void, entry: (UnsafeRawBufferPointer) throws -> Void,
    end: () throws -> Void
  ) throws {
    for (index, root) in indexes {
      try begin(index)
      try forEachCell(.index, root, descriptor) { try entry($0.record) }
      try end()
    }
  }
}

/// A table of the source whose rows go over as they are, as raw records, with its indexes.
struct CarriedTrees {
  let indexes: CarriedIndexes
  private let descriptor: Int32
  private let root: UInt32

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
    indexes = try CarriedIndexes(
      table, from: old, places: Array(table.affinities.indices), in: source, descriptor)
  }

  /// Gives every row to the table's pages.
  ///
  /// - Throws: ``TreeScan/NotUnderstood`` where SQLite must read the source.
  func forEachRow(_ body: (TreeScan.Cell) throws -> Bool) throws {
    try forEachCell(.table, root, descriptor) { cell in
      guard try body(cell) else { throw TreeScan.NotUnderstood() }
    }
  }
}

@inline(__always)
private func forEachCell(
  _ kind: TreeScan.Kind, _ root: UInt32, _ descriptor: Int32,
  _ body: (TreeScan.Cell) throws -> Void
) throws {
  guard let scan = TreeScan(kind, descriptor: descriptor, root: root) else {
    throw TreeScan.NotUnderstood()
  }
  while try scan.nextLeaf() { for cell in scan.rows { try body(cell) } }
}
