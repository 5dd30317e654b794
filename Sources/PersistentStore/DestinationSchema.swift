import GodwitObjectModel
import GodwitSQLite

/// Everything of a destination store that is not a row of the model's.
///
/// What is written is always the layout of recent frameworks.
/// Source: `core-data-sqlite-format.md` §2, §8, §13.
package struct DestinationSchema: Sendable {
  package let layout: StoreLayout
  /// `CREATE` statements in Core Data's order: tables, indexes, control tables.
  package let statements: [SchemaStatement]

  /// - Parameter layout: A layout by the rules. Whether a store can be made of it is told by its
  ///   ``StoreLayout/problems``; see ``StoreLayout/requireUsable()``.
  package init(_ layout: StoreLayout) {
    self.layout = layout
    statements = layout.statements + Self.controlTables
  }

  /// The control tables, which come after everything that the model asks for.
  package static let controlTables = [
    SchemaStatement(
      table: "Z_PRIMARYKEY",
      sql: "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, "
        + "Z_SUPER INTEGER, Z_MAX INTEGER)"),
    SchemaStatement(
      table: "Z_METADATA",
      sql: "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), "
        + "Z_PLIST BLOB)"),
    SchemaStatement(
      table: "Z_MODELCACHE", sql: "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)"),
  ]

  /// The rows of `Z_PRIMARYKEY`.
  ///
  /// - Parameters:
  ///   - highestKeys: `Z_MAX` of each root entity; 0 where none is given.
  ///   - source: Rows of the source store, see ``HistoryKeys/rows``. Those of history and CloudKit entities
  ///     are carried; they have numbers of their own.
  package func primaryKeys(highestKeys: [EntityName: Int64], carrying source: [PrimaryKeyRow] = [])
    -> [PrimaryKeyRow]
  {
    let hierarchy = layout.hierarchy
    let own = hierarchy.order.map { name in
      let parent = hierarchy[name]?.superentity
      return PrimaryKeyRow(
        number: Int64(layout.entityNumbers[name] ?? 0), name: name.rawValue,
        superNumber: Int64(parent.flatMap { layout.entityNumbers[$0] } ?? 0),
        highestKey: parent == nil ? highestKeys[name] ?? 0 : 0)
    }
    let taken = Set(own.map(\.number))
    return own
      + source.filter {
        $0.number >= PrimaryKeyRow.firstHistoryNumber && !taken.contains($0.number)
      }
  }
}
