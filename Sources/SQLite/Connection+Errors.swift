private import CSQLite
private import Glibc

extension Connection {
  func openHandle(_ statement: String) throws -> OpaquePointer {
    guard let handle else {
      throw SQLiteError.failed(
        code: SQLITE_MISUSE, message: "the connection is closed", statement: statement,
        database: path)
    }
    return handle
  }

  func failure(_ code: Int32, in statement: String) -> SQLiteError {
    Connection.failure(code, handle, statement, database: path)
  }

  /// The error of a call, and that of the operating system where SQLite calls a page damaged that
  /// could not be read: a statement that meets `EIO` ends with `SQLITE_CORRUPT`.
  ///
  /// Source: https://sqlite.org/rescode.html#ioerr_corruptfs.
  static func failure(
    _ code: Int32, _ handle: OpaquePointer?, _ statement: String, database: String
  ) -> SQLiteError {
    if code & 0xFF == SQLITE_CORRUPT, let errno = readErrno(handle) {
      return .unreadable(database, errno: errno, statement: statement)
    }
    var code = code
    // A full volume may show itself only when a file is made or flushed.
    if [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF), metFullVolume(handle, code, database)
    {
      code = SQLITE_FULL
    }
    return .failed(
      code: code, message: message(code, handle), statement: statement, database: database)
  }

  private static func metFullVolume(
    _ handle: OpaquePointer?, _ code: Int32, _ database: String
  ) -> Bool {
    // Read in any case: the answer is of what came since the last question.
    let isLogged = ErrorLog.metFullVolume()
    return isLogged
      || handle.map { [ENOSPC, EDQUOT].contains(sqlite3_system_errno($0)) } == true
      || (code & 0xFF == SQLITE_CANTOPEN && isWithoutInodes(database))
  }

  /// Where no `-shm` can be made, SQLite tries to open one that is there, and tells of that alone.
  private static func isWithoutInodes(_ database: String) -> Bool {
    var volume = statvfs()
    let folder = database.lastIndex(of: "/").map { String(database[...$0]) } ?? "."
    return statvfs(folder, &volume) == 0 && volume.f_files > 0 && volume.f_favail == 0
  }

  /// What the operating system said when a page of this database, or of an attached one, could not
  /// be read; nil when every page could be.
  public var readErrno: Int32? { Connection.readErrno(handle) }

  private static func readErrno(_ handle: OpaquePointer?) -> Int32? {
    guard let handle else { return nil }
    var number: Int32 = 0
    while let name = sqlite3_db_name(handle, number) {
      let errno = godwit_sqlite_read_errno(handle, name)
      if errno != 0 { return errno }
      number += 1
    }
    return nil
  }

  /// - Throws: An input or output error when a page could not be read: an answer of
  ///   `PRAGMA integrity_check` then says nothing of the file.
  public func requireEveryPageRead(in statement: String) throws {
    if let errno = readErrno {
      throw SQLiteError.unreadable(path, errno: errno, statement: statement)
    }
  }
}

private func message(_ code: Int32, _ handle: OpaquePointer?) -> String {
  guard let handle else { return String(cString: sqlite3_errstr(code)) }
  return String(cString: sqlite3_errmsg(handle))
}
