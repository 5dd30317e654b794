import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `What lies at a path` {
  @Test func `is there, absent, or not to be told`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    #expect(FilePresence(of: folder.file("a")) == .there)
    #expect(FilePresence(of: folder.file("b")) == .absent)
    let gone = folder.file("volume")
    #expect(FilePresence(of: gone.appending("a")) == .noFolder(gone))
    #expect(FilePresence(of: folder.file("a").appending("b")) == .unreachable(.notDirectory))
    #expect(FilePresence(of: folder.file("b")).obstacle == nil)
    #expect(FilePresence(of: gone.appending("a")).obstacle != nil)
  }

  @Test func `is absent only in a folder that is there, for whoever would lose it`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    #expect(try FileMark(reachable: folder.file("a")) == FileMark(folder.file("a")))
    #expect(try FileMark(reachable: folder.file("b")) == nil)
    let gone = folder.file("volume").appending("a")
    #expect(try FileMark(gone) == nil)
    #expect(throws: DurabilityError.self) { try FileMark(reachable: gone) }
    #expect(throws: DurabilityError.self) { try FilePresence.isThere(gone) }
  }

  /// `link` leads to `a/b`.
  @Test(
    arguments: [
      ("a/b", "a/b"), ("a/b/.", "a/b"), ("a/b/..", "a"), ("a/./b", "a/./b"), ("link", "link"),
      ("link/.", "a/b"), ("link/..", "a"), ("none/.", "none/."), ("..a", "..a"),
    ])
  func `has a name of its own, also by a path that ends in none`(path: String, named: String) throws
  {
    let folder = try TemporaryFolder()
    try DurableFile.makeFolder(folder.file("a"))
    try DurableFile.makeFolder(folder.file("a").appending("b"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.file("link").string, withDestinationPath: "a/b")
    let base = try #require(folder.path.resolved)
    #expect(base.pushing(FilePath(path)).named == base.pushing(FilePath(named)))
    #expect(FilePath("").named == "" && FilePath("/").named == "/")
    #expect(FilePath(".").named == FilePath(".").resolved)
  }

  @Test func `is never absent while its folder is moved away and back`() throws {
    let folder = try TemporaryFolder()
    let (stores, away) = (folder.file("stores"), folder.file("away"))
    try DurableFile.makeFolder(stores)
    try DurableFile.write([1], to: stores.appending("a"))
    let mover = Thread {
      while !Thread.current.isCancelled {
        rename(stores.string, away.string)
        rename(away.string, stores.string)
      }
    }
    mover.start()
    defer { mover.cancel() }
    var seen: Set<String> = []
    for _ in 0..<20_000 {
      let presence = FilePresence(of: stores.appending("a"))
      #expect(presence != .absent)
      seen.insert("\(presence)")
    }
    #expect(seen.contains("there"))
  }
}
