import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Rows that may be wrong, by the tables of the output: where a constraint has room for one of two rows, they
/// give way to those of which nothing is doubtful.
struct DoubtedRows {
  private var tables: Set<NameKey> = []

  /// Notes them in a table of the output's connection.
  init(_ salvage: StoreSalvage, in store: OutputStore) throws {
    try store.connection.execute(
      """
      CREATE TEMP TABLE doubted (
        name TEXT, low INTEGER, high INTEGER, PRIMARY KEY (name, low)) WITHOUT ROWID
      """)
    let (own, found) = (store.layout, salvage.binding.layout)
    let names =
      Array(zip(own.tables.map(\.name), found.tables.map(\.name)))
      + Array(zip(own.joinTables.map(\.name), found.joinTables.map(\.name)))
      + salvage.foreignTables.map { ($0.name, $0.name) }
    for (name, source) in names {
      let keys = salvage.doubtedKeys(of: source)
      guard !keys.isEmpty else { continue }
      tables.insert(NameKey(name))
      for range in keys.ranges {
        _ = try store.connection.rows(
          "INSERT OR IGNORE INTO temp.doubted VALUES (?1, ?2, ?3)",
          [.text(name), .integer(range.lowerBound), .integer(range.upperBound)])
      }
    }
  }

  /// Conditions for rows of a table, in the order in which they are to be written: certain ones first.
  func parts(of table: String, key: String) -> [String] {
    guard tables.contains(NameKey(table)) else { return ["1"] }
    let condition = Self.condition(table, key: key)
    return ["NOT \(condition)", condition]
  }

  /// As SQL: whether a row of a table of the output is one of them.
  static func condition(_ table: String, key: String) -> String {
    "ifnull((SELECT \(key) <= high FROM temp.doubted WHERE name = \(Mender.text(table)) "
      + "AND low <= \(key) ORDER BY low DESC LIMIT 1), 0)"
  }
}

extension StoreSalvage {
  /// Rows of a table that the account calls doubtful as a whole, or in a value that an index has otherwise.
  fileprivate func doubtedKeys(of name: String) -> KeyRanges {
    guard let table = tables[NameKey(name)] else { return KeyRanges() }
    let evidence = evidence[NameKey(name)]
    let astray = KeyRanges(union: [table.strayKeys, table.contestedKeys])
      .subtracting(evidence?.confirmedKeys ?? KeyRanges())
    return KeyRanges(
      union: [
        table.doubtfulKeys, table.doubtfulOwnKeys, table.misplacedKeys, astray,
        evidence?.unnamedKeys ?? KeyRanges(),
      ] + Array((evidence?.contradictedKeys ?? [:]).values))
  }
}
