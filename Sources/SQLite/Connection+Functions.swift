private import CSQLite

// SQL functions of our own.
extension Connection {
  /// Makes SQL functions of these names that take any arguments and return NULL.
  ///
  /// For functions that Core Data registers and its triggers call: without them a statement that
  /// touches such a table cannot be prepared.
  public func registerFunctionStubs(_ names: [String]) throws {
    for name in names {
      let code = sqlite3_create_function_v2(
        try openHandle(name), name, -1,
        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nil,
        { context, _, _ in sqlite3_result_null(context) }, nil, nil, nil)
      guard code == SQLITE_OK else { throw failure(code, in: "function \(name)") }
    }
  }

  /// Makes an SQL function that gives a number, whatever its arguments.
  public func registerNumber(_ name: String, _ number: Double) throws {
    let handle = try openHandle(name)
    let context = UnsafeMutablePointer<Double>.allocate(capacity: 1)
    context.initialize(to: number)
    // SQLite gives it back, also where it fails.
    let code = sqlite3_create_function_v2(
      handle, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, context,
      { context, _, _ in
        guard let number = sqlite3_user_data(context) else { return }
        sqlite3_result_double(context, number.load(as: Double.self))
      }, nil, nil, { $0?.deallocate() })
    guard code == SQLITE_OK else { throw failure(code, in: "function \(name)") }
  }

  /// Makes an SQL function of one argument that rounds a number to single precision; everything
  /// else stays as it is.
  public func registerSinglePrecision(_ name: String) throws {
    let code = sqlite3_create_function_v2(
      try openHandle(name), name, 1,
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nil,
      { context, _, values in
        guard let value = values?[0] else { return sqlite3_result_null(context) }
        switch sqlite3_value_type(value) {
        case SQLITE_INTEGER, SQLITE_FLOAT:
          sqlite3_result_double(context, Double(Float(sqlite3_value_double(value))))
        default: sqlite3_result_value(context, value)
        }
      }, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code, in: "function \(name)") }
  }
}

// A copy of a whole database.
extension Connection {
  /// Makes this database, which must be empty and in memory, a copy of another as that is now. What waits for the
  /// other's lock waits as its statements do.
  ///
  /// Source: https://sqlite.org/c3ref/backup_finish.html. A database in memory only takes pages of its own size.
  public func copy(_ other: Connection) throws {
    let call = "backup"
    let size = try other.rows("PRAGMA page_size").first?.first?.integer ?? 4_096
    try execute("PRAGMA page_size = \(size)")
    let (handle, source) = (try openHandle(call), try other.openHandle(call))
    guard let backup = sqlite3_backup_init(handle, "main", source, "main") else {
      throw failure(sqlite3_extended_errcode(handle), in: call)
    }
    let code = sqlite3_backup_step(backup, -1)
    sqlite3_backup_finish(backup)
    guard code == SQLITE_DONE else { throw other.failure(code, in: call) }
  }
}
