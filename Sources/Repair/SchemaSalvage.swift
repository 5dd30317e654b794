import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// What can be read of a damaged file's `sqlite_master`.
struct SchemaSalvage {
  struct Entry {
    var kind: SchemaObject.Kind
    var name: String
    var table: String
    var root: UInt32
    var sql: String?
  }

  /// A column as its `CREATE TABLE` statement declares it.
  struct Column: Equatable {
    var name: String
    var type: String
    /// The row id under another name: NULL in records.
    var isRowID = false
  }

  private(set) var entries: [Entry] = []
  /// Whether a page of it was damaged, so that there may be more.
  private(set) var isWhole = true
  /// Tables and indexes without a row, so that SQLite tells their columns.
  private let model: Connection

  /// Pages of `sqlite_master` are claimed for this tree.
  static let tree: Int32 = 0

  init(_ file: DamagedFile) throws {
    model = try Connection(path: ":memory:", mode: .create)
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: 5)
    defer { values.deallocate() }
    var found: [Entry] = []
    var lost: [Int] = []
    let take = { (cell: DamagedCell) in
      guard let (count, _) = cell.record.decode(into: values, count: 5, lost: &lost), count == 5,
        let entry = Self.entry(values)
      else { return }
      found.append(entry)
    }
    var reader = DamagedTreeReader(file, .table, tree: Self.tree)
    try reader.read(root: 1, take)
    if !reader.gaps.isEmpty {
      for page in file.orphans(below: Self.tree, of: reader) {
        try reader.read(orphan: page, take)
      }
    }
    isWhole = reader.gaps.isEmpty
    var names: Set<[UInt8]> = []
    for entry in found where names.insert(Array(entry.name.utf8)).inserted {
      entries.append(entry)
      guard entry.kind == .table || entry.kind == .index, let sql = entry.sql,
        sql.utf8.prefix(7).elementsEqual("CREATE ".utf8)
      else { continue }
      // One statement, or several would be run; what does not parse is told by its lack of columns.
      if (try? model.prepare(sql)) != nil { try? model.execute(sql) }
    }
  }

  private static func entry(_ values: UnsafeMutablePointer<RawValue>) -> Entry? {
    let read = (0..<5).map { SQLiteValue(values[$0]) }
    guard let kind = read[0].text.flatMap(SchemaObject.Kind.init(rawValue:)),
      let name = read[1].text, !name.isEmpty, !name.utf8.contains(0), let table = read[2].text
    else { return nil }
    return Entry(
      kind: kind, name: name, table: table,
      root: read[3].integer.flatMap { UInt32(exactly: $0) } ?? 0, sql: read[4].text)
  }
}

extension SchemaSalvage {
  func table(_ name: String) -> Entry? {
    entries.first { $0.kind == .table && $0.name.isSameName(as: name) }
  }

  /// Those of constraints included.
  func indexes(of table: String) -> [Entry] {
    entries.filter { $0.kind == .index && $0.table.isSameName(as: table) && $0.root > 0 }
  }

  /// Tables with a b-tree of rows, those that SQLite keeps for itself left out.
  var tables: [Entry] {
    entries.filter { $0.kind == .table && $0.root > 0 && !$0.name.hasPrefix("sqlite_") }
  }

  /// Whether a table's rows lie in a tree of the form of an index.
  func isWithoutRowID(_ table: String) -> Bool {
    let facts = try? model.rows(
      "SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'", [.text(table)])
    return facts?.first?[0].integer == 1
  }

  /// As they lie in a record; nil where the table's SQL cannot be read, or says what only SQLite can
  /// store: no row ids, strict or generated columns.
  func columns(of table: String) -> [Column]? {
    guard
      let facts = try? model.rows(
        "SELECT wr, strict, type FROM pragma_table_list(?1) WHERE schema = 'main'",
        [.text(table)]
      ).first, facts[0].integer == 0, facts[1].integer == 0, facts[2].text == "table",
      let rows = try? model.rows("PRAGMA table_xinfo(\(quoted(table)))"), !rows.isEmpty,
      rows.allSatisfy({ $0[6].integer == 0 })
    else { return nil }
    let keys = rows.filter { ($0[5].integer ?? 0) > 0 }
    return rows.map { row in
      let type = row[2].text ?? ""
      return Column(
        name: row[1].text ?? "", type: type,
        isRowID: keys.count == 1 && row[5].integer == 1 && type.uppercased() == "INTEGER")
    }
  }

  /// The columns of an index, the row id's left out; nil for what is no index over columns.
  func columns(ofIndex index: String) -> [String]? {
    guard let rows = try? model.rows("PRAGMA index_info(\(quoted(index)))"), !rows.isEmpty else {
      return nil
    }
    let names = rows.compactMap { $0[2].text }
    return names.count == rows.count ? names : nil
  }
}

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
