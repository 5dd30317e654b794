private import CSQLite
private import Glibc

/// What a call that failed says: SQLite's own words, or those of the volume behind them.
extension Connection {
  /// The error of a call, and that of the operating system where SQLite calls a page damaged that
  /// could not be read: a statement that meets `EIO` ends with `SQLITE_CORRUPT`.
  ///
  /// Source: https://sqlite.org/rescode.html#ioerr_corruptfs.
  static func failure(
    _ code: Int32, _ handle: OpaquePointer?, _ statement: String, database: String, mode: Mode
  ) -> SQLiteError {
    if code & 0xFF == SQLITE_CORRUPT, let errno = readErrno(handle) {
      return .unreadable(database, errno: errno, statement: statement)
    }
    // What SQLite cannot open for writing it opens for reading, for whatever reason, and tells this later.
    if code == SQLITE_READONLY, mode == .readWrite || mode == .create,
      faccessat(AT_FDCWD, database, W_OK, AT_EACCESS) == 0
    {
      return .failed(
        code: SQLITE_IOERR, message: "a file of the database could not be opened for writing",
        statement: statement, database: database)
    }
    // A volume that is full, or has become read-only, may show it only when a file is made or flushed.
    let refusal =
      [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF)
      ? refusal(handle, code, database) : nil
    return .failed(
      code: refusal?.code ?? code, message: refusal?.message ?? message(code, handle),
      statement: statement, database: database)
  }

  static func refusal(
    _ handle: OpaquePointer?, _ code: Int32, _ database: String
  ) -> ErrorLog.Refusal? {
    // Read in any case: the answer is of what came since the last question.
    let logged = ErrorLog.refusal()
    if let logged { return logged }
    if let handle, let met = ErrorLog.Refusal(errno: sqlite3_system_errno(handle)) { return met }
    return code & 0xFF == SQLITE_CANTOPEN && isWithoutInodes(database) ? .full : nil
  }

  /// SQLite tries to read what it cannot make, and tells that it is not there. A volume that became
  /// read-only by an error of its own does not say so but to who tries.
  static func refusal(making database: String) -> ErrorLog.Refusal? {
    let descriptor = open(database, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return ErrorLog.Refusal(errno: errno) }
    Glibc.close(descriptor)
    unlink(database)
    return nil
  }

  /// Where no `-shm` can be made, SQLite tries to open one that is there, and tells of that alone.
  private static func isWithoutInodes(_ database: String) -> Bool {
    var volume = statvfs()
    let folder =
      database.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(database[...$0]) } ?? "."
    return statvfs(folder, &volume) == 0 && volume.f_files > 0 && volume.f_favail == 0
  }

  static func readErrno(_ handle: OpaquePointer?) -> Int32? {
    guard let handle else { return nil }
    var number: Int32 = 0
    while let name = sqlite3_db_name(handle, number) {
      let errno = godwit_sqlite_read_errno(handle, name)
      if errno != 0 { return errno }
      number += 1
    }
    return nil
  }

  static func message(_ code: Int32, _ handle: OpaquePointer?) -> String {
    guard let handle else { return String(cString: sqlite3_errstr(code)) }
    let message = String(cString: sqlite3_errmsg(handle))
    guard code & 0xFF == SQLITE_CORRUPT, message.hasSuffix("too big") else { return message }
    // Of the statement of what it names.
    return message + ": a statement of a schema may have \(mostStatementBytes) bytes"
  }
}
