import Foundation
import GodwitDurableFiles
import Synchronization
import SystemPackage
import Testing

/// What a step's observer throws to stop there.
struct SimulatedCrash: Error {}

/// Runs the body and stops it after its step number `number`, counted from 1.
///
/// - Returns: The steps taken, and whether the body was stopped.
func steps(
  crashingAfter number: Int = .max, _ body: () throws -> Void
) throws -> (taken: [DurableStep], crashed: Bool) {
  let taken = Mutex<[DurableStep]>([])
  do {
    try withoutActuallyEscaping(body) { body in
      try DurableSteps.observing(with: { step, _ in
        let count = taken.withLock {
          $0.append(step)
          return $0.count
        }
        if count == number { throw SimulatedCrash() }
      }) { try body() }
    }
    return (taken.withLock { $0 }, false)
  } catch is SimulatedCrash {
    return (taken.withLock { $0 }, true)
  }
}

@Suite struct `The age of a file` {
  @Test func `is that of the file, whatever was written to it and whatever its name is`() throws {
    let folder = try TemporaryFolder()
    let (a, b, c) = (folder.file("a"), folder.file("b"), folder.file("c"))
    try DurableFile.write([1], to: a)
    usleep(50_000)  // more than a tick of the kernel's clock
    try DurableFile.write([2], to: b)
    let file = try FileDescriptor.open(a, .writeOnly)
    try file.writeAll([3])
    try file.close()
    #expect(DurableFile.isOlder(a, than: b) && !DurableFile.isOlder(b, than: a))
    #expect(!DurableFile.isOlder(a, than: a))
    try DurableFile.rename(a, to: c)
    #expect(DurableFile.isOlder(c, than: b))
    #expect(!DurableFile.isOlder(a, than: b) && !DurableFile.isOlder(c, than: a), "one is gone")
  }
}

@Suite struct `A durable write` {
  @Test func `takes four steps in this order`() throws {
    let folder = try TemporaryFolder()
    let taken = try steps { try DurableFile.write([1, 2], to: folder.file("a")) }.taken
    #expect(taken == [.written, .fileSynced, .renamed, .folderSynced])
    #expect(contents(of: folder.file("a")) == [1, 2])
    #expect(try folder.names() == ["a"])
  }

  @Test func `flushes nothing where no power cut is to be survived`() throws {
    let folder = try TemporaryFolder()
    let (a, b) = (folder.file("a"), folder.file("b"))
    let taken = try steps {
      try DurableFile.write([1, 2], to: a, surviving: .processCrash)
      try DurableFile.makeFolder(b, surviving: .processCrash)
      try DurableFile.removeTree(b, surviving: .processCrash)
      try DurableFile.remove(a, surviving: .processCrash)
    }.taken
    #expect(taken == [.written, .renamed, .folderMade, .removed, .removed])
    #expect(try folder.names() == [])
  }

  // 4 is after the last step: then the caller has not heard of it yet.
  @Test(arguments: 1...4, [[], [1, 2, 3]] as [[UInt8]])
  func `leaves the old file or the new one after a crash`(step: Int, old: [UInt8]) throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a")
    let new = [UInt8](repeating: 7, count: 100_000)
    if !old.isEmpty { try DurableFile.write(old, to: path) }
    #expect(try steps(crashingAfter: step) { try DurableFile.write(new, to: path) }.crashed)
    #expect(contents(of: path) == (step < 3 ? (old.isEmpty ? nil : old) : new))
    // What is left over is told apart by its name, and the next write does not stumble over it.
    let leftovers = try folder.names().filter { $0 != "a" }
    #expect(leftovers.count == (step < 3 ? 1 : 0))
    #expect(leftovers.allSatisfy(PendingFile.isTemporaryName))
    try DurableFile.write([9], to: path)
    #expect(contents(of: path) == [9])
  }

  @Test func `removes its temporary file when it fails`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.makeFolder(folder.file("a"))
    let error = #expect(throws: DurabilityError.self) {
      try DurableFile.write([1], to: folder.file("a"))
    }
    #expect(error?.path == folder.file("a"))
    #expect(try folder.names() == ["a"])
  }

  @Test func `gives the mode asked for`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    try DurableFile.write([1], to: folder.file("b"), permissions: [.ownerReadWrite, .groupRead])
    #expect(mode(of: folder.file("a")) == 0o600)
    #expect(mode(of: folder.file("b")) == 0o640)
  }

  @Test func `tells a folder that is not there`() throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: DurabilityError.self) {
      try DurableFile.write([1], to: folder.file("no").appending("a"))
    }
    #expect(error?.isNotFound == true)
    #expect(error?.description.contains("open failed") == true)
  }

  @Test(arguments: [
    (name: ".a.partial-0", isTemporary: true), (".000001.ckpt.partial-12", true),
    ("a.partial-0", false), (".a.partial-", false), (".a.partial-x", false), ("a", false),
    (".a\u{6DD}.partial-0", true),  // a letter that Swift joins with the dot after it
    (".partial", false), ("", false),
  ])
  func `knows its temporary names`(name: String, isTemporary: Bool) {
    #expect(PendingFile.isTemporaryName(name) == isTemporary)
  }
}

