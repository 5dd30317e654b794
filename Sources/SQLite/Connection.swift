private import CSQLite
private import Glibc

/// One open database.
///
/// Belongs to one thread at a time, and so do its statements; SQLite's own mutexes are off.
/// Database files are not trusted: functions and virtual tables with side effects cannot be
/// called from a schema, damaged cells are looked for on every page, no part of a path may be a
/// symbolic link, and a journal that names another file is refused, since SQLite would delete that.
public final class Connection {
  /// What may be done to the file.
  public enum Mode: Sendable {
    /// Nobody writes the file while it is open: no locks, no `-wal`, no `-shm`, all of which are
    /// ignored if there. For a file with a log, that means old or damaged rows: see to it first.
    case immutable
    case readOnly
    /// The file must exist.
    case readWrite
    /// The file is made if it does not exist.
    case create
  }

  /// 16 MiB: those of a schema are held in memory several times. A table of as many columns as there may be has names
  /// of 8 KiB then.
  static let mostStatementBytes: Int32 = 16 << 20

  /// The path as given.
  public let path: String
  private var handle: OpaquePointer?
  private var cancelCheck: CancelCheck?
  let mode: Mode
  private var ownDescriptor: Int32?
  private var ownSchema: DatabaseSchema?
  /// What ``visitRows(_:_:_:_:)`` keeps; its SQL function owns it.
  var visits: UnsafeMutableRawPointer?
  /// Known from the first visit on.
  var textsAreUTF8: Bool?

  /// Opens a database.
  ///
  /// SQLite reads the file with the first statement: a file that is not a database is not noticed
  /// before.
  ///
  /// - Parameters:
  ///   - path: A path of the file system, never a URI; `":memory:"` for a database in memory.
  ///   - busyTimeoutMilliseconds: How long a statement waits for another connection's lock.
  public init(path: String, mode: Mode, busyTimeoutMilliseconds: Int32 = 5_000) throws {
    self.path = path
    self.mode = mode
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw SQLiteError.cannotOpen(
        path: path, code: SQLITE_CANTOPEN, message: "the path is empty or has a zero byte")
    }
    _ = ErrorLog.isWatched
    try Connection.requireRoom(forPath: path)
    try Connection.refuseSpecial(path)
    switch mode {
    case .immutable: break
    case .readOnly, .readWrite, .create:
      if path != ":memory:" { try SuperJournal.refuse(besideDatabase: path) }
    }
    let access =
      switch mode {
      case .immutable, .readOnly: SQLITE_OPEN_READONLY
      case .readWrite: SQLITE_OPEN_READWRITE
      case .create: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      }
    let flags =
      access | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE
      | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW
    let code = sqlite3_open_v2(
      Connection.uri(ofPath: path, isImmutable: mode == .immutable), &handle, flags, nil)
    guard code == SQLITE_OK, let handle else {
      var refusal = Connection.refusal(handle, code, path)
      if refusal == nil, mode == .create, code & 0xFF == SQLITE_CANTOPEN {
        refusal = Connection.refusal(making: path)
      }
      let error = SQLiteError.cannotOpen(
        path: path, code: refusal?.code ?? code,
        message: refusal?.message ?? Connection.message(code, handle))
      sqlite3_close_v2(handle)
      self.handle = nil
      throw error
    }
    sqlite3_busy_timeout(handle, busyTimeoutMilliseconds)
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, Connection.mostStatementBytes)
    _ = godwit_sqlite_take_no_name_for_a_text(handle)
    // Applications index and check their own tables by JSON functions, which 3.40 counts among those that an
    // untrusted schema must not call: such a schema cannot be read at all. Of what is built in, nothing
    // writes or leads out of the file; extensions are never loaded, and our own functions change nothing.
    // Nor may an application's foreign keys change or remove rows, where SQLite was built to enforce them.
    try execute(
      "PRAGMA trusted_schema = ON; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = OFF")
    if mode == .immutable { boundValues(byFile: path) }
  }

  /// No value of a file is longer than the file: a damaged length, or what a file's own expressions make, then
  /// is an error at once, and not an allocation of up to a gigabyte.
  ///
  /// - Returns: The bound before.
  @discardableResult
  public func boundValues(byFile path: String) -> Int32 {
    var status = stat()
    let size = lstat(path, &status) == 0 ? status.st_size : .max
    return setLengthLimit(Int32(clamping: max(1 << 20, size)))
  }

  deinit {
    closeDescriptor()
    sqlite3_close_v2(handle)
  }
}

