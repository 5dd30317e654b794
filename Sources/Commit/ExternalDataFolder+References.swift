import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

extension ExternalDataFolder {
  /// A query for the names of files that a column refers to. What stands in a row is 0x02, the file's
  /// name, and a zero byte. Format reference §5.1.
  ///
  /// - Parameter table: Quoted, with its schema.
  static func references(in table: String, column: String) -> String {
    let column = quoted(column)
    return """
      SELECT CAST(substr(\(column), 2, 36) AS TEXT)
        FROM \(table)
       WHERE typeof(\(column)) = 'blob' AND length(\(column)) = 38
         AND substr(\(column), 1, 1) = x'02'
      """
  }

  /// Which of these files a store's rows refer to, whatever its model: stores whose names differ only in
  /// their extension share a folder.
  ///
  /// - Parameter store: Without a WAL or a hot journal, and written to by nobody.
  /// - Returns: None where the store is damaged: it says of no file that it is its own.
  /// - Throws: `SQLiteError` where the store cannot be read for another reason.
  /// - Complexity: O(*n*) in the rows of tables with binary values.
  static func names(_ names: [String], referredToBy store: FilePath) throws -> [String] {
    try SQLiteError.nilByContent {
      let rest = try Self.names(names, notReferredToBy: store)
      return names.filter { !rest.contains($0) }
    } ?? []
  }

  /// Which of these files no row of a store refers to, whatever its model.
  ///
  /// - Parameter store: Without a WAL or a hot journal, and written to by nobody.
  /// - Complexity: O(*n*) in the rows of tables with binary values, as far as it takes to find all names.
  static func names(
    _ names: [String], notReferredToBy store: FilePath
  ) throws -> Set<String> {
    var rest = Set(names)
    if rest.isEmpty { return [] }
    try visitReferences(of: store) { name in
      rest.remove(name)
      return !rest.isEmpty
    }
    return rest
  }

  /// The files that rows of a store refer to, whatever its model, and that are not among these.
  ///
  /// - Parameter store: Without a WAL or a hot journal, and written to by nobody.
  /// - Returns: None where the store is damaged.
  /// - Throws: `SQLiteError` where the store cannot be read for another reason.
  /// - Complexity: O(*n*) in the rows of tables with binary values.
  package static func missing(
    among names: Set<String>, referredToBy store: FilePath
  ) throws -> Set<String> {
    try SQLiteError.nilByContent {
      var missing: Set<String> = []
      try visitReferences(of: store) { name in
        if !names.contains(name) { missing.insert(name) }
        return true
      }
      return missing
    } ?? []
  }

  /// - Parameter body: Gets each name, and says whether it wants another.
  private static func visitReferences(of store: FilePath, _ body: (String) -> Bool) throws {
    let connection = try Connection(path: store.string, mode: .immutable)
    for table in try connection.schemaRows().map(\.name)
    where SchemaObject.isApplicationTable(table) {
      for column in try connection.shape(of: table)?.columns ?? []
      where !column.isHidden && column.declaredType.uppercased() == "BLOB" {
        let statement = try connection.prepare(
          references(in: quoted(table), column: column.name))
        while try statement.step() {
          if let name = statement.value(0).text, !body(name) { return }
        }
      }
    }
  }
}
