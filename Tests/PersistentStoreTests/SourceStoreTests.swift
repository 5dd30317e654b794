import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@Suite struct `A source store` {
  private let folder: TemporaryFolder
  let snapshots: TemporaryFolder
  let path: FilePath

  init() throws {
    folder = try TemporaryFolder()
    snapshots = try TemporaryFolder()
    path = folder.path.appending("library.sqlite")
  }

  func makeLibrary(isWAL: Bool = false) throws -> SmallStore {
    try SmallStore(
      SmallStore.library(), at: path, rows: SmallStore.libraryRows, isWAL: isWAL)
  }

  private func readers(_ store: SourceStore) throws -> Int64? {
    try store.connection.rows("SELECT count(*) FROM ZREADER").first?.first?.integer
  }

  /// Copies the store while its rows are in the WAL only, as a killed application leaves it.
  private func makeInterrupted() throws -> FilePath {
    _ = try makeLibrary(isWAL: true)
    let connection = try Connection(path: path.string, mode: .readWrite)
    try connection.execute(
      "PRAGMA wal_autocheckpoint = 0; INSERT INTO ZREADER (Z_PK, Z_ENT, Z_OPT, ZNAME) "
        + "VALUES (3, 3, 1, 'c')")
    let copy = folder.path.appending("copy.sqlite")
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: path.string + suffix, toPath: copy.string + suffix)
    }
    return copy
  }

  // SQLite would follow links that a backup leaves behind, and wait for a FIFO.
  @Test(arguments: ["", "-wal", "-shm", "-journal", "_SUPPORT", "_EXTERNAL_DATA"], [true, false])
  func `is refused when one of its files is a link or a FIFO`(part: String, isLink: Bool) throws {
    _ = try makeLibrary()
    let files = StoreFiles(path)
    let place: FilePath =
      switch part {
      case "_SUPPORT": files.supportFolder
      case "_EXTERNAL_DATA": files.externalDataFolder
      default: FilePath(path.string + part)
      }
    try FileManager.default.createDirectory(
      atPath: files.externalDataFolder.string, withIntermediateDirectories: true)
    let moved = folder.path.appending("moved").string
    try? FileManager.default.moveItem(atPath: place.string, toPath: moved)
    if isLink {
      try FileManager.default.createSymbolicLink(atPath: place.string, withDestinationPath: moved)
    } else {
      #expect(mkfifo(place.string, 0o600) == 0)
    }
    let kind: FileKind = isLink ? .symbolicLink : .special
    #expect(throws: StoreError.unusualFile(place, kind, of: path)) {
      try SourceStore(path: path, snapshotFolder: snapshots.path)
    }
  }

  // A link would be left out of every copy of the store.
  @Test(arguments: ["9F1C2B61-0000-4000-8000-000000000001": true, "note": false, ".hidden": false])
  func `is refused when a file of its external data is a link`(
    name: String, isRefused: Bool
  ) throws {
    _ = try makeLibrary()
    let folder = StoreFiles(path).externalDataFolder
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    let place = folder.appending(name)
    try FileManager.default.createSymbolicLink(
      atPath: place.string, withDestinationPath: path.string)
    if isRefused {
      #expect(throws: StoreError.unusualFile(place, .symbolicLink, of: path)) {
        try SourceStore(path: path, snapshotFolder: snapshots.path)
      }
    } else {
      _ = try SourceStore(path: path, snapshotFolder: snapshots.path)
    }
  }

  @Test func `is read in place when nothing is pending`() throws {
    _ = try makeLibrary()
    let before = try folder.contents()
    let store = try SourceStore(path: path, snapshotFolder: snapshots.path)
    #expect(store.readPath == path)
    #expect(try readers(store) == 2)
    #expect(try folder.contents() == before)
    #expect(try snapshots.contents().isEmpty)
  }

  @Test func `is read from a clone where one is asked for`() throws {
    let library = try makeLibrary()
    let store = try SourceStore(path: path, snapshotFolder: snapshots.path, alwaysClones: true)
    #expect(store.readPath != path)
    try library.execute("DELETE FROM ZREADER")
    #expect(try readers(store) == 2)
  }

  @Test func `is read from a clone when rows are in the WAL`() throws {
    let copy = try makeInterrupted()
    let before = try folder.contents()
    let store = try SourceStore(path: copy, snapshotFolder: snapshots.path)
    #expect(store.readPath != copy && store.isWAL)
    #expect(try readers(store) == 3)
    #expect(try folder.contents() == before)
    // The clone is whole by itself, and any process may open it as immutable.
    #expect(try snapshots.contents().count == 1)
    let other = try Connection(path: store.readPath.string, mode: .immutable)
    #expect(try other.rows("PRAGMA integrity_check").first?.first?.text == "ok")
    #expect(try other.rows("SELECT count(*) FROM ZREADER").first?.first?.integer == 3)
  }

  @Test func `uses a clone of the same state again and makes another for another state`() throws {
    let copy = try makeInterrupted()
    let first = try SourceStore(path: copy, snapshotFolder: snapshots.path)
    let second = try SourceStore(path: copy, snapshotFolder: snapshots.path)
    #expect(first.readPath == second.readPath)
    let writer = try Connection(path: copy.string, mode: .readWrite)
    try writer.execute("PRAGMA wal_autocheckpoint = 0; DELETE FROM ZREADER")
    #expect(try first.isUnchanged() == false)
    let third = try SourceStore(path: copy, snapshotFolder: snapshots.path)
    #expect(third.readPath != first.readPath)
    #expect(try readers(third) == 0)
    #expect(try readers(second) == 3)
  }

  // The name says which state it is of, and anybody may have put another file there since.
  @Test func `is read from an earlier process's clone only where that equals a new one`() throws {
    let copy = try makeInterrupted()
    let made = try SourceStore(path: copy, snapshotFolder: snapshots.path).readPath
    let name = try #require(made.lastComponent)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: made.string))
    var changed = bytes
    changed[bytes.count - 1] ^= 1
    let other = try Data(contentsOf: URL(fileURLWithPath: copy.string))
    for (left, isKept) in [(bytes, true), (changed, false), (other, false), (Data(), false)] {
      let earlier = try TemporaryFolder()
      let clone = earlier.path.appending(name)
      try left.write(to: URL(fileURLWithPath: clone.string))
      let mark = try FileMark(clone)
      let store = try SourceStore(path: copy, snapshotFolder: earlier.path)
      #expect(store.readPath == clone)
      #expect(try readers(store) == 3)
      #expect(try Data(contentsOf: URL(fileURLWithPath: clone.string)) == bytes)
      #expect(try (FileMark(clone) == mark) == isKept)
      #expect(try earlier.contents().count == 1)
    }
  }

  @Test func `has its hot journal played back in a clone`() throws {
    let library = try makeLibrary()
    // A transaction that was cut off after its pages had been written.
    let connection = try Connection(path: path.string, mode: .readWrite)
    try connection.execute(
      "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN; DELETE FROM ZREADER; "
        + "CREATE TABLE ZFILLER (a); INSERT INTO ZFILLER VALUES (zeroblob(100000)); "
        + "INSERT INTO ZFILLER VALUES (zeroblob(100000))")
    let copy = folder.path.appending("copy.sqlite")
    for suffix in ["", "-journal"] {
      try FileManager.default.copyItem(atPath: path.string + suffix, toPath: copy.string + suffix)
    }
    try connection.execute("ROLLBACK")
    try connection.close()
    let before = try folder.contents()
    let store = try SourceStore(path: copy, snapshotFolder: snapshots.path)
    #expect(store.readPath != copy)
    #expect(try readers(store) == 2)
    #expect(try folder.contents() == before)
    _ = library
  }

  @Test func `does not mind a journal that is not hot`() throws {
    _ = try makeLibrary()
    try Data(count: 512).write(to: URL(filePath: path.string + "-journal"))
    #expect(try SourceStore(path: path, snapshotFolder: snapshots.path).readPath == path)
  }

  @Test func `may be read-only`() throws {
    let copy = try makeInterrupted()
    for suffix in ["", "-wal"] {
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o444], ofItemAtPath: copy.string + suffix)
    }
    #expect(try readers(SourceStore(path: copy, snapshotFolder: snapshots.path)) == 3)
  }

  // What a path may lead to, and what is said.
  @Test func `tells what is wrong with a file`() throws {
    func error(_ bytes: [UInt8]?) throws -> StoreError? {
      let file = folder.path.appending("odd.sqlite")
      try? FileManager.default.removeItem(atPath: file.string)
      if let bytes { try Data(bytes).write(to: URL(filePath: file.string)) }
      do {
        _ = try SourceStore(path: file, snapshotFolder: snapshots.path)
        return nil
      } catch let error as StoreError {
        return error
      }
    }
    let odd = folder.path.appending("odd.sqlite")
    _ = try makeLibrary()
    let whole = Array(try #require(FileManager.default.contents(atPath: path.string)))
    func changed(_ place: Int, _ values: [UInt8]) -> [UInt8] {
      var bytes = whole
      bytes.replaceSubrange(place..<(place + values.count), with: values)
      return bytes
    }
    #expect(try error(nil) == .notFound(odd))
    #expect(try error([]) == .empty(odd))
    #expect(try error(Array("bplist00".utf8)) == .notSQLite(odd, mayBeEncrypted: false))
    #expect(
      try error(Array("SQLite format 3\0".utf8))
        == .truncated(odd, expectedBytes: 512, foundBytes: 16))
    #expect(
      StoreError.truncated(odd, expectedBytes: 512, foundBytes: 16).description
        .contains("has 16 bytes and needs 512."), "its header counts nothing")
    #expect(
      try error(Array(whole.dropLast()))
        == .truncated(
          odd, expectedBytes: Int64(whole.count), foundBytes: Int64(whole.count - 1)))
    #expect(try error(whole) == nil)
    #expect(
      try error((0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 / 256) })
        == .notSQLite(odd, mayBeEncrypted: true))
    for (place, values) in [(16, [0x10, 0x01]), (18, [3]), (20, [255, 0]), (56, [0, 0, 0, 2])]
      as [(Int, [UInt8])]
    {
      let found = try error(changed(place, values))
      if place == 20 {
        // 255 reserved bytes of 4 096 are allowed, though not what the pages were made for.
        if case .impossibleHeader = found { Issue.record("255 reserved bytes are possible") }
        continue
      }
      guard case .impossibleHeader = found else {
        Issue.record("byte \(place) gave \(String(describing: found))")
        continue
      }
    }
    #expect(throws: StoreError.unusualFile(folder.path, .folder, of: folder.path)) {
      try SourceStore(path: folder.path, snapshotFolder: snapshots.path)
    }
    let other = try Connection(path: folder.path.appending("other").string, mode: .create)
    try other.execute("CREATE TABLE a (b)")
    #expect(throws: StoreError.notCoreData(folder.path.appending("other"))) {
      try SourceStore(path: folder.path.appending("other"), snapshotFolder: snapshots.path)
    }
  }

  @Test(arguments: ["UTF-16le", "UTF-16be"])
  func `is not called damaged for being in UTF-16`(encoding: String) throws {
    let odd = folder.path.appending("odd.sqlite")
    let connection = try Connection(path: odd.string, mode: .create)
    try connection.execute(
      "PRAGMA encoding = '\(encoding)'; CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY)")
    try connection.close()
    let error = try #require(throws: StoreError.self) {
      try SourceStore(path: odd, snapshotFolder: snapshots.path)
    }
    #expect(error == .utf16(odd))
    #expect(!error.isDamage && error.description.contains("UTF-8"))
  }
}
