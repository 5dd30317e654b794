import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Tables that what is left of `sqlite_master` does not name, found by what lies on their pages.
extension DamagedFile {
  /// Pages that may be the root of a table: no page leads to them, and nothing says that they are anything
  /// else.
  ///
  /// - Parameter known: Roots that are others'.
  func possibleRoots(not known: Set<UInt32>) -> [UInt32] {
    let reader = DamagedTreeReader(self, .table, tree: 0)
    var (found, below): ([UInt32], Set<UInt32>) = ([], [])
    for page in 1...pageCount where !isFree(page) {
      let children = reader.children(of: page)
      below.formUnion(children ?? [])
      guard owners[Int(page)] == Self.unclaimed, !known.contains(page),
        entry(of: page).map({ $0.role == .root }) ?? true, children != nil || reader.isLeaf(page)
      else { continue }
      found.append(page)
    }
    return found.filter { !below.contains($0) }
  }
}

extension SchemaSalvage {
  /// Finds the control tables that are not listed: what their rows are made of is always the same.
  mutating func findControlTables(
    in file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) {
    let lost = LayoutProblem.controlTables.filter { table($0) == nil }
    guard !isWhole, !lost.isEmpty else { return }
    let reader = DamagedTreeReader(file, .table, tree: 0)
    let pages = file.possibleRoots(not: Set(entries.map(\.root)))
    for name in lost {
      let fitting = pages.filter { Self.isTable(name, below: $0, reader, values) }
      if fitting.count == 1 { addUnlisted(name, root: fitting[0]) }
    }
  }

  /// Takes the root pages from control tables in whose place another page stands, as in a file that has lost a page in
  /// its middle, and gives them the one that stands in the place of another of them. What has no shape of a control
  /// table's rows says nothing of the store, and is left to the tables that it may be of.
  mutating func leaveForeignPages(
    in file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) {
    let reader = DamagedTreeReader(file, .table, tree: 0)
    var (lost, foreign): ([String], [UInt32]) = ([], [])
    for name in LayoutProblem.controlTables {
      // In another order, what their rows look like is not known.
      guard let entry = table(name), entry.root > 0,
        storedColumns(of: name).map({ columns in
          columns.map(\.name) == StoreSalvage.controlColumns(name).map(\.name)
        }) ?? true
      else { continue }
      let ends = [false, true].map { atEnd in
        var (rows, odd) = (0, 0)
        reader.sample(below: entry.root, atEnd: atEnd) { cell in
          rows += 1
          if !Self.mayBeRow(cell.record, of: name) { odd += 1 }
        }
        return (rows: rows, odd: odd)
      }
      let isForeign = ends.allSatisfy { $0.odd * 2 > $0.rows }
      if isForeign { foreign.append(entry.root) }
      if isForeign || ends.allSatisfy({ $0.rows == 0 }) { lost.append(name) }
    }
    guard !foreign.isEmpty else { return }
    let roots = lost.map { table($0)?.root ?? 0 }
    for (name, root) in zip(lost, roots) {
      let fitting = foreign.filter { Self.isTable(name, below: $0, reader, values) }
      if fitting.count == 1 {
        move(name, to: fitting[0])
      } else if foreign.contains(root) {
        move(name, to: nil)
      }
    }
  }

  /// Whether all rows of a leaf below a page are a control table's.
  private static func isTable(
    _ name: String, below page: UInt32, _ reader: DamagedTreeReader,
    _ values: UnsafeMutablePointer<RawValue>
  ) -> Bool {
    var (rows, fitting) = (0, 0)
    reader.sample(below: page) { cell in
      rows += 1
      if isRow(cell.record, of: name, values) { fitting += 1 }
    }
    return rows > 0 && fitting == rows && (rows == 1 || name == "Z_PRIMARYKEY")
  }

