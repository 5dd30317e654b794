import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import SystemPackage

/// What a commit, or a rollback, has put aside, for the ledger: seen by the process that did it, since its folder
/// may be away for whoever writes it down.
struct KeptBackup: Codable, Sendable, Equatable {
  var path: String
  var folder: String?
  /// Of its files that no store shares.
  var bytes: Int64
  var marks: BackupMark
  /// True where somebody has removed it: then no more is known of it than what the commit found.
  var isMissing: Bool?

  /// What the journal says of it: nobody has looked at the files.
  init(_ journal: CommitJournal) {
    func file(_ mark: FileMark) -> BackupMark.File {
      var file = BackupMark.File(mark)
      file.inode = 0  // a copy's own
      return file
    }
    let logs = [journal.wal, journal.rollbackJournal].map { mark in
      mark.flatMap { $0.size > 0 ? file($0) : nil }
    }
    let main =
      journal.main.map(file) ?? BackupMark.File(inode: 0, size: 0, seconds: 0, nanoseconds: 0)
    path = journal.backup.store.string
    marks = BackupMark(main: main, wal: logs[0], journal: logs[1])
    bytes = ([main.size] + logs.compactMap { $0?.size }).total
    isMissing = true
  }

  /// Looks at the files.
  ///
  /// - Parameter store: What took the backup's place.
  /// - Returns: Nil where somebody has removed the main file: its folder is there.
  /// - Throws: `DurabilityError` where nobody can tell.
  init?(_ files: StoreFiles, beside store: FilePath) throws {
    guard let found = try files.backupMark() else { return nil }
    let hasFolder = try FileKind(at: files.supportFolder) == .folder
    (path, bytes, marks) = (files.store.string, found.ownBytes, found.mark)
    folder = hasFolder ? files.supportFolder.string : nil
    marks.isExternalInStore = try FileKind(at: StoreFiles(store).externalDataFolder) == .folder
    // Whatever was not there beside it may have been away.
    guard try FileMark(reachable: files.store) != nil else { return nil }
  }
}

extension CommitJournal {
  /// Whether what the commit replaced is kept.
  ///
  /// - Throws: `DurabilityError.unreachable` where nobody can tell: the folder is away, or has neither that nor the
  ///   store, as a mount point whose volume is away.
  func isBackupThere() throws -> Bool {
    if try FileMark(reachable: backup.store) != nil { return true }
    guard try FilePresence.isThere(FilePath(store)) else {
      throw DurabilityError.unreachable(
        FilePath(store), obstacle: "neither it nor \(backup.store) is there")
    }
    return false
  }
}

extension StoreFiles {
  /// Reads something of the store; once more where that fails and the store can be looked at: it may have been
  /// away for a moment.
  ///
  /// - Throws: `DurabilityError.unreachable` while it is away; else what the body throws.
  func whileReachable<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      guard try FilePresence.isThere(store) else { throw error }
      return try body()
    }
  }
}

extension LedgerBackup {
  /// The backup that a migration in place has left; nil for a result without one.
  ///
  /// - Throws: `DurabilityError` where the backup cannot be looked at, and nobody has: one that is not written
  ///   down is never found again.
  init?(_ result: MigrationResult, of store: FoundStore, run: String, at time: Double) throws {
    guard result.verdict == .migrated else { return nil }
    var kept = result.kept
    if let path = result.backup {
      do {
        kept = try KeptBackup(StoreFiles(FilePath(path)), beside: store.path) ?? kept
      } catch  where kept != nil {}  // as it was seen where it was made
    }
    guard let kept else { return nil }
    var marks = kept.marks
    marks.content = result.backupContent
    self.init(
      path: kept.path, folder: kept.folder, store: store.path.string, run: run, bytes: kept.bytes,
      made: time, marks: marks, identity: result.finalIdentity, digest: result.digest,
      state: kept.isMissing == true ? .missing : .kept)
  }
}
