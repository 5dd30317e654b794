import GodwitDurableFiles
import GodwitKeyedArchive
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// A private copy of a store, as far as it has been reduced.
struct ReducedStore {
  let path: FilePath

  init(_ path: FilePath) { self.path = path }

  struct Column: Hashable {
    var table: String
    var name: String
    /// Whether its values begin with a byte that says where the data is.
    var isExternal = false
  }

  /// What takes the place of values.
  enum Filler: CaseIterable {
    /// The same for all values of a length.
    case uniform
    /// Another for each row, for columns whose values must differ.
    case numbered
  }

  private func opened() throws -> Connection {
    let connection = try Connection(path: path.string, mode: .readWrite)
    // A copy that a crash tears is made again.
    try connection.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF")
    // An application's own would write down what is replaced.
    connection.disableTriggers()
    return connection
  }

  private func changing(_ body: (Connection) throws -> Void) throws {
    let connection = try opened()
    try connection.transaction { try body(connection) }
    try connection.close()
  }

  func remove() throws {
    let files = StoreFiles(path)
    for path in [files.store, files.wal, files.shm, files.journal] {
      try DurableFile.removeIfPresent(path, surviving: .processCrash)
    }
  }

  /// The tables that hold objects, the largest first.
  func tables() throws -> [String] {
    let connection = try opened()
    let names = try Self.modelNames(connection)
    let sizes = try names.map { name in
      (name, try connection.rows("SELECT count(*) FROM \(quoted(name))").first?.first?.integer ?? 0)
    }
    return sizes.sorted { ($1.1, $0.0) < ($0.1, $1.0) }.map(\.0)
  }

  private static func names(_ connection: Connection) throws -> [String] {
    try connection.rows(
      "SELECT CAST(name AS TEXT) FROM sqlite_master WHERE CAST(type AS TEXT) = 'table'"
    ).compactMap { $0[0].text }
  }

  /// Those of objects and of pairs, as far as that shows without a model: their names, and their keys. Any
  /// other may hold what an application wrote.
  private static func modelNames(_ connection: Connection) throws -> [String] {
    try names(connection).filter { name in
      guard name.hasPrefix("Z"), !isControl(name) else { return false }
      let columns = try columns(of: name, connection)
      return ["Z_PK", "Z_ENT", "Z_OPT"].allSatisfy(columns.map(\.name).contains)
        || (name.hasPrefix("Z_")
          && columns.allSatisfy { $0.name.hasPrefix("Z_") && $0.type == "INTEGER" })
    }
  }

  private static func columns(
    of table: String, _ connection: Connection
  ) throws -> [(name: String, type: String)] {
    try connection.rows("PRAGMA table_info(\(quoted(table)))").map {
      ($0[1].text ?? "", $0[2].text ?? "")
    }
  }

  private static func isControl(_ name: String) -> Bool {
    LayoutProblem.controlTables.contains(name)
  }

  /// Rows of all tables that hold objects.
  func rowCount() throws -> Int64 {
    let connection = try opened()
    return try Self.modelNames(connection)
      .reduce(0) { sum, name in
        sum
          + (try connection.rows("SELECT count(*) FROM \(quoted(name))").first?.first?.integer ?? 0)
      }
  }

  /// Columns that may hold an application's values.
  func columns() throws -> [Column] {
    let connection = try opened()
    return try Self.modelNames(connection).flatMap { table in
      let columns = try Self.columns(of: table, connection)
      let names = Set(columns.map(\.name))
      // Tables of pairs have keys alone.
      guard names.contains("Z_PK") else { return [Column]() }
      return columns.filter { column in
        !["Z_PK", "Z_ENT", "Z_OPT"].contains(column.name)
          // The places of objects in an ordered relationship, whose own column is there, too.
          && !(column.type == "INTEGER"
            && column.name.after("Z_FOK_").map { names.contains("Z" + $0) } ?? false)
      }.map { Column(table: table, name: $0.name) }
    }
  }

  func hasValues(_ column: Column) throws -> Bool {
    let name = quoted(column.name)
    return try !opened().rows(
      "SELECT 1 FROM \(quoted(column.table)) WHERE \(name) IS NOT NULL AND \(name) <> 0 LIMIT 1"
    ).isEmpty
  }

