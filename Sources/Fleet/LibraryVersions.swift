private import CZlib
private import CZstd
import GodwitDigests
import GodwitSQLite

/// The versions of the C libraries that are loaded, which need not be those that the executable was
/// built with.
package enum LibraryVersions {
  /// nil where SQLite does not work.
  package static var sqlite: String? {
    try? Connection(path: ":memory:", mode: .create)
      .rows("SELECT sqlite_version()").first?.first?.text
  }

  package static var zstd: String { String(cString: ZSTD_versionString()) }
  package static var zlib: String { String(cString: zlibVersion()) }
  package static var openSSL: String { CryptoLibrary.version }

  /// By name, in the order in which they are told.
  package static var all: [(name: String, version: String)] {
    [
      ("SQLite", sqlite ?? "unknown"), ("zstd", zstd), ("zlib", zlib), ("OpenSSL", openSSL),
    ]
  }
}
