import GodwitObjectModel
import GodwitPersistentStore

extension HandWrittenMigration {
  /// The script that fills an empty database from the store at `path`.
  ///
  /// Tables that do not change are copied by SQLite's transfer optimisation, which copies records
  /// without decoding them; it needs `SELECT *` and the indexes in place before. Other indexes are
  /// built last, by one sort each. SQLite sorts in memory up to the size of its cache, and a
  /// quarter faster where it may spill to a file. The caller flushes the file.
  package func script(for path: String) throws -> String {
    let stamp = try stamp(of: path)
    var fills: [String] = []
    var transferred: Set<String> = []
    for table in destination.tables {
      if let from = try unchanged(table) {
        transferred.insert(table.name)
        fills.append("INSERT INTO \(name(table.name)) SELECT * FROM source.\(name(from));")
      } else {
        fills += try rows(of: table)
      }
    }
    for join in destination.joinTables {
      guard let (from, values) = try pairs(of: join) else { continue }
      if values == from.columns.map(name) {
        transferred.insert(join.name)
        fills.append("INSERT INTO \(name(join.name)) SELECT * FROM source.\(name(from.name));")
      } else {
        fills.append(
          """
          INSERT INTO \(name(join.name))
          SELECT \(values.joined(separator: ", "))
            FROM source.\(name(from.name))
           ORDER BY 1, 2;
          """)
      }
    }
    let statements = destination.statements
    let indexes = statements.filter { $0.kind == .index }
    var lines = [
      "-- One store, one pair of models. Run: sqlite3 DESTINATION < THIS",
      "PRAGMA page_size = 4096;", "PRAGMA auto_vacuum = 2;", "PRAGMA journal_mode = OFF;",
      "PRAGMA synchronous = OFF;", "PRAGMA main.locking_mode = EXCLUSIVE;",
      "PRAGMA cache_size = -262144;", "PRAGMA temp_store = FILE;",
      "ATTACH \(literal(.text(path))) AS source;", "BEGIN;",
    ]
    lines += statements.filter { $0.kind == .table }.map { $0.sql + ";" }
    lines += indexes.filter { transferred.contains($0.table) }.map { $0.sql + ";" }
    lines += fills
    lines += indexes.filter { !transferred.contains($0.table) }.map { $0.sql + ";" }
    lines += StoreStamp.controlTables.map { $0 + ";" }
    lines += primaryKeys(from: "source.Z_PRIMARYKEY")
    lines += [
      "INSERT INTO Z_METADATA SELECT 1, Z_UUID, \(stamp.metadata) FROM source.Z_METADATA;",
      "INSERT INTO Z_MODELCACHE VALUES (\(stamp.modelCache));",
      "COMMIT;", "PRAGMA journal_mode = WAL;", "",
    ]
    return lines.joined(separator: "\n")
  }

  /// The source's table, where this one has the same columns, values, entity numbers and indexes.
  private func unchanged(_ table: EntityTable) throws -> String? {
    guard let old = pairs[table.root], let from = source.table(of: old),
      from.columns.map(\.declaredType) == table.columns.map(\.declaredType),
      from.entities.count == table.entities.count,
      !rewrite.insertsObjects
    else { return nil }
    for entity in table.entities {
      guard let old = pairs[entity],
        source.entityNumbers[old] == destination.entityNumbers[entity]
      else { return nil }
    }
    for entity in destination.hierarchy.concrete(of: table.root) {
      guard let old = pairs[entity] else { return nil }
      for (before, after) in zip(from.columns, table.columns)
      where try value(of: after, for: entity, old, prefix: "source.") != name(before.name) {
        return nil
      }
    }
    // By place: a renamed column is the same column to SQLite.
    func indexed(_ table: EntityTable) -> [[IndexedPlace]] {
      table.indexes.filter { $0.table == table.name }.map { index in
        index.indexedColumns.map { column in
          IndexedPlace(
            place: table.columns.firstIndex { $0.name == column.name },
            isAscending: column.isAscending)
        }
      }
    }
    let before = Set(indexed(from))
    return before.isSuperset(of: indexed(table)) ? from.name : nil
  }

  private struct IndexedPlace: Hashable {
    let place: Int?
    let isAscending: Bool
  }

  private func rows(of table: EntityTable) throws -> [String] {
    try destination.hierarchy.concrete(of: table.root).compactMap { entity in
      guard let old = pairs[entity], let from = source.table(of: old),
        let number = destination.entityNumbers[entity], let oldNumber = source.entityNumbers[old]
      else { return nil }
      let values = try table.columns.map {
        try value(of: $0, for: entity, old, prefix: "source.")
      }
      let key = rewrite.renumbered.contains(entity) ? "NULL" : "Z_PK"
      let keys = [key, String(number), rewrite.insertsObjects ? "1" : "Z_OPT"]
      let condition = from.entities.count > 1 ? "\n WHERE Z_ENT = \(oldNumber)" : ""
      return """
        INSERT INTO \(name(table.name))
        SELECT \((keys + values).joined(separator: ", "))
          FROM source.\(name(from.name))\(condition)
         ORDER BY Z_PK;
        """
    }
  }
}