  /// Replaces the values of a column by filler of their lengths. With external storage, the first byte says where
  /// the data is, and stays; so does the name of an external file, which is a random UUID.
  func scrub(_ column: Column, with filler: Filler) throws {
    let name = quoted(column.name)
    func numbered(_ length: String) -> String {
      "substr(printf('%0*d', \(length), rowid), -(\(length)))"
    }
    func data(_ length: String) -> String {
      switch filler {
      case .uniform: "zeroblob(\(length))"
      case .numbered: numbered(length)
      }
    }
    let (text, number): (String, String) =
      switch filler {
      case .uniform:
        (
          "substr(replace(hex(zeroblob(length(\(name)) + 1)), '00', 'x'), 1, length(\(name)))",
          "substr('1111111111111111111', 1, length(abs(\(name))))"
        )
      case .numbered: (numbered("length(\(name))"), "rowid")
      }
    let marked =
      """
      WHEN length(\(name)) = 38 AND substr(\(name), 1, 1) = x'02'
        AND CAST(substr(\(name), 2, 36) AS TEXT) GLOB '\(Self.uuidPattern)'
        AND substr(\(name), 38) = x'00' THEN \(name)
      WHEN length(\(name)) = 1 AND \(name) IN (x'01', x'02') THEN \(name)
      WHEN substr(\(name), 1, 1) IN (x'01', x'02')
        THEN CAST(substr(\(name), 1, 1) || \(data("length(\(name)) - 1")) AS BLOB)
      """
    try changing { connection in
      try connection.execute(
        """
        UPDATE \(quoted(column.table))
        SET \(name) =
          CASE typeof(\(name))
            WHEN 'text' THEN \(text)
            WHEN 'integer' THEN CAST(\(number) AS INTEGER)
            WHEN 'real' THEN CAST(\(number) AS REAL)
            WHEN 'blob' THEN
              CASE
                WHEN length(\(name)) = 0 THEN \(name)
                \(column.isExternal ? marked : "")
                ELSE CAST(\(data("length(\(name))")) AS BLOB)
              END
          END
        WHERE \(name) IS NOT NULL
        """)
    }
  }

  private static let uuidPattern = [8, 4, 4, 4, 12]
    .map { String(repeating: "[0-9A-F]", count: $0) }.joined(separator: "-")

  /// `rowid` of each row, in order.
  func keys(of table: String) throws -> [Int64] {
    try opened().rows("SELECT rowid FROM \(quoted(table)) ORDER BY rowid").compactMap {
      $0[0].integer
    }
  }

  func delete(_ keys: [Int64], from table: String) throws {
    try changing { connection in
      let statement = try connection.prepare("DELETE FROM \(quoted(table)) WHERE rowid = ?1")
      for key in keys {
        try statement.bind(1, key)
        try statement.run()
      }
    }
  }

  /// Deletes the rows of tables that are not of objects: persistent history, CloudKit, an application's
  /// own, and SQLite's statistics, which have samples of values.
  func deleteForeignRows() throws {
    try changing { connection in
      let kept = Set(try Self.modelNames(connection))
      for table in try Self.names(connection)
      where !kept.contains(table) && !Self.isControl(table) {
        try connection.execute("DELETE FROM \(quoted(table))")
      }
    }
  }

  /// Removes what an application has put into the metadata, and gives the store another UUID.
  func removeMetadata(_ metadata: StoreMetadata) throws {
    var plist = metadata.plist
    for key in metadata.applicationKeys { plist[key] = nil }
    let bytes = PropertyList.dictionary(plist).binary()
    try changing { connection in
      _ = try connection.rows(
        "UPDATE Z_METADATA SET Z_PLIST = ?1, Z_UUID = ?2",
        [.blob(bytes), .text("00000000-0000-4000-8000-000000000000")])
    }
  }

  /// Writes the rows to a file of their own, in pages that hold nothing else.
  func vacuum(into path: FilePath) throws {
    let connection = try opened()
    _ = try connection.rows("VACUUM INTO ?1", [.text(path.string)])
    try connection.close()
  }
}
