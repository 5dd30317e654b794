private import CSQLite
private import Synchronization

/// A table as it is declared, with its indexes: all that the pragmas say of it.
///
/// Source: https://sqlite.org/pragma.html, `table_list`, `table_xinfo`, `index_list`, `index_xinfo`.
public struct TableShape: Sendable, Equatable {
  public struct Column: Sendable, Equatable {
    public var name: String
    /// As it is written; empty where there is none.
    public var declaredType: String
    public var isNullable: Bool
    public var hasDefault: Bool
    /// Place in the primary key, from 1; 0 for a column that is not in it.
    public var keyPlace: Int64
    /// True for a generated column, and for a hidden one of a virtual table.
    public var isHidden: Bool
  }

  public struct Index: Sendable, Equatable {
    public struct Field: Sendable, Equatable {
      /// A place in the table's columns; −1 for the row id, −2 for an expression.
      public var column: Int
      public var isDescending: Bool
      /// In capitals.
      public var collation: String
      /// False for what stands behind the fields that were asked for.
      public var isKey: Bool
    }

    public var name: String
    public var isUnique: Bool
    /// `c` for CREATE INDEX, `u` for UNIQUE, `pk` for PRIMARY KEY.
    public var origin: String
    public var isPartial: Bool
    public var fields: [Field]
  }

  /// `table`, or `virtual`, `shadow`.
  public var kind: String
  public var isWithoutRowID: Bool
  public var isStrict: Bool
  public var sql: String
  /// The keywords and names in ``sql``, ASCII letters in capitals; those in texts and comments, too.
  public var words: Set<String>
  public var columns: [Column]
  /// The newest first.
  public var indexes: [Index]
}

/// A row of `sqlite_master`.
public struct SchemaRow: Sendable, Hashable {
  public let type: String
  public let name: String
  public let table: String
  public let rootPage: Int64
  public let sql: String?

  /// The character that text gets in the place of bytes that are none.
  var holdsReplacement: Bool {
    [name, table, sql ?? ""].contains { $0.unicodeScalars.contains("\u{FFFD}") }
  }
}

/// The tables that one text of a schema makes. What follows from that text alone can be kept beside
/// it: one object, one text.
public final class SchemaForm: Sendable {
  let shapes: [[UInt8]: TableShape]

  init(_ shapes: [[UInt8]: TableShape]) { self.shapes = shapes }
}

/// What a file declares: the rows of `sqlite_master`, and the tables that they make.
///
/// Names and texts are keys by their bytes, as SQLite compares them: Swift takes two spellings of an
/// accent for one `String`.
final class DatabaseSchema {
  typealias Bytes = [UInt8]

  let rows: [SchemaRow]
  let form: SchemaForm
  var shapes: [Bytes: TableShape] { form.shapes }
  private(set) var roots: [Bytes: Int64] = [:]

  /// Stores of one model version have one text of the schema, whichever pages their tables begin on.
  private static let known = Mutex<[[SchemaText]: SchemaForm]>([:])
  private static let mostKnown = 16

  private struct SchemaText: Hashable {
    let type: Bytes
    let name: Bytes
    let table: Bytes
    let sql: Bytes?
  }

  /// SQLite reads them as text, whatever is stored: a blob is the text of its bytes.
  private static let texts =
    "CAST(type AS TEXT), CAST(name AS TEXT), CAST(tbl_name AS TEXT), CAST(sql AS TEXT)"

  private static let types: Set = ["table", "index", "trigger", "view"]

