import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Where the values of one of Core Data's tables lie in its records.
///
/// The table's own SQL says so, where it can be read and its records bear it out; else what is left of
/// its text does, and the records themselves.
struct ColumnReading {
  let table: String
  private(set) var columns: [SchemaSalvage.Column]
  /// Whether the columns are others than the table's SQL gives.
  private(set) var isChanged = false
  /// Whether they were read from a damaged text.
  private(set) var isFromText = false
  /// Whether columns have their place from the model's order alone.
  private(set) var isGuessed = false
  /// The key, where the SQL does not say that it is the row id, and the records do.
  private(set) var restoredKey: String?
  /// Names that are damaged, and whose they must be.
  private(set) var renamings: [(from: String, to: String)] = []
  /// Columns of the model that the table's SQL does not name, and that its records have values for.
  private(set) var further: [String] = []

  /// - Parameters:
  ///   - wanted: The columns that the table has by the model, in its order.
  ///   - key: The one that is the row id under another name.
  init(
    _ table: String, wanted: [TableText.Wanted], key: String?, _ schema: SchemaSalvage,
    _ file: DamagedFile, _ values: UnsafeMutablePointer<RawValue>
  ) {
    self.table = table
    let entry = schema.table(table)
    // A text may name the table where its row does not.
    let read = entry.flatMap { schema.storedColumns(of: $0.name) }
    let kind: TreeScan.Kind = schema.isWithoutRowID(table) ? .index : .table
    let records = Records(below: entry?.root ?? 0, kind, file, values)
    columns = read ?? []
    // Whoever has lost its root page has no table yet.
    isChanged = read != nil && entry?.root == 0
    spell(wanted)
    let have = Set(columns.map(\.name))
    let known = wanted.count { have.contains($0.name) }
    // A statement may read well and be damaged: of a comma, columns become one, or one becomes two.
    let isBorneOut =
      known == wanted.count
      && (known == columns.count || records.fields >= columns.count || records.fields == 0)
    if read == nil || !isBorneOut {
      let text = TableText(
        entry?.sql, table: table, wanted: wanted, fields: records.fields, isStatement: read != nil)
      if read == nil || text.foundCount > known || text.hasFalseColumns {
        columns = text.columns
        (isChanged, isFromText) = (true, entry?.sql != nil)
        (isGuessed, renamings) = (text.isGuessed, text.renamings)
      } else if known < wanted.count, records.fields > columns.count {
        extend(by: records.fields - columns.count, wanted)
      }
    }
    // The only column that may be the row id is the key, whatever is left of its name.
    if let key, !columns.contains(where: { $0.name == key }),
      let place = columns.firstIndex(where: \.isRowID)
    {
      renamings.append((columns[place].name, key))
      columns[place].name = key
      isChanged = true
    }
    guard let key, let place = columns.firstIndex(where: { $0.name == key }),
      !columns[place].isRowID
    else { return }
    isChanged = true
    if kind == .table, records.isNullEverywhere(place) {
      for other in columns.indices { columns[other].isRowID = other == place }
      if !isFromText, read != nil { restoredKey = key }
    } else {
      columns[place].holdsKey = true
    }
  }

  /// Gives columns the model's names where theirs have letters of another case: to SQLite these are the same.
  private mutating func spell(_ wanted: [TableText.Wanted]) {
    let names = Dictionary(
      wanted.map { ($0.name.columnKey, $0.name) }, uniquingKeysWith: { first, _ in first })
    for (place, column) in columns.enumerated() {
      guard let name = names[column.name.columnKey], !name.isSameName(as: column.name) else {
        continue
      }
      renamings.append((column.name, name))
      columns[place].name = name
      isChanged = true
    }
  }

  /// Gives values behind those that the table's SQL names a column: of the model's those that are missing, in
  /// its order, which is that in which Core Data adds them where it migrates in place.
  private mutating func extend(by count: Int, _ wanted: [TableText.Wanted]) {
    let have = Set(columns.map(\.name.columnKey))
    let missing = wanted.filter { !have.contains($0.name.columnKey) }.prefix(count)
    columns += missing.map { .init(name: $0.name, type: $0.type) }
    further = missing.map(\.name)
    (isChanged, isFromText) = (true, true)
  }

  /// Some records of a table.
  private struct Records {
    /// The most values that one of them has.
    private(set) var fields = 0
    private var (nulls, others): ([Int], [Int]) = ([], [])

    init(
      below root: UInt32, _ kind: TreeScan.Kind, _ file: DamagedFile,
      _ values: UnsafeMutablePointer<RawValue>
    ) {
      guard root > 0 else { return }
      var lost: [Int] = []
      var found = (fields: 0, nulls: [Int](), others: [Int]())
      let take = { (cell: DamagedCell) in
        guard let (count, condition) = cell.record.decode(into: values, count: 0, lost: &lost),
          condition != .doubtful, count <= Self.mostFields,
          cell.record.decode(into: values, count: count, lost: &lost) != nil
        else { return }
        if count > found.fields {
          let more = [Int](repeating: 0, count: count - found.fields)
          (found.nulls, found.others) = (found.nulls + more, found.others + more)
          found.fields = count
        }
        for place in 0..<count where !lost.contains(place) {
          if values[place].kind == .null {
            found.nulls[place] += 1
          } else {
            found.others[place] += 1
          }
        }
      }
      let reader = DamagedTreeReader(file, kind, tree: 0)
      reader.sample(below: root, take)
      // The newest rows have values for columns that were added.
      reader.sample(below: root, atEnd: true, take)
      (fields, nulls, others) = (found.fields, found.nulls, found.others)
    }

