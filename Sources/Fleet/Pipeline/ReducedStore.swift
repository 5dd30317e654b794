import GodwitDurableFiles
import GodwitKeyedArchive
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// A private copy of a store, as far as it has been reduced.
struct ReducedStore {
  let path: FilePath

  init(_ path: FilePath) { self.path = path }

  struct Column {
    var table: String
    var name: String
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
    try connection.registerFunctionStubs(CarriedTriggers.coreDataFunctions)
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
    let names = try Self.names(connection).filter { $0.hasPrefix("Z") && !Self.isControl($0) }
    let sizes = try names.map { name in
      (name, try connection.rows("SELECT count(*) FROM \(quoted(name))").first?.first?.integer ?? 0)
    }
    return sizes.sorted { ($1.1, $0.0) < ($0.1, $1.0) }.map(\.0)
  }

  private static func names(_ connection: Connection) throws -> [String] {
    try connection.rows(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).compactMap { $0[0].text }
  }

  private static func isControl(_ name: String) -> Bool {
    ["Z_METADATA", "Z_PRIMARYKEY", "Z_MODELCACHE"].contains(name)
  }

  /// Rows of all tables that hold objects.
  func rowCount() throws -> Int64 {
    let connection = try opened()
    return try Self.names(connection).filter { $0.hasPrefix("Z") && !Self.isControl($0) }
      .reduce(0) { sum, name in
        sum
          + (try connection.rows("SELECT count(*) FROM \(quoted(name))").first?.first?.integer ?? 0)
      }
  }

  /// Columns that may hold an application's values.
  func columns() throws -> [Column] {
    let connection = try opened()
    return try Self.names(connection).filter { $0.hasPrefix("Z") && !Self.isControl($0) }
      .flatMap { table in
        try connection.rows("PRAGMA table_info(\(quoted(table)))").compactMap { row in
          guard let name = row[1].text, name.hasPrefix("Z"), !name.hasPrefix("Z_") else {
            return nil
          }
          return Column(table: table, name: name)
        }
      }
  }

  func hasValues(_ column: Column) throws -> Bool {
    let name = quoted(column.name)
    return try !opened().rows(
      "SELECT 1 FROM \(quoted(column.table)) WHERE \(name) IS NOT NULL AND \(name) <> 0 LIMIT 1"
    ).isEmpty
  }

  /// Replaces the values of a column by filler of their lengths. The first byte of binary data stays:
  /// it says where the data is. The name of an external file is a random UUID, and stays.
  func scrub(_ column: Column, with filler: Filler) throws {
    let name = quoted(column.name)
    let (text, number): (String, String) =
      switch filler {
      case .uniform:
        (
          "substr(replace(hex(zeroblob(length(\(name)) + 1)), '00', 'x'), 1, length(\(name)))",
          "substr('1111111111111111111', 1, length(abs(\(name))))"
        )
      case .numbered:
        (
          "substr(printf('%0*d', length(\(name)), rowid), -length(\(name)))",
          "rowid"
        )
      }
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
                WHEN length(\(name)) = 38 AND substr(\(name), 1, 1) = x'02' THEN \(name)
                ELSE CAST(substr(\(name), 1, 1) || zeroblob(length(\(name)) - 1) AS BLOB)
              END
          END
        WHERE \(name) IS NOT NULL
        """)
    }
  }

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
  /// own.
  func deleteForeignRows() throws {
    try changing { connection in
      for table in try Self.names(connection) where !table.hasPrefix("Z") {
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

  /// Writes a copy without free pages.
  func vacuum(into path: FilePath) throws {
    let connection = try opened()
    _ = try connection.rows("VACUUM INTO ?1", [.text(path.string)])
    try connection.close()
  }
}
