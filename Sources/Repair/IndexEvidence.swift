import GodwitSQLite

/// What a table's indexes tell of rows that the table has lost.
struct IndexEvidence {
  /// Rows that an index has, where the table lost some.
  private(set) var lostKeys = KeyRanges()
  /// `Z_ENT` of some of these.
  private(set) var entityNumbers: [Int64: Int64] = [:]
  /// Whether an index proves that no other rows are lost.
  private(set) var isComplete = false
  /// Pairs of a join table that an index has.
  private(set) var pairs: [(first: Int64, second: Int64)] = []
  /// Indexes that could not be read from end to end.
  private(set) var damaged: [String] = []

  /// More entries than any index of Core Data's has columns.
  private static let mostValues = 64

  /// - Parameters:
  ///   - table: As it was saved to `file`.
  ///   - pairColumns: Of a join table: its two key columns.
  init(
    _ table: TableSalvage, _ schema: SchemaSalvage, _ damagedFile: DamagedFile,
    in file: Connection, nextTree: inout Int32, pairColumns: (String, String)? = nil
  ) throws {
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: Self.mostValues)
    defer { values.deallocate() }
    let known = try file.prepare("SELECT 1 FROM \(quoted(table.name)) WHERE rowid = ?1")
    for index in schema.indexes(of: table.name) {
      let columns = schema.columns(ofIndex: index.name) ?? []
      let entityColumn = columns.firstIndex(of: "Z_ENT")
      let pair = pairColumns.flatMap { first, second -> (Int, Int)? in
        guard let a = columns.firstIndex(of: first), let b = columns.firstIndex(of: second) else {
          return nil
        }
        return (a, b)
      }
      nextTree += 1
      var reader = DamagedTreeReader(damagedFile, .index, tree: nextTree)
      var lost: [Int] = []
      var (saved, missing): (Int64, [Int64]) = (0, [])
      var (isReadable, hasUnusable) = (true, false)
      try reader.read(root: index.root) { cell in
        guard
          let (count, condition) = cell.record.decode(
            into: values, count: Self.mostValues, lost: &lost),
          condition == .whole, count == columns.count + 1, values[count - 1].kind == .integer
        else {
          isReadable = false
          return
        }
        guard !table.gaps.isEmpty else { return }
        let key = values[count - 1].bits
        try known.bind(1, key)
        let isSaved = try known.step()
        known.reset()
        if isSaved { saved += 1 } else { missing.append(key) }
        guard !isSaved else { return }
        if let entityColumn, values[entityColumn].kind == .integer {
          entityNumbers[key] = values[entityColumn].bits
        }
        if let pair {
          if values[pair.0].kind == .integer, values[pair.1].kind == .integer {
            pairs.append((values[pair.0].bits, values[pair.1].bits))
          } else {
            hasUnusable = true
          }
        }
      }
      // Without a gap in the table, what an index has more is the index's own damage.
      let inGaps = missing.filter { key in table.gaps.contains { $0.contains(key) } }
      lostKeys.formUnion(KeyRanges(inGaps))
      if reader.gaps.isEmpty, isReadable {
        if saved == table.rowCount, !hasUnusable { isComplete = true }
      } else {
        damaged.append(index.name)
      }
    }
  }
}