    private static let mostFields = 32_767

    /// True without records, too.
    func isNullEverywhere(_ place: Int) -> Bool {
      place >= fields || nulls[place] >= others[place]
    }
  }
}

extension StoreSalvage {
  /// Takes the columns of the model's tables from their records and what is left of their text, where
  /// their SQL does not give them.
  func settleColumns() throws {
    let salvage = try Connection(path: path.string, mode: .readWrite)
    for table in binding.layout.tables {
      let wanted =
        EntityTable.systemColumns.map { (name: $0, type: "INTEGER") }
        + table.columns.map { (name: $0.name, type: $0.declaredType) }
      try settle(table.name, wanted, key: "Z_PK", entity: table.root.rawValue, in: salvage)
    }
    let rules = StoreLayout(
      binding.hierarchy, frameworkVersion: binding.layout.frameworkVersion,
      entityNumbers: binding.layout.entityNumbers
    ).joinTables
    for join in binding.layout.joinTables {
      // A column of places whose name is damaged is none to the binding.
      let rule = rules.first { $0.entity == join.entity && $0.relationship == join.relationship }
      let wanted = (rule ?? join).columns.map { (name: $0, type: "INTEGER") }
      try settle(join.name, wanted, key: nil, entity: join.entity.rawValue, in: salvage)
    }
    try salvage.close()
    if !layoutColumns.isEmpty { try rebind() }
  }

  private func settle(
    _ table: String, _ wanted: [TableText.Wanted], key: String?, entity: String,
    in salvage: Connection
  ) throws {
    let reading = ColumnReading(table, wanted: wanted, key: key, schema, file, values)
    for name in schema.virtualColumns(of: table) { virtualColumns.append((table, name)) }
    guard reading.isChanged else { return }
    try salvage.execute("DROP TABLE IF EXISTS \(quoted(table))")
    try salvage.execute(TableSalvage.sql(table, reading.columns))
    layoutColumns[NameKey(table)] = reading.columns
    renamedColumns += reading.renamings.map { (table, $0.from, $0.to) }
    if reading.isGuessed { guessedTables.append((table, entity)) }
    if !reading.further.isEmpty { extendedTables.append((table, entity, reading.further)) }
    if reading.isFromText, !reading.isGuessed, reading.renamings.isEmpty, reading.further.isEmpty {
      rereadTables.append(table)
    }
    if let key = reading.restoredKey { restoredKeys.append((table, key)) }
    if reading.isFromText || !reading.renamings.isEmpty {
      // It is there, and what it lost is said otherwise.
      structure.removeAll {
        $0.message == "missing table \(table)" || $0.message == "missing join table \(table)"
      }
    }
    let found = Set(
      ((reading.isFromText ? reading.further : []) + reading.renamings.map(\.to))
        .map { "missing column \(table).\($0)" })
    structure.removeAll { found.contains($0.message) }
    if reading.isFromText { schema.define(table, reading.columns) }
  }
}

extension RepairAccount {
  /// What was done about the columns of the model's tables.
  mutating func addColumns() {
    for name in salvage.rereadTables {
      report.rebuilt.append(
        .init(.schema, "the columns of \(name) are read from what is left of its CREATE TABLE text")
      )
    }
    for (table, column) in salvage.restoredKeys {
      report.rebuilt.append(.init(.schema, "the column \(table).\(column) is the row id again"))
    }
    for (table, entity) in salvage.guessedTables
    where (salvage.tables[NameKey(table)]?.rowCount ?? 0) > 0 {
      report.doubtful.append(
        .init(
          .schema, entity: entity,
          "columns taken in the model's order: nothing is left that says where those of \(table) lie, "
            + "and values may be other properties'"))
    }
    for (table, entity, columns) in salvage.extendedTables
    where (salvage.tables[NameKey(table)]?.rowCount ?? 0) > 0 {
      report.doubtful.append(
        .init(
          .schema, entity: entity,
          "rows of \(table) have more values than its CREATE TABLE text has columns; the further ones "
            + "are taken for those of \(columns.joined(separator: ", ")), in the model's order"))
    }
    for table in salvage.binding.layout.tables {
      guard let keys = salvage.tables[NameKey(table.name)]?.surplusKeys, !keys.isEmpty else {
        continue
      }
      report.lost.append(
        .init(
          .value, entity: table.root.rawValue, keys: keys,
          "rows had more values than their table has columns; those are left out"))
    }
    for (table, column) in salvage.virtualColumns {
      report.lost.append(
        .init(
          .schema, entity: table, property: column,
          "is a generated column, which is not carried; its values are not stored"))
    }
  }
}
