import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@testable import GodwitFleet
@testable import GodwitPersistentStore

/// Files of 5 EiB that take no space. XFS, Btrfs, ZFS and tmpfs have them.
@Suite struct `Files that are all holes` {
  /// - Returns: False where no such files can be made.
  private func make(_ names: [String], in folder: FilePath) throws -> Bool {
    for name in names {
      let path = folder.pushing(FilePath(name))
      try DurableFile.makeFolder(path.removingLastComponent())
      try DurableFile.write([], to: path)
      guard truncate(path.string, 5 << 60) == 0 else {
        print("skipped: no such files here")
        return false
      }
    }
    return true
  }

  private static let volume =
    FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

  @Test func `stop no search for stores`() throws {
    let scratch = try Scratch(in: Self.volume)
    guard try make(["1/s.sqlite", "1/s.sqlite-wal", "2/s.sqlite"], in: scratch.path) else { return }
    let text = """
      name: p
      stores: { roots: ["\(scratch.path)"], include: "*/s.sqlite" }
      models: a
      """
    let pipeline = try Pipeline(
      bytes: Array(text.utf8), file: scratch.path.appending("pipeline.yaml"))
    let found = try StoreSearch(pipeline, state: nil).run()
    #expect(Set(found.stores.map(\.bytes)) == [.max, 5 << 60])
    let folder = scratch.path
    #expect(DiskSpace.size(of: folder) == .max)
  }

  @Test func `have a place among a store's logs, external data and backups`() throws {
    let external = ".s_SUPPORT/_EXTERNAL_DATA/"
    let scratch = try Scratch(in: Self.volume)
    let names = ["s.sqlite", "s.sqlite-wal", external + "a", external + "b"]
    guard try make(names, in: scratch.path) else { return }
    let files = StoreFiles(scratch.path.appending("s.sqlite"))
    #expect(try files.backupMark()?.ownBytes == .max)
    let identity = try files.privateIdentity()
    #expect(DiskSpace.needed(of: files, identity, isInPlace: true) == .max)
    #expect(DiskSpace.needed(of: files, identity, isInPlace: false) == .max)
  }

  @Test(
    arguments: [
      (wal: 0, committed: 0, extra: 0), (wal: 4096, committed: 4096, extra: 0),
      (wal: 1 << 40, committed: 4096, extra: 1 << 40 - 4096),
    ] as [(wal: Int64, committed: Int64, extra: Int64)])
  func `count for the backup of a store as far as nothing of them is committed`(
    wal: Int64, committed: Int64, extra: Int64
  ) throws {
    let scratch = try Scratch()
    let files = StoreFiles(scratch.file("s.sqlite", "store"))
    #expect(truncate(scratch.file("s.sqlite-wal", "").string, off_t(wal)) == 0)
    var identity = try files.privateIdentity()
    identity.walSize = committed
    for isInPlace in [false, true] {
      let needed = DiskSpace.needed(
        sourceBytes: 5 + committed, externalBytes: isInPlace ? extra : 0, isInPlace: isInPlace)
      #expect(DiskSpace.needed(of: files, identity, isInPlace: isInPlace) == needed)
    }
  }
}

@Suite struct `A volume that does not say how much room it has` {
  // proc(5) has no blocks, as a FUSE file system that does not say.
  @Test func `is not full`() throws {
    #expect(DiskSpace.free(at: "/proc") == nil)
    try DiskSpace.check(.max, at: "/proc")
    let findings = Doctor(folder: "/proc").findings()
    let finding = try #require(findings.first { $0.name == "free space here" })
    #expect(finding.isGood && finding.value == "the volume of /proc does not say")
  }
}
