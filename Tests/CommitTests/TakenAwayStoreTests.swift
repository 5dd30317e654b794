import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

@Suite struct `A store that is taken away while a commit is cut off` {
  @Test(arguments: [SwapFixture.Way.settled, .walled, .small])
  func `ends the commit, at whichever step after the exchange`(
    way: SwapFixture.Way
  ) throws {
    var gone = 0
    for step in 1...(try SwapFixture.durableSteps(way)) {
      let fixture = try SwapFixture.crashed(way, after: step)
      guard try fixture.content() == .new else { continue }
      gone += 1
      let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
      try DurableFile.remove(fixture.source)
      switch try fixture.recover() {
      case .nothing, .committed: break
      case .takenBack, .takenBackKeeping: Issue.record("taken back, step \(step)")
      }
      #expect(try fixture.content(of: backup) == .old, "step \(step)")
      let left = files(below: fixture.folder)
      #expect(!left.contains { $0.hasSuffix("-clone") }, "step \(step): \(left)")
    }
    #expect(gone > 1)
  }

  /// Who waited for the old file has it once the process that replaced it is killed.
  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `keeps what an application wrote to the old file`(
    way: SwapFixture.Way
  ) throws {
    for step in 1...(try SwapFixture.durableSteps(way)) {
      let fixture = try SwapFixture.crashed(way, after: step)
      let journal = try CommitJournal.read(in: fixture.run)
      guard try fixture.content() == .new, let journal,
        let old = try [FilePath(journal.assembled), journal.clonePath].first(where: {
          try FileMark($0)?.isSameFile(as: journal.main) == true
        })
      else { continue }
      // The clock of file times moves every few milliseconds.
      usleep(20_000)
      let application = try Connection(path: old.string, mode: .readWrite)
      try application.execute("UPDATE ZWORD SET WORD = 'theirs'")
      try application.close()
      try DurableFile.remove(fixture.source)
      #expect(
        throws: CommitError.twoStores(
          store: fixture.source, other: old, backup: journal.backup.store)
      ) { try fixture.recover() }
      let words = try Connection(path: old.string, mode: .readOnly)
        .rows("SELECT DISTINCT WORD FROM ZWORD")
      #expect(words == [[.text("theirs")]], "step \(step)")
      return
    }
    Issue.record("no step between exchange and end")
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `leaves what a rollback had replaced, at whichever step`(
    way: SwapFixture.Way
  ) throws {
    let first = try RestorationFixture(way)
    let steps = try stepCount { try first.restore() }
    var missing = 0
    for step in 1...steps {
      let fixture = try RestorationFixture(way)
      let crash = StepCounter(stoppingAfter: step)
      try? DurableSteps.observing(with: { _, _ in try crash.pass() }) { _ = try fixture.restore() }
      guard let journal = try CommitJournal.read(in: fixture.run) else { continue }
      let hasKept = try FileMark(journal.backup.store) != nil
      if !hasKept { try write("a log alone", to: journal.backup.wal) }
      try DurableFile.remove(fixture.store.store)
      do {
        _ = try fixture.recover()
      } catch CommitError.storeMissing {
        missing += 1
        try StoreSwap.abandonRestoration(
          of: fixture.backup, to: fixture.store.store, run: fixture.run)
      }
      #expect(
        try fixture.keptContents()
          == (hasKept ? fixture.after.filter { !$0.key.contains(".godwit-") } : [:]),
        "step \(step)")
      if hasKept { #expect(try fixture.swap.content(of: journal.backup.store) == .new) }
      #expect(try FileMark(fixture.backup.store) != nil, "step \(step)")
      let left = files(below: fixture.swap.folder)
      #expect(
        !left.contains { $0.contains("clone") || $0.contains("-restored-") }, "step \(step)")
    }
    #expect(missing > 3)
  }
}
