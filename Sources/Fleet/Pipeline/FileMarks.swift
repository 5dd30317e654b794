import Foundation
import GodwitCommit
import GodwitDigests
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// What shows that files are still those that the ledger knows.
extension StoreFiles {
  /// A name for the state of the files, as lstat(2) shows it: it changes with every write, and where a file of
  /// external data comes or goes. It can be had of a store that cannot be read. Nothing is opened and nothing
  /// waits.
  var markName: String {
    var texts = [store, wal, journal].map { path in
      guard let mark = try? FileMark(path) else { return "-" }
      return
        "\(mark.inode) \(mark.size) \(mark.modificationSeconds).\(mark.modificationNanoseconds)"
    }
    var status = stat()
    if externalDataFolder.withPlatformString({ lstat($0, &status) }) == 0 {
      texts.append(
        "\(status.st_ino) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)")
    }
    let digest = SHA256.digest(of: Array(texts.joined(separator: "\n").utf8))
    return String(Hexadecimal.text(of: digest).prefix(32))
  }

  /// The digest of the main file as it is now.
  ///
  /// - Returns: Nil where the store changed meanwhile, or is not in the state of that name.
  func digest(inState identity: String?) throws -> String? {
    let text = try fileDigest()
    if let identity, try self.identity().name != identity { return nil }
    return text
  }

  /// The digest of the main file.
  func fileDigest() throws -> String { try FileDigest.text(of: store) }

  /// The digests of a backup's files, see `BackupMark`.
  func contentDigest() throws -> String {
    try [store, wal, journal].filter { try $0 == store || FileMark($0)?.size ?? 0 > 0 }
      .map(FileDigest.text).joined(separator: " ")
  }

  /// Whether a backup holds what was recorded; without a record, whether SQLite can read all of its main file.
  func holds(_ recorded: BackupMark) throws -> Bool {
    if let content = recorded.content { return try contentDigest() == content }
    do {
      return try Connection(path: store.string, mode: .immutable).isWhole()
    } catch let error as SQLiteError where error.isDamage {
      return false
    }
  }

  /// The marks of a backup's files, and the bytes of those that no store shares; nil where the main
  /// file is not there, and its folder is.
  ///
  /// - Throws: `DurabilityError` where nobody can tell.
  func backupMark() throws -> (mark: BackupMark, ownBytes: Int64)? {
    guard let main = try FileMark(reachable: store) else { return nil }
    var bytes = main.size
    func mark(_ path: FilePath) throws -> BackupMark.File? {
      guard let found = try FileMark(path) else { return nil }
      bytes = bytes.added(found.size)
      return BackupMark.File(found)
    }
    var result = BackupMark(
      main: BackupMark.File(main), wal: try mark(wal), journal: try mark(journal))
    guard try FileKind(at: externalDataFolder) == .folder else { return (result, bytes) }
    var digest = SHA256()
    var marks = SHA256()
    try forEachExternalFile { name, status in
      digest.update(Array("\(name)\n\(status.st_size)\n".utf8))
      marks.update(Self.externalMark(name, status))
      result.externalFiles += 1
      if status.st_nlink == 1 { bytes = bytes.added(Int64(status.st_size)) }
    }
    result.externalDigest = Hexadecimal.text(of: digest.finish())
    result.externalMarks = Hexadecimal.text(of: marks.finish())
    return (result, bytes)
  }

  /// A name for the state of the external data; nil where there is none. It changes with every write.
  func externalState() throws -> String? {
    guard try FileKind(at: externalDataFolder) == .folder else { return nil }
    var marks = SHA256()
    var isEmpty = true
    try forEachExternalFile { name, status in
      marks.update(Self.externalMark(name, status))
      isEmpty = false
    }
    return isEmpty ? nil : String(Hexadecimal.text(of: marks.finish()).prefix(32))
  }

  private static func externalMark(_ name: String, _ status: stat) -> [UInt8] {
    let time = status.st_mtim
    return Array(
      "\(name)\n\(status.st_size)\n\(status.st_ino) \(time.tv_sec).\(time.tv_nsec)\n".utf8)
  }

  /// External data files that were written to after a moment, in seconds since 1970-01-01 UTC: in a
  /// backup none ever is.
  func externalFiles(writtenAfter time: Double) throws -> [FilePath] {
    var paths: [FilePath] = []
    guard try FileKind(at: externalDataFolder) == .folder else { return [] }
    try forEachExternalFile { name, status in
      let written = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
      if written > time { paths.append(externalDataFolder.appending(name)) }
    }
    return paths
  }

  /// Why a file of external data is not the one that a backup of the store has under its name; nil where all
  /// are. Such a file is written once and no other value gets its name, format reference §5.1: whoever
  /// writes to the store changes none.
  func externalDamage(since backup: LedgerBackup) throws -> String? {
    let kept = StoreFiles(FilePath(backup.path))
    func own(_ path: FilePath) -> FilePath? {
      path.lastComponent.map { externalDataFolder.appending($0) }
    }
    let others = try ExternalDataFolder.names(in: kept.externalDataFolder)
      .map { kept.externalDataFolder.appending($0) }
      .filter { path in
        // Whether one that rows refer to is there is asked elsewhere.
        guard let own = own(path), try FileMark(own) != nil else { return false }
        return try !ExternalDataFolder.areEqual(own, path)
      }
    func more(_ count: Int) -> String { count > 1 ? ", and \(count - 1) more" : "" }
    if let first = others.first, let own = own(first) {
      return
        "\(own) holds other bytes than \(first)\(more(others.count)). Such a file of external data is "
        + "written once: compare the two, and keep the one that is right."
    }
    guard let recorded = backup.marks.externalMarks, let found = try kept.backupMark(),
      found.mark.externalMarks != recorded
    else { return nil }
    let written = try kept.externalFiles(writtenAfter: backup.made).filter { path in
      try own(path).flatMap { try FileMark($0) }?.isSameFile(as: FileMark(path)) == true
    }
    guard let first = written.first, let own = own(first) else { return nil }
    return
      "\(own) was written to after its store was backed up\(more(written.count)), and is the same file "
      + "as \(first). Such a file of external data is written once: compare it with another copy."
  }

  /// In byte order, with lstat(2) of each. The folder must be there.
  private func forEachExternalFile(_ body: (String, stat) throws -> Void) throws {
    for name in try DurableFile.names(in: externalDataFolder) {
      var status = stat()
      let path = externalDataFolder.appending(name)
      guard path.withPlatformString({ lstat($0, &status) }) == 0 else {
        if errno == ENOENT { continue }  // gone since
        throw DurabilityError.failed(call: "lstat", path: path, Errno(rawValue: errno))
      }
      try body(name, status)
    }
  }
}

extension BackupMark.File {
  init(_ mark: FileMark) {
    self.init(
      inode: mark.inode, size: mark.size, seconds: mark.modificationSeconds,
      nanoseconds: mark.modificationNanoseconds)
  }
}
