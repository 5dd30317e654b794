import GodwitObjectModel
import GodwitSQLite

/// What a schema tells of virtual tables, whose modules repair does not use.
enum VirtualTable {
  /// Names of the tables that a virtual table keeps its rows in.
  ///
  /// Source: https://sqlite.org/fts3.html §9, https://sqlite.org/fts5.html §1, https://sqlite.org/rtree.html §6.
  static func shadows(of entry: SchemaSalvage.Entry) -> [NameKey] {
    guard entry.isVirtualTable, let sql = entry.sql else { return [] }
    let words = TableText.words(sql.prefix(4096)).map { $0.lowercased() }
    guard let place = words.firstIndex(of: "using"), place + 1 < words.endIndex else { return [] }
    return (endings[words[place + 1]] ?? []).map { NameKey(entry.name + $0) }
  }

  private static let endings = [
    "fts3": texts, "fts4": texts, "rtree": boxes, "rtree_i32": boxes, "geopoly": boxes,
    "fts5": ["_data", "_idx", "_content", "_docsize", "_config"],
  ]
  private static let texts = ["_content", "_segments", "_segdir", "_docsize", "_stat"]
  private static let boxes = ["_node", "_rowid", "_parent"]
}

extension SchemaSalvage.Entry {
  /// As SQLite writes the text of one, however it was written: https://sqlite.org/schematab.html.
  var isVirtualTable: Bool { kind == .table && sql?.hasPrefix("CREATE VIRTUAL") == true }
}
