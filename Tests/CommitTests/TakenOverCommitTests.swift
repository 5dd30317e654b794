import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

/// A process that stood still while another took its work over, and goes on.
@Suite struct `A commit whose process stood still` {
  /// The work of two processes at one store.
  private struct Scene: Sendable {
    let fixture: SwapFixture
    let first: LeaseToken
    private let lease: Lease

    init(_ way: SwapFixture.Way) throws {
      fixture = try SwapFixture(way)
      lease = try Lease(acquiring: fixture.run.lock, seconds: 600)
      first = lease.token
    }

    /// What another process does first, once the lease has run out.
    func takeOver() throws -> LeaseToken {
      let next = FilePath(fixture.run.lock.string + "-next")
      try Data("2".utf8).write(to: URL(fileURLWithPath: next.string))
      try #require(rename(next.string, fixture.run.lock.string) == 0)
      try fixture.run.removeLeftovers()
      return try LeaseToken(ofFileAt: fixture.run.lock)
    }

    /// All that the other process does.
    ///
    /// - Returns: False where the store is in use: by the one that stands still.
    func finish(_ lease: LeaseToken) throws -> Bool {
      do {
        try `A commit whose process stood still`.takingLeasesAway(below: fixture.scratch.path) {
          switch try fixture.recover([lease]) {
          case .committed: break
          case .nothing, .takenBack, .takenBackKeeping:
            _ = try fixture.swap("R2", [lease]).commit(try fixture.assemble())
          }
        }
        return true
      } catch CommitError.storeInUse {
        return false
      }
    }
  }

  /// Who stands still loses its lease on a file that another one opens: to the kernel after
  /// `/proc/sys/fs/lease-break-time` seconds, which are 45, and here at once.
  private static func takingLeasesAway(below folder: FilePath, _ body: () throws -> Void) throws {
    let links = FilePath("/proc/\(getpid())/fd")
    let leased = try DurableFile.names(in: links).compactMap { Int32($0) }.filter { file in
      let path = try? FileManager.default.destinationOfSymbolicLink(
        atPath: links.appending("\(file)").string)
      return path?.hasPrefix(folder.string) == true && fcntl(file, getLease) == Int32(F_WRLCK)
    }
    let isDone = Atomic(false)
    Thread.detachNewThread {
      while !leased.isEmpty, !isDone.load(ordering: .relaxed) {
        usleep(10_000)
        for file in leased where fcntl(file, getLease) != Int32(F_WRLCK) {
          _ = fcntl(file, setLease, Int32(F_UNLCK))
        }
      }
    }
    defer { isDone.store(true, ordering: .relaxed) }
    try body()
  }

  @Test(arguments: SwapFixture.Way.allCases, [false, true])
  func `leaves the store and its backup to whoever has taken the work over, at whatever step`(
    way: SwapFixture.Way, hasFinished: Bool
  ) throws {
    for step in 1... {
      let scene = try Scene(way)
      let fixture = scene.fixture
      let assembled = try fixture.assemble()
      let state = Mutex((steps: 0, next: LeaseToken?.none))
      let outcome = Result {
        try DurableSteps.observing(with: { _, _ in
          let isNow = state.withLock { state in
            state.steps += 1
            return state.steps == step
          }
          guard isNow else { return }
          let next = try scene.takeOver()
          state.withLock { $0.next = next }
          if hasFinished { _ = try scene.finish(next) }
        }) {
          _ = try fixture.swap("R1", [scene.first]).commit(assembled)
        }
      }
      guard let next = state.withLock({ $0.next }) else {
        // The commit has fewer steps than that.
        #expect(step > 10)
        return try outcome.get()
      }
      let between = try fixture.content()
      #expect(
        between == .new || between == (way == .beside ? .absent : .old), "step \(step): \(between)")
      #expect(try scene.finish(next), "step \(step)")
      #expect(try fixture.content() == .new, "step \(step)")
      let left = files(below: fixture.folder)
      #expect(
        ["R1", "R2"].contains { left == fixture.expectedFiles(named: $0) },
        "step \(step): \(left), \(outcome)")
      for name in left where name.contains("godwit-backup") && name.hasSuffix(".sqlite") {
        #expect(try fixture.content(of: fixture.folder.appending(name)) == .old, "step \(step)")
      }
    }
  }

  @Test func `says that its lock is gone where nobody is known to have taken the work over`() throws
  {
    let scene = try Scene(.settled)
    let store = scene.fixture.source
    let moved = FilePath(scene.fixture.run.path.string + "-moved")
    try #require(rename(scene.fixture.run.path.string, moved.string) == 0)
    #expect(throws: CommitError.lockGone(store: store, lock: scene.fixture.run.lock)) {
      try [scene.first].requireCurrent(store: store)
    }
    try #require(rename(moved.string, scene.fixture.run.path.string) == 0)
    try [scene.first].requireCurrent(store: store)
    _ = try scene.takeOver()
    #expect(throws: CommitError.leaseLost(store: store)) {
      try [scene.first].requireCurrent(store: store)
    }
  }

  /// Between its last look at its lease and its lock on the store, another process may be in its commit.
  @Test func `takes nothing back that is another's`() throws {
    let scene = try Scene(.settled)
    let fixture = scene.fixture
    let assembled = try fixture.assemble()
    let next = try scene.takeOver()
    let isAsked = Mutex(false)
    try DurableSteps.observing(with: { step, path in
      guard path == fixture.run.journal, step == .renamed,
        isAsked.withLock({ asked in
          defer { asked = true }
          return !asked
        })
      else { return }
      #expect(throws: CommitError.storeInUse(store: fixture.source)) {
        _ = try fixture.swap("R1", [scene.first]).commit(assembled)
      }
      #expect((try? DurableFile.exists(fixture.run.journal)) == true)
    }) {
      _ = try fixture.swap("R2", [next]).commit(try fixture.assemble())
    }
    #expect(isAsked.withLock { $0 })
    #expect(try fixture.content() == .new)
    #expect(files(below: fixture.folder) == fixture.expectedFiles(named: "R2"))
  }
}

// fcntl(2); glibc declares them for _GNU_SOURCE only.
private let setLease: Int32 = 1024
private let getLease: Int32 = 1025
