import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

/// Who migrates may be root, and the folders that a commit makes hold an application's data.
@Suite struct `Folders of external data that a commit makes` {
  private func mode(_ folder: FilePath) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.string)
    return try #require(attributes[.posixPermissions] as? Int)
  }

  private func setMode(_ mode: Int, _ paths: FilePath...) throws {
    for path in paths {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path.string)
    }
  }

  @Test func `have the rights of the source's own`() throws {
    let fixture = try SwapFixture(.walled)
    let files = StoreFiles(fixture.source)
    try setMode(0o750, files.supportFolder)
    try setMode(0o755, files.externalDataFolder)
    try fixture.swap.commit(try fixture.assemble())
    let backup = StoreFiles(
      fixture.folder.appending("Recipes.sqlite.godwit-backup-R1.sqlite"))
    #expect(try mode(backup.supportFolder) == 0o750)
    #expect(try mode(backup.externalDataFolder) == 0o755)
  }

  @Test func `can be searched by whoever may read the store where there is no other`() throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("a.sqlite")
    try Data().write(to: URL(filePath: store.string))
    try setMode(0o640, store)
    let made = StoreFiles(store).externalDataFolder
    try ExternalDataFolder.make(made, like: nil, of: store)
    #expect(try mode(made) == 0o750 && mode(made.removingLastComponent()) == 0o750)
    // One that is there is not ours to change.
    try setMode(0o700, made)
    try ExternalDataFolder.make(made, like: nil, of: store)
    #expect(try mode(made) == 0o700)
  }
}
