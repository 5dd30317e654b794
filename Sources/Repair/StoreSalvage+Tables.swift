import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension StoreSalvage {
  /// Gives the model's tables the names that it has for them, where the store's have letters of another case.
  func spellTables() throws {
    let rules = StoreBinding(binding.store, binding.hierarchy, numbering: .rules)
    var names: [[UInt8]: String] = [:]
    for layout in [rules.layout, binding.layout] {
      for name in layout.tables.map(\.name) + layout.joinTables.map(\.name) {
        names[name.columnKey] = name
      }
    }
    let changed = schema.spell(names)
    guard !changed.isEmpty else { return }
    let salvage = try Connection(path: path.string, mode: .readWrite)
    for table in Set(changed.map(\.table.columnKey)).compactMap({ names[$0] }) {
      guard let columns = schema.storedColumns(of: table) else { continue }
      try salvage.execute("DROP TABLE IF EXISTS \(quoted(table))")
      try salvage.execute(TableSalvage.sql(table, columns))
      for sql in schema.indexes(of: table).compactMap(\.sql) {
        try? salvage.define(.index, sql)
      }
    }
    try salvage.close()
    respeltTables = changed.filter { $0.kind == .table }.map { entry in
      (from: entry.name, to: names[entry.name.columnKey] ?? entry.name)
    }
    try rebind()
  }

  /// Makes the tables and columns that the model has and the damaged schema lacks, and binds the model
  /// to what is there then.
  func bindAgain() throws {
    try settleColumns()
    let salvage = try Connection(path: path.string, mode: .readWrite)
    for table in binding.layout.tables {
      let missing = table.columns.filter {
        binding.missing.contains("column \(table.name).\($0.name)")
      }
      let system = EntityTable.systemColumns.filter {
        binding.missing.contains("column \(table.name).\($0)")
      }
      for (name, type) in system.map({ ($0, "INTEGER") })
        + missing.map({ ($0.name, $0.declaredType) })
      {
        try salvage.execute(
          "ALTER TABLE \(quoted(table.name)) ADD COLUMN \(quoted(name)) \(type)")
      }
      addedColumns += missing.map { (table.name, $0.name) }
    }
    try salvage.close()
    try rebind()
  }

  /// Whether the entities have the numbers that `Z_PRIMARYKEY` gives, and not those of the rules: by the
  /// names of tables and columns, and by the rows where these do not tell.
  func isNumberedByStore() -> Bool {
    let byRules = StoreBinding(binding.store, binding.hierarchy, numbering: .rules)
    guard byRules.layout.entityNumbers != binding.layout.entityNumbers else { return true }
    if byRules.missing.count != binding.missing.count {
      return binding.missing.count < byRules.missing.count
    }
    func fitting(_ binding: StoreBinding) -> Int {
      shapes(binding).reduce(0) { sum, shape in
        sum
          + shape.value.share(below: schema.table(shape.key.name)?.root ?? 0, file, values).fitting
      }
    }
    return fitting(binding) >= fitting(byRules)
  }

  /// What the schema, the control tables and the indexes lack, by the rules of `verify`.
  func judgeStructure() throws -> [StoreFinding] {
    try StoreSoundness.control(binding) + StoreSoundness.metadata(binding)
      + StoreSoundness.modelCache(binding)
  }

  // MARK: Rows

  /// Copies the rows of every table that can be read.
  func fillTables() throws {
    let salvage = try Self.create(path)
    for row in try salvage.rows(
      "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    {
      try salvage.execute("DROP INDEX \(quoted(row[0].text ?? ""))")
    }
    let models = shapes(binding)
    findUnlistedTables(models)
    let shapes = models.merging(foreignShapes(models)) { own, _ in own }
    try salvage.execute("BEGIN")
    var homeless: Set<NameKey> = []
    let withoutRowIDs = Set(
      (Array(shapes.keys) + foreignNames(models)).filter { schema.isWithoutRowID($0.name) })
    let doubted = Self.inOrder(shapes.keys).filter {
      !withoutRowIDs.contains($0) && !isLikely(schema.table($0.name)?.root ?? 0, shapes[$0])
    }
    // Whoever's rows are certain takes their pages first: no other tree has them then.
    let certain = (Self.inOrder(models.keys) + foreignNames(models)).filter {
      !doubted.contains($0)
    }
    let roots = schema.soleRoots
    let shared = schema.sharedRoots(among: shapes.filter { $0.value.isPairs }.keys)
    for key in certain + doubted {
      let name = key.name
      let entry = schema.table(name)
      guard let columns = columns(of: name) else {
        unreadableTables.append((name, try rowCount(of: entry)))
        continue
      }
      var table = try TableSalvage(
        name, columns: columns, tree: Self.tree(of: entry, schema), in: salvage, values: values,
        kind: withoutRowIDs.contains(key) ? .index : .table)
      // Pairs look like others': the indexes have them.
      let isOthers = entry.map { shapes[key]?.isPairs == true && shared.contains($0.root) } ?? false
      if let entry, entry.root > 0, !isOthers, !schema.strayRoots.contains(key),
        !doubted.contains(key) || isOwn(entry.root, of: key, doubted, shapes)
      {
        try table.fill(root: entry.root, orphans: [], of: file) { leaf, isInPlace in
          // Nothing leads to the root of another tree.
          guard leaf == entry.root || !roots.contains(leaf) else { return false }
          return withoutRowIDs.contains(key)
            || self.isOwnLeaf(leaf, of: key, shapes) { roots.contains(entry.root) && isInPlace() }
        }
      } else {
        table.addGap(KeyGap(page: entry?.root ?? 0))
      }
      if schema.cutRoots.contains(key) { table.addGap(KeyGap(page: entry?.root ?? 0)) }
      if table.gaps.contains(where: { ($0.after ?? 0) <= 0 && $0.upTo == nil }),
        shapes[key] != nil
      {
        homeless.insert(key)
      }
      if models[key] == nil, let entry {
        // What Core Data leaves behind when it migrates in place goes where it is empty.
        if SchemaObject.isApplicationTable(name), table.isEmpty, table.gaps.isEmpty {
          if schema.isWhole { emptyTables.append(entry.name) }
        } else {
          foreignTables.append(entry)
        }
      }
      tables[key] = table
    }
    // SQLite's own, so that their pages are nobody else's.
    for entry in schema.entries
    where entry.kind == .table && entry.root > 0 && entry.name.begins(with: "sqlite_") {
      if entry.name.isSameName(as: AutoincrementCounters.table) {
        counters = try AutoincrementCounters(
          root: entry.root, tree: Self.tree(of: entry, schema), file, values)
      } else {
        _ = try rowCount(of: entry)
      }
    }
    try adoptOrphans(shapes, homeless)
    for name in Array(tables.keys) { try tables[name]?.settle() }
    try readIndexes(shapes, in: salvage)
    try salvage.execute("COMMIT")
    for name in Array(tables.keys) { try tables[name]?.end() }
    for entry in schema.entries where entry.kind == .trigger && entry.name.begins(with: "Z_DA_") {
      entry.sql.map { try? salvage.define(.trigger, $0) }
    }
    try salvage.close()
    try rebind()
  }

  /// What the rows of the model's tables look like, by the names that the store has for them.
  private func shapes(_ binding: StoreBinding) -> [NameKey: TableShape] {
    let layout = binding.layout
    var shapes: [NameKey: TableShape] = [:]
    for table in layout.tables {
      let columns = columns(of: table.name) ?? []
      let numbers = binding.hierarchy.concrete(of: table.root).map { binding.number(of: $0) }
      shapes[NameKey(table.name)] = TableShape(columns, .objects(Set(numbers)))
    }
    for join in layout.joinTables {
      let columns = columns(of: join.name) ?? []
      shapes[NameKey(join.name)] = TableShape(columns, .pairs)
    }
    return shapes
  }

  /// The same of the other tables whose columns are known, and whose rows lie in a tree of their own form.
  private func foreignShapes(_ models: [NameKey: TableShape]) -> [NameKey: TableShape] {
    let own = models.values.reduce(into: Set<Int64>()) { $0.formUnion($1.entityNumbers ?? []) }
    let history = PrimaryKeyRow.historyNames
    var shapes: [NameKey: TableShape] = [:]
    for key in foreignNames(models) {
      guard !schema.isWithoutRowID(key.name), let columns = columns(of: key.name) else { continue }
      // Each table of the history has its own number.
      let others = history.filter { "A" + $0.value != key.name }.keys
      let numbered = TableShape(columns, .others(not: own.union(others)))
      guard numbered.hasEntityColumn, others.count == history.count else {
        shapes[key] = numbered
        continue
      }
      numberedShapes[key] = numbered
      shapes[key] =
        isExchanged(key, numbered, models)
        ? numbered : TableShape(columns, .others(not: []), mayHaveObjects: false)
    }
    return shapes
  }

  private func foreignNames(_ models: [NameKey: TableShape]) -> [NameKey] {
    schema.tables.map { NameKey($0.name) }.filter { key in
      models[key] == nil && !LayoutProblem.controlTables.contains(key.name)
    }
  }

  private static func inOrder(_ keys: some Sequence<NameKey>) -> [NameKey] {
    keys.sorted { $0.name.precedesInBytes($1.name) }
  }

  private func columns(of table: String) -> [SchemaSalvage.Column]? {
    layoutColumns[NameKey(table)] ?? schema.storedColumns(of: table)
  }

  /// The rows of a table whose columns cannot be understood.
  private func rowCount(of entry: SchemaSalvage.Entry?) throws -> Int64 {
    guard let entry, entry.root > 0 else { return 0 }
    let kind: TreeScan.Kind = schema.isWithoutRowID(entry.name) ? .index : .table
    var reader = DamagedTreeReader(file, kind, tree: Self.tree(of: entry, schema))
    var count: Int64 = 0
    try reader.read(root: entry.root) { _ in count += 1 }
    return count
  }

  func found(_ table: NameKey) {
    if !foundTables.contains(table) { foundTables.append(table) }
  }

  /// Asks the indexes which rows are lost, and takes lost pairs of join tables from them.
  private func readIndexes(_ shapes: [NameKey: TableShape], in salvage: Connection) throws {
    let joins = Dictionary(
      binding.layout.joinTables.map { (NameKey($0.name), $0) },
      uniquingKeysWith: { first, _ in first })
    for key in Self.inOrder(shapes.keys) {
      let name = key.name
      // Where the key is not the row id, indexes name rows by numbers that mean nothing.
      guard let table = tables[key], table.namesRowsByRowID,
        !table.columns.contains(where: { $0.name.isSameName(as: "rowid") && !$0.isRowID })
      else { continue }
      let join = joins[key]
      let found = try IndexEvidence(
        table, schema, file, in: salvage, nextTree: &nextTree,
        entityNumbers: shapes[key]?.entityNumbers,
        pairColumns: join.map { ($0.firstColumn, $0.secondColumn) })
      evidence[key] = found
      guard let join else { continue }
      if !found.correctedPairs.isEmpty {
        let correction = try salvage.prepare(
          "UPDATE \(quoted(name)) SET \(quoted(join.firstColumn)) = ?2, "
            + "\(quoted(join.secondColumn)) = ?3 WHERE rowid = ?1")
        for (row, pair) in found.correctedPairs {
          try correction.bind(1, row)
          try correction.bind(2, pair.first)
          try correction.bind(3, pair.second)
          try correction.run()
        }
      }
      guard !found.pairs.isEmpty else { continue }
      // A table without constraints: what is there twice is dropped with the output's.
      let insertion = try salvage.prepare(
        "INSERT INTO \(quoted(name)) (\(quoted(join.firstColumn)), \(quoted(join.secondColumn))) "
          + "VALUES (?1, ?2)")
      var rows = KeyRanges()
      for pair in found.pairs {
        try insertion.bind(1, pair.first)
        try insertion.bind(2, pair.second)
        try insertion.run()
        rows.insert(salvage.lastInsertRowID)
      }
      pairsOfIndexes[key] = rows
    }
  }
}