  init(_ connection: Connection) throws {
    let sql = "SELECT \(Self.texts), CAST(rootpage AS INTEGER) FROM sqlite_master ORDER BY rowid"
    rows = try connection.rows(sql).map { row in
      // SQLite goes by the statement alone, and has what would be left out here.
      guard let type = row[0].text, DatabaseSchema.types.contains(type), let name = row[1].text,
        let table = row[2].text
      else {
        throw DatabaseSchema.damage(
          "a row of sqlite_master has none of SQLite's types, or lacks its name or table: "
            + (row[1].text ?? "without a name"), sql, connection)
      }
      return SchemaRow(
        type: type, name: name, table: table, rootPage: row[4].integer ?? 0, sql: row[3].text)
    }
    if rows.contains(where: { $0.holdsReplacement }) { try Self.requireText(connection) }
    for type in ["index", "table"] {
      for row in rows where row.type == type { roots[Bytes(row.name.utf8)] = row.rootPage }
    }
    let text = rows.map {
      SchemaText(
        type: Bytes($0.type.utf8), name: Bytes($0.name.utf8), table: Bytes($0.table.utf8),
        sql: $0.sql.map { Bytes($0.utf8) })
    }
    if let form = Self.known.withLock({ $0[text] }) {
      self.form = form
      return
    }
    let form = SchemaForm(try Self.shapes(rows, connection))
    self.form = form
    Self.known.withLock { known in
      if known.count >= Self.mostKnown { known.removeAll() }
      known[text] = form
    }
  }

  private static func damage(
    _ message: String, _ statement: String, _ connection: Connection
  ) -> SQLiteError {
    .failed(
      code: SQLITE_CORRUPT, message: message, statement: statement, database: connection.path)
  }

  /// A name that is not UTF-8 would be another one from here on, which names nothing in the file.
  private static func requireText(_ connection: Connection) throws {
    let sql = "SELECT \(texts) FROM sqlite_master"
    let statement = try connection.prepare(sql)
    try withUnsafeTemporaryAllocation(of: RawValue.self, capacity: 4) { values in
      guard let start = values.baseAddress else { return }
      while try statement.step() {
        statement.read(into: start, from: 0, count: 4)
        for value in values where value.kind == .text {
          guard String(validating: value.buffer, as: UTF8.self) == nil else { continue }
          throw damage("sqlite_master holds text that is not UTF-8", sql, connection)
        }
      }
    }
  }

