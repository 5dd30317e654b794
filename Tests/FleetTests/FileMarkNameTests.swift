import Foundation
import GodwitPersistentStore
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `What ends a quarantine` {
  @Test func `is a file of external data that is there again, too`() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-mark-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = StoreFiles(FilePath(folder.path).appending("a.sqlite"))
    try FileManager.default.createDirectory(
      atPath: files.externalDataFolder.string, withIntermediateDirectories: true)
    try Data("store".utf8).write(to: URL(fileURLWithPath: files.store.string))
    let before = files.markName
    #expect(files.markName == before, "as long as nothing changes")
    try Data("picture".utf8).write(
      to: URL(fileURLWithPath: files.externalDataFolder.appending("picture").string))
    #expect(files.markName != before)
  }
}
