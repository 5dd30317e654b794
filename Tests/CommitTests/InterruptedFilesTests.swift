import CLinux
import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

/// Files of the run directory that are not what they were when the commit was cut off.
@Suite struct `An interrupted commit` {
  private func change(
    _ fixture: SwapFixture, _ body: (inout CommitJournal) -> Void
  ) throws {
    var journal = try #require(try CommitJournal.read(in: fixture.run))
    body(&journal)
    try journal.write(in: fixture.run, [])
  }

  private func external(_ fixture: SwapFixture, _ name: String) -> FilePath {
    StoreFiles(fixture.source).externalDataFolder.appending(name)
  }

  @Test func `removes no external data that rows of the new store refer to`() throws {
    let fixture = try SwapFixture.interrupted(.settled)
    try change(fixture) { $0.removed = [SwapFixture.kept, SwapFixture.obsolete] }
    guard case .committed = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test func `takes back no external data that rows of the source refer to`() throws {
    let fixture = try SwapFixture.interrupted(.walled)
    try change(fixture) { $0.added.append(SwapFixture.kept) }
    try DurableFile.remove(try fixture.swap.assemblyPath())
    #expect(try fixture.recover() == .takenBack)
    #expect(try DurableFile.exists(external(fixture, SwapFixture.kept)))
    #expect(try fixture.content() == (fixture.way == .beside ? .absent : .old))
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `is known by what it left, until somebody writes to the source`(
    way: SwapFixture.Way
  ) throws {
    for step in 1...(try SwapFixture.durableSteps(way)) {
      let fixture = try SwapFixture.crashed(way, after: step)
      let hasBegun = try DurableFile.exists(fixture.run.journal) && way != .beside
      #expect(
        try StoreSwap.isCutOff(in: fixture.run, of: fixture.source) == hasBegun, "step \(step)")
      guard try hasBegun && fixture.content() == .old else { continue }
      // The clock of file times moves every few milliseconds.
      usleep(20_000)
      let application = try Connection(path: fixture.source.string, mode: .readWrite)
      try application.execute("UPDATE ZWORD SET WORD = 'newer'")
      try application.close()
      #expect(
        try !StoreSwap.isCutOff(in: fixture.run, of: fixture.source), "step \(step)")
    }
  }

  enum Change: CaseIterable { case cut, exchanged, removed }

  @Test(arguments: SwapFixture.Way.allCases, Change.allCases)
  func `publishes no external data but what was written`(
    way: SwapFixture.Way, change: Change
  ) throws {
    let fixture = try SwapFixture.interrupted(way)
    let (file, other) = (SwapFixture.added, SwapFixture.dropped)
    let path = fixture.run.external.appending(file)
    switch change {
    case .cut: try write("add", to: path)
    case .exchanged: try copyFile(fixture.run.external.appending(other), path)
    case .removed: try DurableFile.remove(path)
    }
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == (way == .beside ? .absent : .old))
    // Nor does the next commit, to which the file is as good as any.
    guard change != .removed else { return }
    #expect(throws: CommitError.damagedExternalData(path: path)) {
      try fixture.swap.commit(try fixture.assemble())
    }
    try write("added", to: path)
    try fixture.swap.commit(try fixture.assemble())
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  /// The added files go first, the journal last: whoever goes on in between has them added again.
  @Test(arguments: [SwapFixture.Way.settled, .walled, .small])
  func `has all of its files where it was about to be taken back`(way: SwapFixture.Way) throws {
    var committed = 0
    for step in 1... {
      let fixture = try SwapFixture(way)
      let before = files(below: fixture.folder)
      let assembled = try fixture.assemble()
      let result = Result {
        try opening(
          fixture.source, whileAdding: external(fixture, SwapFixture.added), killedAfter: step
        ) { try fixture.swap.commit(assembled) }
      }
      guard case .failure(let error) = result, error is SimulatedCrash else {
        #expect(throws: CommitError.storeInUse(store: fixture.source)) { _ = try result.get() }
        #expect(files(below: fixture.folder) == before)
        break
      }
      if case .committed = try fixture.recover() {
        committed += 1
        #expect(try fixture.content() == .new, "step \(step)")
        #expect(files(below: fixture.folder) == fixture.expectedFiles, "step \(step)")
      } else {
        #expect(try fixture.content() == .old, "step \(step)")
        #expect(files(below: fixture.folder) == before, "step \(step)")
      }
      #expect(try !hasUnfinished(below: fixture.folder), "step \(step)")
    }
    #expect(committed > 3)
  }

  @Test func `removes nothing that a copy of the store may refer to, which came since`() throws {
    let fixture = try SwapFixture.interrupted(.settled)
    let other = fixture.folder.appending("Recipes.bak")
    try copyFile(fixture.source, other)
    guard case .committed(let journal) = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    #expect(journal.notes.count == 1 && journal.notes[0].contains(other.string))
    #expect(try FileMark(external(fixture, SwapFixture.obsolete)) != nil)
  }

  @Test func `gives the new store the attributes that the source has by now`() throws {
    let fixture = try SwapFixture.interrupted(.settled)
    let value = Array("by now".utf8)
    // Not every file system has attributes.
    guard setxattr(fixture.source.string, "user.godwit", value, value.count, 0) == 0 else { return }
    guard case .committed = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    #expect(try fixture.content() == .new)
    var found = [UInt8](repeating: 0, count: 16)
    let count = getxattr(fixture.source.string, "user.godwit", &found, found.count)
    #expect(Array(found.prefix(max(0, count))) == value)
  }

  /// - Parameter exchanges: 1 where the clone has the store's name, and the source's WAL is gone; 2 where the new store
  ///   has it.
  @Test(arguments: [1, 2], [false, true])
  func `makes a backup whole that has lost its log, or says that it is not`(
    exchanges: Int, isSettledThere: Bool
  ) throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    let wal = StoreFiles(fixture.source).wal
    let passed = Mutex(0)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged { passed.withLock { $0 += 1 } }
        guard try passed.withLock({ $0 }) == exchanges && !DurableFile.exists(wal) else { return }
        throw SimulatedCrash()
      }) { _ = try fixture.swap.commit(assembled) }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    let backup = journal.backup
    #expect(try !journal.isBackupWithoutLogs() && fixture.content(of: backup.store) == .old)
    try DurableFile.remove(backup.wal)
    #expect(try journal.isBackupWithoutLogs())
    if !isSettledThere { try DurableFile.remove(FilePath(fixture.plan.readPath)) }
    guard case .committed(let finished) = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    let isWhole = exchanges == 1 || isSettledThere
    #expect(try fixture.content() == .new)
    #expect(try finished.isBackupWithoutLogs() != isWhole)
    #expect(try (fixture.content(of: backup.store) == .old) == isWhole)
    let expected = fixture.expectedFiles.filter { !$0.hasSuffix("-wal") }
    #expect(files(below: fixture.folder) == expected)
  }

  @Test func `uses no other clone of the source than the one that was read`() throws {
    let fixture = try SwapFixture.interrupted(.walled)
    let clone = FilePath(fixture.plan.readPath)
    try copyFile(fixture.source, clone)
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == .old)
  }
}
