import GodwitObjectModel
import GodwitPersistentStore

extension HandWrittenMigration {
  /// The script that changes a copy of the store at `path`: `ALTER TABLE` and one `UPDATE` a table.
  ///
  /// Columns keep the places that `ALTER TABLE` gives them; Core Data finds columns by name.
  /// Indexes on updated columns are dropped before and built again after. The caller flushes the
  /// file.
  package func scriptInPlace(of path: String) throws -> String {
    let stamp = try stamp(of: path)
    // An expression that reads another table comes before that table's own update.
    let readers = Set(
      rewrite.values.filter { $0.value.values.contains { $0.contains("{source}") } }.keys)
    let tables =
      destination.tables.filter { readers.contains($0.root) }
      + destination.tables.filter { !readers.contains($0.root) }
    var changes: [TableChange] = []
    for table in tables {
      if let old = pairs[table.root], let from = source.table(of: old) {
        changes.append(try change(from, old, into: table))
      }
    }
    for join in destination.joinTables {
      if let (from, values) = try pairs(of: join) {
        changes.append(try renaming(from, values, into: join))
      }
    }
    let remaining = Dictionary(uniqueKeysWithValues: changes.map { ($0.from, $0) })
    let filled = Set(changes.map(\.into))

    let before = source.statements.filter { $0.kind == .index }
    let after = destination.statements.filter { $0.kind == .index }
    let kept = before.filter { index in
      guard let change = remaining[index.table], !change.isRebuilt else { return false }
      return after.contains { $0.name == index.name && $0.sql == index.sql }
        && change.updated.isDisjoint(with: index.indexedColumns.map(\.name))
    }
    var lines = [
      "-- One pair of models. Run on a copy: sqlite3 COPY < THIS",
      "PRAGMA journal_mode = OFF;", "PRAGMA synchronous = OFF;",
      "PRAGMA locking_mode = EXCLUSIVE;", "PRAGMA cache_size = -262144;",
      "PRAGMA temp_store = FILE;", "PRAGMA secure_delete = OFF;", "BEGIN;",
    ]
    lines += before.filter { !kept.contains($0) }.map { "DROP INDEX \(name($0.name));" }
    lines += changes.flatMap(\.statements)
    lines += (source.tables.map(\.name) + source.joinTables.map(\.name))
      .filter { remaining[$0] == nil }.map { "DROP TABLE \(name($0));" }
    lines += destination.statements.filter { $0.kind == .table && !filled.contains($0.table) }
      .map { $0.sql + ";" }
    lines += after.filter { index in !kept.contains { $0.name == index.name } }
      .map { $0.sql + ";" }
    lines.append("ALTER TABLE Z_PRIMARYKEY RENAME TO Z_OLDPRIMARYKEY;")
    lines.append(StoreStamp.controlTables[0] + ";")
    lines += primaryKeys(from: "Z_OLDPRIMARYKEY")
    lines += [
      "DROP TABLE Z_OLDPRIMARYKEY;", "UPDATE Z_METADATA SET Z_PLIST = \(stamp.metadata);",
      "UPDATE Z_MODELCACHE SET Z_CONTENT = \(stamp.modelCache);",
      "COMMIT;", "PRAGMA journal_mode = WAL;", "",
    ]
    return lines.joined(separator: "\n")
  }

  /// How one table of the source becomes one of the destination.
  private struct TableChange {
    var from: String
    var into: String
    var statements: [String] = []
    /// Columns of the source whose values are written again.
    var updated: Set<String> = []
    /// All rows are inserted into a new table.
    var isRebuilt = false
  }

  private func change(
    _ from: EntityTable, _ old: EntityName, into table: EntityTable
  ) throws -> TableChange {
    guard from.entities.count == 1, table.entities == [table.root],
      let number = destination.entityNumbers[table.root]
    else { throw FixtureError.notExpressible("\(table.root) has sub-entities") }
    var change = TableChange(from: from.name, into: table.name)
    let values = try table.columns.map {
      try value(of: $0, for: table.root, old, prefix: "")
    }
    if rewrite.renumbered.contains(table.root) {
      let listed = (["NULL", String(number), "1"] + values).joined(separator: ", ")
      change.isRebuilt = true
      change.statements = [
        "ALTER TABLE \(name(from.name)) RENAME TO Z_OLDROWS;", table.sql + ";",
        "INSERT INTO \(name(table.name)) SELECT \(listed) FROM Z_OLDROWS ORDER BY Z_PK;",
        "DROP TABLE Z_OLDROWS;",
      ]
      return change
    }
    var added: [String] = []
    var renamed: [String] = []
    var assignments: [String] = []
    var carried: Set<String> = []
    if source.entityNumbers[old] != number { assignments.append("Z_ENT = \(number)") }
    if rewrite.insertsObjects { assignments.append("Z_OPT = 1") }
    for (column, value) in zip(table.columns, values) {
      let plain = from.columns.first { name($0.name) == value }
      let same = from.columns.first { $0.name == column.name }
      if let plain, plain.declaredType == column.declaredType {
        carried.insert(plain.name)
        if plain.name != column.name {
          renamed.append("RENAME COLUMN \(value) TO \(name(column.name))")
        }
      } else if let same, same.declaredType == column.declaredType {
        carried.insert(same.name)
        change.updated.insert(same.name)
        assignments.append("\(name(same.name)) = \(value)")
      } else {
        // A column of another declared type has another affinity, so it is a new one.
        let temporary = same == nil ? column.name : "Z_NEW" + column.name
        added.append("ADD COLUMN \(name(temporary)) \(column.declaredType)")
        if value != "NULL" { assignments.append("\(name(temporary)) = \(value)") }
        if same != nil {
          renamed.append("RENAME COLUMN \(name(temporary)) TO \(name(column.name))")
        }
      }
    }
    let dropped = from.columns.filter { !carried.contains($0.name) }
      .map { "DROP COLUMN \(name($0.name))" }
    let update = assignments.isEmpty ? [] : ["SET \(assignments.joined(separator: ", "))"]
    change.statements =
      added.map { "ALTER TABLE \(name(from.name)) \($0);" }
      + update.map { "UPDATE \(name(from.name)) \($0);" }
      + (dropped + renamed).map { "ALTER TABLE \(name(from.name)) \($0);" }
    if from.name != table.name {
      change.statements.append("ALTER TABLE \(name(from.name)) RENAME TO \(name(table.name));")
    }
    return change
  }

  private func renaming(
    _ from: JoinTable, _ values: [String], into join: JoinTable
  ) throws -> TableChange {
    guard values == from.columns.map(name) else {
      throw FixtureError.notExpressible("\(join.name) has its columns in another order")
    }
    var change = TableChange(from: from.name, into: join.name)
    if from.name != join.name {
      change.statements.append("ALTER TABLE \(name(from.name)) RENAME TO \(name(join.name));")
    }
    // A new name may be the other column's old one, so the later column goes first.
    for (before, after) in zip(from.columns, join.columns).reversed() where before != after {
      change.statements.append(
        "ALTER TABLE \(name(join.name)) RENAME COLUMN \(name(before)) TO \(name(after));")
    }
    return change
  }
}
