import GodwitSQLite

/// What SQLite tells of the indexes that a schema defines, asked once: an application may have thousands.
final class IndexFacts {
  struct Fact {
    var isPartial: Bool
    /// The row id's left out; nil for what is no index over columns.
    var columns: [String]?
  }

  private let model: Connection
  private var facts: [[UInt8]: Fact]?
  private var tables: [Int: [(table: String, columns: [String])]]?

  /// - Parameter model: Has the tables and indexes, without rows.
  init(_ model: Connection) { self.model = model }

  /// Something has been defined otherwise.
  func forget() { (facts, tables) = (nil, nil) }

  /// Nil for an index that cannot be understood.
  func fact(of index: String) -> Fact? {
    let known = facts ?? read()
    facts = known
    return known[index.columnKey]
  }

  /// Of whole indexes over so many columns: the table and the columns.
  func whole(
    over count: Int, among entries: [SchemaSalvage.Entry]
  ) -> [(table: String, columns: [String])] {
    let known = tables ?? group(entries)
    tables = known
    return known[count] ?? []
  }

  private func group(
    _ entries: [SchemaSalvage.Entry]
  ) -> [Int: [(table: String, columns: [String])]] {
    var groups: [Int: [(table: String, columns: [String])]] = [:]
    for entry in entries where entry.kind == .index && entry.root > 0 {
      guard let fact = fact(of: entry.name), !fact.isPartial, let columns = fact.columns else {
        continue
      }
      groups[columns.count, default: []].append((entry.table, columns))
    }
    return groups
  }

  private func read() -> [[UInt8]: Fact] {
    let rows = try? model.rows(
      """
      SELECT list.name, list.partial
      FROM (SELECT DISTINCT tbl_name AS name FROM sqlite_master WHERE type = 'index') AS tables,
        pragma_index_list(tables.name) AS list
      """)
    var facts: [[UInt8]: Fact] = [:]
    for row in rows ?? [] {
      guard let name = row[0].text else { continue }
      facts[name.columnKey] = Fact(isPartial: row[1].integer != 0, columns: columns(of: name))
    }
    return facts
  }

  private func columns(of index: String) -> [String]? {
    guard let rows = try? model.rows("PRAGMA index_info(\(quoted(index)))"), !rows.isEmpty else {
      return nil
    }
    let names = rows.compactMap { $0[2].text }
    return names.count == rows.count ? names : nil
  }
}
