import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

/// Bytes that a disk gives back otherwise than it was given them.
enum DiskDamage: CaseIterable {
  /// In the structure of a page, which SQLite notices.
  case page
  /// The same, with the times as they were.
  case silentPage
  /// In the value of a row, which nothing but another copy shows, with the times as they were.
  case silentValue

  /// - Returns: Whether the file's mark is what it was.
  func strike(_ path: FilePath) throws -> Bool {
    let mark = try #require(try FileMark(path))
    var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path.string)))
    let file = try FileDescriptor.open(path, .writeOnly)
    switch self {
    case .page, .silentPage:
      // A root, the last one or the metadata's, which no log of the fixture has.
      let place = min(8192, mark.size - 4096)
      try file.writeAll(toAbsoluteOffset: place, [UInt8](repeating: 0xFF, count: 64))
    case .silentValue:
      let place = try #require(
        bytes.indices.last { place in
          ["old", "new"].contains { bytes[place...].starts(with: Array($0.utf8)) }
        })
      bytes[place] ^= 0x20
      try file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place]])
    }
    if self != .page {
      var times = [
        timespec(),
        timespec(tv_sec: Int(mark.modificationSeconds), tv_nsec: Int(mark.modificationNanoseconds)),
      ]
      #expect(futimens(file.rawValue, &times) == 0)
    }
    try file.close()
    return try FileMark(path) == mark
  }
}

extension SwapFixture {
  /// A commit that was killed as soon as its backup was made, with the source in its place.
  fileprivate static func backedUp(_ way: Way) throws -> (SwapFixture, CommitJournal) {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let backup = CommitJournal.backup(of: fixture.source, .replace, named: "R1")
    let clone = fixture.folder.appending(".Recipes.sqlite.godwit-R1-clone")
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { _, _ in
        let isMade = try DurableFile.exists(backup.store)
        if try isMade && (way != .walled || DurableFile.exists(clone)) { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    return (fixture, try #require(try CommitJournal.read(in: fixture.run)))
  }
}

@Suite struct `A file that a disk damaged while a commit was cut off` {
  @Test(arguments: CutOffExchange.all)
  func `gets no store's name again, and everything is kept until somebody moves it away`(
    cut: CutOffExchange
  ) throws {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    #expect(try !DiskDamage.page.strike(old))
    let before = files(below: fixture.scratch.path)
    let refusal = CommitError.damagedOriginal(store: fixture.source, other: old, backup: backup)
    for _ in 1...2 { #expect(throws: refusal) { try fixture.recover() } }
    #expect(files(below: fixture.scratch.path) == before)
    #expect(try fixture.content(of: backup) == .old)
    try FileManager.default.moveItem(
      atPath: old.string, toPath: fixture.scratch.path.appending("damaged").string)
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content() == .new && fixture.content(of: backup) == .old)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test(arguments: CutOffExchange.all, [DiskDamage.silentPage, .silentValue])
  func `does not stop the commit where nobody wrote to it`(
    cut: CutOffExchange, damage: DiskDamage
  ) throws {
    let fixture = try cut.made()
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    #expect(try damage.strike(cut.replaced(fixture)))
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content() == .new && fixture.content(of: backup) == .old)
  }

  @Test(arguments: CutOffExchange.all)
  func `is not given to whoever has it open`(cut: CutOffExchange) throws {
    let fixture = try cut.made()
    let old = try cut.replaced(fixture)
    let store = try FileMark(fixture.source)
    #expect(try DiskDamage.silentPage.strike(old))
    let opened = try FileDescriptor.open(old, .readOnly, options: .closeOnExec)
    #expect(throws: CommitError.storeInUse(store: old)) { try fixture.recover() }
    #expect(try FileMark(fixture.source) == store)
    try opened.close()
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content() == .new)
  }

  /// The damaged file is the source, in its own place, whose mark is as it was.
  @Test(
    arguments: [SwapFixture.Way.settled, .walled, .small], [DiskDamage.silentPage, .silentValue])
  func `replaces no backup that is whole`(way: SwapFixture.Way, damage: DiskDamage) throws {
    let (fixture, journal) = try SwapFixture.backedUp(way)
    #expect(try damage.strike(fixture.source))
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content() == .new && fixture.content(of: journal.backup.store) == .old)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled, .small], DiskDamage.allCases)
  func `leaves the backup where the commit is taken back`(
    way: SwapFixture.Way, damage: DiskDamage
  ) throws {
    let (fixture, journal) = try SwapFixture.backedUp(way)
    _ = try damage.strike(fixture.source)
    try DurableFile.remove(FilePath(journal.assembled))
    // What a crash in the middle leaves is known for what it is.
    var recovery = StoreSwap.Recovery.nothing
    var crashes = 0
    for step in 1... {
      let crash = StepCounter(stoppingAfter: step)
      do {
        recovery = try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
          try fixture.recover()
        }
        break
      } catch is SimulatedCrash { crashes += 1 }
      // Gone with the last step.
      if try CommitJournal.read(in: fixture.run) == nil { break }
    }
    #expect(crashes > 0)
    #expect(
      recovery == .takenBackKeeping(backup: journal.backup.store) || recovery == .nothing)
    #expect(try CommitJournal.read(in: fixture.run) == nil)
    #expect(try fixture.content(of: journal.backup.store) == .old)
    #expect(try StoreSwap.hasBackup(of: fixture.source, named: "R1"))
  }
}

@Suite struct `A backup that a disk damaged while a commit was cut off` {
  /// The clone that has the store's name then, or the source, goes with the commit.
  @Test(arguments: CutOffExchange.all.filter { $0.exchange == 1 && $0.way == .walled })
  func `is made again of what is whole`(cut: CutOffExchange) throws {
    let fixture = try cut.made()
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    _ = try DiskDamage.silentPage.strike(backup)
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content() == .new && fixture.content(of: backup) == .old)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }
}

@Suite struct `A commit that is taken back when a clone has the store's name` {
  /// - Parameter isReplaced: Whether another run has migrated the clone since, and kept that.
  @Test(arguments: [false, true])
  func `leaves the source's main file and WAL, byte for byte`(isReplaced: Bool) throws {
    let original = try SwapFixture(.walled)
    var fixture = original
    var before: [Data] = []
    for step in 1... {
      fixture = try SwapFixture(.walled)
      let assembled = try fixture.assemble()
      before = try [fixture.source, StoreFiles(fixture.source).wal].map {
        try Data(contentsOf: URL(fileURLWithPath: $0.string))
      }
      let crash = StepCounter(stoppingAfter: step)
      #expect(throws: SimulatedCrash.self) {
        try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
          _ = try fixture.swap.commit(assembled)
        }
      }
      if try !DurableFile.exists(StoreFiles(fixture.source).wal) { break }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    #expect(try FileMark(fixture.source) == journal.clone)
    if isReplaced {
      let other = fixture.folder.appending("other")
      try copyFile(FilePath(journal.assembled), other)
      #expect(rename(other.string, fixture.source.string) == 0)
    } else {
      _ = try DiskDamage.silentPage.strike(FilePath(journal.assembled))
    }
    let backup = journal.backup
    #expect(try fixture.recover() == .takenBackKeeping(backup: backup.store))
    #expect(try fixture.content() == (isReplaced ? .new : .old))
    let after = try [backup.store, backup.wal].map {
      try Data(contentsOf: URL(fileURLWithPath: $0.string))
    }
    #expect(after == before)
  }
}
