import GodwitSQLite

/// Carrying a table over as it is: raw records and raw index entries, in order.
///
/// SQLite does so by itself for `INSERT INTO a SELECT * FROM b` when the two tables agree in
/// columns, affinities and defaults, and each index of `a` has an equal one in `b`. Otherwise the
/// same statement works row by row. Which of the two it is stands in the statement's program.
///
/// Source: https://sqlite.org/src/file/src/insert.c, `xferOptimization`.
enum Transfer {
  /// The statement that fills `main.table` out of `src.source`.
  ///
  /// `SELECT *` only where the expressions are the source's columns, all of them and in order:
  /// the names may differ.
  ///
  /// - Parameter rowIDName: Gives every row the row id that it has in the source, under this name; nil
  ///   where a column is the row id or nothing can refer to it.
  static func statement(
    into table: String, _ columns: [String], from source: String, expressions: [String],
    rowIDName: String? = nil, in file: Connection
  ) throws -> String {
    if let key = rowIDName.map(quoted) {
      return """
        INSERT INTO main.\(quoted(table)) (\(([key] + columns.map(quoted)).joined(separator: ", ")))
        SELECT \(([key] + expressions).joined(separator: ", "))
          FROM src.\(quoted(source))
         ORDER BY \(key)
        """
    }
    let all = try columnNames(of: source, in: "src", file)
    let own = try columnNames(of: table, in: "main", file)
    guard !all.isEmpty else {
      throw CommitError.unusablePlan("the source has no table \(source)")
    }
    if same(columns, own), same(expressions, all.map(quoted)) {
      return "INSERT INTO main.\(quoted(table)) SELECT * FROM src.\(quoted(source))"
    }
    return """
      INSERT INTO main.\(quoted(table)) (\(columns.map(quoted).joined(separator: ", ")))
      SELECT \(expressions.joined(separator: ", "))
        FROM src.\(quoted(source))
       ORDER BY \(try rowOrder(of: source, in: file))
      """
  }

  /// Drops the indexes of the table that stand in the way of the transfer optimisation, and says
  /// whether the statement is carried out by it.
  static func isWhole(
    _ sql: String, into table: String, from source: String, in file: Connection,
    dropping drop: (String) throws -> Void
  ) throws -> Bool {
    guard sql.contains("SELECT * FROM") else { return false }
    let given = Set(try shapes(of: source, schema: "src", in: file).map(\.shape))
    for index in try shapes(of: table, schema: "main", in: file) where !index.isAutomatic {
      if !given.contains(index.shape) { try drop(index.name) }
    }
    return try usesRawRecords(sql, in: file)
  }

  /// Whether rows that are numbered anew, or carried by a column that is the row id, have the same row
  /// ids as in the source.
  static func numbersEqually(
    _ source: String, _ rowIDName: String, in file: Connection
  ) throws -> Bool {
    let hasOwnColumn = try file.rows(
      """
      SELECT 1 FROM pragma_table_xinfo(?1, 'src')
       WHERE pk > 0 AND NOT EXISTS (
               SELECT 1 FROM pragma_index_list(?1, 'src') WHERE origin = 'pk')
      """, [.text(source)])
    if !hasOwnColumn.isEmpty { return true }
    let key = quoted(rowIDName)
    let row = try file.rows(
      "SELECT ifnull(max(\(key)), 0) = count(*) AND ifnull(min(\(key)), 1) = 1 "
        + "FROM src.\(quoted(source))"
    ).first
    return row?.first == .integer(1)
  }

  /// True when the program of a statement moves records without looking into them.
  static func usesRawRecords(_ sql: String, in file: Connection) throws -> Bool {
    // Which opcode it is depends on the version of SQLite.
    try file.rows("EXPLAIN " + sql).contains { row in
      row[1] == .text("RowData") || row[1] == .text("RowCell")
    }
  }

  private struct Index {
    var name: String
    var isAutomatic: Bool
    var shape: String
  }

  /// An index as SQLite compares two of them: columns by place, collations, directions,
  /// uniqueness. Partial ones and those over expressions never count as equal.
  private static func shapes(
    of table: String, schema: String, in file: Connection
  ) throws -> [Index] {
    try file.rows(
      """
      SELECT l.name, l.origin <> 'c',
             l."unique" || ':' || (
               SELECT group_concat(x.cid || ' ' || x.desc || ' ' || x.coll, ',')
                 FROM pragma_index_xinfo(l.name, ?2) AS x
                WHERE x.key),
             l.partial OR EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name, ?2) WHERE cid = -2)
        FROM pragma_index_list(?1, ?2) AS l
      """, [.text(table), .text(schema)]
    ).map { row in
      let name = row[0].text ?? ""
      let isOwnKind = row[3].integer != 0
      return Index(
        name: name, isAutomatic: row[1].integer != 0,
        shape: isOwnKind ? "\(schema) \(name)" : row[2].text ?? "")
    }
  }

  private static func columnNames(
    of table: String, in schema: String, _ file: Connection
  ) throws -> [String] {
    try file.rows(
      "SELECT name FROM pragma_table_xinfo(?1, ?2) ORDER BY cid", [.text(table), .text(schema)]
    ).map { $0[0].text ?? "" }
  }

  /// Rows are read in the order they lie in, so that they are appended.
  private static func rowOrder(of source: String, in file: Connection) throws -> String {
    let key = try file.rows(
      "SELECT name FROM pragma_table_xinfo(?1, 'src') WHERE pk > 0 ORDER BY pk", [.text(source)])
    guard !key.isEmpty else { return "rowid" }
    return key.map { quoted($0[0].text ?? "") }.joined(separator: ", ")
  }

  /// SQLite compares names without regard to the case of ASCII letters.
  private static func same(_ left: [String], _ right: [String]) -> Bool {
    left.count == right.count && zip(left, right).allSatisfy { $0.columnKey == $1.columnKey }
  }
}
