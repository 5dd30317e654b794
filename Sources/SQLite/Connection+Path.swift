private import CSQLite
private import Glibc

/// Which paths a database is opened at, and how they are given to SQLite.
extension Connection {
  /// SQLite's open(2) of a FIFO waits for ever.
  static func refuseSpecial(_ path: String) throws {
    var status = stat()
    guard path != ":memory:", lstat(path, &status) == 0,
      [S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK].contains(status.st_mode & S_IFMT)
    else { return }
    throw SQLiteError.cannotOpen(
      path: path, code: SQLITE_CANTOPEN, message: "it is a FIFO, a socket or a device")
  }

  /// SQLite's own words for a path that is too long are those for one that does not exist.
  static func requireRoom(forPath path: String) throws {
    // Room for "-journal", as in the library's os_unix.c.
    guard path != ":memory:", let system = sqlite3_vfs_find(nil) else { return }
    let limit = Int(system.pointee.mxPathname) - 8
    var size = path.utf8.count
    if !path.utf8.starts(with: "/".utf8), let folder = getcwd(nil, 0) {
      size += strlen(folder) + 1
      free(folder)
    }
    guard size > limit else { return }
    throw SQLiteError.cannotOpen(
      path: path, code: SQLiteError.longPath,
      message: "the path has \(size) bytes, and SQLite opens none of more than \(limit). Move the "
        + "store, or the run's folder, to a shorter path")
  }

  /// The `file:` URI of a path, every unusual byte escaped. https://sqlite.org/uri.html
  static func uri(ofPath path: String, isImmutable: Bool) -> String {
    let digits = Array("0123456789ABCDEF".unicodeScalars)
    // An absolute path follows an empty authority, or its first part would be taken for one.
    var uri = path.utf8.first == UInt8(ascii: "/") ? "file://" : "file:"
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."),
        UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
        uri.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        uri += "%"
        uri.unicodeScalars.append(digits[Int(byte >> 4)])
        uri.unicodeScalars.append(digits[Int(byte & 15)])
      }
    }
    // An attached file is opened as the connection's own file is, unless its URI says otherwise.
    return isImmutable ? uri + "?immutable=1&mode=ro" : uri
  }
}
