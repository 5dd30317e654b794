import GodwitObjectModel
import GodwitSQLite

extension StoreSoundness {
  /// What stands in the control tables and in the schema: control, metadata, modelcache, schema,
  /// index; and a note of what of the WAL cannot be read. No row of the model's tables is read but their highest keys.
  package static func structure(of binding: StoreBinding) throws -> [StoreFinding] {
    try control(binding) + metadata(binding) + modelCache(binding) + schema(binding)
      + indexes(binding) + log(of: binding.store)
  }

  // MARK: The WAL

  private static func log(of store: SourceStore) throws -> [StoreFinding] {
    try [store.logNote()].compactMap(\.self).map { StoreFinding(kind: .note, message: $0) }
  }

  // MARK: Z_PRIMARYKEY

  /// Source: `core-data-sqlite-format.md` §2.
  package static func control(_ binding: StoreBinding) throws -> [StoreFinding] {
    let store = binding.store
    var findings: [StoreFinding] = []
    func add(_ message: String, _ entity: EntityName? = nil) {
      findings.append(StoreFinding(kind: .control, entity: entity?.rawValue, message: message))
    }
    for problem in store.primaryKeyProblems { add(problem) }
    // An entity of the model may have the name of one of history's.
    for names in [store.entityKeys, store.historyKeys].map({ $0.map { NameKey($0.name) } })
    where Set(names).count != names.count {
      add("Z_PRIMARYKEY names an entity twice")
    }
    var rows: [EntityName: PrimaryKeyRow] = [:]
    for row in store.entityKeys { rows[EntityName(row.name)] = row }
    for (name, row) in formerNames(binding, rows) {
      rows[EntityName(row.name)] = nil
      rows[name] = row
      findings.append(
        StoreFinding(
          kind: .note, entity: name.rawValue,
          message: "stands in Z_PRIMARYKEY under the name it had before an in-place migration"))
    }
    for name in Set(binding.hierarchy.order).subtracting(rows.keys).sorted() {
      add("is missing in Z_PRIMARYKEY", name)
    }
    for name in Set(rows.keys).subtracting(binding.hierarchy.order).sorted() {
      add("stands in Z_PRIMARYKEY and is not in the model", name)
    }
    let differs = binding.hierarchy.order.contains { name in
      rows[name].map { $0.number != binding.hierarchy.numbers[name] ?? 0 } ?? false
    }
    let isOpen = differs && binding.hierarchy.mayHave(numbers: rows.mapValues(\.number))
    if isOpen {
      findings.append(
        StoreFinding(
          kind: .note,
          message: "Z_PRIMARYKEY orders entities otherwise than Godwit does where a _ or a letter "
            + "that is not ASCII decides: how Core Data orders these is not known"))
    }
    for name in binding.hierarchy.order {
      guard let row = rows[name] else { continue }
      let rule = binding.hierarchy.numbers[name] ?? 0
      if row.number != rule, !isOpen { add("has Z_ENT \(row.number), by the rule \(rule)", name) }
      let parent = binding.hierarchy[name]?.superentity
      let expected = parent.map { rows[$0]?.number } ?? 0
      if row.superNumber != expected {
        add(
          "has Z_SUPER \(row.superNumber), expected \(expected.map(String.init) ?? "a number")",
          name)
      }
      guard parent == nil else {
        if row.highestKey != 0 {
          add("is a sub-entity and has Z_MAX \(row.highestKey), expected 0", name)
        }
        continue
      }
      if let table = binding.table(of: name),
        let highest = try store.connection.rows("SELECT max(Z_PK) FROM \(quoted(table.name))")
          .first?.first?.integer, row.highestKey < highest
      {
        add("has Z_MAX \(row.highestKey), lower than its highest Z_PK \(highest)", name)
      }
    }
    return try findings
      + store.soundHistoryKeys().faults.map {
        StoreFinding(kind: .note, entity: $0.entity, message: $0.message)
      }
  }

  /// Rows of entities that Core Data renamed in place: it leaves the old name, which the model's
  /// renaming identifier still tells, under the number that the new one has by the rule.
  ///
  /// Source: `core-data-sqlite-format.md` §2, the one exception to the numbering.
  private static func formerNames(_ binding: StoreBinding, _ rows: [EntityName: PrimaryKeyRow])
    -> [(EntityName, PrimaryKeyRow)]
  {
    binding.hierarchy.order.compactMap { name in
      guard rows[name] == nil, let former = binding.hierarchy[name]?.renamingIdentifier,
        !binding.hierarchy.contains(EntityName(former)), let row = rows[EntityName(former)],
        row.number == Int64(binding.hierarchy.numbers[name] ?? 0)
      else { return nil }
      return (name, row)
    }
  }

  // MARK: Z_METADATA, Z_MODELCACHE