  /// False for a row that is none of a control table's, one value of which may be damaged.
  private static func mayBeRow(_ record: DamagedRecord, of table: String) -> Bool {
    // Where header and values do not add up, nothing tells.
    guard let kinds = record.kinds else { return true }
    switch table {
    case "Z_METADATA":
      return kinds.count == 3
        && (kinds[2] == .blob || kinds[2] == .text || kinds[1] == .text && kinds[2] == .null)
    case "Z_PRIMARYKEY":
      return kinds.count == 4 && kinds[1] == .text && (kinds[2] == .integer || kinds[3] == .integer)
    default: return kinds.count == 1
    }
  }

  /// A text of a UUID is as long.
  private static let uuidBytes = 36

  private static func isRow(
    _ record: DamagedRecord, of table: String, _ values: UnsafeMutablePointer<RawValue>
  ) -> Bool {
    var lost: [Int] = []
    guard let kinds = record.kinds, record.decode(into: values, count: 4, lost: &lost) != nil else {
      return false
    }
    switch table {
    case "Z_METADATA":
      return kinds.count == 3 && kinds[0] != .text && kinds[2] == .blob
        && kinds[1] == .text && values[1].count == uuidBytes
    case "Z_PRIMARYKEY":
      return kinds == [.null, .text, .integer, .integer] && values[1].count > 0
        && values[2].bits >= 0 && values[3].bits >= 0
    default: return kinds == [.blob]
    }
  }
}

extension StoreSalvage {
  /// Notes the model's tables that are not listed, and finds the root pages of those whose rows lie below one
  /// page alone: by the numbers of their entities and the kinds of their values.
  func findUnlistedTables(_ shapes: [NameKey: TableShape]) {
    let lost = shapes.filter { schema.table($0.key.name) == nil }
    unlistedTables = Set(lost.keys)
    // Pairs have no entity's number.
    let objects = lost.filter { !$0.value.isPairs }
    guard !objects.isEmpty else { return }
    var roots: [NameKey: [UInt32]] = [:]
    for page in file.possibleRoots(not: Set(schema.entries.map(\.root))) {
      let fitting = objects.filter { _, shape in
        [false, true].allSatisfy { atEnd in
          let (fitting, rows) = shape.share(below: page, atEnd: atEnd, file, values)
          return rows > 0 && fitting * 10 >= rows * 9
        }
      }
      if fitting.count == 1, let name = fitting.first?.key { roots[name, default: []].append(page) }
    }
    for (name, pages) in roots.sorted(by: { $0.value[0] < $1.value[0] }) where pages.count == 1 {
      schema.addUnlisted(name.name, root: pages[0])
      found(name)
    }
    nextTree = Int32(schema.entries.count) + 1
  }
}

extension RepairAccount {
  /// What was kept of tables that are not listed: nothing but the rows themselves tells whose they are.
  mutating func addUnlisted() {
    for name in LayoutProblem.controlTables where salvage.schema.unlisted.contains(NameKey(name)) {
      report.rebuilt.append(
        .init(
          .schema, "\(name) was found by what its rows look like: sqlite_master does not name it"))
    }
    for table in salvage.binding.layout.tables
    where salvage.unlistedTables.contains(NameKey(table.name)) {
      let kept = KeyRanges(
        union: report.kept.filter { table.entities.contains(EntityName($0.entity)) }
          .map(\.primaryKeys))
      guard !kept.isEmpty else { continue }
      report.doubtful.append(
        .init(
          .object, entity: table.root.rawValue, keys: kept,
          "rows of a table that sqlite_master does not name: they were found by the numbers of their "
            + "entities and the kinds of their values, and may have been deleted"))
    }
    for join in salvage.binding.layout.joinTables
    where salvage.unlistedTables.contains(NameKey(join.name)) {
      guard let rows = salvage.tables[NameKey(join.name)]?.rowCount, rows > 0 else { continue }
      report.doubtful.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship, count: rows,
          "has pairs of a table that sqlite_master does not name: they were found by what its rows look "
            + "like, and may be another relationship's"))
    }
  }
}
