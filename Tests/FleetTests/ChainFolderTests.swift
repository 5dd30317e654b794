import Glibc
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The folder of a chain` {
  private func result() -> MigrationResult {
    MigrationResult(store: "a", verdict: .migrated, ending: .done)
  }

  private static let store: FilePath = "a"

  /// As if the first step had read a clone in its run directory.
  private func ends(_ folder: ChainFolder) throws -> CommitEnds {
    let clone = folder.run(of: 0).snapshot.appending("clone.sqlite")
    try DurableFile.makeFolder(folder.run(of: 0).snapshot)
    try DurableFile.write([1], to: clone)
    return CommitEnds(
      sourcePath: Self.store.string, sourceIdentity: try StoreFiles(clone).identity(),
      readPath: clone.string, externalDataPath: StoreFiles(Self.store).externalDataFolder.string,
      destinationPath: Self.store.string, fingerprint: "")
  }

  /// Writes a step's store and says that it is done.
  private func finish(_ step: Int, _ folder: ChainFolder, _ fingerprint: String) throws {
    try folder.prepare(step)
    try DurableFile.write(Array(0..<200), to: folder.store(of: step).store)
    let done = ChainFolder.Done(
      fingerprint: fingerprint, identity: try folder.store(of: step).identity(),
      storeDigest: try folder.store(of: step).fileDigest(), ends: try ends(folder), obsolete: [],
      result: result())
    try folder.finish(step, done)
  }

  @Test func `discards the steps of another chain and keeps its own`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    #expect(try folder.take("a") == false)
    try finish(0, folder, "a")
    #expect(try folder.take("a") == false)
    #expect(try DurableFile.exists(folder.store(of: 0).store))
    #expect(try folder.take("b") == true)
    #expect(try !DurableFile.exists(folder.store(of: 0).store))
    #expect(try folder.exists)
  }

  /// Who finds a commit of a chain, and nothing else, has no other place to learn it from.
  @Test func `keeps what is told of the whole way`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a", path: ["A → B: inferred"], notes: ["by this way"])
    #expect(try folder.told().path == ["A → B: inferred"])
    #expect(try folder.told().notes == ["by this way"])
    try folder.discard()
    #expect(try folder.told().path == nil)
  }

  @Test func `trusts no step without what was read of the source`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    try finish(0, folder, "a")
    let own = try folder.lastDone(of: 3, "a", store: Self.store) { _ in }
    let other = try folder.lastDone(of: 3, "b", store: Self.store) { _ in }
    #expect(own?.step == 0)
    #expect(other == nil)
    // A run directory of another store in the place of this one's.
    let foreign = try folder.lastDone(of: 3, "a", store: "b") { _ in }
    #expect(foreign == nil)
    try DurableFile.removeTree(folder.run(of: 0).snapshot)
    let without = try folder.lastDone(of: 3, "a", store: Self.store) { _ in }
    #expect(without == nil)
  }

  @Test(arguments: ["store.sqlite", "done.json"])
  func `trusts no step of which a disk changed a bit`(file: String) throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    try finish(0, folder, "a")
    let path = folder.store(of: 0).store.removingLastComponent().appending(file)
    let mark = try #require(try FileMark(path))
    let descriptor = try FileDescriptor.open(path, .readWrite)
    var byte: UInt8 = 0
    // Of the JSON, in the name of a key; of the store, behind what every look at it reads.
    let place: Int64 = file == "done.json" ? 4 : 150
    _ = try withUnsafeMutableBytes(of: &byte) {
      try descriptor.read(fromAbsoluteOffset: place, into: $0)
    }
    try descriptor.writeAll(toAbsoluteOffset: place, [byte ^ 1])
    var times = [
      timespec(),
      timespec(tv_sec: Int(mark.modificationSeconds), tv_nsec: Int(mark.modificationNanoseconds)),
    ]
    #expect(futimens(descriptor.rawValue, &times) == 0)
    try descriptor.close()
    #expect(try FileMark(path) == mark)
    var damaged: [FilePath] = []
    let last = try folder.lastDone(of: 3, "a", store: Self.store) { damaged.append($0) }
    #expect(last == nil && damaged == [path])
  }

  @Test func `keeps no store under a second name`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    for step in 0..<2 { try finish(step, folder, "a") }
    try folder.removePublished()
    #expect(try !DurableFile.exists(folder.store(of: 1).store))
    #expect(try folder.lastDone()?.step == 1)
  }

  @Test func `removes the store of the step before when the next is done`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    for step in 0..<3 { try finish(step, folder, "a") }
    let isThere = try (0..<3).map { try DurableFile.exists(folder.store(of: $0).store) }
    #expect(isThere == [false, false, true])
  }

  @Test func `removes what a step wrote and did not vouch for`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    try folder.prepare(0)
    try DurableFile.write([1], to: folder.store(of: 0).store)
    try folder.prepare(0)
    #expect(try !DurableFile.exists(folder.store(of: 0).store))
  }

  @Test func `leaves what a step's own commit has under way`() throws {
    let scratch = try Scratch()
    let folder = ChainFolder(directory: RunDirectory(scratch.path))
    _ = try folder.take("a")
    try folder.prepare(0)
    try DurableFile.write([1], to: folder.store(of: 0).store)
    try DurableFile.makeFolder(folder.run(of: 0).path)
    try DurableFile.write([2], to: folder.run(of: 0).journal)
    try folder.prepare(0)
    #expect(try DurableFile.exists(folder.store(of: 0).store))
  }
}
