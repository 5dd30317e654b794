import GodwitObjectModel
import GodwitSQLite

/// What becomes of the numbers of entities in history and CloudKit tables: they follow the destination's
/// numbering.
///
/// The number of an entity without successor becomes 0, which no entity has; in CloudKit tables, where number
/// and key together may have to be unique, one below 0 that the table does not have either. So does a
/// number of no entity, left of an earlier version, that is one's in the destination.
/// Source: `core-data-sqlite-format.md` §10, §11.
package struct EntityRenumbering {
  private let store: SourceStore
  /// Of each entity of the source, with its successor's.
  private let numbers: [(from: Int64, to: Int64?)]
  /// The destination's that no entity of the source has.
  private let free: [Int64]

  package init(
    _ store: SourceStore, _ source: StoreLayout, _ destination: StoreLayout,
    successor: (EntityName) -> EntityName? = { $0 }
  ) {
    func number(_ entity: EntityName, _ layout: StoreLayout) -> Int64 {
      Int64(layout.entityNumbers[entity] ?? 0)
    }
    self.store = store
    numbers = source.hierarchy.order.map { name in
      (from: number(name, source), to: successor(name).map { number($0, destination) })
    }
    // Where the store's own rows say otherwise of an entity, that is damage, and its true number stays.
    let known = Set(numbers.map(\.from)).union(source.hierarchy.numbers.values.map { Int64($0) })
    free = destination.hierarchy.order.map { number($0, destination) }
      .filter { !known.contains($0) }
  }

  /// What a row of the destination has in a column, told of the source's row; nil where it has what that has.
  package func expression(_ column: String, in table: String) throws -> String? {
    let isHistory =
      table.columnKey == "ACHANGE".columnKey && column.columnKey == "ZENTITY".columnKey
    let isCloudKit =
      table.isMirroringTable
      && ["ZENTITY", "ZENTITYID"].contains { column.columnKey == $0.columnKey }
    guard isHistory || isCloudKit else { return nil }
    let lowest = isCloudKit ? try lowestNumber(column, in: table) : 0
    func none(_ number: Int64) -> Int64 { isCloudKit ? lowest - number : 0 }
    var changes = numbers.map { (from: $0.from, to: $0.to ?? none($0.from)) }
      .filter { $0.from != $0.to }
    if changes.isEmpty, try !holds(free, column, in: table) { return nil }
    changes += free.map { (from: $0, to: none($0)) }
    let type = store.columns(of: table).first { $0.name.isSameName(as: column) }?.type
    // As the column keeps it: what is compared afterwards is what was computed.
    func kept(_ number: Int64) -> String {
      switch ColumnAffinity(declaredType: type ?? "") {
      case .text: "'\(number)'"
      case .real: "\(number).0"
      default: "\(number)"
      }
    }
    let cases = changes.map { "WHEN \($0.from) THEN \(kept($0.to))" }.joined(separator: " ")
    return "CASE \(quoted(column)) \(cases) ELSE \(quoted(column)) END"
  }

  /// Whether any row has one of the numbers.
  private func holds(_ numbers: [Int64], _ column: String, in table: String) throws -> Bool {
    guard !numbers.isEmpty else { return false }
    let list = numbers.map(String.init).joined(separator: ", ")
    return try !store.connection.rows(
      "SELECT 1 FROM \(quoted(table)) WHERE \(quoted(column)) IN (\(list)) LIMIT 1"
    ).isEmpty
  }

  private func lowestNumber(_ column: String, in table: String) throws -> Int64 {
    let number = "CAST(\(quoted(column)) AS INTEGER)"
    let found = try store.connection.rows(
      "SELECT min(\(number)) FROM \(quoted(table)) WHERE \(number) < 0")
    // So low a number is nobody's work: there it is 0, and the rest as it would be.
    guard case .integer(let low)? = found.first?.first, low > -1 << 62 else { return 0 }
    return low
  }
}