  /// Source: `core-data-sqlite-format.md` §2 and §2.1.
  package static func metadata(_ binding: StoreBinding) -> [StoreFinding] {
    let metadata = binding.store.metadata
    var findings = metadata.problems.map {
      StoreFinding(kind: .metadata, message: $0.description)
    }
    guard !metadata.plist.isEmpty else { return findings }
    let computed = binding.hierarchy.versionHashes
    let stored = metadata.versionHashes
    let listed = Set(metadata.hashedEntities)
    for name in Set(computed.keys).union(listed).sorted() {
      let message: String
      if !listed.contains(name) {
        message = "is in the model and has no version hash in the store"
      } else if computed[name] == nil {
        message = "has a version hash in the store and is not in the model"
      } else if let hash = stored[name], hash != computed[name] {
        message = "has another version hash in the store than in the model"
      } else {
        continue
      }
      findings.append(StoreFinding(kind: .metadata, entity: name.rawValue, message: message))
    }
    return findings
  }

  /// Frameworks from this version on write `Z_MODELCACHE`. Source: `core-data-sqlite-format.md` §3.
  private static let firstFrameworkWithCache = 637

  package static func modelCache(_ binding: StoreBinding) throws -> [StoreFinding] {
    let store = binding.store
    func finding(_ message: String, _ kind: StoreFinding.Kind = .modelcache) -> StoreFinding {
      StoreFinding(kind: kind, message: message)
    }
    guard store.hasTable("Z_MODELCACHE") else {
      let version = store.metadata.frameworkVersion ?? StoreLayout.recentFramework
      return [
        version >= firstFrameworkWithCache
          ? finding("there is no table Z_MODELCACHE")
          : finding("there is no Z_MODELCACHE; usual for framework \(version)", .note)
      ]
    }
    var findings: [StoreFinding] = []
    let cached: EntityHierarchy
    do {
      guard let found = try store.cachedHierarchy() else {
        return [finding("Z_MODELCACHE has no model")]
      }
      cached = found
    } catch let error as SQLiteError where !error.isOfContent {
      throw error
    } catch {
      return [finding("Z_MODELCACHE cannot be read: \(error)")]
    }
    let rows =
      try store.connection.rows("SELECT count(*) FROM Z_MODELCACHE").first?.first?.integer ?? 0
    if rows != 1 { findings.append(finding("Z_MODELCACHE has \(rows) rows")) }
    let (a, b) = (cached.computedHashes, binding.hierarchy.computedHashes)
    for name in Set(a.keys).union(b.keys).sorted() where a[name] != b[name] {
      findings.append(
        StoreFinding(
          kind: .modelcache, entity: name.rawValue,
          message: "is another entity in the cached model"))
    }
    return findings
  }

  /// What can be said of a model cache where no model is at hand.
  package static func unreadableModelCache(of store: SourceStore) throws -> [StoreFinding] {
    do {
      if let model = try store.cachedModel() { _ = try EntityHierarchy(model) }
      return []
    } catch let error as SQLiteError where !error.isOfContent {
      throw error
    } catch {
      return [StoreFinding(kind: .modelcache, message: "Z_MODELCACHE cannot be read: \(error)")]
    }
  }

  // MARK: Schema

  package static func schema(_ binding: StoreBinding) throws -> [StoreFinding] {
    var findings = binding.missing.map {
      StoreFinding(kind: .schema, message: "missing \($0)")
    }
    for table in binding.layout.tables {
      if let shape = try binding.store.connection.shape(of: table.name),
        shape.columns.contains(where: { $0.name == "Z_PK" }), !shape.isRowID("Z_PK")
      {
        // A row's record has no value there: SQLite would give NULL, and no range of keys has the row.
        findings.append(
          StoreFinding(
            kind: .schema, entity: table.root.rawValue,
            message: "\(table.name).Z_PK is not declared INTEGER PRIMARY KEY, so no row has its key"
          ))
      }
      let have = Dictionary(
        binding.store.columns(of: table.name).map { (NameKey($0.name), $0.type) },
        uniquingKeysWith: { first, _ in first })
      for column in table.columns {
        guard let type = have[NameKey(column.name)],
          type.split(separator: " ", omittingEmptySubsequences: false).first.map(String.init)
            != column.declaredType
        else { continue }
        findings.append(
          StoreFinding(
            kind: .schema, entity: table.root.rawValue,
            message: "\(table.name).\(column.name) is declared \(type), by the rule "
              + column.declaredType))
      }
    }
    for join in binding.joinTables
    where try binding.store.connection.shape(of: join.name)?.isWithoutRowID == true {
      findings.append(
        StoreFinding(
          kind: .schema, entity: join.entity.rawValue,
          message: "\(join.name) is a table WITHOUT ROWID, which no table of Core Data's is"))
    }
    return findings
  }

