import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// Taking a commit back.
extension CommitSteps {
  /// Removes everything the commit made beside the store. The store itself is the source, perhaps
  /// with its WAL's content already in it, perhaps with what others wrote to it since.
  ///
  /// Where a clone of a backup has the store's name, somebody wrote to that since: what the rollback
  /// put aside is then all that is left of the store, and stays. So does a backup that an earlier process left, where
  /// it may be the only good copy: see ``isBackupNeeded(_:)``.
  ///
  /// - Returns: The backup, where it stays.
  /// - Throws: ``CommitError/leaseLost(store:)`` where another process has taken the work over: what lies there
  ///   is its own.
  @discardableResult
  func takeBack(_ journal: CommitJournal) throws -> FilePath? {
    try requireLeases(journal.storePath)
    if journal.kind == .restore,
      try FileMark(reachable: journal.storePath)?.isSameFile(as: journal.main) != true
    {
      let backup = journal.backup.store
      let isKept = try FileMark(reachable: backup) != nil
      try completePutAside(journal)
      try removeWaiting(of: journal)
      try DurableFile.remove(CommitJournal.path(in: run))
      return isKept ? backup : nil
    }
    let isKept = try mayHaveUnfinished && isBackupNeeded(journal)
    if isKept, journal.keepsBackup != true {
      // A crash that comes before the end of this leaves what a finished commit does.
      var kept = journal
      kept.keepsBackup = true
      try kept.write(in: run, leases)
    }
    // Somebody's output at that path may refer to files of these names.
    if try journal.isReplacement || !DurableFile.exists(journal.storePath) {
      // Of a backup that has lost a file since, the copy may be the only one.
      let added = try journal.added.filter { name in
        try journal.kind != .restore
          || journal.externalSources.contains {
            try FileMark(FilePath($0).appending(name)) != nil
          }
      }
      try alone(in: journal.files.supportFolder) {
        // Another store of the folder may refer to files of these names: copies of a store have them in common.
        if try !added.isEmpty && journal.files.sharers().isEmpty {
          try ExternalDataFolder.remove(added, from: journal.files.externalDataFolder)
        }
      }
    }
    if mayHaveUnfinished { try DurableFile.removeUnfinished(journal.externalFolders) }
    if journal.makesExternalFolder {
      try removeIfEmpty(journal.files.externalDataFolder)
      try removeIfEmpty(journal.files.supportFolder)
    }
    if journal.isReplacement, !isKept {
      let backup = journal.backup
      for path in [backup.store, backup.wal, backup.journal] {
        try DurableFile.removeIfPresent(path)
      }
      // The folder is the backup's alone.
      let names = try ExternalDataFolder.names(in: backup.externalDataFolder)
      try ExternalDataFolder.remove(names, from: backup.externalDataFolder)
      try removeIfEmpty(backup.externalDataFolder)
      try removeIfEmpty(backup.supportFolder)
    }
    // The copy has all that is in them.
    if journal.isOfCopy == true { try takeLogsBack(journal) }
    try removeLeftovers(of: journal)
    try DurableFile.removeIfPresent(FilePath(journal.assembled))
    try DurableFile.remove(CommitJournal.path(in: run))
    return isKept ? journal.backup.store : nil
  }

  /// Removes what a restoration has made that was to have the store's name, or a place beside it. What was added to the
  /// external data stays: an application that has written to the store may refer to it.
  func removeWaiting(of journal: CommitJournal) throws {
    try takeLogsBack(journal)
    try DurableFile.removeIfPresent(FilePath(journal.assembled))
    try removeLeftovers(of: journal)
  }

  /// Takes a commit back that failed while its source still has the store's name. Otherwise each run would leave
  /// one more backup beside a store whose folder, for instance, does not let it be replaced.
  ///
  /// Where that fails, too, or a backup would stay that nobody is told of, the journal stays, and the next run
  /// finds what is left by it.
  func takeFailedBack(_ journal: CommitJournal, _ error: any Error) {
    guard Self.isFailure(error) else { return }
    do {
      let store = try FileMark(reachable: journal.storePath)
      guard journal.isReplacement ? store?.isSameFile(as: journal.main) == true : store == nil
      else { return }
      var steps = self
      steps.mayHaveUnfinished = true
      guard try !steps.isBackupNeeded(journal) else { return }
      try steps.takeBack(journal)
    } catch {}
  }

  /// With what became of the store, where a step failed once the destination was in its place: nothing is taken
  /// back then, and who hears of the failure alone takes the store for the old one.
  func told(_ error: any Error, _ journal: CommitJournal) -> any Error {
    guard Self.isFailure(error), (error as? CommitError)?.isInterference != true,
      (try? isInPlace(journal)) == true
    else { return error }
    return UnfinishedCommit(
      store: journal.storePath,
      backup: journal.isReplacement && journal.isOfCopy != true ? journal.backup.store : nil,
      error: error)
  }

  /// Whether a step gave the error. Anything else says nothing of how far the commit has come.
  private static func isFailure(_ error: any Error) -> Bool {
    switch error {
    case CommitError.leaseLost, CommitError.lockGone: false
    case is DurabilityError, is CommitError, is PlaceError, is StoreError, is SQLiteError: true
    default: false
    }
  }

  /// Removes the journal of a commit that nothing is left of but what the commit itself used.
  func forget(_ journal: CommitJournal) throws {
    try removeLeftovers(of: journal)
    try DurableFile.remove(CommitJournal.path(in: run))
  }

  /// Removes what only the commit itself used, and what a crash left of copies half made.
  func removeLeftovers(of journal: CommitJournal) throws {
    try DurableFile.removeIfPresent(journal.clonePath)
    for (log, _) in journal.restoredLogs { try DurableFile.removeIfPresent(FilePath(log.path)) }
    guard mayHaveUnfinished else { return }
    let (backup, external) = (journal.backup, journal.files.externalDataFolder)
    try DurableFile.removeUnfinished(
      [journal.clonePath, backup.store, backup.wal, backup.journal]
        + journal.added.map { external.appending($0) } + journal.externalFolders)
  }

  func removeIfEmpty(_ folder: FilePath) throws {
    guard try FileKind(at: folder) == .folder, try DurableFile.allNames(in: folder).isEmpty else {
      return
    }
    try DurableFile.removeTree(folder)
  }
}