extension Connection {
  /// The file, open for reading its pages past SQLite; nil where somebody may write to it meanwhile.
  public var rawDescriptor: Int32? {
    guard mode == .immutable, handle != nil else { return nil }
    if let ownDescriptor { return ownDescriptor }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      Glibc.close(descriptor)
      return nil
    }
    ownDescriptor = descriptor
    return descriptor
  }

  /// What the file declares: read once where nobody may change it meanwhile.
  func schema() throws -> DatabaseSchema {
    if let ownSchema { return ownSchema }
    let schema = try DatabaseSchema(self)
    if mode == .immutable { ownSchema = schema }
    return schema
  }

  /// Reads what the file declares once more and for good: nobody changes it from here on.
  public func keepSchema() throws { ownSchema = try DatabaseSchema(self) }

  private func closeDescriptor() {
    if let ownDescriptor { Glibc.close(ownDescriptor) }
    ownDescriptor = nil
  }

  /// Closes the database now, and says whether that worked. Without it the database is closed when
  /// the connection and all its statements are gone.
  ///
  /// - Throws: `SQLITE_BUSY` when a statement is still alive; the connection then stays open.
  public func close() throws {
    guard let handle else { return }
    let code = sqlite3_close(handle)
    guard code == SQLITE_OK else { throw failure(code, in: "close") }
    self.handle = nil
    closeDescriptor()
  }

  /// Makes the tables of another file readable under a schema name, as ``Mode/immutable`` does.
  public func attachImmutable(_ path: String, as schema: String) throws {
    _ = try rows(
      "ATTACH DATABASE ?1 AS \(quoted(schema))",
      [.text(Connection.uri(ofPath: path, isImmutable: true))])
  }

  /// Runs one statement or several, separated by semicolons, and discards any rows.
  public func execute(_ sql: String) throws {
    let code = sqlite3_exec(try openHandle(sql), sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code, in: sql) }
  }

  /// Runs the body while SQLite asks whether each thing that a statement is to do may be done.
  func authorizing(
    _ ask:
      @convention(c) (
        UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
        UnsafePointer<CChar>?, UnsafePointer<CChar>?
      ) -> Int32, _ context: UnsafeMutableRawPointer?, _ body: () throws -> Void
  ) throws {
    let handle = try openHandle("")
    sqlite3_set_authorizer(handle, ask, context)
    defer { sqlite3_set_authorizer(handle, nil, nil) }
    try body()
  }

  /// Lets no trigger of the database fire, whoever made it.
  public func disableTriggers() { _ = handle.map { godwit_sqlite_fire_no_triggers($0) } }

  /// Prepares exactly one statement.
  public func prepare(_ sql: String) throws -> Statement {
    let handle = try openHandle(sql)
    var prepared: OpaquePointer?
    var sql = sql
    let (code, isWhole) = sql.withUTF8 { bytes -> (Int32, Bool) in
      let start = bytes.baseAddress.map {
        UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)
      }
      guard let start, let size = Int32(exactly: bytes.count) else { return (SQLITE_TOOBIG, false) }
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v3(
        handle, start, size, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, &tail)
      let used = tail.map { start.distance(to: $0) } ?? 0
      // Spaces, line ends and semicolons may follow.
      let isWhole = bytes[used...].allSatisfy {
        $0 == 0x20 || $0 == 0x3B || (0x09...0x0D).contains($0)
      }
      return (code, isWhole)
    }
    guard code == SQLITE_OK else { throw failure(code, in: sql) }
    guard let prepared, isWhole else {
      sqlite3_finalize(prepared)
      throw SQLiteError.failed(
        code: SQLITE_MISUSE, message: "exactly one statement is expected", statement: sql,
        database: path)
    }
    return Statement(prepared, of: self)
  }

  func prepare(_ sql: String, _ arguments: [SQLiteValue]) throws -> Statement {
    let statement = try prepare(sql)
    for (place, argument) in arguments.enumerated() {
      try statement.bind(Int32(truncatingIfNeeded: place + 1), argument)
    }
    return statement
  }

  /// Runs a statement and collects its rows. For results known to be small.
  public func rows(_ sql: String, _ arguments: [SQLiteValue] = []) throws -> [[SQLiteValue]] {
    let statement = try prepare(sql, arguments)
    var rows: [[SQLiteValue]] = []
    while try statement.step() {
      rows.append((0..<Int32(statement.columnCount)).map { statement.value($0) })
    }
    return rows
  }

  /// Runs the body in a transaction that takes the write lock at once; rolled back if it throws.
  public func transaction<Result>(_ body: () throws -> Result) throws -> Result {
    try execute("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      // SQLite may have rolled back by itself; the first error is the one to tell.
      if isInTransaction { try? execute("ROLLBACK") }
      throw error
    }
  }
}

