import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

// A journal is a file like any other: somebody may have put it there, or moved the run directory of
// another store here. So every path in it must be the one that the request itself comes to, and the
// request's own is what is used.
extension CommitJournal {
  /// The journal, with the paths of the request in the place of its own.
  ///
  /// - Parameters:
  ///   - source: The store that the run migrates.
  ///   - destination: Where its destination goes; the source's own path when in place.
  ///   - restored: The backup that is put back; nil for a migration's commit.
  /// - Throws: ``CommitError/foreignJournal(path:reason:)`` when it is not this request's.
  ///   `StoreError` when a file of the destination is a link or no file.
  func checked(
    in run: RunDirectory, source: FilePath, destination: FilePath, restored: StoreFiles? = nil
  ) throws -> CommitJournal {
    func refusal(_ reason: String) -> CommitError {
      .foreignJournal(path: run.journal, reason: reason)
    }
    guard storePath.isSamePlace(as: destination) else {
      throw refusal("it is of a commit to \(store), and this run's destination is \(destination)")
    }
    guard (kind == .restore) == (restored != nil) else {
      throw refusal("it is \(kind == .restore ? "" : "not ")of a rollback")
    }
    guard isReplacement == source.isSamePlace(as: destination) else {
      throw refusal("it is of a commit \(isReplacement ? "" : "not ")in place")
    }
    // By them a commit tells which file has the store's name: one that takes the new file or the clone for the source
    // would give the source its name back without its WAL.
    guard (main != nil) == isReplacement, isOfCopy != true || kind == .restore,
      !assembledMark.isSameFile(as: main), isOfCopy == true || clone?.isSameFile(as: main) != true
    else { throw refusal("its marks are not those of a commit's files") }
    guard Self.isRunName(self.run) else { throw refusal("its run has an impossible name") }
    guard (added + removed).allSatisfy(ExternalDataFolder.isSound) else {
      throw refusal("it names external data outside of the store's folder")
    }
    var own = self
    own.store = destination.string
    guard
      let assembledPath = Self.assembledPaths(run, destination, name: self.run).first(where: {
        $0.isSamePlace(as: FilePath(assembled))
      })
    else { throw refusal("\(assembled) is not a file that this run assembles") }
    own.assembled = assembledPath.string
    if let settledSource {
      let folders = [
        run.snapshot, Self.chainStep(1, in: run).appending("run").appending("snapshot"),
      ]
      let path = FilePath(settledSource)
      guard isReplacement, let name = path.lastComponent,
        let found = folders.map({ $0.appending(name) }).first(where: { $0.isSamePlace(as: path) })
      else { throw refusal("\(settledSource) is not a private copy of this run") }
      own.settledSource = found.string
      // It is on the run directory's volume, see below.
      if let device = try FileMark(found)?.device { own.settledMark?.device = device }
    }
    own.externalSources = try externalSources.map { text in
      var known = [run.external] + chainFolders(in: run)
      if kind == .publish { known.append(StoreFiles(source).externalDataFolder) }
      if let restored { known.append(restored.externalDataFolder) }
      guard let found = known.first(where: { $0.isSamePlace(as: FilePath(text)) }) else {
        throw refusal("\(text) is not a folder of this run's external data")
      }
      return found.string
    }
    own.restoredWAL = try checked(restoredWAL, beside: assembledPath, "wal", refusal)
    own.restoredJournal = try checked(restoredJournal, beside: assembledPath, "journal", refusal)
    for files in [own.files, own.backup] { try files.checkKinds() }
    try own.followVolume()
    return own
  }

  /// Gives the marks the number that the volume has now.
  ///
  /// All of them are of files on the store's volume. After a restart a volume may have another number,
  /// as of btrfs, overlayfs and NFS: the files are what they were.
  private mutating func followVolume() throws {
    guard let found = try FileMark(storePath) ?? FileMark(FilePath(assembled)),
      ![assembledMark, main, clone].contains(where: { $0?.device == found.device })
    else { return }
    assembledMark.device = found.device
    main?.device = found.device
    wal?.device = found.device
    shm?.device = found.device
    rollbackJournal?.device = found.device
    clone?.device = found.device
    restoredWAL?.mark.device = found.device
    restoredJournal?.mark.device = found.device
  }

  /// Where a log waits that comes with the assembled file.
  static func waitingLog(_ suffix: String, of assembled: FilePath) -> FilePath {
    FilePath("\(assembled)-restored-\(suffix)")
  }

  private func checked(
    _ log: Log?, beside assembled: FilePath, _ suffix: String, _ refusal: (String) -> CommitError
  ) throws -> Log? {
    guard var log else { return nil }
    let path = Self.waitingLog(suffix, of: assembled)
    guard kind == .restore, path.isSamePlace(as: FilePath(log.path)) else {
      throw refusal("\(log.path) is not a log that this run puts back")
    }
    log.path = path.string
    return log
  }

  /// Letters, digits and hyphens: the name becomes a part of file names.
  static func isRunName(_ name: String) -> Bool {
    (1...32).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch UInt8(byte) {
        case 0x2D, 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
      }
  }

  /// Where the destination may have been assembled: in the run directory, or beside its place where
  /// that is another volume.
  static func assembledPaths(
    _ run: RunDirectory, _ destination: FilePath, name: String
  ) -> [FilePath] {
    let own = destination.lastComponent?.string ?? ""
    return [
      run.path.appending("assembled.sqlite"),
      destination.parent.appending(".\(own).godwit-\(name)"),
    ]
  }

  private static func chainStep(_ number: Int, in run: RunDirectory) -> FilePath {
    run.path.appending("steps").appending("\(number)")
  }

  /// The external data of a chain's last step, whichever that is.
  private func chainFolders(in run: RunDirectory) -> [FilePath] {
    externalSources.compactMap { text in
      // steps/N/.store_SUPPORT/_EXTERNAL_DATA
      let parts = FilePath(text).components.suffix(4).map(\.string)
      guard parts.count == 4, parts[0] == "steps", let number = Int(parts[1]) else { return nil }
      return StoreFiles(Self.chainStep(number, in: run).appending("store.sqlite"))
        .externalDataFolder
    }
  }
}
