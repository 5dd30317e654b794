import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// What a commit is about to do and how far it has come: `journal.json` in the run directory.
///
/// It is written, durably, before the first change beside a store and again at each ``State``; that
/// of a small store only once, and again where a clone was made. Every step can be taken again, and
/// what was done can be seen from the files: a restart reads the journal and goes on, or takes back,
/// see ``StoreSwap/recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)``.
package struct CommitJournal: Codable, Sendable, Equatable {
  package static let formatVersion = 2

  package enum Kind: String, Codable, Sendable {
    /// The destination goes to a path where there was nothing.
    case publish
    /// The destination takes the place of its source.
    case replace
    /// A backup takes the place of what a commit had put in its own.
    case restore
  }

  /// How far the commit has come. A state says what is certainly on the disk.
  package enum State: String, Codable, Sendable, CaseIterable, Comparable {
    /// The assembled file is synced. Nothing beside the store has changed yet.
    case prepared
    /// The backup, the added external data and, where needed, the clone are there. From here the
    /// commit goes forward, unless somebody wrote to the source.
    case backedUp
    /// The destination is at its path.
    case replaced
    /// Nothing is left to do.
    case finished

    package static func < (a: State, b: State) -> Bool {
      (allCases.firstIndex(of: a) ?? 0) < (allCases.firstIndex(of: b) ?? 0)
    }
  }

  package var formatVersion = CommitJournal.formatVersion
  package var kind: Kind
  package var state = State.prepared
  /// The run's name, part of the names of its files beside the store.
  package var run: String
  /// Of the plan.
  package var fingerprint: String

  /// Where the destination goes.
  package var store: String
  /// The file that was assembled, on the same volume.
  package var assembled: String
  package var assembledMark: FileMark
  /// `FileDigest` of that file. A disk changes bytes without a trace in the mark.
  package var assembledDigest: String?

  /// The source's main file and, where there are any, its WAL and rollback journal. Nil for
  /// ``Kind/publish``.
  package var main: FileMark?
  package var wal: FileMark?
  package var rollbackJournal: FileMark?
  /// The source's shared memory, of which only which file it is counts.
  var shm: FileMark?
  /// A whole copy of the source without WAL; nil when the main file is that already. Of
  /// ``Kind/restore``, the same of what is put back.
  package var settledSource: String?
  /// Of ``settledSource``, as it was read. Another file of that name is not used.
  var settledMark: FileMark?
  /// `FileDigest` of it.
  var settledDigest: String?
  /// The clone of ``settledSource`` beside the store, once made.
  package var clone: FileMark?

  /// Folders that external data comes from.
  package var externalSources: [String] = []
  /// Names in the destination's external data folder that this commit adds.
  package var added: [String] = []
  /// Names in it that no row of the destination refers to.
  package var removed: [String] = []
  /// Another store that may refer to what would be in ``removed``, and for which it stays.
  package var sharer: String?
  /// What of ``removed`` is there still, since it could not be removed; nil for nothing.
  var notRemoved: NotRemoved?
  /// The number of the source's owner, where the store that takes its place could not have it.
  var lostOwner: UInt32?
  /// The number of the source's group, where the destination could not have it.
  var lostGroup: UInt32?
  /// The source's extended attributes that the destination could not have; nil for none.
  var lostAttributes: [String]?
  /// True when the commit makes the external data folder.
  package var makesExternalFolder = false

  package struct NotRemoved: Codable, Sendable, Equatable {
    var count: Int
    /// The first error.
    var reason: String
  }

  /// A log that comes with the assembled file.
  package struct Log: Codable, Sendable, Equatable {
    /// Where it waits, on the same volume.
    package var path: String
    package var mark: FileMark
    /// `FileDigest` of it.
    package var digest: String?
  }

  /// Of ``Kind/restore``: the backup's own logs. ``settledSource`` is then a copy of the backup with
  /// their content in it.
  package var restoredWAL: Log?
  package var restoredJournal: Log?

  /// True of a ``Kind/restore`` that replaces what the rollback itself has put where no store was: a copy of the
  /// backup with its logs' content in it. Nothing is kept of that, and ``clone`` is the same file as ``main``.
  package var isOfCopy: Bool?

  /// Whether the backup stays where the commit is taken back: a file that had been replaced has the store's name
  /// again.
  var keepsBackup: Bool?

  /// Whether the assembled file has lost the store's name again, or is about to, and goes: no process puts it in
  /// place any more.
  var isGivenUp: Bool?

  /// Who began the commit; nil for a store that was migrated by itself, and in journals of earlier versions.
  package var owner: Owner?

  /// A run of a pipeline. Several pipelines may have one state folder, and one finish what another began.
  package struct Owner: Codable, Sendable, Equatable {
    package var run: String
    /// The pipeline's name, and the path of its file.
    package var pipeline: String
    package var file: String

    package init(run: String, pipeline: String, file: String) {
      (self.run, self.pipeline, self.file) = (run, pipeline, file)
    }
  }
}

extension CommitJournal {
  /// Keeps what another store of the same stem may refer to, though this one no longer does.
  mutating func setRemoved(_ names: [String]) throws {
    sharer = names.isEmpty ? nil : try files.sharers().first?.unambiguousText
    removed = sharer == nil ? names : []
  }

