import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

@Suite struct `A new store that a disk damaged while its commit was cut off` {
  static let cuts = CutOffExchange.all.filter { $0.way != .walled || $0.exchange == 2 }

  @Test(arguments: cuts, DiskDamage.allCases)
  func `is not called migrated, and everything is kept`(
    cut: CutOffExchange, damage: DiskDamage
  ) throws {
    let fixture = try cut.made()
    let backup = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    _ = try damage.strike(fixture.source)
    let before = files(below: fixture.scratch.path)
    let refusal = CommitError.damagedInPlace(store: fixture.source, backup: backup)
    for _ in 1...2 { #expect(throws: refusal) { try fixture.recover() } }
    #expect(files(below: fixture.scratch.path) == before)
    #expect(try fixture.content(of: backup) == .old)

    // As the message says. The commit was made, and what is there now is left alone.
    let (kept, store) = (StoreFiles(backup), StoreFiles(fixture.source))
    // Removed, its number might be the copy's.
    let away = fixture.scratch.path.appending("away")
    try FileManager.default.moveItem(atPath: store.store.string, toPath: away.string)
    try copyFile(kept.store, store.store)
    if try FileMark(kept.wal) != nil { try copyFile(kept.wal, store.wal) }
    _ = try fixture.recover()
    #expect(try fixture.content() == .old && fixture.content(of: backup) == .old)
  }

  @Test(arguments: cuts)
  func `stops nobody who puts the source back`(cut: CutOffExchange) throws {
    let fixture = try cut.made()
    _ = try DiskDamage.silentPage.strike(fixture.source)
    let found = try StoreSwap.recover(
      run: fixture.run, source: fixture.source, destination: fixture.destination,
      acceptsDamage: true)
    guard case .committed(let journal) = found else {
      Issue.record("the commit is finished")
      return
    }
    #expect(try fixture.content(of: journal.backup.store) == .old)
  }

  @Test(arguments: cuts)
  func `is judged when nobody has it open any more`(cut: CutOffExchange) throws {
    let fixture = try cut.made()
    _ = try DiskDamage.page.strike(fixture.source)
    let opened = try FileDescriptor.open(fixture.source, .readOnly, options: .closeOnExec)
    guard case .committed = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    try opened.close()
    #expect(throws: CommitError.self) { try fixture.recover() }
  }
}
