import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage
import Testing

@Suite struct `A place for a new file` {
  private let folder: TemporaryFolder
  private let store: FilePath

  init() throws {
    folder = try TemporaryFolder()
    store = folder.path.appending("s.sqlite")
    _ = try SmallStore(SmallStore.library(), at: store, rows: "")
    try put("notes.txt", "dear diary")
    try put("plan", "no database")
  }

  private func put(_ name: String, _ text: String) throws {
    try text.write(
      toFile: folder.path.appending(name).string, atomically: true, encoding: .utf8)
  }

  private func place(_ name: String, beside stores: [FilePath] = []) -> NewFilePlace {
    NewFilePlace(FilePath(folder.path.string + "/" + name), beside: stores)
  }

  @Test(arguments: [
    "s.sqlite-wal", "s.sqlite-shm", "s.sqlite-journal", "./s.sqlite-wal", "d.sqlite-wal",
    "d\u{6DD}-wal", ".\u{301}d_SUPPORT",
    ".s_SUPPORT", ".d_SUPPORT", ".s_SUPPORT/x", ".s_SUPPORT/_EXTERNAL_DATA/x",
  ])
  func `is no part of a store`(name: String) {
    let place = place(name, beside: ["d.sqlite", "d\u{6DD}"].map { folder.path.appending($0) })
    #expect(throws: PlaceError.self) { try place.check() }
    #expect(throws: PlaceError.self) { try place.checkForStore() }
  }

  @Test(arguments: ["my-journal", "x-wal", "-wal", "s.sqlite.godwit", "SUPPORT", "t.sqlite"])
  func `may have any other name`(name: String) throws {
    try place(name, beside: [store]).check()
    try place(name, beside: [store]).checkForStore()
  }

  // Both stores would keep their external data in .s_SUPPORT.
  @Test(arguments: ["s", "s.db", "s.sqlite3"])
  func `for a store has a folder of external data of its own`(name: String) throws {
    try place(name).checkForStore()
    try FileManager.default.createDirectory(
      atPath: folder.path.appending(".s_SUPPORT").string, withIntermediateDirectories: false)
    #expect(throws: PlaceError.self) { try place(name).checkForStore() }
    try place(name).check()
  }

  // What has their names is SQLite's, whatever it holds.
  @Test func `is not shared with the files that SQLite makes beside a store`() throws {
    let path = folder.path.appending("Own.sqlite")
    for suffix in ["", "-wal", "-shm", "-journal"] {
      try Data("SQLite format 3\0".utf8).write(to: URL(fileURLWithPath: path.string + suffix))
    }
    #expect(try StoreFiles(path).sharers() == [])
    #expect(
      try StoreFiles(folder.path.appending("Own.db")).sharers() == [path])
  }

  @Test func `is not shared with a store whose name spells an accent otherwise`() throws {
    for name in ["caf\u{E9}.sqlite", "cafe\u{301}.db"] {
      try put(name, "SQLite format 3\0")
      #expect(try StoreFiles(folder.path.appending(name)).sharers() == [], "\(name)")
    }
  }

  // Such as a copy of the time when file names were Latin-1.
  @Test func `is shared with a store whose name is not UTF-8`() throws {
    let name = "s.alt".utf8.map { CChar(bitPattern: $0) } + [CChar(bitPattern: 0xE4), 0]
    let other = folder.path.pushing(FilePath(platformString: name))
    defer { _ = other.withPlatformString { unlink($0) } }
    let file = try FileDescriptor.open(
      other, .writeOnly, options: .create, permissions: .ownerReadWrite)
    _ = try file.closeAfter { try file.writeAll("SQLite format 3\0".utf8) }
    #expect(try StoreFiles(store).sharers() == [other])
  }

  // Their text is that of another folder.
  @Test func `is in no folder whose name is not UTF-8, and no store is read there`() throws {
    let own = folder.path.pushing(FilePath(platformString: [0x6D, CChar(bitPattern: 0xE4), 0]))
    try #require(own.withPlatformString { mkdir($0, 0o700) } == 0)
    defer { _ = own.withPlatformString { rmdir($0) } }
    let link = folder.path.appending("link")
    try #require(
      own.withPlatformString { own in link.withPlatformString { symlink(own, $0) } } == 0)
    let path = link.appending("t.sqlite")
    #expect(throws: PlaceError.self) { try NewFilePlace(path).check() }
    #expect(throws: StoreError.notText(path.resolvingFolders)) {
      try StoreFiles(path.resolvingFolders).checkKinds()
    }
  }

  // To a volume that ignores capitals both names are one folder's, as by a link here.
  @Test func `is shared where two names lead to one folder`() throws {
    let stores = ["a.sqlite", "A.old"].map { folder.path.appending($0) }
    for name in ["a.sqlite", "A.old"] { try put(name, "SQLite format 3\0") }
    let support = folder.path.appending(".a_SUPPORT").string
    try FileManager.default.createDirectory(
      atPath: support, withIntermediateDirectories: false)
    #expect(try StoreFiles(stores[0]).sharers() == [])
    for stem in ["A", "b"] {
      try FileManager.default.createSymbolicLink(
        atPath: folder.path.appending(".\(stem)_SUPPORT").string, withDestinationPath: support)
    }
    #expect(try StoreFiles(stores[0]).sharers() == [stores[1]])
    try FileManager.default.removeItem(atPath: stores[1].string)
    try place("a.sqlite").checkForStore()
    #expect(throws: PlaceError.self) {
      try place("a.sqlite", beside: [folder.path.appending("b.sqlite")]).checkForStore()
    }
  }

  @Test func `for a store shares its stem with what is no database, and with itself`() throws {
    for name in ["notes", "plan", "s"] {
      try FileManager.default.createDirectory(
        atPath: folder.path.appending(".\(name)_SUPPORT").string, withIntermediateDirectories: false
      )
    }
    for name in ["notes.sqlite", "plan.sqlite", "s.sqlite"] {
      try place(name, beside: [store]).checkForStore()
    }
    #expect(throws: PlaceError.self) {
      try place("notes.sqlite", beside: [folder.path.appending("notes.txt")]).checkForStore()
    }
  }
}