  /// What somebody who asked for the commit is told beside its success.
  package var notes: [String] {
    var notes: [String] = []
    if let sharer {
      notes.append(
        "External data that no row of \(store) refers to any more stays in "
          + "\(files.externalDataFolder): \(sharer) has the same folder.")
    }
    if let notRemoved {
      notes.append(
        "\(notRemoved.count == 1 ? "1 file" : "\(notRemoved.count) files") of external data that no row of "
          + "\(store) refers to any more could not be removed, and \(notRemoved.count == 1 ? "stays" : "stay"). "
          + "Remove what the backup \(backup.store) has, too, or leave it: it harms nothing. \(notRemoved.reason)"
      )
    }
    return notes
      + (lostRights?.notes(
        of: store,
        source: isOfCopy == true
          ? "The backup" : kind == .restore ? "What was replaced" : "The source")
        ?? [])
  }

  /// What the destination could not have of the source's owner, group and attributes; nil for nothing.
  package var lostRights: LostRights? {
    LostRights(owner: lostOwner, group: lostGroup, attributes: lostAttributes ?? []).ifAny
  }

  mutating func setLost(_ lost: LostRights) {
    // Beside the source, what somebody makes is their own.
    lostOwner = isReplacement ? lost.owner : nil
    (lostGroup, lostAttributes) = (lost.group, lost.attributes)
  }

  var storePath: FilePath { FilePath(store) }
  var files: StoreFiles { StoreFiles(storePath) }
  /// `STORE.godwit-backup-RUN.sqlite`, with its WAL and external data named as SQLite and Core Data
  /// name them: the backup opens as a store. The extension is there so that each backup has a
  /// support folder of its own. Of ``Kind/restore`` it is `STORE.godwit-rolled-back-RUN.sqlite`: the
  /// store that the backup replaced.
  package var backup: StoreFiles { Self.backup(of: storePath, kind, named: run) }

  static func backup(of store: FilePath, _ kind: Kind, named name: String) -> StoreFiles {
    let word = kind == .restore ? "rolled-back" : "backup"
    return StoreFiles(FilePath("\(store).godwit-\(word)-\(name).sqlite"))
  }
  /// The source's files and their copies. The main file comes last: its backup is never without its WAL.
  var copies: [(original: FilePath, copy: FilePath)] {
    let (files, backup) = (files, backup)
    return [
      (files.wal, backup.wal), (files.journal, backup.journal), (files.store, backup.store),
    ]
  }
  /// Folders that the commit may make.
  var externalFolders: [FilePath] {
    [files, backup].flatMap { [$0.externalDataFolder, $0.supportFolder] }
  }
  /// The destination takes the place of another store.
  var isReplacement: Bool { kind != .publish }
  /// The logs that come with the assembled file, and where they go.
  var restoredLogs: [(log: Log, place: FilePath)] {
    [(restoredWAL, files.wal), (restoredJournal, files.journal)].compactMap { log, place in
      log.map { ($0, place) }
    }
  }
  var clonePath: FilePath {
    storePath.removingLastComponent().appending(
      ".\(storePath.lastComponent?.string ?? "").godwit-\(run)-clone")
  }
}

extension CommitJournal {
  static func path(in run: RunDirectory) -> FilePath { run.journal }

  /// 256 MiB. A million names of external data have 40 MB.
  private static let byteLimit = 256 << 20

  /// The journal of a run, or nil when no commit was begun. What it names is not checked, but a name is the one
  /// that was written: a wrong one, or a wrong key, would leave a backup behind, or a log out.
  package static func read(in run: RunDirectory) throws -> CommitJournal? {
    let path = path(in: run)
    guard let bytes = try bytes(in: run) else { return nil }
    do {
      guard try version(of: bytes) == formatVersion else {
        throw CommitError.unreadableJournal(path: path)
      }
      return try SealedJSON.value(ofSealedOrPlain: bytes)
    } catch let error where error is DecodingError || error is SealedJSONError {
      throw CommitError.unreadableJournal(path: path)
    }
  }

  /// Whether a run has a journal, be it one that ``read(in:)`` refuses: of another version, or altered since it
  /// was written.
  package static func isPresent(in run: RunDirectory) -> Bool {
    do {
      return try bytes(in: run).map(version(of:)) != nil
    } catch {
      return error is SealedJSONError
    }
  }

  private static func bytes(in run: RunDirectory) throws -> [UInt8]? {
    try RegularFile.bytesIfPresent(of: path(in: run), limit: byteLimit, isPrivate: true)
  }

  private static func version(of bytes: [UInt8]) throws -> Int {
    struct Version: Codable { var formatVersion: Int }
    return try SealedJSON.value(Version.self, ofSealedOrPlain: bytes).formatVersion
  }

  /// Makes the journal durable as it is now.
  ///
  /// - Parameter leases: Whoever takes the work over removes files with temporary names before it looks for a
  ///   journal: it sees this one, or none is written.
  /// - Throws: ``CommitError/leaseLost(store:)``.
  func write(in run: RunDirectory, _ leases: [LeaseToken]) throws {
    let bytes = try SealedJSON.bytes(of: self)
    do {
      try DurableFile.write(bytes, to: CommitJournal.path(in: run)) {
        try leases.requireCurrent(store: storePath)
      }
    } catch let error as DurabilityError where error.isNotFound {
      try leases.requireCurrent(store: storePath)
      throw error
    }
    // Nobody has flushed the run directory's own name so far.
    if run.durability == .processCrash { try DurableFile.syncFolder(run.path.parent) }
  }
}
