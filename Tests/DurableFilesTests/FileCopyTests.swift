import CLinux
import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `A copy of a file` {
  @Test(arguments: [0, 1, 4096, 1_048_576, 3_000_001])
  func `has the same bytes`(size: Int) throws {
    let folder = try TemporaryFolder()
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    try DurableFile.write(bytes, to: folder.file("a"))
    let taken = try steps { try DurableFile.copy(folder.file("a"), to: folder.file("b")) }.taken
    #expect(taken == [.copied, .fileSynced, .renamed, .folderSynced])
    #expect(contents(of: folder.file("b")) == bytes)
  }

  @Test func `keeps holes`() throws {
    let folder = try TemporaryFolder()
    let size = 64 << 20
    let file = try FileDescriptor.open(
      folder.file("a"), .writeOnly, options: .create, permissions: .ownerReadWrite)
    try file.writeAll(toAbsoluteOffset: 0, [1, 2, 3])
    try file.writeAll(toAbsoluteOffset: Int64(size / 2), [4])
    try file.resize(to: Int64(size))
    try file.close()
    try DurableFile.copy(folder.file("a"), to: folder.file("b"))
    #expect(contents(of: folder.file("b")) == contents(of: folder.file("a")))
    let blocks = try Stat(folder.file("b")).sizeAllocated
    #expect(blocks <= max(1 << 20, try Stat(folder.file("a")).sizeAllocated))
  }

  @Test func `keeps mode and extended attributes`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    #expect(chmod(folder.file("a").string, 0o4751) == 0)
    let value: [UInt8] = [1, 0, 2]
    // A file system without extended attributes has none to keep.
    let hasAttributes =
      setxattr(folder.file("a").string, "user.godwit", value, value.count, 0) == 0
      && setxattr(folder.file("a").string, "user.empty", value, 0, 0) == 0
    try DurableFile.copy(folder.file("a"), to: folder.file("b"))
    #expect(try Stat(folder.file("b")).permissions.rawValue == 0o4751)
    if hasAttributes {
      var read = [UInt8](repeating: 0, count: 8)
      #expect(getxattr(folder.file("b").string, "user.godwit", &read, read.count) == 3)
      #expect(Array(read[..<3]) == value)
      #expect(getxattr(folder.file("b").string, "user.empty", nil, 0) == 0)
    }
    try DurableFile.write([2], to: folder.file("c"))
    try DurableFile.copyAttributes(from: folder.file("a"), to: folder.file("c"))
    #expect(try Stat(folder.file("c")).permissions.rawValue == 0o4751)
    #expect(contents(of: folder.file("c")) == [2])
  }

  /// ext4 has some KB for all attributes of a file; a memory file system has 64.
  @Test func `is made without an attribute that its volume has no room for, and says so`() throws {
    let (folder, roomy) = (try TemporaryFolder(), FilePath("/dev/shm/godwit-attribute-\(getpid())"))
    guard (try? DurableFile.write([1], to: roomy)) != nil else {
      return print("skipped: no /dev/shm")
    }
    defer { unlink(roomy.string) }
    let value = [UInt8](repeating: 1, count: 20_000)
    try DurableFile.write([1], to: folder.file("probe"))
    guard setxattr(roomy.string, "user.godwit", value, value.count, 0) == 0,
      setxattr(folder.file("probe").string, "user.godwit", value, value.count, 0) != 0,
      errno != ENOTSUP
    else { return print("skipped: no two volumes with different room for attributes") }
    let lost = try DurableFile.copy(roomy, to: folder.file("copy"))
    #expect(lost.attributes == ["user.godwit"])
    #expect(contents(of: folder.file("copy")) == [1])
    let again = try DurableFile.copyAttributes(from: roomy, to: folder.file("probe"))
    #expect(again.attributes == ["user.godwit"])
  }

  @Test func `replaces nothing`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    try DurableFile.write([2], to: folder.file("b"))
    #expect(throws: DurabilityError.alreadyExists(folder.file("b"))) {
      try DurableFile.copy(folder.file("a"), to: folder.file("b"))
    }
    #expect(contents(of: folder.file("b")) == [2])
    #expect(try folder.names() == ["a", "b"])
  }

  @Test(arguments: 1...4) func `is whole or absent after a crash`(step: Int) throws {
    let folder = try TemporaryFolder()
    let bytes = [UInt8](repeating: 3, count: 50_000)
    try DurableFile.write(bytes, to: folder.file("a"))
    let crashed = try steps(crashingAfter: step) {
      try DurableFile.copy(folder.file("a"), to: folder.file("b"))
    }.crashed
    #expect(crashed)
    #expect(contents(of: folder.file("b")) == (step < 3 ? nil : bytes))
  }
}

@Suite struct `A file lock` {
  @Test func `keeps others out until it goes away`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("lock")
    do {
      let lock = try FileLock(acquiring: path)
      #expect(throws: DurabilityError.locked(path)) { _ = try FileLock(acquiring: path) }
      _ = consume lock
    }
    // A process that another test starts in this moment holds a copy of the file until its exec.
    _ = try FileLock(acquiring: path, patienceSeconds: 5)
  }

  @Test func `is not inherited by a child process`() throws {
    let folder = try TemporaryFolder()
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/bin/sleep")
    child.arguments = ["30"]
    do {
      let lock = try FileLock(acquiring: folder.file("lock"))
      try child.run()
      _ = consume lock
    }
    defer { child.terminate() }
    // Far less than the child lives, and enough for one of another test's to come to its exec.
    _ = try FileLock(acquiring: folder.file("lock"), patienceSeconds: 5)
  }

  @Test func `keeps another process out`() throws {
    let folder = try TemporaryFolder()
    let lock = try FileLock(acquiring: folder.file("lock"))
    let other = Process()
    other.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
    other.arguments = ["-n", folder.file("lock").string, "true"]
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/flock") else { return }
    try other.run()
    other.waitUntilExit()
    #expect(other.terminationStatus == 1)
    _ = consume lock
  }

  @Test func `holds when the file was removed meanwhile`() throws {
    let folder = try TemporaryFolder()
    let first = try FileLock(acquiring: folder.file("lock"))
    try DurableFile.remove(folder.file("lock"))
    let second = try FileLock(acquiring: folder.file("lock"))
    _ = consume first
    #expect(throws: DurabilityError.self) { _ = try FileLock(acquiring: folder.file("lock")) }
    _ = consume second
  }
}