@Suite struct `A durable file` {
  @Test func `that must be new replaces nothing`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.create([1], at: folder.file("a"))
    #expect(throws: DurabilityError.alreadyExists(folder.file("a"))) {
      try DurableFile.create([2], at: folder.file("a"))
    }
    #expect(contents(of: folder.file("a")) == [1])
    #expect(try folder.names() == ["a"])
  }

  @Test func `is renamed and flushes both folders`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.makeFolder(folder.file("in"))
    try DurableFile.write([1], to: folder.file("a"))
    try DurableFile.write([2], to: folder.file("in").appending("b"))
    let taken = try steps {
      try DurableFile.rename(folder.file("a"), to: folder.file("in").appending("b"))
    }.taken
    #expect(taken == [.renamed, .folderSynced, .folderSynced])
    #expect(contents(of: folder.file("in").appending("b")) == [1])
    #expect(try !DurableFile.exists(folder.file("a")))
  }

  @Test func `changes its name with another's`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    try DurableFile.write([2], to: folder.file("b"))
    try DurableFile.exchange(folder.file("a"), with: folder.file("b"))
    #expect(contents(of: folder.file("a")) == [2])
    #expect(contents(of: folder.file("b")) == [1])
  }

  @Test func `is removed`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    #expect(
      try steps { try DurableFile.remove(folder.file("a")) }.taken == [.removed, .folderSynced])
    let error = #expect(throws: DurabilityError.self) { try DurableFile.remove(folder.file("a")) }
    #expect(error?.isNotFound == true)
    #expect(try !DurableFile.removeIfPresent(folder.file("a")))
  }

  @Test func `can be flushed by its name`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    #expect(try steps { try DurableFile.syncFile(folder.file("a")) }.taken == [.fileSynced])
    #expect(throws: DurabilityError.self) { try DurableFile.syncFile(folder.file("b")) }
    #expect(throws: DurabilityError.self) { try DurableFile.syncFolder(folder.file("a")) }
  }
}

@Suite struct `A durable folder` {
  @Test func `is made with those above it, one flush each`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a").appending("b").appending("c")
    let taken = try steps { try DurableFile.makeFolder(path) }.taken
    let each: [DurableStep] = [.folderMade, .folderSynced]
    #expect(taken == each + each + each)
    #expect(try DurableFile.isFolder(path))
    #expect(try steps { try DurableFile.makeFolder(path) }.taken == [])
  }

  @Test func `is made below another one only while that is there`() throws {
    let folder = try TemporaryFolder()
    let base = folder.file("a").appending("b")
    let path = base.appending("c").appending("d")
    let error = #expect(throws: DurabilityError.self) {
      try DurableFile.makeFolder(path, below: base)
    }
    #expect(error?.isNotFound == true)
    #expect(try !DurableFile.exists(folder.file("a")))
    try DurableFile.makeFolder(base)
    try DurableFile.makeFolder(path, below: base)
    #expect(try DurableFile.isFolder(path))
  }

  @Test func `cannot take the place of a file`() throws {
    let folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("a"))
    let link = folder.file("link")
    try FileManager.default.createSymbolicLink(
      atPath: link.string, withDestinationPath: folder.file("a").string)
    for path in [folder.file("a"), folder.file("a").appending("b"), link] {
      #expect(throws: DurabilityError.self) { try DurableFile.makeFolder(path) }
      let error = #expect(throws: DurabilityError.self) { try DurableFile.checkFolderPlace(path) }
      #expect(error?.description.contains(", not a folder.") == true)
    }
    try DurableFile.checkFolderPlace(folder.file("b").appending("c"))
    #expect(try !DurableFile.exists(folder.file("b")))
  }

  @Test func `lists its names in byte order`() throws {
    let folder = try TemporaryFolder()
    for name in ["b", "é", "B", ".a"] { try DurableFile.write([], to: folder.file(name)) }
    #expect(try DurableFile.names(in: folder.path) == [".a", "B", "b", "é"])
  }

  @Test func `is removed with all in it, and no link is followed`() throws {
    let folder = try TemporaryFolder()
    let tree = folder.file("tree")
    try DurableFile.makeFolder(tree.appending("a").appending("b"))
    try DurableFile.write([1], to: tree.appending("a").appending("b").appending("file"))
    try DurableFile.makeFolder(folder.file("kept"))
    try DurableFile.write([1], to: folder.file("kept").appending("file"))
    try FileManager.default.createSymbolicLink(
      atPath: tree.appending("link").string, withDestinationPath: folder.file("kept").string)
    try DurableFile.removeTree(tree)
    #expect(try folder.names() == ["kept"])
    #expect(contents(of: folder.file("kept").appending("file")) == [1])
    try DurableFile.removeTree(tree)
  }

  @Test func `is removed however deep it is`() throws {
    let folder = try TemporaryFolder()
    var path = folder.file("deep")
    for _ in 0..<500 { path.append("d") }
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
    try DurableFile.removeTree(folder.file("deep"))
    #expect(try folder.names() == [])
  }

  @Test func `has room on its volume`() throws {
    let folder = try TemporaryFolder()
    #expect(try DurableFile.freeBytes(at: folder.path) ?? 0 > 0)
    #expect(throws: DurabilityError.self) { try DurableFile.freeBytes(at: folder.file("no")) }
  }
}

func mode(of path: FilePath) -> Int? {
  let attributes = try? FileManager.default.attributesOfItem(atPath: path.string)
  return attributes?[.posixPermissions] as? Int
}
