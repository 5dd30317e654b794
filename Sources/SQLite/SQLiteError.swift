private import CSQLite

/// What SQLite refused to do.
///
/// Carries the extended result code, SQLite's own message and the statement; never bound values.
public enum SQLiteError: Error, Equatable, Sendable {
  /// The database could not be opened.
  case cannotOpen(path: String, code: Int32, message: String)
  /// A statement could not be prepared or run.
  ///
  /// `database` is the path that the connection was opened with; attached files do not count.
  case failed(code: Int32, message: String, statement: String, database: String = "")
}

extension SQLiteError {
  static func unreadable(_ database: String, errno: Int32, statement: String) -> SQLiteError {
    // SQLITE_IOERR_READ
    .failed(
      code: SQLITE_IOERR | (1 << 8), message: "a page could not be read (errno \(errno))",
      statement: statement, database: database)
  }

  /// SQLite's own words.
  public var message: String {
    switch self {
    case .cannotOpen(_, _, let message), .failed(_, let message, _, _): message
    }
  }

  /// The extended result code. https://sqlite.org/rescode.html
  public var code: Int32 {
    switch self {
    case .cannotOpen(_, let code, _), .failed(let code, _, _, _): code
    }
  }

  /// The path of the main database; nil where none is known.
  public var database: String? {
    switch self {
    case .cannotOpen(let path, _, _), .failed(_, _, _, let path): path.isEmpty ? nil : path
    }
  }

  /// The low eight bits of ``code``: what kind of failure it is.
  public var primaryCode: Int32 { code & 0xFF }

  /// The file is damaged, or no database at all; or a value claims to be longer than its file.
  public var isCorruption: Bool {
    primaryCode == SQLITE_CORRUPT || primaryCode == SQLITE_NOTADB
      || primaryCode == SQLITE_TOOBIG
  }

  /// A value is longer than what values are bounded by.
  public var isTooLong: Bool { primaryCode == SQLITE_TOOBIG }

  /// What the database holds is the reason: it is damaged, or its schema is not what the statement
  /// takes for granted. Else it is the machine: the volume, memory, or another process.
  public var isOfContent: Bool { isCorruption || isDenied || primaryCode == SQLITE_ERROR }

  /// A statement of a schema would do more than define what it should, see ``Connection/define(_:_:)``.
  public var isDenied: Bool { primaryCode == SQLITE_AUTH }

  /// SQLite will not do what a schema asks for, such as a collation that only the application has, or
  /// rows break a constraint. Trying again makes no difference.
  public var isRefused: Bool {
    primaryCode == SQLITE_ERROR || primaryCode == SQLITE_CONSTRAINT || isDenied
  }

  /// What a body gives; nil where it fails by what the database holds. A machine that fails is not
  /// taken for a database without an answer.
  ///
  /// - Throws: ``SQLiteError`` that is not ``isOfContent``.
  public static func nilByContent<Result>(_ body: () throws -> Result?) throws -> Result? {
    do {
      return try body()
    } catch let error as SQLiteError where !error.isOfContent {
      throw error
    } catch {
      return nil
    }
  }

  /// SQLite could not get memory; it says so, too, of a damaged record that claims too much.
  public var isOutOfMemory: Bool { primaryCode == SQLITE_NOMEM }

  /// The volume, or the database's own page limit, is full.
  public var isOutOfSpace: Bool { primaryCode == SQLITE_FULL }

  /// A database was to be made, or written, on a volume that is read-only.
  public var isOfReadOnlyVolume: Bool { code == SQLITE_READONLY }

  /// The path has more bytes than SQLite opens.
  public var isOfLongPath: Bool { code == Self.longPath }

  static let longPath = SQLITE_CANTOPEN | (3 << 8)  // SQLITE_CANTOPEN_FULLPATH

  /// Another connection holds a lock that did not go away within the busy timeout.
  public var isBusy: Bool { primaryCode == SQLITE_BUSY || primaryCode == SQLITE_LOCKED }

  /// A UNIQUE or PRIMARY KEY constraint failed, or a rowid is taken.
  public var isConstraintUnique: Bool {
    code == SQLITE_CONSTRAINT | (8 << 8)  // SQLITE_CONSTRAINT_UNIQUE
      || code == SQLITE_CONSTRAINT | (6 << 8)  // SQLITE_CONSTRAINT_PRIMARYKEY
      || code == SQLITE_CONSTRAINT | (10 << 8)  // SQLITE_CONSTRAINT_ROWID
  }

  /// A cancel check stopped the statement.
  public var isInterrupted: Bool { primaryCode == SQLITE_INTERRUPT }

  /// The code's name in SQLite's documentation, such as `SQLITE_CONSTRAINT_NOTNULL`.
  public var codeName: String { resultCodeName(code) }
}

