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
  /// What a volume may be that takes no more bytes.
  enum Refusal: UInt {
    case full = 1
    case readOnly = 2

    init?(errno: Int32) {
      switch errno {
      case ENOSPC, EDQUOT: self = .full
      case EROFS: self = .readOnly
      default: return nil
      }
    }

    /// The result code that SQLite has for it.
    var code: Int32 {
      switch self {
      case .full: SQLITE_FULL
      case .readOnly: SQLITE_READONLY
      }
    }

    var message: String {
      switch self {
      case .full: String(cString: sqlite3_errstr(SQLITE_FULL))
      case .readOnly: "Read-only file system (errno \(EROFS))"
      }
    }
  }

  /// The thread whose volume refused last, and how, in the bits that its aligned address leaves; 0 for
  /// none: errors are asked about where they arise.
  private static let last = Atomic<UInt>(0)

  /// Listens from now on. Must come before the first use of the library in the process.
  static let isWatched: Void = {
    godwit_sqlite_set_log { _, code, message in
      guard let message, [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF),
        let reason = strstr(message, ": ("), let refusal = Refusal(errno: atoi(reason + 3))
      else { return }
      ErrorLog.last.store(UInt(pthread_self()) | refusal.rawValue, ordering: .relaxed)
    }
    godwit_sqlite_count_no_memory()
  }()

  /// How the volume refused a call of this thread since the last question.
  static func refusal() -> Refusal? {
    let found = last.load(ordering: .relaxed)
    guard found & ~3 == UInt(pthread_self()),
      last.compareExchange(expected: found, desired: 0, ordering: .relaxed).exchanged
    else { return nil }
    return Refusal(rawValue: found & 3)
  }
}
