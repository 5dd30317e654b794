import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// The steps of a commit, each of which can be taken again.
struct CommitSteps {
  let run: RunDirectory
  /// True when the caller has locked the source already.
  var holdsLock = false

  /// Keeps SQLite out of a file while the body runs.
  ///
  /// - Throws: ``CommitError/storeInUse(store:)`` when somebody has it open.
  static func locking<Result>(_ store: FilePath, _ body: () throws -> Result) throws -> Result {
    let lock: StoreLock
    do {
      lock = try StoreLock(excludingOthersFrom: store)
    } catch DurabilityError.locked {
      throw CommitError.storeInUse(store: store)
    }
    return try withExtendedLifetime(lock) { try body() }
  }
}

// MARK: - Forward

extension CommitSteps {
  func goForward(_ journal: inout CommitJournal) throws {
    switch journal.kind {
    case .publish: try publish(&journal)
    case .replace: try replace(&journal)
    }
    try removeLeftovers(of: journal)
    // Where a rename is a link and an unlink, a crash may have come between.
    if FileMark(FilePath(journal.assembled))?.isSameFile(as: journal.assembledMark) == true {
      try DurableFile.remove(FilePath(journal.assembled))
    }
    journal.state = .finished
    try journal.write(in: run)
  }

  private func publish(_ journal: inout CommitJournal) throws {
    guard !isInPlace(journal) else { return }
    // Rows refer to files: the files are there first.
    try addExternalData(journal)
    do {
      try DurableFile.renameNew(FilePath(journal.assembled), to: journal.storePath)
    } catch DurabilityError.alreadyExists(let path) {
      throw CommitError.destinationExists(path: path)
    }
  }

  private func replace(_ journal: inout CommitJournal) throws {
    let files = journal.files
    if !isInPlace(journal) {
      if holdsLock {
        try exchange(&journal)
      } else {
        try CommitSteps.locking(files.store) { try exchange(&journal) }
      }
    }
    journal.state = .replaced
    try journal.write(in: run)
    try ExternalDataFolder.remove(journal.removed, from: files.externalDataFolder)
  }

  private func exchange(_ journal: inout CommitJournal) throws {
    let files = journal.files
    let assembled = FilePath(journal.assembled)
    if journal.state == .prepared {
      try backUp(journal)
      try addExternalData(journal)
      try makeClone(&journal)
      journal.state = .backedUp
      try journal.write(in: run)
    }
    guard isSourceUnchanged(journal) else {
      throw CommitError.sourceChanged(store: files.store)
    }
    if needsClone(journal) {
      try makeClone(&journal)
      try journal.write(in: run)
    }
    // Files that nobody has open yet are locked before they get the store's name, so that nobody
    // opens one store and writes to the WAL of the next.
    try CommitSteps.locking(assembled) {
      if journal.clone != nil, FileMark(files.store) != journal.clone {
        try CommitSteps.locking(journal.clonePath) {
          try DurableFile.rename(journal.clonePath, to: files.store)
          try removeLogs(files)
          try DurableFile.rename(assembled, to: files.store)
        }
      } else {
        try removeLogs(files)
        try DurableFile.rename(assembled, to: files.store)
      }
    }
  }

  /// The main file reads the same with and without them.
  private func removeLogs(_ files: StoreFiles) throws {
    for path in [files.wal, files.journal, files.shm] { try DurableFile.removeIfPresent(path) }
  }

  /// Second names for the source's own files. They are only ever replaced, never written, so the
  /// backup keeps their bytes.
  private func backUp(_ journal: CommitJournal) throws {
    let (files, backup) = (journal.files, journal.backup)
    for (from, to) in [
      (files.wal, backup.wal), (files.journal, backup.journal), (files.store, backup.store),
    ] {
      // Empty logs hold nothing. The main file comes last: its backup is never without its WAL.
      guard let original = FileMark(from), original.size > 0 || from == files.store else {
        continue
      }
      if let there = FileMark(to) {
        // A copy, where links cannot be made, is whole once it has its name.
        if there.isSameFile(as: original) || there.size == original.size { continue }
        throw CommitError.destinationExists(path: to)
      }
      // Whoever wrote it last may have left that to the system.
      try DurableFile.syncFile(from)
      try DurableFile.link(from, to: to)
    }
    // What this commit added, before a crash, is no part of the source.
    try ExternalDataFolder.link(
      from: files.externalDataFolder, to: backup.externalDataFolder, except: journal.added)
  }

  private func addExternalData(_ journal: CommitJournal) throws {
    guard !journal.added.isEmpty else { return }
    let folder = journal.files.externalDataFolder
    try DurableFile.makeFolder(folder)
    try ExternalDataFolder.copy(
      journal.added, from: journal.externalSources.map { FilePath($0) }, to: folder)
  }

