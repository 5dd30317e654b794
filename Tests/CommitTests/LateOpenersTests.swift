import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

/// A commit whose process was killed right after an exchange of names, and what an application does with the
/// file that it had waited for.
struct CutOffExchange: CustomTestStringConvertible, Sendable {
  let way: SwapFixture.Way
  /// The first exchange of a store with a WAL puts its clone in place, the second the destination.
  let exchange: Int

  static let all = [
    CutOffExchange(way: .settled, exchange: 1), CutOffExchange(way: .small, exchange: 1),
    CutOffExchange(way: .walled, exchange: 1), CutOffExchange(way: .walled, exchange: 2),
  ]

  var testDescription: String { "\(way.rawValue), exchange \(exchange)" }

  func made() throws -> SwapFixture {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let count = Mutex(0)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        guard step == .exchanged else { return }
        let number = count.withLock {
          $0 += 1
          return $0
        }
        if number == exchange { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    return fixture
  }

  /// The file that had the store's name before.
  func replaced(_ fixture: SwapFixture) throws -> FilePath {
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    return way == .walled && exchange == 1 ? journal.clonePath : FilePath(journal.assembled)
  }
}

/// Changes every row, as an application would that has the file open.
private func write(to store: FilePath, keepingLogAt log: FilePath? = nil) throws {
  let connection = try Connection(path: store.string, mode: .readWrite)
  try connection.execute("PRAGMA wal_autocheckpoint = 0; UPDATE ZWORD SET WORD = 'app'")
  if let log { try copyFile(StoreFiles(store).wal, log) }
  try connection.close()
}

/// The words of a store and its WAL, read from a private copy.
private func words(of store: FilePath, _ scratch: FilePath) throws -> [[SQLiteValue]] {
  let copy = scratch.appending("words.sqlite")
  for suffix in ["", "-wal"] {
    let path = FilePath(store.string + suffix)
    if try DurableFile.exists(path) { try copyFile(path, FilePath(copy.string + suffix)) }
  }
  let connection = try Connection(path: copy.string, mode: .readWrite)
  let words = try connection.rows("SELECT WORD, count(*) FROM ZWORD GROUP BY WORD")
  #expect(try connection.rows("PRAGMA integrity_check") == [[.text("ok")]])
  try connection.close()
  return words
}

private let application: [[SQLiteValue]] = [[.text("app"), .integer(StoreContent.rows)]]

@Suite struct `A file that was replaced when the process was killed` {
  @Test(arguments: CutOffExchange.all)
  private func `has the store's name again as long as an application has it open`(
    cut: CutOffExchange
  ) throws {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    let mark = try FileMark(old)
    let opened = try FileDescriptor.open(old, .readOnly, options: .closeOnExec)
    #expect(throws: CommitError.storeInUse(store: fixture.source)) { try fixture.recover() }
    #expect(try FileMark(fixture.source) == mark)
    try opened.close()
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit goes on")
      return
    }
    #expect(try fixture.content() == .new)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test(arguments: CutOffExchange.all)
  private func `is the store where an application has written to it`(cut: CutOffExchange) throws {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    if cut.way == .walled, cut.exchange == 1 {
      // What is in the source's own log comes to the file with a checkpoint.
      let log = StoreFiles(fixture.source).wal
      try copyFile(log, StoreFiles(old).wal)
      try write(to: old)
      #expect(truncate(log.string, 0) == 0)
    } else {
      try write(to: old)
    }
    let mark = try FileMark(old)
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    #expect(try fixture.recover() == .takenBackKeeping(backup: backup))
    #expect(try FileMark(fixture.source) == mark)
    #expect(try fixture.content(of: backup) == .old)
    #expect(try words(of: fixture.source, fixture.scratch.folder("words")) == application)
  }

  /// SQLite leaves the log of a file that was moved, and nobody has it open any more.
  @Test(
    arguments: CutOffExchange.all.filter { $0.way != .walled || $0.exchange == 2 }, [false, true])
  private func `is the store where the log is its own, and not where it is the new one's`(
    cut: CutOffExchange, isNew: Bool
  ) throws {
    let fixture = try cut.made()
    let copy = try fixture.scratch.folder("elsewhere").appending("copy.sqlite")
    try copyFile(isNew ? fixture.source : try cut.replaced(fixture), copy)
    try write(to: copy, keepingLogAt: StoreFiles(fixture.source).wal)
    let recovery = try fixture.recover()
    if isNew {
      guard case .committed = recovery else {
        Issue.record("the commit goes on")
        return
      }
    } else {
      guard case .takenBackKeeping(let backup) = recovery else {
        Issue.record("the backup stays")
        return
      }
      #expect(try fixture.content(of: backup) == .old)
    }
    #expect(try words(of: fixture.source, fixture.scratch.folder("words")) == application)
  }

  @Test(arguments: CutOffExchange.all.filter { $0.exchange == 2 || $0.way != .walled })
  private func `is no store again where another one was written over it`(cut: CutOffExchange) throws
  {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    let connection = try Connection(path: old.string, mode: .readWrite)
    try connection.execute("UPDATE Z_METADATA SET Z_UUID = 'another'")
    try connection.close()
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    #expect(
      throws: CommitError.twoStores(
        store: fixture.source, other: old, backup: journal.backup.store)
    ) { try fixture.recover() }
    #expect(try fixture.content(of: journal.backup.store) == .old)
  }

  @Test(arguments: CutOffExchange.all)
  private func `stays beside a new one that was written to as well, until somebody decides`(
    cut: CutOffExchange
  ) throws {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    try write(to: old)
    try write(to: fixture.source)
    let before = files(below: fixture.scratch.path)
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    #expect(
      throws: CommitError.twoStores(
        store: fixture.source, other: old, backup: journal.backup.store)
    ) { try fixture.recover() }
    #expect(files(below: fixture.scratch.path) == before)
    #expect(try words(of: old, fixture.scratch.folder("words")).contains { $0[0] == .text("app") })
  }
}
