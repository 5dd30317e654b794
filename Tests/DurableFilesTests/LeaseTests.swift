import Foundation
import Glibc
import SystemPackage
import Testing

@testable import GodwitDurableFiles

@Suite struct `A lease` {
  /// Lets a lease look as if nobody had renewed it for an hour.
  private func age(_ path: FilePath) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -3_600)], ofItemAtPath: path.string)
  }

  @Test func `has one more epoch for each holder`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    for epoch in 1...12 as ClosedRange<UInt64> {
      let lease = try Lease(acquiring: path, seconds: 60)
      #expect(try lease.token.epoch == epoch && lease.isCurrent && lease.token.isCurrent)
    }
  }

  /// Whatever lies there, a run that nobody can begin helps nobody.
  @Test(arguments: [
    "", "5\n", "precious lock", "7 and more than twenty bytes", String(repeating: "9", count: 25),
    "\(UInt64.max)", "\(UInt64.max - 1)", "-1",
  ])
  func `begins anew where its file holds no epoch`(text: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    try text.write(toFile: path.string, atomically: false, encoding: .utf8)
    for epoch in 1...2 as ClosedRange<UInt64> {
      let lease = try Lease(acquiring: path, seconds: 60)
      #expect(try lease.token.epoch == epoch && lease.token.isCurrent)
      #expect(FileManager.default.contents(atPath: path.string) == Data("\(epoch)".utf8))
    }
    try text.write(toFile: path.string, atomically: false, encoding: .utf8)
    let old = try FileLock(acquiring: path)
    try age(path)
    let new = try Lease(acquiring: path, seconds: 60)
    #expect(try new.token.epoch == 1 && new.token.isCurrent)
    withExtendedLifetime(old) {}
  }

  @Test func `is not taken on a file that has other names`() throws {
    let folder = try TemporaryFolder()
    let (path, other) = (folder.path.appending("lock"), folder.path.appending("other"))
    try "precious".write(toFile: other.string, atomically: false, encoding: .utf8)
    try #require(link(other.string, path.string) == 0)
    #expect(throws: DurabilityError.otherNames(path)) { try Lease(acquiring: path, seconds: 60) }
    #expect(throws: DurabilityError.otherNames(path)) { _ = try DurableLog(at: path) }
    #expect(FileManager.default.contents(atPath: other.string) == Data("precious".utf8))
  }

  @Test func `keeps others out while it is renewed`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    let lease = try Lease(acquiring: path, seconds: 60)
    #expect(throws: DurabilityError.locked(path)) { try Lease(acquiring: path, seconds: 60) }
    try age(path)
    lease.renew()
    #expect(throws: DurabilityError.locked(path)) { try Lease(acquiring: path, seconds: 60) }
    #expect(try lease.isCurrent)
  }

  @Test func `can be taken over when it has run out, and says so to its holder`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    let old = try Lease(acquiring: path, seconds: 60)
    try age(path)
    let new = try Lease(acquiring: path, seconds: 60)
    #expect(new.token.epoch == old.token.epoch + 1)
    #expect(try !old.isCurrent && !old.token.isCurrent)
    // What the old holder does now is of no use to it, and no harm to the other.
    old.renew()
    #expect(try new.isCurrent && new.token.isCurrent)
    #expect(throws: DurabilityError.locked(path)) { try Lease(acquiring: path, seconds: 60) }
  }

  @Test func `is lost when its file is, and is not found again in a new one`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    let old = try Lease(acquiring: path, seconds: 60)
    #expect(!old.token.isGone)
    #expect(unlink(path.string) == 0)
    #expect(try !old.isCurrent && !old.token.isCurrent && old.token.isGone)
    let new = try Lease(acquiring: path, seconds: 60)
    #expect(!old.token.isGone, "somebody else has it")
    #expect(try new.token.epoch == 1 && !old.token.isCurrent && new.token.isCurrent)
  }

  @Test func `is not called lost where nobody can tell`() throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("lock")
    let lease = try Lease(acquiring: path, seconds: 60)
    #expect(unlink(path.string) == 0 && mkdir(path.string, 0o700) == 0)
    #expect(throws: DurabilityError.notRegular(path, .folder)) { try lease.token.isCurrent }
    // A folder in its place is another file.
    #expect(try !lease.isCurrent)
  }

  @Test func `is taken over by one, however many try`() async throws {
    let folder = try TemporaryFolder()
    for number in 0..<20 {
      let path = folder.path.appending("lock-\(number)")
      let old = try Lease(acquiring: path, seconds: 60)
      try age(path)
      let held = await withTaskGroup(of: Lease?.self) { group in
        for _ in 0..<8 { group.addTask { try? Lease(acquiring: path, seconds: 60) } }
        return await group.reduce(into: [Lease]()) { held, lease in
          if let lease { held.append(lease) }
        }
      }
      #expect(try held.count == 1 && held.allSatisfy { try $0.isCurrent } && !old.isCurrent)
    }
  }
}
