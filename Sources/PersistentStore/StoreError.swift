import Glibc
import GodwitDurableFiles
import SystemPackage

/// Why a store cannot be read, or a schema not be made for one.
///
/// In every case the store is as it was.
package enum StoreError: Error, Sendable, Equatable {
  case notFound(FilePath)
  /// The store, or a file or folder that belongs to it, is a symbolic link, a FIFO, a socket or a
  /// device, or a folder in the place of a file.
  case unusualFile(FilePath, FileKind, of: FilePath)
  /// A folder on the way to the store, once links are resolved, has a name that is not UTF-8.
  case notText(FilePath)
  /// The rollback journal lacks a part of what it counts, or has it wrong.
  case journal(FilePath, reason: String)
  /// The WAL is of a format version that SQLite, and so Core Data, refuses to read.
  case unknownLog(FilePath, version: UInt32)
  /// The rollback journal names another file, which SQLite would delete.
  case superJournal(FilePath)
  case empty(FilePath)
  /// Does not begin as an SQLite file. Encrypted ones look like noise from the first byte.
  case notSQLite(FilePath, mayBeEncrypted: Bool)
  /// The 100-byte header of an SQLite file says something impossible.
  case impossibleHeader(FilePath, reason: String)
  /// A sound database whose texts are UTF-16. Core Data writes UTF-8 only.
  case utf16(FilePath)
  /// The file lacks pages that its header counts, or is shorter than any database, or ends in a hole.
  case truncated(FilePath, expectedBytes: Int64, foundBytes: Int64)
  /// SQLite cannot make sense of the file.
  case damaged(FilePath, reason: String)
  /// An SQLite database without any of Core Data's control tables.
  case notCoreData(FilePath)
  /// Another process keeps the store locked.
  case inUse(FilePath)
  /// Another process wrote to the store while it was read or copied.
  case changed(FilePath)
  case cannotRead(FilePath, errno: Int32)
  case cannotCopy(FilePath, to: FilePath, errno: Int32)
  /// `Z_MODELCACHE` is there and cannot be used.
  case modelCache(FilePath, reason: String)
  /// The destination's schema cannot be made.
  case layout(LayoutProblem)
}

extension StoreError {
  /// Core Data's error code. Source: `core-data-migration.md` §1.4.
  package var code: Int {
    switch self {
    case .notFound, .unusualFile, .notText, .unknownLog, .superJournal, .empty, .notSQLite,
      .impossibleHeader,
      .utf16, .notCoreData, .cannotRead, .cannotCopy, .inUse, .changed:
      134_080
    case .truncated, .damaged, .journal: 134_150
    case .modelCache: 134_130
    case .layout: 134_160
    }
  }

  /// True when the file says so; a read that went wrong may say the same.
  package var isDamage: Bool {
    switch self {
    case .empty, .notSQLite, .impossibleHeader, .truncated, .damaged, .journal, .notCoreData,
      .modelCache:
      true
    default: false
    }
  }

  /// True when the volume of the run directory, not the store, is the trouble.
  package var isOutOfSpace: Bool {
    if case .cannotCopy(_, _, let errno) = self {
      return errno == ENOSPC || errno == EDQUOT
    }
    return false
  }
}

extension StoreError: CustomStringConvertible {
  private static let rescue =
    "Restore it from a backup, or save what can be saved with `godwit repair`."

  private static func advice(_ kind: FileKind, at path: FilePath) -> String {
    guard kind == .symbolicLink, let target = path.resolved else {
      return "Give the path of a store's main SQLite file."
    }
    return "Its WAL and external data lie beside the file that it leads to. Give the path of that "
      + "file, \(target)."
  }

  package var description: String {
    switch self {
    case .notFound(let path): "\(path) does not exist. Check the path."
    case .unusualFile(let path, let kind, let store):
      path == store
        ? "\(path) is \(kind). \(Self.advice(kind, at: path))"
        : "\(path), which belongs to the store \(store), is \(kind). "
          + "Put the file or folder itself there, and run again."
    case .notText(let path):
      "\(path.unambiguousText) is not UTF-8, and could be taken for another path. Rename what is not, and run "
        + "again."
    case .journal(let path, let reason):
      "\(path)-journal is damaged: \(reason). Played back, it would not leave the store as it was before the "
        + "transaction that was cut off. \(Self.rescue)"
    case .unknownLog(let path, let version):
      "\(path)-wal says that it is of the format version \(version), and SQLite opens no store with a WAL "
        + "of another one than 3007000: what is committed there cannot be read. Have the application that "
        + "wrote it write the WAL back to the store (`PRAGMA wal_checkpoint(TRUNCATE)`), and run again; "
        + "`godwit repair` saves what the main file has."
    case .superJournal(let path):
      "\(path)-journal names another file, as the journal of a transaction over several databases "
        + "does. SQLite would delete that file, so the journal is not played back. Open the store "
        + "once with the application that wrote it, and run again."
    case .empty(let path):
      "\(path) has no bytes: no store was ever written there, or it was lost. "
        + "Restore it from a backup."
    case .notSQLite(let path, let mayBeEncrypted):
      mayBeEncrypted
        ? "\(path) has no SQLite header and looks encrypted. "
          + "Decrypt it with the application that wrote it and run again."
        : "\(path) is not an SQLite file. Give a Core Data store of the SQLite type."
    case .impossibleHeader(let path, let reason):
      "\(path) has a damaged file header: \(reason). \(Self.rescue)"
    case .utf16(let path):
      "The texts of \(path) are UTF-16, and those of Core Data's stores are UTF-8. Make a copy in UTF-8, "
        + "with `sqlite3 \(path) .dump | sqlite3 COPY`, and give that."
    case .truncated(let path, let expected, let found):
      "\(path) is truncated: it has \(found) bytes and needs \(expected). "
        + Self.rescue
    case .damaged(let path, let reason):
      "\(path) is damaged: \(reason). \(Self.rescue)"
    case .notCoreData(let path):
      "\(path) is an SQLite database without Z_METADATA and Z_PRIMARYKEY, so not a Core Data store. "
        + "Give the path of a store."
    case .inUse(let path):
      "\(path) is locked by another process. Run again when it is not in use."
    case .changed(let path):
      "\(path) was changed by another process while it was read. Run again."
    case .cannotRead(let path, let errno):
      "\(path) cannot be read: \(Errno(rawValue: errno)). Check its permissions and run again."
    case .cannotCopy(let path, let target, let errno):
      "\(path) cannot be copied to \(target): \(Errno(rawValue: errno)). "
        + "Check that folder's space and permissions and run again."
    case .modelCache(let path, let reason):
      "The model cached in \(path) cannot be used: \(reason). Give the model with --models."
    case .layout(let problem): problem.description
    }
  }
}