  /// As SQLite divides a statement: every byte beyond ASCII is one of a name.
  private static func words(of sql: String) -> Set<String> {
    let words = sql.utf8.split { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x80...: false
      default: true
      }
    }
    return Set(
      words.map { word in
        String(decoding: word.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }, as: UTF8.self)
      })
  }

  private static func shapes(
    _ rows: [SchemaRow], _ connection: Connection
  ) throws -> [Bytes: TableShape] {
    var shapes: [Bytes: TableShape] = [:]
    var (made, ofConstraints): (Set<SchemaPart>, Set<SchemaPart>) = ([], [])
    let kinds = try connection.rows(
      "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main'")
    var sql: [Bytes: String] = [:]
    for row in rows where row.type == "table" { sql[Bytes(row.name.utf8)] = row.sql }
    for row in kinds {
      guard let name = row[0].text.map({ Bytes($0.utf8) }), name != Bytes("sqlite_schema".utf8)
      else { continue }
      let type = row[1].text == "view" ? "view" : "table"
      made.insert(SchemaPart(type: type, name: name, table: name))
      guard let text = sql[name] else { continue }
      shapes[name] = TableShape(
        kind: row[1].text ?? "", isWithoutRowID: row[2].integer != 0,
        isStrict: row[3].integer != 0, sql: text, words: words(of: text), columns: [], indexes: [])
    }
    // A virtual table whose module is not here has no columns for us.
    for row in try connection.rows(
      """
      SELECT l.name, x.name, x.type, x."notnull", x.dflt_value IS NOT NULL, x.pk, x.hidden
        FROM pragma_table_list AS l, pragma_table_xinfo(l.name, 'main') AS x
       WHERE l.schema = 'main' AND l.type IN ('table', 'shadow')
       ORDER BY l.name, x.cid
      """)
    {
      guard let table = row[0].text.map({ Bytes($0.utf8) }) else { continue }
      shapes[table]?.columns.append(
        TableShape.Column(
          name: row[1].text ?? "", declaredType: row[2].text ?? "",
          isNullable: row[3].integer == 0, hasDefault: row[4].integer != 0,
          keyPlace: row[5].integer ?? 0, isHidden: row[6].integer != 0))
    }
    for row in try connection.rows(
      """
      SELECT m.name, l.name, l."unique", l.origin, l.partial, x.cid, x."desc", x.coll, x.key, x.seqno
        FROM pragma_table_list AS m, pragma_index_list(m.name, 'main') AS l,
             pragma_index_xinfo(l.name, 'main') AS x
       WHERE m.schema = 'main' AND m.type IN ('table', 'shadow')
       ORDER BY m.name, l.seq, x.seqno
      """)
    {
      guard let table = row[0].text.map({ Bytes($0.utf8) }), let name = row[1].text else {
        continue
      }
      // Fields come in the order of their places, from 0.
      if row[9].integer == 0 {
        let part = SchemaPart(type: "index", name: Bytes(name.utf8), table: table)
        if row[3].text == "c" { made.insert(part) } else { ofConstraints.insert(part) }
        shapes[table]?.indexes.append(
          TableShape.Index(
            name: name, isUnique: row[2].integer != 0, origin: row[3].text ?? "",
            isPartial: row[4].integer != 0, fields: []))
      }
      guard let last = shapes[table]?.indexes.indices.last else { continue }
      shapes[table]?.indexes[last].fields.append(
        TableShape.Index.Field(
          column: Int(row[5].integer ?? -2), isDescending: row[6].integer != 0,
          collation: row[7].text?.uppercased() ?? "", isKey: row[8].integer != 0))
    }
    try requireAgreement(of: rows, with: made, ofConstraints: ofConstraints, connection)
    return shapes
  }

  /// A table, a view or an index: of a table or view ``table`` is the name itself.
  private struct SchemaPart: Hashable {
    var type: String
    var name: Bytes
    var table: Bytes
  }

  /// SQLite takes kinds and names from the statements alone, and every reader here those beside them: where the two
  /// differ, if in the case of a letter, a table would be passed over, or asked for in vain.
  ///
  /// - Parameters:
  ///   - made: What SQLite has of the statements, the indexes of constraints left out.
  ///   - ofConstraints: Those; the key of a table without row ids has no row of its own.
  private static func requireAgreement(
    of rows: [SchemaRow], with made: Set<SchemaPart>, ofConstraints: Set<SchemaPart>,
    _ connection: Connection
  ) throws {
    // No pragma tells of triggers.
    let said = Set(
      rows.filter { $0.type != "trigger" }.map { row in
        let name = Bytes(row.name.utf8)
        return SchemaPart(
          type: row.type, name: name, table: row.type == "index" ? Bytes(row.table.utf8) : name)
      })
    let differing = made.subtracting(said).union(said.subtracting(made).subtracting(ofConstraints))
    guard let part = differing.min(by: { $0.name.lexicographicallyPrecedes($1.name) }) else {
      return
    }
    throw damage(
      "sqlite_master and its own statements disagree about the \(part.type) "
        + "\(String(decoding: part.name, as: UTF8.self)): its name, its kind, or its table",
      "sqlite_master", connection)
  }
}

extension Connection {
  /// Everything in `sqlite_master`, in its order.
  public func schemaRows() throws -> [SchemaRow] { try schema().rows }

  /// What stores of one schema share.
  public func schemaForm() throws -> SchemaForm { try schema().form }

  /// - Returns: nil where there is no table of just this name.
  public func shape(of table: String) throws -> TableShape? {
    try schema().shapes[DatabaseSchema.Bytes(table.utf8)]
  }

  /// The page at which the tree of a table or an index begins; nil for one that has none.
  public func rootPage(of name: String) throws -> UInt32? {
    try schema().roots[DatabaseSchema.Bytes(name.utf8)].flatMap { UInt32(exactly: $0) }.flatMap {
      $0 > 0 ? $0 : nil
    }
  }
}
