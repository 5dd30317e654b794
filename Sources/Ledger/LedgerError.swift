import SystemPackage

/// Why the ledger cannot be used. No store is touched because of it.
package enum LedgerError: Error, Sendable, Equatable {
  /// A later version of Godwit wrote it.
  case newerVersion(path: FilePath, found: Int64, known: Int64)
  /// A database of another program: it stays as it is.
  case foreign(path: FilePath)
  /// There is a file, and it is not a ledger.
  case damaged(path: FilePath, message: String)
  /// It names no run of that name.
  case noRun(path: FilePath, name: String)
  /// It knows of no store that was of that version before it was migrated.
  case noVersion(path: FilePath, name: String, known: [String])
  /// A run that is to begin has the name of one that is there.
  case nameTaken(path: FilePath, name: String)
}

extension LedgerError {
  package var isDamage: Bool { if case .damaged = self { true } else { false } }
}

extension LedgerError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .newerVersion(let path, let found, let known):
      "\(path) has format version \(found), and this godwit knows versions up to \(known). Use the "
        + "godwit that wrote it, or move the file away to begin a new history."
    case .foreign(let path):
      "\(path) is a database of another program, and no ledger: it was left as it is. Move it away, or give "
        + "--state a folder of the pipeline's own."
    case .damaged(let path, let message):
      "\(path) cannot be read as a ledger: \(message). The next `godwit run` sets it aside and "
        + "begins a new one; no store depends on it."
    case .noRun(let path, let name):
      "\(path) has no run \(name). List the runs with `godwit history`."
    case .noVersion(let path, let name, let known):
      "\(path) knows of no store that was of version \(name) before it was migrated"
        + (known.isEmpty ? "." : "; there are some of \(known.joined(separator: ", ")).")
    case .nameTaken(let path, let name):
      "\(path) has another run of the name \(name), and that stays as it is. Run again: each start "
        + "takes a name that is free."
    }
  }
}