  private func makeClone(_ journal: inout CommitJournal) throws {
    guard let settled = journal.settledSource else { return }
    // One that a crash left may lack its attributes.
    try DurableFile.removeIfPresent(journal.clonePath)
    try DurableFile.copy(FilePath(settled), to: journal.clonePath)
    try DurableFile.copyAttributes(from: journal.storePath, to: journal.clonePath)
    journal.clone = FileMark(journal.clonePath)
  }
}

// MARK: - What there is

extension CommitSteps {
  /// The assembled file has the store's name.
  private func isInPlace(_ journal: CommitJournal) -> Bool {
    journal.state == .replaced
      || FileMark(journal.storePath)?.isSameFile(as: journal.assembledMark) == true
  }

  /// Nobody wrote to the source since the commit began. The clone counts as the source; beside it
  /// the logs may be gone.
  private func isSourceUnchanged(_ journal: CommitJournal) -> Bool {
    let files = journal.files
    let main = FileMark(files.store)
    let logs = [
      (FileMark(files.wal), journal.wal), (FileMark(files.journal), journal.rollbackJournal),
    ]
    guard main != nil else { return false }
    if main == journal.clone { return logs.allSatisfy { $0 == nil || $0 == $1 } }
    guard main == journal.main else { return false }
    // Logs that hold nothing are removed beside the original too.
    return logs.allSatisfy { $0 == $1 || ($0 == nil && journal.settledSource == nil) }
  }

  /// The clone has neither the store's name nor its own: it is still to be made, or somebody took
  /// it away. Without it the WAL must stay.
  private func needsClone(_ journal: CommitJournal) -> Bool {
    guard journal.settledSource != nil else { return false }
    guard let clone = journal.clone else { return true }
    return FileMark(journal.storePath) != clone && FileMark(journal.clonePath) != clone
  }

  func canGoForward(_ journal: CommitJournal) throws -> Bool {
    if isInPlace(journal) { return true }
    guard FileMark(FilePath(journal.assembled)) == journal.assembledMark else {
      try demandStore(of: journal)
      return false
    }
    switch journal.kind {
    case .publish:
      return !DurableFile.exists(journal.storePath)
    case .replace:
      try demandStore(of: journal)
      if needsClone(journal), FileMark(FilePath(journal.settledSource ?? "")) == nil {
        return false
      }
      return isSourceUnchanged(journal)
    }
  }

  /// A backup is taken back only where there is a store.
  private func demandStore(of journal: CommitJournal) throws {
    guard journal.kind == .replace, !DurableFile.exists(journal.storePath) else { return }
    throw CommitError.storeMissing(store: journal.storePath, backup: journal.backup.store)
  }
}

// MARK: - Back

extension CommitSteps {
  /// Removes everything the commit made beside the store. The store itself is the source, perhaps
  /// with its WAL's content already in it, perhaps with what others wrote to it since.
  func takeBack(_ journal: CommitJournal) throws {
    try ExternalDataFolder.remove(journal.added, from: journal.files.externalDataFolder)
    if journal.makesExternalFolder {
      try removeIfEmpty(journal.files.externalDataFolder)
      try removeIfEmpty(journal.files.supportFolder)
    }
    if journal.kind == .replace {
      let backup = journal.backup
      for path in [backup.store, backup.wal, backup.journal] {
        try DurableFile.removeIfPresent(path)
      }
      let names = try ExternalDataFolder.names(in: journal.files.externalDataFolder)
      try ExternalDataFolder.remove(names, from: backup.externalDataFolder)
      try removeIfEmpty(backup.externalDataFolder)
      try removeIfEmpty(backup.supportFolder)
    }
    try removeLeftovers(of: journal)
    try DurableFile.removeIfPresent(FilePath(journal.assembled))
    try DurableFile.remove(CommitJournal.path(in: run))
  }

  /// Removes what only the commit itself used, and what a crash left of copies half made.
  private func removeLeftovers(of journal: CommitJournal) throws {
    try DurableFile.removeIfPresent(journal.clonePath)
    let beside = [
      journal.clonePath, journal.backup.store, journal.backup.wal, journal.backup.journal,
    ].compactMap { $0.lastComponent?.string }
    try ExternalDataFolder.removePartial(beside, from: journal.storePath.parent)
    try ExternalDataFolder.removePartial(journal.added, from: journal.files.externalDataFolder)
  }

  private func removeIfEmpty(_ folder: FilePath) throws {
    guard FileMark.isFolder(folder), try DurableFile.names(in: folder).isEmpty else { return }
    try DurableFile.removeTree(folder)
  }
}
