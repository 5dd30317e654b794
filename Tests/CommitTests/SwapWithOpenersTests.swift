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
private final class KnownFile: Sendable {
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
      try DurableSteps.observing(with: { step, path in
        guard step == .renamed, path.lastComponent?.string.contains("backup") == true else {
          return
        }
        let file = try FileDescriptor.open(source, .writeOnly, options: .append)
        try file.writeAll([0])
        try file.close()
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(files(below: fixture.folder) == before)
  }

  /// What an application, or a tool that synchronizes, puts there by a rename: no lock is in its way.
  @Test(arguments: [SwapFixture.Way.settled, .walled, .small], [false, true])
  func `leaves a store that is put in the source's place, at whatever step, and its log`(
    way: SwapFixture.Way, withLog: Bool
  ) throws {
    let counter = Mutex(0)
    let first = try SwapFixture(way)
    let assembled = try first.assemble()
    try DurableSteps.observing(with: { _, _ in counter.withLock { $0 += 1 } }) {
      _ = try first.swap.commit(assembled)
    }
    let steps = counter.withLock { $0 }
    #expect(steps > 5)
    for step in 1...steps {
      let fixture = try SwapFixture(way)
      let assembled = try fixture.assemble()
      let (source, log) = (fixture.source, StoreFiles(fixture.source).wal)
      let (store, ownLog) = (
        fixture.scratch.path.appending("app"), fixture.scratch.path.appending("log")
      )
      try copyFile(source, store)
      try write("its log", to: ownLog)
      let marks = try [FileMark(store), FileMark(ownLog)]
      let passed = Mutex(0)
      let result = Result {
        try DurableSteps.observing(with: { _, _ in
          let number = passed.withLock {
            $0 += 1
            return $0
          }
          guard number == step else { return }
          if withLog { rename(ownLog.string, log.string) }
          rename(store.string, source.string)
        }) { _ = try fixture.swap.commit(assembled) }
      }
      if case .failure(let error) = result {
        #expect(error as? CommitError == .sourceChanged(store: source), "step \(step): \(error)")
      }
      _ = try fixture.recover()
      #expect(try FileMark(source) == marks[0], "step \(step) of \(steps)")
      if withLog { #expect(try FileMark(log) == marks[1], "step \(step) of \(steps)") }
    }
  }

  @Test func `takes everything back where an application deletes the store`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let source = fixture.source
    #expect(throws: CommitError.sourceChanged(store: source)) {
      try DurableSteps.observing(with: { step, path in
        guard step == .renamed, path.lastComponent?.string.contains("backup") == true else {
          return
        }
        unlink(source.string)
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(files(below: fixture.folder) == before.filter { $0 != "Recipes.sqlite" })
  }
}