extension SQLiteError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .cannotOpen(let path, let code, let message):
      "SQLite error \(code) (\(codeName)): \(message), opening \(path).\(advice)"
    case .failed(let code, let message, let statement, _):
      "SQLite error \(code) (\(codeName)): \(message), in \(shortened(statement)).\(advice)"
    }
  }

  /// What to do next, where it does not depend on the statement.
  private var advice: String {
    switch primaryCode {
    case SQLITE_CANTOPEN where code >> 8 == 3: ""  // of a path that is too long
    case SQLITE_FULL: " Free space on the volume and run again."
    case SQLITE_BUSY, SQLITE_LOCKED:
      " Another process is using the database. Close it there and run again."
    case SQLITE_CORRUPT:
      " The file is damaged. Restore it from a backup, or save what can be saved with `godwit repair`."
    case SQLITE_NOTADB: " The file is not an SQLite database, or it is encrypted."
    case SQLITE_AUTH:
      " A statement of a store's schema may make one table, index or trigger in the store, and do nothing else."
    case SQLITE_CANTOPEN, SQLITE_PERM:
      " Check that the path exists and that this user may read it."
    case SQLITE_READONLY: " Check that this user may write the file and its folder."
    case SQLITE_IOERR: " Check the volume, then run again."
    case SQLITE_NOMEM: " Free memory, or run with fewer workers."
    default: ""
    }
  }
}

/// Statements that list hundreds of columns are cut for a person to read.
private func shortened(_ statement: String) -> String {
  let line = statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  return line.count <= 400 ? line : line.prefix(399) + "…"
}

/// Names of primary codes, by code. https://sqlite.org/rescode.html
private let primaryNames = [
  "OK", "ERROR", "INTERNAL", "PERM", "ABORT", "BUSY", "LOCKED", "NOMEM", "READONLY", "INTERRUPT",
  "IOERR", "CORRUPT", "NOTFOUND", "FULL", "CANTOPEN", "PROTOCOL", "EMPTY", "SCHEMA", "TOOBIG",
  "CONSTRAINT", "MISMATCH", "MISUSE", "NOLFS", "AUTH", "FORMAT", "RANGE", "NOTADB", "NOTICE",
  "WARNING",
]

/// Names of extended codes after their primary code's, from the second byte 1 on.
private let extendedNames: [Int32: [String]] = [
  SQLITE_ERROR: ["MISSING_COLLSEQ", "RETRY", "SNAPSHOT"],
  SQLITE_ABORT: ["", "ROLLBACK"],
  SQLITE_BUSY: ["RECOVERY", "SNAPSHOT", "TIMEOUT"],
  SQLITE_LOCKED: ["SHAREDCACHE", "VTAB"],
  SQLITE_READONLY: ["RECOVERY", "CANTLOCK", "ROLLBACK", "DBMOVED", "CANTINIT", "DIRECTORY"],
  SQLITE_IOERR: [
    "READ", "SHORT_READ", "WRITE", "FSYNC", "DIR_FSYNC", "TRUNCATE", "FSTAT", "UNLOCK", "RDLOCK",
    "DELETE", "BLOCKED", "NOMEM", "ACCESS", "CHECKRESERVEDLOCK", "LOCK", "CLOSE", "DIR_CLOSE",
    "SHMOPEN", "SHMSIZE", "SHMLOCK", "SHMMAP", "SEEK", "DELETE_NOENT", "MMAP", "GETTEMPPATH",
    "CONVPATH", "VNODE", "AUTH", "BEGIN_ATOMIC", "COMMIT_ATOMIC", "ROLLBACK_ATOMIC", "DATA",
    "CORRUPTFS", "IN_PAGE",
  ],
  SQLITE_CORRUPT: ["VTAB", "SEQUENCE", "INDEX"],
  SQLITE_CANTOPEN: ["NOTEMPDIR", "ISDIR", "FULLPATH", "CONVPATH", "DIRTYWAL", "SYMLINK"],
  SQLITE_CONSTRAINT: [
    "CHECK", "COMMITHOOK", "FOREIGNKEY", "FUNCTION", "NOTNULL", "PRIMARYKEY", "TRIGGER", "UNIQUE",
    "VTAB", "ROWID", "PINNED", "DATATYPE",
  ],
]

private func resultCodeName(_ code: Int32) -> String {
  let primary = code & 0xFF
  guard code >= 0, Int(primary) < primaryNames.count else { return "SQLITE_\(code)" }
  let name = "SQLITE_" + primaryNames[Int(primary)]
  let extended = Int(code >> 8) - 1
  guard extended >= 0, let names = extendedNames[primary], extended < names.count,
    !names[extended].isEmpty
  else { return name }
  return name + "_" + names[extended]
}