extension Connection {
  /// Whether a transaction is open.
  public var isInTransaction: Bool { handle.map { sqlite3_get_autocommit($0) == 0 } ?? false }

  /// Rows that the last INSERT, UPDATE or DELETE changed.
  public var changes: Int64 { handle.map { sqlite3_changes64($0) } ?? 0 }

  /// The rowid of the last row inserted through this connection.
  public var lastInsertRowID: Int64 { handle.map { sqlite3_last_insert_rowid($0) } ?? 0 }

  /// Sets how many bytes a text, a blob or a row may have, and gives the number before. One above the library's
  /// own maximum is cut to it. https://sqlite.org/c3ref/c_limit_attached.html
  @discardableResult
  public func setLengthLimit(_ bytes: Int32) -> Int32 {
    handle.map { sqlite3_limit($0, SQLITE_LIMIT_LENGTH, max(0, bytes)) } ?? 0
  }

  /// Asks every so many instructions whether the running statement should stop, which then fails
  /// with `SQLITE_INTERRUPT`. `nil` stops asking.
  ///
  /// The check must not use this connection.
  public func setCancelCheck(everyInstructions count: Int32 = 100_000, _ check: (() -> Bool)?) {
    guard let handle else { return }
    cancelCheck = check.map(CancelCheck.init)
    let context = cancelCheck.map { Unmanaged.passUnretained($0).toOpaque() }
    guard context != nil else { return sqlite3_progress_handler(handle, 0, nil, nil) }
    sqlite3_progress_handler(
      handle, max(1, count),
      { context in
        guard let context else { return 0 }
        return Unmanaged<CancelCheck>.fromOpaque(context).takeUnretainedValue().check() ? 1 : 0
      }, context)
  }
}

extension Connection {
  func openHandle(_ statement: String) throws -> OpaquePointer {
    guard let handle else {
      throw SQLiteError.failed(
        code: SQLITE_MISUSE, message: "the connection is closed", statement: statement,
        database: path)
    }
    // One that is made of a schema has each of its names twice, and each quote of a name, too. The schema was read, and
    // held to its own bound, before anything could be made of it.
    if statement.utf8.count > Connection.mostStatementBytes {
      sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 5 * Connection.mostStatementBytes)
    }
    return handle
  }

  func failure(_ code: Int32, in statement: String) -> SQLiteError {
    Connection.failure(code, handle, statement, database: path, mode: mode)
  }

  /// What the operating system said when a page of this database, or of an attached one, could not
  /// be read; nil when every page could be.
  public var readErrno: Int32? { Connection.readErrno(handle) }

  /// - Throws: An input or output error when a page could not be read: an answer of
  ///   `PRAGMA integrity_check` then says nothing of the file.
  public func requireEveryPageRead(in statement: String) throws {
    if let errno = readErrno {
      throw SQLiteError.unreadable(path, errno: errno, statement: statement)
    }
  }
}

/// Keeps a closure alive while SQLite holds a pointer to it.
private final class CancelCheck {
  let check: () -> Bool
  init(_ check: @escaping () -> Bool) { self.check = check }
}
