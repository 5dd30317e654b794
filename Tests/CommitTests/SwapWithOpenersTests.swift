import Foundation
import Glibc
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

/// A file that is known by its inode and not open: it can be opened whatever its name is by then.
final class KnownFile: Sendable {
  private let descriptor: Int32

  init(_ path: FilePath) {
    descriptor = open(path.string, 0o10000000 | O_CLOEXEC)  // O_PATH
  }

  deinit { close(descriptor) }

  /// Opens the file without waiting for a lease, and closes it again.
  ///
  /// - Returns: The first bytes, or nil where open(2) would have to wait.
  func firstBytes() -> String? {
    let file = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16)
    let count = read(file, &bytes, 16)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }
}

/// Puts a whole store in another one's place, with a log or without one.
struct Application {
  let store: FilePath
  private let log: FilePath
  private let own: FilePath
  private let ownLog: FilePath?
  private let marks: [FileMark?]

  init(_ store: FilePath, _ scratch: FilePath, withLog: Bool) throws {
    (self.store, log) = (store, StoreFiles(store).wal)
    own = scratch.appending("application")
    try copyFile(store, own)
    ownLog = withLog ? scratch.appending("application-log") : nil
    if let ownLog { try write("its log", to: ownLog) }
    marks = try [FileMark(own), ownLog.flatMap { try FileMark($0) }]
  }

  /// - Parameter kill: How many durable steps later the process is killed.
  func acting(atStep step: Int, killedAfter kill: Int?, _ body: () throws -> Void) throws {
    let passed = Mutex(0)
    try DurableSteps.observing(with: { _, _ in
      let number = passed.withLock {
        $0 += 1
        return $0
      }
      if number == step {
        if let ownLog { rename(ownLog.string, log.string) }
        rename(own.string, store.string)
      }
      if let kill, number >= step + kill { throw SimulatedCrash() }
    }) { try body() }
  }

  func isThere() throws -> Bool {
    try FileMark(store) == marks[0] && (ownLog == nil || FileMark(log) == marks[1])
  }
}

func stepCount(_ body: () throws -> Void) throws -> Int {
  let count = Mutex(0)
  try DurableSteps.observing(with: { _, _ in count.withLock { $0 += 1 } }) { try body() }
  return count.withLock { $0 }
}

/// Acts when a file of the backup has its name.
private func whenBackedUp<Result>(
  _ act: @escaping @Sendable () throws -> Void, _ body: () throws -> Result
) throws -> Result {
  try DurableSteps.observing(with: { step, path in
    guard step == .renamed, path.lastComponent?.string.contains("backup") == true else { return }
    try act()
  }) { try body() }
}

@Suite struct `A commit in place of a store that others open` {
  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `is not begun while another has the store open without a lock`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let application = try FileDescriptor.open(fixture.source, .readOnly, options: .closeOnExec)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try fixture.swap.commit(assembled)
    }
    try application.close()
    #expect(files(below: fixture.folder) == before)
    #expect(try fixture.recover() == .nothing)
    try fixture.swap.commit(assembled)
    #expect(try fixture.content() == .new)
  }

  /// The first exchange of a store with a WAL puts its clone in place, the second the destination.
  @Test(arguments: [(SwapFixture.Way.settled, 1), (.walled, 1), (.walled, 2)])
  func `is undone when somebody opens the old file meanwhile`(
    way: SwapFixture.Way, exchange: Int
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let source = fixture.source
    let count = Mutex(0)
    let known = Mutex(KnownFile(source))
    #expect(throws: CommitError.storeInUse(store: source)) {
      try DurableSteps.observing(with: { step, _ in
        guard step == .exchanged else { return }
        let number = count.withLock {
          $0 += 1
          return $0
        }
        if number == exchange {
          #expect(known.withLock { $0.firstBytes() } == nil, "the lease is held")
        }
        // What the next exchange replaces.
        known.withLock { $0 = KnownFile(source) }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(count.withLock { $0 } == exchange + 1, "the names were exchanged back")
    #expect(try fixture.content() == .old)
    #expect(
      files(below: fixture.folder) == before.filter { exchange == 1 || !$0.hasSuffix("-wal") })
    #expect(try fixture.recover() == .nothing)
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `leaves no old file that SQLite would write beside`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let known = KnownFile(fixture.source)
    #expect(known.firstBytes() == "SQLite format 3\0")
    let journal = try fixture.swap.commit(assembled)
    #expect(known.firstBytes() == "This store was r")
    #expect(try fixture.content() == .new)
    #expect(try fixture.content(of: journal.backup.store) == .old)
  }

  @Test func `leaves an old file alone that has another name`() throws {
    let fixture = try SwapFixture(.settled)
    let other = fixture.scratch.path.appending("other.sqlite")
    try FileManager.default.linkItem(atPath: fixture.source.string, toPath: other.string)
    let assembled = try fixture.assemble()
    try fixture.swap.commit(assembled)
    #expect(try fixture.content(of: other) == .old)
  }

  @Test func `is taken back at once when the source was changed`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let source = fixture.source
    // Somebody who does not care for SQLite's locks.
    #expect(throws: CommitError.sourceChanged(store: source)) {
      try whenBackedUp({
        let file = try FileDescriptor.open(source, .writeOnly, options: .append)
        try file.writeAll([0])
        try file.close()
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(files(below: fixture.folder) == before)
  }

  /// What an application, or a tool that synchronizes, puts there by a rename: no lock is in its way. The
  /// process may be killed so many steps later.
  @Test(arguments: [SwapFixture.Way.settled, .walled, .small], [nil, 1, 2])
  func `leaves a store that is put in the source's place, at whatever step, and its log`(
    way: SwapFixture.Way, kill: Int?
  ) throws {
    let first = try SwapFixture(way)
    let assembled = try first.assemble()
    let steps = try stepCount { _ = try first.swap.commit(assembled) }
    #expect(steps > 5)
    for step in 1...steps {
      // Each step with a log and without one, after another kill.
      let withLog = (step + (kill ?? 0)).isMultiple(of: 2)
      let fixture = try SwapFixture(way)
      let assembled = try fixture.assemble()
      let application = try Application(fixture.source, fixture.scratch.path, withLog: withLog)
      let result = Result {
        try application.acting(atStep: step, killedAfter: kill) {
          _ = try fixture.swap.commit(assembled)
        }
      }
      if case .failure(let error) = result, !(error is SimulatedCrash) {
        #expect(
          error as? CommitError == .sourceChanged(store: fixture.source), "step \(step): \(error)")
      }
      _ = try fixture.recover()
      #expect(try application.isThere(), "step \(step) of \(steps), with log: \(withLog)")
    }
  }

  @Test func `takes everything back where an application deletes the store`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let source = fixture.source
    #expect(throws: CommitError.sourceChanged(store: source)) {
      try whenBackedUp({
        unlink(source.string)
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(files(below: fixture.folder) == before.filter { $0 != "Recipes.sqlite" })
  }

  /// What a user takes from others while the commit is under way stays taken.
  @Test func `gives the new store the rights that the old one has in the end`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let source = fixture.source
    #expect(chmod(source.string, 0o644) == 0)
    let journal = try whenBackedUp({
      #expect(chmod(source.string, 0o600) == 0)
    }) { try fixture.swap.commit(assembled) }
    for path in [source, journal.backup.store] {
      var status = stat()
      #expect(lstat(path.string, &status) == 0 && status.st_mode & 0o777 == 0o600, "\(path)")
    }
  }
}
