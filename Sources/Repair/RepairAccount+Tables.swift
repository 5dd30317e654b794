import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension RepairAccount {
  /// Carries tables that are not the model's, and Core Data's triggers, and names what is left of the schema.
  mutating func carryForeignTables(into store: OutputStore, _ doubted: DoubtedRows) throws {
    var left: [String] = []
    let numbers = EntityRenumbering(salvage.binding.store, salvage.binding.layout, store.layout)
    for entry in salvage.foreignTables {
      guard let table = salvage.tables[NameKey(entry.name)] else { continue }
      var indexes = salvage.schema.entries.filter {
        $0.kind == .index && $0.table.isSameName(as: entry.name) && $0.sql != nil
      }
      let taken = try indexes.filter { try store.isTaken($0.name) }.map(\.name)
      indexes.removeAll { taken.contains($0.name) }
      left += taken
      let found = try store.carry(
        entry, indexes: indexes, columns: table.columns, from: salvage.binding, numbers, doubted)
      guard let found else {
        report.lost.append(
          .init(.table, count: table.rowCount, names: [entry.name], "a table that cannot be made"))
        continue
      }
      report.keptForeignRows += found.rows
      left += found.refusedIndexes
      if found.isCounted { try carryCounter(of: entry.name, into: store) }
      // Other keys than row ids say nothing of where a row was.
      let refused = table.namesRowsByRowID ? found.refusedKeys : KeyRanges()
      if found.refused > 0 {
        report.lost.append(
          .init(
            .table, count: found.refused, keys: refused.isEmpty ? nil : refused,
            names: [entry.name], "rows that the constraints of their table refuse"))
      }
      addForeignRows(table, refused: refused)
    }
    for name in salvage.tablesOfIndexesAlone {
      report.lost.append(
        .init(
          .table, isCertain: false, names: [name],
          "a table that indexes tell of, and nothing says where it lies"))
    }
    for (name, rows) in salvage.unreadableTables {
      report.lost.append(
        .init(
          .table, count: rows, names: [name],
          salvage.schema.isShadow(name)
            ? "a table of a virtual table, with its rows"
            : "a table whose columns cannot be understood, with its rows"))
    }
    let triggers = try store.carryTriggers(from: salvage.binding)
    let carried = Set(salvage.foreignTables.map { NameKey($0.name) })
    left += salvage.schema.entries.filter { entry in
      switch entry.kind {
      // A virtual table has no rows of its own.
      case .table: entry.root == 0 && entry.isVirtualTable
      case .view: true
      case .trigger: !triggers.contains(NameKey(entry.name))
      case .index:
        entry.sql != nil && SchemaObject.isApplicationTable(entry.table)
          && !SchemaObject.isApplicationTable(entry.name)
          && !carried.contains(NameKey(entry.table))
      }
    }.map(\.name)
    left += salvage.emptyTables
    if !left.isEmpty {
      report.lost.append(
        .init(
          .table, count: Int64(left.count), names: left,
          "views, virtual tables, empty tables, triggers and indexes, not carried")
      )
    }
  }

  /// Pairs that stand in a join table more than once, of which the output has one. Those that an index gave back are
  /// no rows of the table.
  ///
  /// - Parameter join: As the salvaged file has it, which is attached.
  mutating func addRepeatedPairs(_ join: JoinTable, in store: OutputStore) throws {
    let table = "salvage.\(quoted(join.name))"
    let keys = [join.firstColumn, join.secondColumn].map(quoted)
    let places = [join.firstOrderColumn, join.secondOrderColumn].map { $0.map(quoted) ?? "NULL" }
    let rows = try store.connection.prepare(
      """
      SELECT rowid, \((keys + places).joined(separator: ", "))
        FROM \(table)
       WHERE (\(keys.joined(separator: ", "))) IN (
               SELECT \(keys.joined(separator: ", "))
                 FROM \(table)
                GROUP BY 1, 2
               HAVING count(*) > 1)
       ORDER BY 2, 3, 1
      """)
    let ofIndexes = salvage.pairsOfIndexes[NameKey(join.name)] ?? KeyRanges()
    var (same, other): ((count: Int64, keys: KeyRanges), (count: Int64, keys: KeyRanges))
    (same, other) = ((0, KeyRanges()), (0, KeyRanges()))
    var first: (pair: [SQLiteValue], places: [SQLiteValue])?
    while try rows.step() {
      if ofIndexes.contains(rows.int64(0)) { continue }
      let pair = [rows.value(1), rows.value(2)]
      let places = [rows.value(3), rows.value(4)]
      guard let known = first, known.pair == pair else {
        first = (pair, places)
        continue
      }
      if known.places == places { same.count += 1 } else { other.count += 1 }
      guard let key = pair[0].integer else { continue }
      if known.places == places { same.keys.insert(key) } else { other.keys.insert(key) }
    }
    if same.count > 0 {
      report.rebuilt.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship,
          count: same.count, keys: same.keys,
          "had pairs more than once, of which one is kept"))
    }
    if other.count > 0 {
      report.doubtful.append(
        .init(
          .order, entity: join.entity.rawValue, property: join.relationship,
          count: other.count, keys: other.keys,
          "had pairs more than once, each in another place of its list: one of them is kept"))
    }
  }

  /// Pairs that an index gave back, and those that may be lost.
  mutating func addLostPairs(
    _ join: JoinTable, _ name: String, in store: OutputStore
  ) throws {
    guard let table = salvage.tables[NameKey(name)] else { return }
    let evidence = salvage.evidence[NameKey(name)]
    if let evidence, !evidence.pairs.isEmpty {
      // Those whose objects are lost were left out again.
      let kept = try store.connection.prepare(
        "SELECT 1 FROM \(quoted(join.name)) WHERE \(quoted(join.firstColumn)) = ?1 "
          + "AND \(quoted(join.secondColumn)) = ?2")
      var found: [Int64] = []
      for pair in evidence.pairs {
        try kept.bind(1, pair.first)
        try kept.bind(2, pair.second)
        if try kept.step() { found.append(pair.first) }
        kept.reset()
      }
      if !found.isEmpty {
        report.rebuilt.append(
          .init(
            .pair, entity: join.entity.rawValue, property: join.relationship,
            count: Int64(found.count), keys: KeyRanges(found), "has pairs taken from an index"))
      }
    }
    if let evidence, !evidence.correctedPairs.isEmpty {
      report.rebuilt.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship,
          count: Int64(evidence.correctedPairs.count),
          keys: KeyRanges(evidence.correctedPairs.values.map(\.first)),
          "has pairs that two indexes have, and the table otherwise"))
    }
    if let evidence, !evidence.contradictedOwners.isEmpty {
      report.doubtful.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship,
          keys: evidence.contradictedOwners,
          "has pairs that an index has otherwise, and nothing tells which is right"))
    }
    if let evidence, !evidence.unnamedOwners.isEmpty {
      report.doubtful.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship,
          count: evidence.unnamedKeys.count, keys: evidence.unnamedOwners,
          "has pairs that no index names, where indexes are whole: they may have been removed"))
    }
    if let evidence, !evidence.possibleKeys.isEmpty {
      report.lost.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship, isCertain: false,
          "pairs are lost, if there were more: an index of \(name) has more than the table"))
    }
    if !table.repeatedKeys.isEmpty {
      report.doubtful.append(
        .init(
          .pair, entity: join.entity.rawValue, property: join.relationship,
          count: table.repeatedKeys.count,
          "had other pairs in the same place of its table, which are left out"))
    }
    guard !table.gaps.isEmpty || !table.lostKeys.isEmpty else { return }
    guard evidence?.isComplete != true else { return }
    report.lost.append(
      .init(
        .pair, entity: join.entity.rawValue, property: join.relationship, isCertain: false,
        "pairs are lost, if there were more: "
          + (table.gaps.allSatisfy { $0.page == 0 }
            ? "the table \(name) is missing" : "pages of \(name) cannot be read")))
  }
}
