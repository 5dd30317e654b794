import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

@Suite struct `A commit journal` {
  /// A journal that a crash left behind, and the files outside of store and run directory.
  private func interrupted(_ way: SwapFixture.Way) throws -> (SwapFixture, CommitJournal) {
    let fixture = try SwapFixture.interrupted(way)
    return (fixture, try #require(try CommitJournal.read(in: fixture.run)))
  }

  /// Writes the journal, changed, and lets a restart find it.
  private func restart(
    _ fixture: SwapFixture, _ journal: CommitJournal, _ change: (inout CommitJournal) -> Void
  ) throws -> StoreSwap.Recovery {
    var journal = journal
    change(&journal)
    try journal.write(in: fixture.run, [])
    return try fixture.recover()
  }

  enum Forgery: String, CaseIterable {
    case store, assembled, settledSource, externalSource, addedName, removedName, run, kind
    case externalSourceBelow, assembledAbove

    func apply(_ journal: inout CommitJournal, _ other: FilePath) {
      let victim = other.appending("victim").string
      switch self {
      case .store: journal.store = victim
      case .assembled: journal.assembled = victim
      case .assembledAbove: journal.assembled += "/../victim"
      case .settledSource: journal.settledSource = victim
      case .externalSource: journal.externalSources = [other.string]
      case .externalSourceBelow: journal.externalSources[0] += "/../../other"
      case .addedName: journal.added.append("../victim")
      case .removedName: journal.removed.append("/etc/hostname")
      case .run: journal.run = "../../victim"
      case .kind: journal.kind = journal.kind == .replace ? .publish : .replace
      }
    }
  }

  @Test(arguments: Forgery.allCases, [SwapFixture.Way.walled, .beside])
  func `that names what is not of its run is refused`(
    forgery: Forgery, way: SwapFixture.Way
  ) throws {
    for state in [CommitJournal.State.prepared, .replaced] {
      let (fixture, journal) = try interrupted(way)
      let other = try fixture.scratch.folder("other")
      try write("victim", to: other.appending("victim"))
      let before = files(below: fixture.scratch.path)
      let error = #expect(throws: CommitError.self) {
        try restart(fixture, journal) {
          $0.state = state
          forgery.apply(&$0, other)
        }
      }
      guard case .foreignJournal = error else {
        Issue.record("\(forgery), \(state): \(String(describing: error))")
        continue
      }
      #expect(files(below: fixture.scratch.path) == before)
    }
  }

  /// What a journal says of the files that are told apart by their marks, once the clone is the store and the WAL gone.
  enum Confusion: String, CaseIterable {
    case noMain, mainOfClone, mainOfAssembled, copyOfNoBackup

    func apply(_ journal: inout CommitJournal) {
      switch self {
      case .noMain: journal.main = nil
      case .mainOfClone: journal.main = journal.clone
      case .mainOfAssembled: journal.main = journal.assembledMark
      case .copyOfNoBackup: journal.isOfCopy = true
      }
    }
  }

  @Test(arguments: Confusion.allCases)
  func `that takes another file for the source is refused`(confusion: Confusion) throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    let wal = StoreFiles(fixture.source).wal
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged, try CommitJournal.read(in: fixture.run)?.clone != nil {
          throw SimulatedCrash()
        }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    try DurableFile.removeIfPresent(wal)
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    let before = files(below: fixture.scratch.path)
    let error = #expect(throws: CommitError.self) {
      try restart(fixture, journal) { confusion.apply(&$0) }
    }
    guard case .foreignJournal = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(files(below: fixture.scratch.path) == before)
    #expect(try fixture.content(of: journal.backup.store) == .old)
    // Publishing has no source.
    let (beside, publishing) = try interrupted(.beside)
    #expect(throws: CommitError.self) {
      try restart(beside, publishing) { $0.main = $0.assembledMark }
    }
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `is followed under another spelling of the same paths`(way: SwapFixture.Way) throws {
    let (fixture, journal) = try interrupted(way)
    let recovery = try restart(fixture, journal) {
      $0.store =
        fixture.folder.appending("..").appending("stores").string + "/"
        + (fixture.destination.lastComponent?.string ?? "")
    }
    guard case .committed(let finished) = recovery else {
      Issue.record("not finished: \(recovery)")
      return
    }
    #expect(finished.store == fixture.destination.string)
    #expect(try fixture.content() == .new)
  }

  // Whoever writes it could let a restart remove the store's own external data.
  @Test func `removes no external data that the backup does not have`() throws {
    let (fixture, journal) = try interrupted(.settled)
    guard case .committed = try restart(fixture, journal, { $0.removed = [SwapFixture.obsolete] })
    else {
      Issue.record("not finished")
      return
    }
    var done = try #require(try CommitJournal.read(in: fixture.run))
    done.state = .replaced
    done.removed = [SwapFixture.kept]
    let backup = done.backup.externalDataFolder
    try FileManager.default.removeItem(atPath: backup.appending(SwapFixture.kept).string)
    try done.write(in: fixture.run, [])
    _ = try fixture.recover()
    let kept = StoreFiles(fixture.source).externalDataFolder.appending(SwapFixture.kept)
    #expect(try DurableFile.exists(kept))
  }

  // A journal that says so is not a proof that the destination is there.
  @Test(arguments: [CommitJournal.State.replaced, .finished])
  func `is forgotten when the store is not what it put there`(
    state: CommitJournal.State
  ) throws {
    let (fixture, journal) = try interrupted(.walled)
    #expect(try restart(fixture, journal, { $0.state = state }) == .nothing)
    #expect(try fixture.content() == .old)
    #expect(try !DurableFile.exists(fixture.run.journal))
  }

  @Test func `is refused when it is a link, or others may write to it`() throws {
    let (fixture, _) = try interrupted(.settled)
    let path = fixture.run.journal
    #expect(chmod(path.string, 0o666) == 0)
    #expect(throws: DurabilityError.self) { try fixture.recover() }
    let moved = fixture.scratch.path.appending("moved.json")
    try FileManager.default.moveItem(atPath: path.string, toPath: moved.string)
    try FileManager.default.createSymbolicLink(
      atPath: path.string, withDestinationPath: moved.string)
    #expect(throws: DurabilityError.symbolicLink(path)) { try fixture.recover() }
    #expect(try fixture.content() == .old)
  }

  @Test func `of a store whose external data is linked is refused`() throws {
    let (fixture, journal) = try interrupted(.settled)
    let folder = StoreFiles(fixture.source).supportFolder
    let moved = fixture.scratch.path.appending("moved")
    try FileManager.default.moveItem(atPath: folder.string, toPath: moved.string)
    try FileManager.default.createSymbolicLink(
      atPath: folder.string, withDestinationPath: moved.string)
    let before = files(below: moved)
    #expect(throws: StoreError.unusualFile(folder, .symbolicLink, of: fixture.source)) {
      try restart(fixture, journal) { $0.removed = [SwapFixture.kept] }
    }
    #expect(files(below: moved) == before)
  }
}
