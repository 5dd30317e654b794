import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

/// Opens files at exchanges of names, as applications do.
private final class Openers: Sendable {
  /// What an opener is told that came too late: see ``StoreLock/invalidateUnnamed(evenNamed:)``.
  static let useless = "This store was r"

  private let store: FilePath
  private let files: Mutex<[KnownFile]>

  init(of store: FilePath) {
    self.store = store
    files = Mutex([KnownFile(store)])
  }

  /// The file that had the store's name after so many exchanges.
  subscript(_ number: Int) -> KnownFile? {
    files.withLock { $0.indices.contains(number) ? $0[number] : nil }
  }

  /// - Parameters:
  ///   - removed: The process is killed when it has removed this.
  ///   - act: Called after each exchange, with its number.
  func observing(
    killedWithout removed: FilePath? = nil, _ act: @escaping @Sendable (Int) -> Void,
    _ body: () throws -> Void
  ) throws {
    try DurableSteps.observing(with: { [self] step, path in
      if step == .removed, path == removed { throw SimulatedCrash() }
      guard step == .exchanged else { return }
      let number = files.withLock {
        $0.append(KnownFile(store))
        return $0.count - 1
      }
      act(number)
    }) { try body() }
  }

  /// Somebody waits for the file from here on.
  func open(_ number: Int) {
    #expect(self[number]?.firstBytes() == nil, "the lease is held")
  }
}