  /// Missing indexes. Others may be there: Core Data leaves old ones behind.
  ///
  /// An index that no version hash covers may have come into the model after the store was written. It is missed where
  /// the model in the store's cache has it, too, and noted where not. Source: `core-data-models.md` §6.1.
  package static func indexes(_ binding: StoreBinding) throws -> [StoreFinding] {
    func missing(_ binding: StoreBinding) throws -> [StoreFinding] {
      try recentIndexes.output(for: binding.form) { try findMissingIndexes(binding) }
    }
    var findings = try missing(binding)
    guard findings.contains(where: { $0.kind == .note }) else { return findings }
    let own = try SQLiteError.nilByContent { try binding.store.cachedHierarchy() }
    let promised = try own.map { try missing(StoreBinding(binding.store, $0)) } ?? []
    for place in findings.indices where findings[place].kind == .note {
      if promised.contains(findings[place]) {
        findings[place].kind = .index
      } else {
        findings[place].message += "; the model may have got it after the store was written"
      }
    }
    return findings
  }

  private static let recentIndexes = RecentResults<StoreBinding.Form, [StoreFinding]>(limit: 4)

  /// Those that no version hash covers are notes.
  private static func findMissingIndexes(_ binding: StoreBinding) throws -> [StoreFinding] {
    let connection = binding.store.connection
    var known: Set<IndexFact> = []
    let tables = Set(
      (binding.layout.tables.map(\.name) + binding.joinTables.map(\.name)).map { NameKey($0) })
    for table in tables.map(\.name) where binding.store.hasTable(table) {
      guard let shape = try connection.shape(of: table) else { continue }
      for index in shape.indexes {
        let columns = index.fields.filter(\.isKey).map { field in
          shape.columns.indices.contains(field.column) ? shape.columns[field.column].name : ""
        }
        // A unique index serves where any index is wanted.
        for isUnique in Set([index.isUnique, false]) {
          known.insert(
            IndexFact(name: nil, table: table, columns: columns, isUnique: isUnique))
          known.insert(
            IndexFact(name: index.name, table: table, columns: columns, isUnique: isUnique))
        }
      }
    }
    var renamed: [String: String] = [:]
    for (rule, real) in zip(StoreBinding.ruleJoins(binding), binding.layout.joinTables) {
      renamed[rule.name] = real.name
    }
    return binding.layout.tables.flatMap { owner in
      owner.indexes.compactMap { index in
        let table = renamed[index.table] ?? index.table
        let wanted = IndexFact(
          name: index.goesByName ? index.name : nil, table: table,
          columns: index.indexedColumns.map(\.name), isUnique: index.isUnique)
        guard !known.contains(wanted), binding.store.hasTable(table) else { return nil }
        return StoreFinding(
          kind: isHashed(index, of: owner) ? .index : .note,
          message: "there is no index \(index.name) on \(table) "
            + "(\(index.indexedColumns.map(\.name).joined(separator: ", ")))")
      }
    }
  }

  /// Whether the index follows from what a version hash covers: constraints, relationships and inheritance do, fetch
  /// indexes and the old flags do not.
  private static func isHashed(_ index: SchemaStatement, of table: EntityTable) -> Bool {
    if index.isUnique || index.table != table.name { return true }
    guard !index.goesByName, index.indexedColumns.count == 1 else { return false }
    return !table.columns.contains { column in
      guard case .attribute = column.role else { return false }
      return column.name == index.indexedColumns[0].name
    }
  }

  private struct IndexFact: Hashable {
    let name: NameKey?
    let table: NameKey
    let columns: [NameKey]
    let isUnique: Bool

    init(name: String?, table: String, columns: [String], isUnique: Bool) {
      self.name = name.map { NameKey($0) }
      self.table = NameKey(table)
      self.columns = columns.map { NameKey($0) }
      self.isUnique = isUnique
    }
  }
}

extension TableShape {
  /// Whether a column is another name of the row id: the only key, of just this type, and without an
  /// index, which SQLite makes for `INTEGER PRIMARY KEY DESC` and for tables without row ids.
  ///
  /// Source: https://sqlite.org/lang_createtable.html#rowid
  fileprivate func isRowID(_ name: String) -> Bool {
    let keys = columns.filter { $0.keyPlace != 0 }
    return keys.count == 1 && keys[0].name == name
      && keys[0].declaredType.uppercased() == "INTEGER" && !isWithoutRowID
      && !indexes.contains { $0.origin == "pk" }
  }
}

extension StoreBinding {
  /// The join tables by the rules, in the order of the layout's own.
  static func ruleJoins(_ binding: StoreBinding) -> [JoinTable] {
    JoinNaming(hierarchy: binding.hierarchy, numbers: binding.layout.entityNumbers).joinTables()
  }
}
