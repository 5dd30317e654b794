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
}