/// The first exchange of a store with a WAL puts its clone in place, the second the destination.
@Suite struct `A new file that had the store's name for a moment` {
  @Test(arguments: [(SwapFixture.Way.settled, 1), (.small, 1), (.walled, 1), (.walled, 2)])
  func `is useless once the old one has its name again`(
    way: SwapFixture.Way, exchange: Int
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let openers = Openers(of: fixture.source)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try openers.observing({ if $0 == exchange { openers.open(exchange - 1) } }) {
        _ = try fixture.swap.commit(assembled)
      }
    }
    #expect(openers[exchange]?.firstBytes() == Openers.useless)
    #expect(try fixture.content() == .old)
    #expect(try fixture.recover() == .nothing)
  }

  /// The new file is opened when the old one is about to get its name back.
  @Test(arguments: [(SwapFixture.Way.settled, 1), (.small, 1), (.walled, 1), (.walled, 2)])
  func `stays where it is when somebody opens it before it loses the name`(
    way: SwapFixture.Way, exchange: Int
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let before = files(below: fixture.folder)
    let openers = Openers(of: fixture.source)
    let result = Result {
      try openers.observing({
        if $0 == exchange { openers.open(exchange - 1) }
        if $0 == exchange + 1 { openers.open(exchange) }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(openers[exchange - 1]?.firstBytes() == Openers.useless)
    #expect(openers[exchange]?.firstBytes() == "SQLite format 3\0")
    if way == .walled, exchange == 1 {
      // The clone is in use, and the commit was taken back.
      #expect(throws: CommitError.storeInUse(store: fixture.source)) { try result.get() }
      #expect(try fixture.content() == .old)
      #expect(files(below: fixture.folder) == before.filter { !$0.hasSuffix("-wal") })
    } else {
      try result.get()
      #expect(try fixture.content() == .new)
      #expect(files(below: fixture.folder) == fixture.expectedFiles)
    }
  }

  /// `cp -al`, rsnapshot and others give stores second names: nothing can be written over such a file, so who
  /// waits for it must find it at its path.
  @Test(arguments: [SwapFixture.Way.settled, .small, .walled])
  func `gives way to an old one that has another name, and the backup stays`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try SwapFixture(way)
    let other = fixture.scratch.path.appending("snapshot-of-last-night")
    try DurableFile.link(fixture.source, to: other)
    let before = try Data(contentsOf: URL(fileURLWithPath: other.string))
    let mark = try FileMark(fixture.source)
    let assembled = try fixture.assemble()
    let openers = Openers(of: fixture.source)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try openers.observing({
        guard $0 == 1 else { return }
        openers.open(0)
        openers.open(1)
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(openers[1]?.firstBytes() == Openers.useless)
    #expect(try FileMark(fixture.source) == mark)
    #expect(try fixture.content() == .old)
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    #expect(try fixture.content(of: backup) == .old)
    if way == .walled {
      // Only the clone had the name: the commit goes on with another one.
      guard case .committed = try fixture.recover() else {
        Issue.record("the commit goes on")
        return
      }
      #expect(try fixture.content() == .new)
    } else {
      #expect(try fixture.recover() == .takenBackKeeping(backup: backup))
      #expect(try FileMark(fixture.source) == mark)
    }
    #expect(try Data(contentsOf: URL(fileURLWithPath: other.string)) == before)
  }

  @Test func `is made again by the last step of a chain, which had it under another name`() throws {
    let fixture = try SwapFixture(.settled)
    try DurableFile.link(fixture.source, to: fixture.scratch.path.appending("other"))
    let finished = StoreFiles(try fixture.scratch.folder("step").appending("store.sqlite"))
    try DurableFile.rename(try fixture.assemble(), to: finished.store)
    let openers = Openers(of: fixture.source)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try openers.observing({
        guard $0 == 1 else { return }
        openers.open(0)
        openers.open(1)
      }) {
        try StoreSwap(chain: CommitEnds(fixture.plan), run: fixture.run, name: "R1")
          .commit(chain: finished, obsolete: [])
      }
    }
    #expect(openers[1]?.firstBytes() == Openers.useless)
    #expect(try FileMark(finished.store) == nil)
    #expect(try fixture.content() == .old)
  }

  /// A recovery has nothing to go on with then, and takes the commit back at once.
  @Test func `is none of a recovery either`() throws {
    let fixture = try SwapFixture.interrupted(.settled)
    let before = files(below: fixture.folder)
    let openers = Openers(of: fixture.source)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try openers.observing({ if $0 == 1 { openers.open(0) } }) { _ = try fixture.recover() }
    }
    #expect(openers[1]?.firstBytes() == Openers.useless)
    #expect(files(below: fixture.folder) == before)
    #expect(try fixture.recover() == .nothing)
    try fixture.swap.commit(try fixture.assemble())
    #expect(try fixture.content() == .new)
  }
}

/// The process that gave it up was killed before it removed it: who waits for it gets it then.
@Suite struct `A new file that was given up, and is still there` {
  private func given(_ way: SwapFixture.Way) throws -> (SwapFixture, FilePath) {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    // A step is heard of once it is done: the removal, too.
    let kept = fixture.scratch.path.appending("kept")
    try DurableFile.link(assembled, to: kept)
    let old = KnownFile(fixture.source)
    let state = Mutex((exchanges: 0, isKilled: false))
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        let isFirst = try state.withLock {
          if step == .exchanged { $0.exchanges += 1 }
          if $0.exchanges == 2, step == .renamed, path.lastComponent?.string == "journal.json" {
            $0.isKilled = true
          }
          if $0.isKilled { throw SimulatedCrash() }
          return step == .exchanged && $0.exchanges == 1
        }
        if isFirst { #expect(old.firstBytes() == nil, "somebody waits for the old file") }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    try #require(journal.isGivenUp == true)
    try DurableFile.rename(kept, to: assembled)
    try #require(try FileMark(assembled) == journal.assembledMark)
    return (fixture, assembled)
  }

  @Test func `is removed where nobody has it`() throws {
    let (fixture, assembled) = try given(.settled)
    #expect(try fixture.recover() == .takenBack)
    #expect(try FileMark(assembled) == nil)
    #expect(try fixture.content() == .old)
  }

  @Test func `stays while somebody has it open, and for good where somebody has written to it`()
    throws
  {
    let (fixture, assembled) = try given(.settled)
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    // The clock of file times moves every few milliseconds.
    usleep(20_000)
    let application = try Connection(path: assembled.string, mode: .readWrite)
    #expect(throws: CommitError.storeInUse(store: assembled)) { try fixture.recover() }
    try application.execute("UPDATE ZWORD SET WORD = 'theirs'")
    try application.close()
    let mark = try FileMark(assembled)
    #expect(
      throws: CommitError.twoStores(store: fixture.source, other: assembled, backup: backup)
    ) { try fixture.recover() }
    #expect(try FileMark(assembled) == mark)
    #expect(try fixture.content() == .old)
    try DurableFile.remove(assembled)
    #expect(try fixture.recover() == .takenBack)
  }
}

/// A process was killed before it had put a new store in place, and then an application wrote to its own.
@Suite struct `A new file that is gone` {
  private func write(to store: FilePath) throws -> FileMark? {
    let application = try Connection(path: store.string, mode: .readWrite)
    try application.execute("UPDATE ZWORD SET WORD = 'theirs'")
    try application.close()
    return try FileMark(store)
  }

  @Test(arguments: [(SwapFixture.Way.settled, 1), (.small, 1), (.walled, 2)])
  func `had the store's name for a moment, and is known to have lost it`(
    way: SwapFixture.Way, exchange: Int
  ) throws {
    let fixture = try SwapFixture(way)
    let before = files(below: fixture.folder)
    let assembled = try fixture.assemble()
    let openers = Openers(of: fixture.source)
    #expect(throws: SimulatedCrash.self) {
      try openers.observing(
        killedWithout: assembled, { if $0 == exchange { openers.open(exchange - 1) } }
      ) { _ = try fixture.swap.commit(assembled) }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    let mark = try write(to: fixture.source)
    #expect(mark?.isSameFile(as: way == .walled ? journal.clone : journal.main) == true)
    let recovery = try fixture.recover()
    #expect(try FileMark(fixture.source) == mark)
    if way == .walled {
      // The clone is the store: the source's own bytes are in the backup alone.
      #expect(recovery == .takenBackKeeping(backup: journal.backup.store))
    } else {
      #expect(recovery == .takenBack)
      #expect(files(below: fixture.folder) == before)
    }
  }

  /// Where it may have been put in place, the backup is that of a commit which nobody has written down yet.
  @Test(arguments: [SwapFixture.Way.settled, .small, .walled])
  func `was never in place where the store is the source's own file`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let before = files(below: fixture.folder)
    let assembled = try fixture.assemble()
    let backup = CommitJournal.backup(of: fixture.source, .replace, named: "R1").store
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, path == backup { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    try DurableFile.remove(assembled)
    let mark = try write(to: fixture.source)
    #expect(try fixture.recover() == .takenBack)
    #expect(try FileMark(fixture.source) == mark)
    #expect(files(below: fixture.folder) == before.filter { !$0.hasSuffix("-wal") })
  }
}

@Suite struct `Shared memory that a process left beside a store` {
  /// Whose it is when the commit goes on after a crash between its two exchanges.
  enum Memory: CaseIterable { case own, ownOfRenumberedVolume, another }

  @Test(arguments: Memory.allCases)
  func `keeps no commit from its end`(memory: Memory) throws {
    let fixture = try SwapFixture(.walled)
    let shm = StoreFiles(fixture.source).shm
    try write("shared memory", to: shm)
    let assembled = try fixture.assemble()
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    switch memory {
    case .own: break
    case .ownOfRenumberedVolume: try fixture.renumberVolume()
    case .another:
      let next = FilePath(shm.string + ".next")
      try write("another's", to: next)
      try DurableFile.rename(next, to: shm)
    }
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit goes on")
      return
    }
    #expect(try fixture.content() == .new)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }
}
