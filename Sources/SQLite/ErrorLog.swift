private import CSQLite
private import Glibc
private import Synchronization

/// What SQLite says in its error log alone.
///
/// The result code of a flush or an open is the same for every reason, and
/// `sqlite3_system_errno` is of whatever the library called last. The log has
/// `os_unix.c:<line>: (<errno>) <call>(<path>) - <message>`.
/// Source: https://sqlite.org/errlog.html.
enum ErrorLog {
  /// The thread that met a full volume last, 0 for none: errors are asked about where they arise.
  private static let thread = Atomic<UInt>(0)

  /// Listens from now on. Must come before the first use of the library in the process.
  static let isWatched: Void = {
    godwit_sqlite_set_log { _, code, message in
      guard let message, [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF),
        let reason = strstr(message, ": (")
      else { return }
      let errno = atoi(reason + 3)
      guard errno == ENOSPC || errno == EDQUOT else { return }
      ErrorLog.thread.store(UInt(pthread_self()), ordering: .relaxed)
    }
    godwit_sqlite_count_no_memory()
  }()

  /// Whether the volume was full for a call of this thread since the last question.
  static func metFullVolume() -> Bool {
    ErrorLog.thread.compareExchange(
      expected: UInt(pthread_self()), desired: 0, ordering: .relaxed
    ).exchanged
  }
}
