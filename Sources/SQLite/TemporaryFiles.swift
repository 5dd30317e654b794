private import CSQLite

/// Where SQLite keeps what it sorts and cannot hold in memory.
public enum TemporaryFiles {
  /// Lets every connection of this process put its temporary files into a folder; nil for where
  /// SQLite puts them itself. A folder that is not there, or may not be written to, is not used.
  ///
  /// The sort of an index needs about as much room as the index. `/tmp` is often small or in
  /// memory, and the run directory is where space was looked for.
  ///
  /// Source: https://sqlite.org/tempfiles.html §5.
  public static func useFolder(_ path: String?) {
    _ = ErrorLog.isWatched
    guard let path else { return godwit_sqlite_use_temporary_folder(nil) }
    godwit_sqlite_use_temporary_folder(path)
  }
}
