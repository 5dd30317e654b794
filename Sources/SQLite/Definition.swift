private import CSQLite

/// What a statement that stands in a store's schema may define.
public enum Definition: Int, Sendable {
  case table = 1
  case index, trigger

  /// What SQLite asks leave for while it makes one, and nothing else.
  ///
  /// Source: https://sqlite.org/c3ref/c_alter_table.html
  fileprivate func allows(_ action: Int32, table: UnsafePointer<CChar>?) -> Bool {
    switch action {
    case SQLITE_CREATE_TABLE: self == .table
    // Of its constraints, too.
    case SQLITE_CREATE_INDEX: self != .trigger
    case SQLITE_REINDEX: self == .index
    case SQLITE_CREATE_TRIGGER: self == .trigger
    // Of constraints, partial indexes and generated columns: no row leaves the database by them.
    case SQLITE_READ, SQLITE_FUNCTION: true
    case SQLITE_INSERT, SQLITE_UPDATE, SQLITE_DELETE:
      table.map { ["sqlite_master", "sqlite_schema"].contains(String(cString: $0)) } ?? false
    default: false
    }
  }
}

extension Connection {
  /// Runs a statement that stands in a store's schema, and lets it do nothing but define what it should.
  ///
  /// Whoever made the store wrote it: it may attach another file, delete rows, copy some into a table, or hold
  /// several statements.
  ///
  /// - Throws: ``SQLiteError``, `SQLITE_AUTH` for a statement that would do anything else.
  public func define(_ definition: Definition, _ sql: String) throws {
    let context = UnsafeMutableRawPointer(bitPattern: definition.rawValue)
    try authorizing(
      { context, action, name, _, _, _ in
        let definition = Definition(rawValue: Int(bitPattern: context))
        return definition?.allows(action, table: name) == true ? SQLITE_OK : SQLITE_DENY
      }, context
    ) {
      do {
        try prepare(sql).run()
      } catch let error as SQLiteError where error.primaryCode == SQLITE_MISUSE {
        throw SQLiteError.failed(
          code: SQLITE_AUTH, message: error.message, statement: sql, database: path)
      }
    }
  }
}
