import GodwitDurableFiles
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
    /// Has the key in its records: a primary key that is not the row id.
    var holdsKey = false
    /// Holds values of its type alone, and of any where that is empty.
    var isStrict = false
    /// What rows have that were written before the column was added; nil for NULL.
    var defaultValue: ColumnDefaults.Value?
    /// Stands in records, and is computed anew where a row is written.
    var isGenerated = false
  }

  private(set) var entries: [Entry] = []
  /// Whether nothing of it was damaged, a page or a row, so that there is no more.
  private(set) var isWhole = true
  /// Whose root page is another one than its row says: a page above that one.
  private(set) var movedRoots: [(name: String, from: UInt32, to: UInt32)] = []
  /// Tables whose root page lies in another one's tree.
  private(set) var strayRoots: Set<NameKey> = []
  /// Tables whose root page lies below a page that is lost.
  private(set) var cutRoots: Set<NameKey> = []
  /// Tables that it does not name, and that were found by their rows.
  private(set) var unlisted: Set<NameKey> = []
  /// Control tables whose rows stand in the place of another one's.
  private(set) var exchangedTables: [NameKey] = []
  /// Indexes that only the application can read, by a collation or a function of its own.
  private var foreignIndexes: Set<NameKey> = []
  /// Tables of virtual tables: only the module of that can read them.
  private var shadows: Set<NameKey> = []
  /// Tables and indexes without a row, so that SQLite tells their columns.
  private let model: Connection
  private let indexFacts: IndexFacts
  private let defaults: ColumnDefaults

  /// Pages of `sqlite_master` are claimed for this tree.
  static let tree: Int32 = 0

  init(_ file: DamagedFile) throws {
    model = try Connection(path: ":memory:", mode: .create)
    indexFacts = IndexFacts(model)
    defaults = ColumnDefaults(model)
    let values = UnsafeMutablePointer<RawValue>.allocate(capacity: 5)
    defer { values.deallocate() }
    var found: [Entry] = []
    var lost: [Int] = []
    var areRead = true
    let take = { (cell: DamagedCell) in
      guard let (count, _) = cell.record.decode(into: values, count: 5, lost: &lost), count == 5,
        let entry = Self.entry(values)
      else {
        areRead = false
        return
      }
      found.append(entry)
    }
    var reader = DamagedTreeReader(file, .table, tree: Self.tree)
    try reader.read(root: 1, take)
    // Page 1 without a cell is that of a file in which nothing was made, or has lost them.
    isWhole = reader.gaps.isEmpty && areRead && !found.isEmpty
    if !isWhole {
      let isEntry = { Self.isEntry($0, of: file, values) }
      for page in file.orphans(below: Self.tree, of: reader) {
        try reader.read(orphan: page, take)
      }
      // Where no map tells of orphans, and where cell pointers are lost, rows tell that they are of it. A sound
      // leaf has others that were deleted.
      let damaged = found.isEmpty ? [1] : Set(reader.gaps.map(\.page))
      for page in 1...file.pageCount {
        if file.owners[Int(page)] == Self.tree {
          guard damaged.contains(page) else { continue }
          try reader.search(page, isEntry, take)
        } else if !file.isFree(page), reader.isLeaf(page, allOf: isEntry) {
          try reader.read(orphan: page, take)
        }
      }
    }
    var names: Set<[UInt8]> = []
    for entry in found where names.insert(entry.name.columnKey).inserted {
      entries.append(entry)
      // What does not parse is told by its lack of columns.
      switch entry.kind {
      case .table: entry.sql.map { try? model.define(.table, $0) }
      case .index: if !canMake(entry) { foreignIndexes.insert(NameKey(entry.name)) }
      case .view, .trigger: break
      }
    }
    shadows = Set(entries.flatMap { VirtualTable.shadows(of: $0) })
    findRoots(in: file)
  }

  /// False for an index that SQLite understands, and cannot make by itself.
  private func canMake(_ index: Entry) -> Bool {
    do {
      if let sql = index.sql { try model.define(.index, sql) }
    } catch let error as SQLiteError {
      return !["no such collation sequence", "no such function"].contains {
        error.message.hasPrefix($0)
      }
    } catch {}
    return true
  }

  /// The number of a root page is all that leads to a tree, and what lies beside another page would be lost with it.
  private mutating func findRoots(in file: DamagedFile) {
    var tops = TreeTops(file)
    let found = tops.judge(entries) { $0.kind == .table && !isWithoutRowID($0.name) }
    for (place, top) in found.moved {
      movedRoots.append((entries[place].name, entries[place].root, top))
      entries[place].root = top
    }
    strayRoots = Set(found.strays.map { NameKey(entries[$0].name) })
    cutRoots = Set(found.cut.map { NameKey(entries[$0].name) })
  }

  mutating func addUnlisted(_ table: String, root: UInt32) {
    entries.append(Entry(kind: .table, name: table, table: table, root: root, sql: nil))
    unlisted.insert(NameKey(table))
  }

  /// Gives tables names that are the same to SQLite, which tells them apart without the case of ASCII letters.
  ///
  /// - Parameter names: By their `columnKey`.
  /// - Returns: What had another name or was of such a table, as it was.
  mutating func spell(_ names: [[UInt8]: String]) -> [Entry] {
    var changed: [Entry] = []
    let known = Set(entries.filter { $0.kind == .table }.map { NameKey($0.name) })
    for (place, entry) in entries.enumerated() where entry.kind != .view {
      guard let name = names[entry.table.columnKey], !name.isSameName(as: entry.table),
        !known.contains(NameKey(name))
      else { continue }
      changed.append(entry)
      entries[place].table = name
      if entry.kind == .table { entries[place].name = name }
    }
    guard !changed.isEmpty else { return [] }
    func spelt(_ tables: Set<NameKey>) -> Set<NameKey> {
      Set(tables.map { table in names[table.name.columnKey].map { NameKey($0) } ?? table })
    }
    (strayRoots, cutRoots) = (spelt(strayRoots), spelt(cutRoots))
    indexFacts.forget()
    return changed
  }

  /// - Parameter page: The root page of a control table, in whose own place another page stands; nil where it is lost.
  mutating func move(_ table: String, to page: UInt32?) {
    guard let place = entries.firstIndex(where: { $0.kind == .table && $0.name == table }) else {
      return
    }
    entries[place].root = page ?? 0
    if page != nil { exchangedTables.append(NameKey(table)) }
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

  /// Tables with a b-tree of rows, those that SQLite keeps for itself left out. The number of a root page may be
  /// lost; a virtual table has none.
  var tables: [Entry] {
    entries.filter { entry in
      entry.kind == .table && !entry.name.begins(with: "sqlite_")
        && (entry.root > 0 || entry.sql != nil && !entry.isVirtualTable)
    }
  }

  /// Root pages that several of some tables name, of which one has the rows.
  func sharedRoots(among names: some Sequence<NameKey>) -> Set<UInt32> {
    let roots = names.compactMap { table($0.name)?.root }
    return Set(Dictionary(grouping: roots) { $0 }.filter { $0.value.count > 1 }.keys)
  }

  /// Root pages of tables that one row alone names, and that lie below no other page.
  var soleRoots: Set<UInt32> {
    let groups = Dictionary(grouping: entries.filter { $0.root > 0 }, by: \.root)
    return Set(
      groups.compactMap { root, entries in
        guard entries.count == 1, let entry = entries.first, entry.kind == .table else {
          return nil
        }
        let name = NameKey(entry.name)
        return strayRoots.contains(name) || cutRoots.contains(name) || unlisted.contains(name)
          ? nil : root
      })
  }

  /// Whether a table's rows lie in a tree of the form of an index.
  func isWithoutRowID(_ table: String) -> Bool {
    let facts = try? model.rows(
      "SELECT wr FROM pragma_table_list(?1) WHERE schema = 'main'", [.text(table)])
    return facts?.first?[0].integer == 1
  }

  /// As they lie in a record; nil where the table's SQL cannot be read. Generated columns are like any
  /// other where they are stored, and are in no record else. Where there are no row ids, the primary key
  /// comes first.
  func storedColumns(of table: String) -> [Column]? {
    guard !isShadow(table), var facts = facts(of: table) else { return nil }
    facts.rows.removeAll { $0[6].integer == Self.virtual }
    if facts.isWithoutRowID {
      let keys = facts.rows.filter { $0[5].integer ?? 0 > 0 }
        .sorted { $0[5].integer ?? 0 < $1[5].integer ?? 0 }
      facts.rows = keys + facts.rows.filter { $0[5].integer ?? 0 == 0 }
    }
    return columns(facts, of: table)
  }

  /// Names of generated columns that are computed when they are read.
  func virtualColumns(of table: String) -> [String] {
    facts(of: table)?.rows.filter { $0[6].integer == Self.virtual }.compactMap { $0[1].text } ?? []
  }

  /// What `PRAGMA table_xinfo` says of such columns, and of generated ones whose values are stored.
  private static let (virtual, stored): (Int64, Int64) = (2, 3)

  private typealias Facts = (
    rows: [[SQLiteValue]], isWithoutRowID: Bool, isStrict: Bool, hasKeyIndex: Bool
  )

  private func facts(of table: String) -> Facts? {
    guard
      let facts = try? model.rows(
        "SELECT wr, strict, type FROM pragma_table_list(?1) WHERE schema = 'main'",
        [.text(table)]
      ).first, facts[2].text == "table",
      let rows = try? model.rows("PRAGMA table_xinfo(\(quoted(table)))"), !rows.isEmpty
    else { return nil }
    // A primary key that is the row id has no index of its own: one that descends has.
    let indexes = (try? model.rows("PRAGMA index_list(\(quoted(table)))")) ?? []
    return (
      rows, facts[0].integer != 0, facts[1].integer != 0,
      indexes.contains { $0[3].text == "pk" }
    )
  }

  private func columns(_ facts: Facts, of table: String) -> [Column] {
    let keys = facts.rows.count { ($0[5].integer ?? 0) > 0 }
    let named = facts.rows.filter { row in
      !row[4].isNull && row[6].integer == 0 && !(facts.isWithoutRowID && row[5].integer != 0)
    }.compactMap { $0[1].text }
    let values = defaults.values(
      of: table, columns: named, keyColumns: facts.isWithoutRowID ? keys : nil)
    return facts.rows.map { row in
      var type = row[2].text ?? ""
      // Elsewhere the type of anything would turn texts into numbers.
      if facts.isStrict, type.uppercased() == "ANY" { type = "" }
      return Column(
        name: row[1].text ?? "", type: type,
        isRowID: !facts.hasKeyIndex && keys == 1 && row[5].integer == 1
          && type.uppercased() == "INTEGER", isStrict: facts.isStrict,
        defaultValue: row[1].text.flatMap { values[$0.columnKey] },
        isGenerated: row[6].integer == Self.stored)
    }
  }

  /// Gives a table whose text is damaged its columns, so that its indexes can be read.
  func define(_ table: String, _ columns: [Column]) {
    try? model.execute("DROP TABLE IF EXISTS \(quoted(table))")
    try? model.execute(TableSalvage.sql(table, columns))
    for sql in indexes(of: table).compactMap(\.sql) { try? model.define(.index, sql) }
    indexFacts.forget()
    defaults.forget()
  }

  /// Whether an index that can be understood leaves rows out, or has values that no column has.
  func isPartial(_ index: Entry) -> Bool {
    indexFacts.fact(of: index.name).map { $0.isPartial || $0.columns == nil } ?? false
  }

  func needsApplication(_ index: Entry) -> Bool { foreignIndexes.contains(NameKey(index.name)) }

  func isShadow(_ table: String) -> Bool { shadows.contains(NameKey(table)) }

  /// The columns of an index, the row id's left out; nil for what is no index over columns.
  func columns(ofIndex index: String) -> [String]? { indexFacts.fact(of: index)?.columns }

  /// The whole indexes of other tables over so many columns.
  func indexes(
    over count: Int, ofOthersThan table: String
  ) -> [(table: String, columns: [String])] {
    indexFacts.whole(over: count, among: entries).filter { !$0.table.isSameName(as: table) }
  }
}
