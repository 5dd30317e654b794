import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// Files of external data that a commit adds, and those that it removes. Between the run that wrote them and
// the one that commits, hours and crashes may lie: what a file or the journal says is compared.
extension StoreSwap {
  /// Names of the run's new files that the destination does not get, since none of its rows refers to
  /// them: a policy took the value back, or the row was set aside.
  func undelivered(_ assembled: FilePath) throws -> Set<String> {
    try ExternalDataFolder.names(
      ExternalDataFolder.names(in: run.external), notReferredToBy: assembled)
  }

  /// Names that the destination's folder does not have yet.
  ///
  /// - Parameters:
  ///   - undelivered: Names that it does not get.
  ///   - originals: The source's own external data. Every file is checked then: see
  ///     ``ExternalDataFolder/isWhole(_:originals:)``.
  /// - Throws: ``CommitError/damagedExternalData(path:)``.
  func newExternalData(
    from folders: [FilePath], in target: StoreFiles, except undelivered: Set<String> = [],
    originals: FilePath? = nil
  ) throws -> [String] {
    var added: [String] = []
    var skipped = undelivered
    for folder in folders {
      for name in try ExternalDataFolder.names(in: folder) where !skipped.contains(name) {
        if let originals,
          try !ExternalDataFolder.isWhole(folder.appending(name), originals: originals)
        {
          throw CommitError.damagedExternalData(path: folder.appending(name))
        }
        let place = target.externalDataFolder.appending(name)
        if try !DurableFile.exists(place) {
          added.append(name)
          skipped.insert(name)
        } else if try !ExternalDataFolder.areEqual(folder.appending(name), place) {
          throw CommitError.externalDataConflict(path: place)
        }
      }
    }
    return added
  }
}

extension ExternalDataFolder {
  /// Whether a file that goes beside a store is what was written: one of the source's equals it, and the
  /// name of any other fits its bytes.
  ///
  /// - Parameter originals: The source's own folder.
  static func isWhole(_ file: FilePath, originals: FilePath?) throws -> Bool {
    if let name = file.lastComponent, let original = originals?.appending(name),
      try FileMark(original) != nil
    {
      return try areEqual(file, original)
    }
    return try ExternalFileName.fits(file)
  }
}

extension CommitSteps {
  /// Whether every file that an interrupted commit adds is there, and is what was written. Of a restoration, whether
  /// what was copied is what the backup has: an application's names tell nothing of bytes.
  ///
  /// - Parameter originals: The folder of a source that stays where it is; nil for one that is replaced.
  func isAddedDataWhole(_ journal: CommitJournal, originals: FilePath?) throws -> Bool {
    let folders = [journal.files.externalDataFolder] + journal.externalSources.map { FilePath($0) }
    return try journal.added.allSatisfy { name in
      let found = try folders.map { $0.appending(name) }.filter { try FileMark($0) != nil }
      guard let first = found.first else { return false }
      return try found.allSatisfy {
        journal.kind == .restore
          ? try ExternalDataFolder.areEqual($0, first)
          : try ExternalDataFolder.isWhole($0, originals: originals)
      }
    }
  }

  /// Takes out of a journal what rows contradict: a file that the new store refers to is not removed, and
  /// one that the source refers to was not added, so that taking back would remove it.
  func correctExternalData(of journal: inout CommitJournal) throws {
    guard journal.isReplacement else { return }
    let isInPlace = try isInPlace(journal)
    let settled = journal.settledSource.map { FilePath($0) }
    // Of a backup with logs, the main file alone does not hold all references.
    let new = isInPlace ? journal.storePath : FilePath(journal.assembled)
    journal.removed =
      try unreferenced(journal.removed, journal.kind == .restore ? settled ?? new : new) ?? []
    if journal.kind == .replace, !isInPlace {
      let old = settled ?? journal.storePath
      journal.added = try unreferenced(journal.added, old) ?? journal.added
    }
  }

  /// - Returns: Nil where the store is not there or is damaged: it says nothing of any file then.
  private func unreferenced(_ names: [String], _ store: FilePath) throws -> [String]? {
    guard try FileMark(store) != nil else { return nil }
    return try SQLiteError.nilByContent {
      let rest = try ExternalDataFolder.names(names, notReferredToBy: store)
      return names.filter(rest.contains)
    }
  }
}
