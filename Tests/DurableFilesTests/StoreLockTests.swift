import Glibc
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `A store lock` {
  private let folder: TemporaryFolder
  private let path: FilePath

  init() throws {
    folder = try TemporaryFolder()
    path = folder.file("store")
    try DurableFile.write(Array("a store".utf8), to: path)
  }

  @Test func `notices whoever has the file open, with or without locks`() throws {
    var lock = try StoreLock(excludingOthersFrom: path)
    let openers1 = try lock.takeLease()
    #expect(openers1 == .none)
    let found2 = lock.isAwaited
    #expect(!found2)
    let found3 = try lock.areOpenElsewhere([path])
    #expect(!found3)
    lock.giveLeaseBack()
    let other = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    let openers4 = try lock.takeLease(waitingMilliseconds: 0)
    #expect(openers4 == .some)
    let found5 = try lock.areOpenElsewhere([folder.file("none"), path])
    #expect(found5)
    try other.close()
    let openers6 = try lock.takeLease()
    #expect(openers6 == .none)
  }

  /// Source: linux/magic.h.
  @Test(
    arguments: [
      // ext4, btrfs, XFS, tmpfs
      (0xEF53, true), (0x9123_683E, true), (0x5846_5342, true), (0x0102_1994, true),
      // overlayfs, NFS, SMB
      (0x794C_7630, true), (0x6969, true), (0xFE53_4D42, true),
      // FUSE, and its neighbours
      (0x6573_5545, true), (0x6573_5546, false), (0x6573_5547, true),
      // 9p, VirtualBox, Ceph, Lustre, OCFS2, and what is not known
      (0x0102_1997, false), (0x786F_4256, false), (0x00C3_6400, false), (0x0BD0_0BD0, false),
      (0x7461_636F, false), (0, false),
    ] as [(UInt32, Bool)])
  func `takes a lease for an answer only where it tells of everybody`(type: UInt32, tells: Bool) {
    #expect(StoreLock.seesEverybody(onVolumeOfType: type) == tells)
  }

  @Test func `notices whoever begins to open the file`() throws {
    var lock = try StoreLock(excludingOthersFrom: path)
    let openers7 = try lock.takeLease()
    #expect(openers7 == .none)
    #expect(throws: Errno.wouldBlock) {
      try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
    }
    let found8 = lock.isAwaited
    #expect(found8)
    lock.giveLeaseBack()
    let found9 = lock.isAwaited
    #expect(!found9)
    try FileDescriptor.open(path, .readOnly, options: .closeOnExec).close()
  }

  @Test func `lets several readers in, and no writer beside them`() throws {
    let memory = folder.file("store-shm")
    let first = try StoreReadLock(path, sharedMemory: memory, waitingMilliseconds: 0)
    let second = try StoreReadLock(path, sharedMemory: memory, waitingMilliseconds: 0)
    let facts = [first.isHeld, second.isHeld, first.hasSharedMemory, first.hasWriter]
    #expect(facts == [true, true, false, false])
    #expect(throws: DurabilityError.locked(path)) { _ = try StoreLock(excludingOthersFrom: path) }
    _ = consume first
    _ = consume second
    let lock = try lockOnceChildrenRun()
    #expect(throws: DurabilityError.locked(path)) {
      _ = try StoreReadLock(path, sharedMemory: memory, waitingMilliseconds: 0)
    }
    _ = consume lock
  }

  /// Tests beside this one start processes. Such a child has our files open, and so keeps the locks
  /// on them that we have just let go, until it runs its program.
  private func lockOnceChildrenRun() throws -> StoreLock {
    let end = ContinuousClock.now + .seconds(5)
    while true {
      do {
        return try StoreLock(excludingOthersFrom: path)
      } catch DurabilityError.locked where ContinuousClock.now < end {
        usleep(5_000)
      }
    }
  }

  /// A page may be read from a log that lies beside the file that has the name now.
  @Test func `leaves zeros behind the header of a file that it makes useless`() throws {
    try DurableFile.write([UInt8](repeating: 7, count: 20_000), to: path)
    let lock = try StoreLock(excludingOthersFrom: path)
    let reader = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    defer { try? reader.close() }
    try DurableFile.remove(path)
    try lock.invalidateUnnamed()
    var bytes = [UInt8](repeating: 1, count: 20_001)
    let count = try bytes.withUnsafeMutableBytes {
      try reader.read(fromAbsoluteOffset: 0, into: $0)
    }
    #expect(count == 20_000)
    #expect(bytes[100..<count].allSatisfy { $0 == 0 })
  }

  @Test func `knows whether a file can be made useless`() throws {
    let lock = try StoreLock(excludingOthersFrom: path)
    let isSole = try lock.canBeInvalidated()
    #expect(isSole)
    try DurableFile.link(path, to: folder.file("other"))
    let hasOther = try !lock.canBeInvalidated()
    #expect(hasOther)
    try DurableFile.remove(path)
    try lock.invalidateUnnamed()
    #expect(contents(of: folder.file("other")) == Array("a store".utf8))
    try lock.invalidateUnnamed(evenNamed: true)
    #expect(contents(of: folder.file("other"))?.starts(with: Array("This".utf8)) == true)
  }

  @Test func `makes a file useless only once it has no name`() throws {
    let lock = try StoreLock(excludingOthersFrom: path)
    let reader = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
    func firstByte() throws -> UInt8 {
      var byte: UInt8 = 0
      _ = try withUnsafeMutableBytes(of: &byte) { try reader.read(fromAbsoluteOffset: 0, into: $0) }
      return byte
    }
    try lock.invalidateUnnamed()
    #expect(try firstByte() == UInt8(ascii: "a"))
    try DurableFile.remove(path)
    try lock.invalidateUnnamed()
    #expect(try firstByte() == UInt8(ascii: "T"))
    try reader.close()
  }
}
