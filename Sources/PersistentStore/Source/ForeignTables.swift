import GodwitObjectModel
import GodwitSQLite

/// A table that is neither the model's nor one of Core Data's control tables: history, CloudKit
/// mirroring, whatever an application added.
///
/// Source: `core-data-sqlite-format.md` §10 and §11.
package struct ForeignTable: Sendable, Equatable {
  package let name: String
  package let sql: String
  /// As `PRAGMA table_info` lists them: without hidden and generated ones.
  package let columns: [String]
  /// What the row id can be called; nil for a table without one, whose columns hide it, or that has as many
  /// columns as SQLite gives values: no statement has room for the row id beside them.
  package let rowIDName: String?
  /// A virtual table, or one that a virtual table keeps its data in.
  package let isVirtual: Bool
  /// SQL of its indexes, in the order of the schema; those of constraints are left out.
  package let indexes: [String]
}

extension SourceStore {
  /// Every table whose name does not begin with `Z`, SQLite's own left out, in the order of the
  /// schema; and virtual ones with any name that are no R-trees, which Core Data makes none of.
  ///
  /// - Throws: `SQLiteError`.
  package func foreignTables() throws -> [ForeignTable] {
    try schemaObjects.compactMap { object in
      guard object.kind == .table, let sql = object.sql else { return nil }
      let shape = try connection.shape(of: object.name)
      let isForeign =
        Self.isForeign(object.name) || shape?.kind == "virtual" && !isRTree(object.name)
      guard isForeign else { return nil }
      let names = columns(of: object.name).map(\.name)
      let taken = Set(names.map { LayoutProblem.folded($0) })
      let isVirtual = shape?.kind == "virtual" || shape?.kind == "shadow"
      let rowIDName =
        shape?.isWithoutRowID == false && names.count < LayoutProblem.mostColumns
        ? ["rowid", "_rowid_", "oid"].first { !taken.contains(LayoutProblem.folded($0)) } : nil
      return ForeignTable(
        name: object.name, sql: sql, columns: names, rowIDName: rowIDName, isVirtual: isVirtual,
        indexes: schemaObjects.filter { $0.kind == .index && $0.table.isSameName(as: object.name) }
          .compactMap(\.sql))
    }
  }

  /// Whether a virtual table has what an R-tree keeps its data in. What it holds can be made again of rows.
  /// Source: https://sqlite.org/rtree.html §3.1.
  private func isRTree(_ table: String) -> Bool {
    ["_node", "_parent", "_rowid"].allSatisfy { hasTable(table + $0) }
  }

  /// What of the store's schema is neither the model's nor a table with rows of its own, and therefore
  /// not carried. Of indexes only the name tells: Core Data's begin with `Z`.
  package func foreignIssues() throws -> [String] {
    try schemaObjects.compactMap { object in
      switch object.kind {
      case .view: return "The view \(object.name) is not Core Data's and is not carried."
      case .table:
        guard !Self.isForeign(object.name) else { return nil }
        if try connection.shape(of: object.name)?.kind == "virtual" {
          return
            "The virtual table \(object.name) is not carried: how Core Data writes one is not known."
        }
        let names = try generatedColumns(of: object.name).map(\.name)
        guard !names.isEmpty else { return nil }
        let list = names.joined(separator: ", ")
        return names.count == 1
          ? "The generated column \(list) of \(object.name) and its expression are not carried."
          : "The generated columns \(list) of \(object.name) and their expressions are not carried."
      case .index:
        guard !Self.isForeign(object.table), Self.isForeign(object.name) else { return nil }
        return
          "The index \(object.name) on \(object.table) is not Core Data's and is not carried."
      case .trigger: return nil
      }
    }
  }

  /// Columns with `GENERATED ALWAYS AS`, which ``columns(of:)`` leaves out, and whether their values are
  /// stored in the rows.
  func generatedColumns(of table: String) throws -> [(name: String, isStored: Bool)] {
    guard let shape = try connection.shape(of: table), shape.kind == "table",
      shape.columns.contains(where: \.isHidden)
    else { return [] }
    return try connection.rows(
      "SELECT name, hidden FROM pragma_table_xinfo(?1, 'main') WHERE hidden IN (2, 3) ORDER BY cid",
      [.text(table)]
    ).compactMap { row in row[0].text.map { ($0, row[1].integer == 3) } }
  }

  static func isForeign(_ table: String) -> Bool {
    !SchemaObject.isApplicationTable(table)
      && !LayoutProblem.folded(table).starts(with: Array("SQLITE_".utf8))
  }
}

/// Names are Core Data's in whatever letters SQLite takes for the same.
extension String {
  /// Whether a table is one of persistent history. Source: `core-data-sqlite-format.md` §10.
  package var isHistoryTable: Bool {
    ["ATRANSACTION", "ATRANSACTIONSTRING", "ACHANGE"].contains { columnKey == $0.columnKey }
  }

  /// Whether a table is one of CloudKit's mirroring. Source: §11.
  package var isMirroringTable: Bool { columnKey.starts(with: "ANSCK".columnKey) }
}
