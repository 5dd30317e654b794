import GodwitSQLite

/// Tells a damaged record from a machine without memory: SQLite reports both as `SQLITE_NOMEM`.
package enum DamageProbe {
  /// What a caller should throw in place of `error`: the damage, if the file's own check finds
  /// any, else the error itself.
  package static func explained(_ error: SQLiteError, path: String) -> SQLiteError {
    let original = error
    if error.isCorruption { return located(error, path: path) }
    guard error.isOutOfMemory, let file = try? Connection(path: path, mode: .immutable) else {
      return original
    }
    do {
      guard let answer = try file.quickFinding(), file.readErrno == nil else { return original }
      // 11 is SQLITE_CORRUPT. The answer names pages and cells, never values.
      return located(
        .failed(
          code: 11, message: String(answer.prefix(200)), statement: "PRAGMA quick_check",
          database: path),
        path: path)
    } catch let found as SQLiteError where found.isCorruption {
      return located(found, path: path)
    } catch {
      return original
    }
  }

  /// The error with the tables and keys of the damaged pages.
  private static func located(_ error: SQLiteError, path: String) -> SQLiteError {
    guard case .failed(let code, let message, let statement, let database) = error,
      let file = try? Connection(path: path, mode: .immutable)
    else { return error }
    let pages = DamagedPages.search(file)
    guard !pages.isEmpty else { return error }
    return .failed(
      code: code, message: message + ". " + DamagedPages.text(of: pages), statement: statement,
      database: database)
  }
}
